//! The past of a request: enough of its process's preceding accesses to the file to decide, given
//! where the file's bytes lie, on which servers the request continues where the process's previous
//! one ended.
//!
//! Order in the file says little about that. If processes access a file's blocks in turns, no
//! process's requests are sequential in the file. With as many servers as processes and stripes of
//! one block, all of them are sequential on their server.

use rustc_hash::FxHashMap;

/// When there are this many streams, all are forgotten; this bounds the memory (57 MiB). It is what
/// a hash table of 2^20 places holds; one more stream would double the table.
const MAX_STREAMS: usize = (1 << 20) / 8 * 7;

/// The process's accesses to the file, reads and writes together, just before a request.
///
/// A *run* is a range that was accessed sequentially, each request beginning where the previous one
/// ended. A past knows the run that the request continues, if there is one, and before it a number
/// of runs of equal length at equal distances. These are all accesses since the first known run, in
/// ascending order. The default value knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    /// Length of the current run directly before the request, bytes; 0 if the request begins a run.
    pub run: u64,
    /// Distance between the starts of consecutive earlier runs, bytes; 0 if none is known.
    pub stride: u64,
    /// Length of each earlier run, bytes; at most `stride`.
    pub length: u64,
    /// Number of known earlier runs.
    pub count: u32,
}

impl Past {
    /// Whether `byte`, before the request at `offset`, is in a known run. If so, everything that
    /// the process has accessed in the file since then lies between that byte and the request.
    pub fn covers(&self, offset: u64, byte: u64) -> bool {
        let start = offset - self.run;
        if byte >= start {
            return byte < offset;
        }
        let back = (start - byte).div_ceil(self.stride.max(1));
        back <= u64::from(self.count) && byte - (start - back * self.stride) < self.length
    }

    /// Distance from the start of the first known run to the request, bytes.
    pub fn reach(&self) -> u64 {
        self.run.saturating_add(self.stride.saturating_mul(u64::from(self.count)))
    }

    /// Reduces the past to what it says about the last `window` bytes before the request. Two pasts
    /// that say the same about these bytes become equal.
    #[must_use]
    pub fn within(self, window: u64) -> Self {
        let (run, rest) = (self.run.min(window), window.saturating_sub(self.run));
        let most = rest.saturating_add(self.length);
        if self.count == 0 || rest == 0 || most <= self.stride {
            return Self { run, ..Self::default() };
        }
        // Runs that end less than `rest` bytes before the start of the request's own run.
        let ends = most.div_ceil(self.stride.max(1)) - 1;
        Self { run, count: ends.min(u64::from(self.count)) as u32, ..self }
    }
}

/// The accesses of one process to one file.
struct Stream {
    /// The current run.
    start: u64,
    end: u64,
    /// The runs before it; its `run` is 0.
    earlier: Past,
}

/// Computes the pasts of all requests of a trace, one after the other.
#[derive(Default)]
pub struct Pasts {
    streams: FxHashMap<(u32, u32), Stream>,
}

impl Pasts {
    /// The past of the next request, of `size` bytes at `offset`. Requests must come in order of
    /// start.
    #[inline]
    pub fn next(&mut self, process: u32, file: u32, offset: u64, size: u64) -> Past {
        if self.streams.len() >= MAX_STREAMS {
            self.streams.clear();
        }
        let end = offset.saturating_add(size);
        let Some(stream) = self.streams.get_mut(&(process, file)) else {
            self.streams.insert((process, file), Stream { start: offset, end, earlier: Past::default() });
            return Past::default();
        };
        if offset != stream.end {
            stream.begin_run(offset);
        }
        stream.end = end;
        Past { run: offset - stream.start, ..stream.earlier }
    }
}

impl Stream {
    fn begin_run(&mut self, offset: u64) {
        let (stride, length) = (offset.saturating_sub(self.start), self.end - self.start);
        self.earlier = if stride < length {
            // A step back, or into the run itself: the accesses no longer ascend, so the earlier
            // runs are forgotten.
            Past::default()
        } else if (stride, length) == (self.earlier.stride, self.earlier.length) {
            Past { count: self.earlier.count.saturating_add(1), ..self.earlier }
        } else {
            Past { run: 0, stride, length, count: 1 }
        };
        self.start = offset;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pasts(requests: &[(u64, u64)]) -> Vec<Past> {
        let mut pasts = Pasts::default();
        requests.iter().map(|&(offset, size)| pasts.next(0, 0, offset, size)).collect()
    }

    #[test]
    fn blocks_at_equal_distances() {
        // Blocks of two requests, 100 bytes apart.
        let found = pasts(&[(0, 10), (10, 10), (100, 10), (110, 10), (200, 10), (210, 10), (40, 10)]);
        let blocks = |run, count| Past { run, stride: 100, length: 20, count };
        let expected = [
            Past::default(),
            Past { run: 10, ..Past::default() },
            blocks(0, 1),
            blocks(10, 1),
            blocks(0, 2),
            blocks(10, 2),
            Past::default(),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn processes_and_files_are_apart() {
        let mut pasts = Pasts::default();
        for (process, file) in [(0, 0), (0, 1), (1, 0)] {
            assert_eq!(pasts.next(process, file, 0, 10), Past::default());
        }
        for (process, file) in [(0, 0), (0, 1), (1, 0)] {
            assert_eq!(pasts.next(process, file, 10, 10).run, 10);
        }
    }

    /// Extents that are likely to touch, overlap and repeat their distances.
    fn requests() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let free = prop::collection::vec((0u64..30, 1u64..6), 1..12);
        let strided = (0u64..20, 1u64..4, 1u64..30, 1u64..12);
        let strided = strided.prop_map(|(from, size, by, n)| (0..n).map(|i| (from + i * by, size)).collect());
        prop::collection::vec(prop_oneof![free, strided], 1..4).prop_map(|parts: Vec<Vec<_>>| parts.concat())
    }

    proptest! {
        /// A covered byte was accessed, and nothing between it and the request was accessed after
        /// it.
        #[test]
        fn what_is_covered_is_the_last_before(requests in requests()) {
            for (index, past) in pasts(&requests).into_iter().enumerate() {
                let offset = requests[index].0;
                for byte in (0..offset).filter(|&byte| past.covers(offset, byte)) {
                    let accessed = |i: &usize| (requests[*i].0..requests[*i].0 + requests[*i].1).contains(&byte);
                    let last = (0..index).rev().find(accessed);
                    prop_assert!(last.is_some(), "{byte} before {index} of {requests:?} was never accessed");
                    let after = &requests[last.unwrap_or(0) + 1..index];
                    prop_assert!(after.iter().all(|&(from, size)| from > byte && from + size <= offset));
                }
            }
        }

        #[test]
        fn a_part_tells_the_same(run in 0u64..50, stride in 0u64..40, shorter in 0u64..40, count in 0u32..9, window in 0u64..300) {
            let past = if stride == 0 || count == 0 {
                Past { run, ..Past::default() }
            } else {
                Past { run, stride, length: stride.saturating_sub(shorter).max(1), count }
            };
            let (offset, part) = (1000, past.within(window));
            for byte in 0..offset {
                let inside = byte + window >= offset;
                if inside {
                    prop_assert_eq!(part.covers(offset, byte), past.covers(offset, byte), "{} of {:?}", byte, past);
                }
            }
            prop_assert_eq!(part.within(window), part);
            prop_assert!(part.count == 0 || (window - run) + part.length > u64::from(part.count) * stride);
        }
    }
}
