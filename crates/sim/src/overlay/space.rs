//! The space that cached data take on their servers, of all files.

use std::ops::Range;

use stripewise_policy::{Space, Want};

use super::map::Map;
use crate::placed::Placed;

/// Bytes given up at once at least, but of a small cache only this part.
const BATCH_BYTES: u64 = 1 << 20;
const BATCH_PART: u64 = 8;

/// What caches hold on every server.
#[derive(Debug)]
pub(crate) struct Spaces {
    used: Vec<u64>,
    of_range: Vec<u64>,
}

impl Spaces {
    pub fn new(servers: usize) -> Self {
        Self { used: vec![0; servers], of_range: Vec::new() }
    }

    /// Takes so many bytes on each of these servers, or nothing: false, one would hold more than `limit`.
    fn take(&mut self, servers: &[u32], bytes: &[u64], limit: u64) -> bool {
        let wanted = || servers.iter().zip(bytes).filter(|(_, bytes)| **bytes > 0);
        let fits = |(&server, &bytes): (&u32, &u64)| self.used[server as usize].saturating_add(bytes) <= limit;
        let all = wanted().all(fits);
        if all {
            wanted().for_each(|(&server, &bytes)| self.used[server as usize] += bytes);
        }
        all
    }

    /// Takes space for a range of a copy; false: one of its servers has too little.
    pub fn take_range(&mut self, placed: &Placed, range: &Range<u64>, limit: u64) -> bool {
        let bytes = self.bytes(placed, range);
        let taken = self.take(&placed.servers, &bytes, limit);
        self.of_range = bytes;
        taken
    }

    /// Gives back the space of a range of a copy.
    pub fn give(&mut self, placed: &Placed, range: &Range<u64>) {
        let bytes = self.bytes(placed, range);
        for (&server, &bytes) in placed.servers.iter().zip(&bytes) {
            let used = &mut self.used[server as usize];
            debug_assert!(*used >= bytes, "more given back than was taken");
            *used -= bytes;
        }
        self.of_range = bytes;
    }

    fn bytes(&mut self, placed: &Placed, range: &Range<u64>) -> Vec<u64> {
        let mut bytes = std::mem::take(&mut self.of_range);
        bytes.resize(placed.servers.len(), 0);
        placed.layout.bytes_per_target(range.start, range.end - range.start, &mut bytes);
        bytes
    }

    /// What the fullest server of a copy holds.
    pub fn fullest(&self, placed: &Placed) -> u64 {
        placed.servers.iter().map(|&server| self.used[server as usize]).max().unwrap_or(0)
    }

    /// Gives up clean data of a copy whose servers hold `limit` each, those first that were used least recently: at least `bytes` if there are
    /// so many, none in `but`.
    /// How many bytes of the file.
    pub fn give_up(
        &mut self,
        map: &mut Map,
        placed: &Placed,
        copy: usize,
        (bytes, limit): (u64, u64),
        but: &Range<u64>,
    ) -> u64 {
        if map.clean_bytes(copy) == 0 {
            return 0;
        }
        let batch = (limit.saturating_mul(placed.servers.len() as u64) / BATCH_PART).clamp(1, BATCH_BYTES);
        let mut given = 0;
        let ranges = map.least_recent(copy, bytes.max(batch), but);
        for range in ranges.iter().flat_map(|range| pieces(range, batch)) {
            for span in map.spans(&range) {
                map.set(&(span.start..span.end), span.mask & !(1 << copy));
            }
            self.give(placed, &range);
            given += range.end - range.start;
            if given >= bytes {
                break;
            }
        }
        given
    }

    #[cfg(test)]
    pub fn used(&self) -> &[u64] {
        &self.used
    }
}

/// A range in pieces of at most so many bytes.
fn pieces(range: &Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    (range.start..end).step_by(most as usize).map(move |start| start..end.min(start + most))
}

/// The space of a file's cache copies, as one request takes it.
pub(super) struct Room<'a> {
    pub spaces: &'a mut Spaces,
    pub map: &'a mut Map,
    /// Per copy.
    pub placed: Vec<&'a Placed>,
    pub first_target: &'a [usize],
    pub limit: u64,
    /// The request: its data are not given up.
    pub range: Range<u64>,
    /// What was taken: the copy, and of what range.
    pub taken: Vec<(usize, Range<u64>)>,
    pub evicted: u64,
}

impl Room<'_> {
    fn take(&mut self, want: &Want<'_>) -> bool {
        let copy = usize::from(want.copy);
        // The policy counts the targets of all copies.
        let bytes = want.bytes.get(self.first_target[copy]..).unwrap_or_default();
        let taken = self.spaces.take(&self.placed[copy].servers, bytes, self.limit);
        if taken {
            self.taken.push((copy, want.start..want.end));
        }
        taken
    }
}

impl Space for Room<'_> {
    fn take_free(&mut self, want: &Want<'_>) -> bool {
        self.take(want)
    }

    fn take_clean(&mut self, want: &Want<'_>) -> bool {
        let first = usize::from(want.copy);
        // All cache copies may lie on the servers that are full.
        let others = (1..self.placed.len()).filter(|&other| other != first);
        for copy in std::iter::once(first).chain(others) {
            let bytes = want.end - want.start;
            let given =
                self.spaces.give_up(self.map, self.placed[copy], copy, (bytes, self.limit), &self.range);
            self.evicted += given;
            if given > 0 && self.take(want) {
                return true;
            }
        }
        false
    }
}
