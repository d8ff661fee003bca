//! The placement of one copy of a file: a layout over only the targets that it uses, and the
//! servers of these targets.

use stripewise_layout::{Layout, Region};

/// A layout whose targets are objects 0, 1, ...
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub layout: Layout,
    /// The server of each object.
    pub servers: Box<[u32]>,
    /// Length in bytes from which on an extent may touch a target many times. Longer extents are
    /// divided by arithmetic instead of piece by piece.
    long: u64,
}

/// A sub-request: the bytes of a request on one server. Because objects are dense, a file extent is
/// one range of the object on each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sub {
    pub object: u32,
    /// Offset in the object, bytes.
    pub offset: u64,
    pub bytes: u64,
}

/// Memory for dividing requests, kept from one request to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Per object, the number of the last request that touched it, and the index of the
    /// sub-request.
    seen: Vec<(u32, u32)>,
    cut: u32,
}

impl Placed {
    pub fn new(layout: &Layout) -> Self {
        let (layout, servers) = layout.compacted();
        let long = layout.regions().iter().map(Region::cycle_len).max().unwrap_or(0).saturating_mul(4);
        Self { layout, servers: servers.into(), long }
    }

    /// Appends the sub-requests of an extent to `subs`: one per server, in the order in which they
    /// are sent, which starts where the extent begins. [`Scratch::begin`] must have been called for
    /// the request. Further extents of the same request extend the existing sub-requests where they
    /// continue in the object.
    pub fn cut(&self, offset: u64, len: u64, scratch: &mut Scratch, subs: &mut Vec<Sub>) {
        if len > self.long {
            return self.cut_long(offset, len, scratch, subs);
        }
        for piece in self.layout.pieces(offset, len) {
            scratch.add(Sub { object: piece.target, offset: piece.target_offset, bytes: piece.len }, subs);
        }
    }

    fn cut_long(&self, offset: u64, len: u64, scratch: &mut Scratch, subs: &mut Vec<Sub>) {
        for object in 0..self.servers.len() as u32 {
            let start = self.layout.object_size(object, offset);
            let end = self.layout.object_size(object, offset.saturating_add(len));
            if end > start {
                scratch.add(Sub { object, offset: start, bytes: end - start }, subs);
            }
        }
    }
}

impl Scratch {
    /// Begins a request on a copy.
    #[inline]
    pub fn begin(&mut self, placed: &Placed) {
        if self.seen.len() < placed.servers.len() {
            self.seen.resize(placed.servers.len(), (0, 0));
        }
        if self.cut == u32::MAX {
            self.seen.fill((0, 0));
            self.cut = 0;
        }
        self.cut += 1;
    }

    #[inline]
    fn add(&mut self, sub: Sub, subs: &mut Vec<Sub>) {
        let seen = &mut self.seen[sub.object as usize];
        if seen.0 == self.cut {
            let last = &mut subs[seen.1 as usize];
            if last.offset + last.bytes == sub.offset {
                last.bytes += sub.bytes;
                return;
            }
        }
        *seen = (self.cut, subs.len() as u32);
        subs.push(sub);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stripewise_layout::constructors::{striped, two_part};

    use super::*;

    fn layouts() -> Vec<Layout> {
        vec![
            striped(&[3, 5, 9], 7).unwrap(),
            two_part(&[(7, 10), (3, 20), (7, 4)], 340, &[(5, 9), (3, 1)]).unwrap(),
            striped(&[4], 16).unwrap(),
        ]
    }

    proptest! {
        /// One range per server, with the bytes and the position that the layout gives.
        #[test]
        fn cuts_are_those_of_the_layout(which in 0..3usize, offset in 0..600u64, len in 0..800u64) {
            let layout = &layouts()[which];
            let placed = Placed::new(layout);
            let (mut scratch, mut subs) = (Scratch::default(), Vec::new());
            for _ in 0..2 {
                subs.clear();
                scratch.begin(&placed);
                placed.cut(offset, len, &mut scratch, &mut subs);
                let mut bytes = vec![0; layout.target_count()];
                layout.bytes_per_target(offset, len, &mut bytes);
                for sub in &subs {
                    let target = placed.servers[sub.object as usize];
                    prop_assert_eq!(sub.bytes, std::mem::take(&mut bytes[target as usize]));
                    prop_assert_eq!(sub.offset, layout.object_size(target, offset));
                    prop_assert!(sub.bytes > 0);
                }
                prop_assert!(bytes.iter().all(|&bytes| bytes == 0));
            }
        }
    }
}
