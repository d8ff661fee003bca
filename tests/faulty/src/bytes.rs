//! The content of a file: sparse, with synced and unsynced data kept apart.

use std::collections::BTreeMap;

use stripewise_random::Random;

use super::kept::Kept;

pub(super) const PAGE: u64 = 4096;

/// Sparse bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes {
    pub size: u64,
    /// Pages by number. A missing page is all zeros.
    pub pages: BTreeMap<u64, Vec<u8>>,
}

impl Bytes {
    pub fn write(&mut self, offset: u64, mut data: &[u8]) {
        let mut at = offset;
        while !data.is_empty() {
            let within = (at % PAGE) as usize;
            let len = data.len().min(PAGE as usize - within);
            let page = self.pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[within..within + len].copy_from_slice(&data[..len]);
            data = &data[len..];
            at += len as u64;
        }
        self.size = self.size.max(at);
    }

    pub fn set_size(&mut self, size: u64) {
        if size < self.size {
            self.pages.retain(|&page, _| page * PAGE < size);
            if let Some(page) = self.pages.get_mut(&(size / PAGE)) {
                page[(size % PAGE) as usize..].fill(0);
            }
        }
        self.size = size;
    }

    /// Clears a range in the existing pages; the size stays.
    fn zero(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        for (page, data) in self.pages.range_mut(offset / PAGE..end.div_ceil(PAGE)) {
            let within = |at: u64| (at.max(page * PAGE) - page * PAGE).min(PAGE) as usize;
            data[within(offset)..within(end)].fill(0);
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Zero { offset, len } => self.zero(*offset, *len),
            Change::Write { offset, data } => self.write(*offset, data),
            Change::Size(size) => self.set_size(*size),
            Change::Grow(size) => self.set_size(self.size.max(*size)),
        }
    }
}

/// A change of a file's content.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write {
        offset: u64,
        data: Vec<u8>,
    },
    /// A punched hole.
    Zero {
        offset: u64,
        len: u64,
    },
    Size(u64),
    /// Extends the file to at least this size.
    Grow(u64),
}

impl Change {
    /// The pages of a write or a hole as single changes; any other change as it is.
    fn parts(&self) -> Vec<Change> {
        let (offset, data) = match self {
            Change::Write { offset, data } => (offset, data),
            Change::Zero { offset, len } => return Self::holes(*offset, offset.saturating_add(*len)),
            _ => return vec![self.clone()],
        };
        let (mut parts, mut at, mut data) = (Vec::new(), *offset, data.as_slice());
        while !data.is_empty() {
            let (part, rest) = data.split_at(data.len().min((PAGE - at % PAGE) as usize));
            parts.push(Change::Write { offset: at, data: part.to_vec() });
            at += part.len() as u64;
            data = rest;
        }
        parts
    }

    fn holes(offset: u64, end: u64) -> Vec<Change> {
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let hole = |page: u64| {
            let (start, end) = (offset.max(page * PAGE), end.min((page + 1) * PAGE));
            Change::Zero { offset: start, len: end - start }
        };
        pages.map(hole).filter(|change| !matches!(change, Change::Zero { len: 0, .. })).collect()
    }
}

/// The durable content of a file, and the changes that may or may not be on the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    durable: Bytes,
    /// In order. Writes in it are never empty.
    unsynced: Vec<Change>,
}

impl Content {
    pub fn synced(durable: Bytes) -> Self {
        Self { durable, unsynced: Vec::new() }
    }

    pub fn change(&mut self, change: Change) {
        self.unsynced.push(change);
    }

    pub fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            self.durable.apply(&change);
        }
    }

    /// A failed fsync: any part of the unsynced changes may be lost for good.
    pub fn sync_failed(&mut self, random: &mut Random) {
        self.unsynced = self.unsynced.iter().flat_map(Change::parts).filter(|_| random.coin()).collect();
    }

    /// The content after a power cut.
    pub fn after_power_cut(&self, random: &mut Random) -> Bytes {
        let mut left = self.durable.clone();
        let kept = Kept::choose(random);
        for part in self.unsynced.iter().flat_map(Change::parts) {
            if kept.keeps(random) {
                left.apply(&part);
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flat(bytes: &Bytes) -> Vec<u8> {
        let mut flat = vec![0; bytes.size as usize];
        for (&page, data) in &bytes.pages {
            let start = (page * PAGE) as usize;
            let len = data.len().min(flat.len().saturating_sub(start));
            flat[start..start + len].copy_from_slice(&data[..len]);
        }
        flat
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0u64..20000, 1usize..9000, 1u8..)
                .prop_map(|(offset, len, value)| Change::Write { offset, data: vec![value; len] }),
            (0u64..20000).prop_map(Change::Size),
            (0u64..20000).prop_map(Change::Grow),
            (0u64..20000, 0u64..9000).prop_map(|(offset, len)| Change::Zero { offset, len }),
        ]
    }

    proptest! {
        #[test]
        fn sparse_bytes_are_like_a_vector(changes in prop::collection::vec(change(), 0..20)) {
            let (mut content, mut model) = (Content::default(), Vec::new());
            for change in changes {
                match &change {
                    Change::Write { offset, data } => {
                        let end = *offset as usize + data.len();
                        model.resize(model.len().max(end), 0);
                        model[*offset as usize..end].copy_from_slice(data);
                    }
                    Change::Zero { offset, len } => {
                        let end = (offset + len).min(model.len() as u64).max(*offset) as usize;
                        if (*offset as usize) < model.len() {
                            model[*offset as usize..end].fill(0);
                        }
                    }
                    Change::Size(size) => model.resize(*size as usize, 0),
                    Change::Grow(size) => model.resize(model.len().max(*size as usize), 0),
                }
                content.change(change);
            }
            content.sync();
            prop_assert_eq!(flat(&content.durable), model);
        }

        /// Every byte has a value that the file had there at some time, and synced bytes that no
        /// later write touched survive.
        #[test]
        fn a_power_cut_keeps_the_synced_and_invents_nothing(seed: u64, writes in 0usize..10) {
            let mut content = Content::default();
            content.change(Change::Write { offset: 0, data: vec![1; 30000] });
            content.sync();
            for value in 0..writes {
                let data = vec![value as u8 + 2; 6000];
                content.change(Change::Write { offset: value as u64 * 2000, data });
            }
            let left = flat(&content.after_power_cut(&mut Random(seed)));
            prop_assert_eq!(left.len(), 30000);
            for (at, &byte) in left.iter().enumerate() {
                let writers = (0..writes).filter(|value| (value * 2000..value * 2000 + 6000).contains(&at));
                prop_assert!(byte == 1 || writers.into_iter().any(|value| value as u8 + 2 == byte));
            }
        }
    }

    #[test]
    fn power_cuts_with_different_seeds_differ() {
        let mut content = Content::default();
        content.change(Change::Write { offset: 100, data: vec![7; 20000] });
        let ends: std::collections::HashSet<Vec<u8>> =
            (0..50).map(|seed| flat(&content.after_power_cut(&mut Random(seed)))).collect();
        assert!(ends.len() > 5, "{}", ends.len());
        assert!(ends.contains(&Vec::new()), "nothing kept");
        assert!(ends.iter().any(|end| end.len() == 20100 && end[100..].iter().all(|&byte| byte == 7)));
    }
}
