//! What the page caches of the nodes may hold: pages that a node has read or written before, and
//! written bytes that no call has flushed.

use std::collections::{BTreeMap, HashMap};

use stripewise_trace::Request as Call;

use crate::memory::memory_s;
use crate::problem::PAGE;

/// Maximum number of extents (at most some 250 bytes each) and of files with unflushed bytes.
/// Beyond it nothing new is noted, so fewer requests are taken for memory's.
pub(super) const NOTED_MAX: usize = 64 * 1024;

/// The pages that nodes have read or written.
#[derive(Default)]
pub(super) struct Pages {
    /// By node and file: start and end of extents that do not touch.
    extents: HashMap<(u32, u32), BTreeMap<u64, u64>>,
    count: usize,
    /// By file: bytes written since it was last flushed.
    unflushed: HashMap<u32, u64>,
}

impl Pages {
    /// Notes nothing, and takes no memory, unless it is wanted.
    pub fn new(is_wanted: bool) -> Self {
        Self { count: if is_wanted { 0 } else { NOTED_MAX }, ..Self::default() }
    }

    /// Notes a read or write by a process of `node`. Returns whether the node had read or written
    /// all of its bytes before.
    pub fn access(&mut self, node: u32, call: &Call) -> bool {
        let (start, end) = (call.offset, call.offset.saturating_add(call.bytes()));
        let is_full = self.count >= NOTED_MAX;
        let extents = match self.extents.get_mut(&(node, call.file)) {
            Some(extents) => extents,
            None if is_full => return false,
            None => self.extents.entry((node, call.file)).or_default(),
        };
        let is_known = extents.range(..=start).next_back().is_some_and(|(_, known_end)| *known_end >= end);
        if !is_known && !is_full {
            let before = extents.len();
            add(extents, start / PAGE * PAGE, end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX));
            self.count = self.count + extents.len() - before;
        }
        is_known
    }

    /// Notes written bytes.
    pub fn write(&mut self, call: &Call) {
        let is_full = self.count.max(self.unflushed.len()) >= NOTED_MAX;
        if !is_full || self.unflushed.contains_key(&call.file) {
            let bytes = self.unflushed.entry(call.file).or_default();
            *bytes = bytes.saturating_add(call.bytes());
        }
    }

    /// Notes that a call has synced a file.
    pub fn flush(&mut self, file: u32) {
        self.unflushed.remove(&file);
    }

    /// Notes a close. One that takes longer than copying in memory has written the bytes back.
    pub fn close(&mut self, call: &Call) {
        let took_s = call.end_ns.saturating_sub(call.start_ns) as f64 * 1e-9;
        if self.unflushed.get(&call.file).is_some_and(|&bytes| took_s > memory_s(bytes)) {
            self.flush(call.file);
        }
    }

    /// Each file with bytes that were not flushed, and their number.
    pub fn unflushed(&self) -> impl Iterator<Item = (u32, u64)> {
        self.unflushed.iter().map(|(&file, &bytes)| (file, bytes))
    }
}

/// Adds an extent, and joins it with those that it touches.
fn add(extents: &mut BTreeMap<u64, u64>, mut start: u64, mut end: u64) {
    while let Some((&other, &other_end)) = extents.range(..=end).next_back().filter(|(_, e)| **e >= start) {
        extents.remove(&other);
        (start, end) = (start.min(other), end.max(other_end));
    }
    extents.insert(start, end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stripewise_trace::{Flags, Op};

    use super::*;

    fn call(op: Op, file: u32, offset: u64, size: u64, took_ns: u64) -> Call {
        let (flags, result) = (Flags::NONE, size as i64);
        Call { process: 0, tid: 1, file, op, flags, offset, size, result, start_ns: 0, end_ns: took_ns }
    }

    proptest! {
        #[test]
        fn a_node_knows_the_pages_that_it_has_used(
            requests in prop::collection::vec((0u32..2, 0u32..2, 0u64..40, 1u64..9), 1..60),
        ) {
            let (mut pages, mut known) = (Pages::default(), std::collections::HashSet::new());
            for (node, file, first, count) in requests {
                let all = |page: u64| (node, file, page);
                let had = (first..first + count).all(|page| known.contains(&all(page)));
                let read = call(Op::Read, file, first * PAGE + 1, count * PAGE - 2, 0);
                prop_assert_eq!(pages.access(node, &read), had);
                known.extend((first..first + count).map(all));
            }
        }
    }

    #[test]
    fn written_bytes_are_unflushed_until_a_sync_or_a_slow_close() {
        let mut pages = Pages::default();
        let mut left = |calls: &[Call]| {
            for call in calls {
                match call.op {
                    Op::Write => pages.write(call),
                    Op::Sync => pages.flush(call.file),
                    _ => pages.close(call),
                }
            }
            let mut left: Vec<(u32, u64)> = pages.unflushed().collect();
            left.sort_unstable();
            left
        };
        let write = |file| call(Op::Write, file, 0, 4096, 0);
        assert_eq!(left(&[write(0), write(1), write(1), write(2)]), [(0, 4096), (1, 8192), (2, 4096)]);
        assert_eq!(left(&[call(Op::Sync, 1, 0, 0, 0)]), [(0, 4096), (2, 4096)]);
        let [quick, slow] = [1_000, 10_000_000].map(|took_ns| call(Op::Close, 2, 0, 0, took_ns));
        assert_eq!(left(&[quick]), [(0, 4096), (2, 4096)]);
        assert_eq!(left(&[slow, write(2)]), [(0, 4096), (2, 4096)]);
        assert_eq!(left(&[slow]), [(0, 4096)]);
    }
}
