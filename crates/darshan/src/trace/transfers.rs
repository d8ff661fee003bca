//! Reads or writes of a record as single calls of its processes: what offsets and times they may
//! have had.

use stripewise_random::Random;
use stripewise_trace::{Flags, Op};

/// The reads or the writes of a record.
#[derive(Clone, Debug)]
pub(super) struct Transfers {
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) calls: u64,
    /// Sizes and how many calls have each, as many as `calls` in all.
    pub(super) sizes: Vec<(u64, u64)>,
    /// Calls that begin where the process's call before ended.
    pub(super) consecutive: u64,
    /// Calls that begin there or behind it.
    pub(super) sequential: u64,
    /// End of the accessed part of the file, bytes.
    pub(super) extent: u64,
    /// Start of the first and end of the last, seconds since the start of the job.
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    /// Time of all, seconds.
    pub(super) busy_s: f64,
}

/// A call that may have been.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Call {
    /// Which of the processes.
    pub(super) process: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Seconds since the start of the job.
    pub(super) start_s: f64,
    pub(super) end_s: f64,
}

impl Transfers {
    /// One of `every` calls, which stands for all of them.
    pub(super) fn thinned(&self, every: u64) -> Transfers {
        let mut thinned = self.clone();
        thinned.sizes.iter_mut().for_each(|(_, times)| *times = times.div_ceil(every));
        thinned.calls = thinned.sizes.iter().map(|(_, times)| times).sum();
        thinned.consecutive = self.consecutive / every;
        thinned.sequential = self.sequential / every;
        thinned.busy_s = self.busy_s / every as f64;
        thinned
    }

    /// Passes calls of `processes` processes to `each`, process by process. They have all sizes of
    /// the record, and of its sequential and consecutive calls about as many.
    pub(super) fn for_each<E>(
        &self,
        processes: u64,
        mut each: impl FnMut(Call) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut sizes = Mix::new(self.sizes.iter().map(|(_, times)| *times));
        let jumps = self.sequential.saturating_sub(self.consecutive).min(self.calls);
        let consecutive = self.consecutive.min(self.calls);
        // A process's first call follows none, and is in neither counter.
        let random = self.calls.saturating_sub(consecutive).saturating_sub(jumps).saturating_sub(processes);
        let mut kinds = Mix::new([consecutive, jumps, random].into_iter());
        let each_s = self.busy_s.max(0.0) / self.calls.max(1) as f64;
        let span_s = (self.end_s - self.start_s - each_s).max(0.0);
        let mut walk = Walk::new(self, processes);
        for process in 0..processes {
            let calls = share(self.calls, process, processes);
            walk.begin(process);
            for number in 0..calls {
                let size = self.sizes[sizes.next()].0;
                let is_last = process + 1 == processes && number + 1 == calls;
                let kind = if number == 0 { Kind::Consecutive } else { Kind::ALL[kinds.next()] };
                let offset = walk.next(kind, size, is_last);
                let start_s = self.start_s + span_s * number as f64 / calls as f64;
                each(Call { process, offset, size, start_s, end_s: start_s + each_s })?;
            }
        }
        Ok(())
    }
}

/// How many of `calls` a process has.
pub(super) fn share(calls: u64, process: u64, processes: u64) -> u64 {
    calls / processes + u64::from(process < calls % processes)
}

/// Chooses among items in turn, as often as each comes (smooth weighted round robin).
struct Mix {
    weights: Vec<i128>,
    credits: Vec<i128>,
    total: i128,
}

impl Mix {
    fn new(weights: impl Iterator<Item = u64>) -> Mix {
        let weights: Vec<i128> = weights.map(i128::from).collect();
        Mix { credits: vec![0; weights.len()], total: weights.iter().sum(), weights }
    }

    /// Index of the next item.
    fn next(&mut self) -> usize {
        self.credits.iter_mut().zip(&self.weights).for_each(|(credit, weight)| *credit += weight);
        let best = (0..self.credits.len()).rev().max_by_key(|&index| self.credits[index]).unwrap_or(0);
        if let Some(credit) = self.credits.get_mut(best) {
            *credit -= self.total;
        }
        best
    }
}

/// Where a call begins.
#[derive(Clone, Copy)]
enum Kind {
    /// At the end of the call before.
    Consecutive,
    /// Behind that.
    Jump,
    /// Anywhere.
    Random,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Consecutive, Kind::Jump, Kind::Random];
}

/// The offsets of a process.
struct Walk {
    extent: u64,
    /// Distance of the starts of two processes.
    apart: u64,
    /// Bytes passed over by a jump.
    gap: u64,
    position: u64,
    random: Random,
}

impl Walk {
    fn new(of: &Transfers, processes: u64) -> Walk {
        let bytes =
            of.sizes.iter().fold(0_u64, |sum, (size, times)| sum.saturating_add(size.saturating_mul(*times)));
        let (own, extent) = (bytes / processes, of.extent);
        let jumps = of.sequential.saturating_sub(of.consecutive) / processes;
        let is_strided = 2 * u128::from(of.sequential.saturating_sub(of.consecutive)) > u128::from(of.calls);
        // Processes that access most of the file each begin at its start. Others have a segment of
        // it each, or take turns.
        let apart = match (own > extent / 2, is_strided) {
            (true, _) => 0,
            (false, true) => bytes / of.calls.max(1),
            (false, false) => extent / processes,
        };
        let range = if is_strided { extent } else { extent / processes };
        let gap = range.saturating_sub(own) / jumps.max(1);
        Walk { extent, apart, gap, position: 0, random: Random(extent) }
    }

    fn begin(&mut self, process: u64) {
        self.position = self.apart.saturating_mul(process).min(self.extent);
    }

    /// Offset of the next call. The last of all ends where the file's accessed part ends.
    fn next(&mut self, kind: Kind, size: u64, is_last: bool) -> u64 {
        let latest = self.extent.saturating_sub(size);
        let offset = match kind {
            _ if is_last => latest,
            Kind::Consecutive => self.position,
            Kind::Jump => self.position.saturating_add(self.gap),
            Kind::Random => match latest / size.max(1) {
                0 => 0,
                places => self.random.below(places + 1) * size.max(1),
            },
        };
        let offset = if offset > latest { 0 } else { offset };
        self.position = offset.saturating_add(size);
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(calls: u64, size: u64, consecutive: u64, sequential: u64, extent: u64) -> Transfers {
        Transfers {
            op: Op::Write,
            flags: Flags::NONE,
            calls,
            sizes: vec![(size, calls)],
            consecutive,
            sequential,
            extent,
            start_s: 1.0,
            end_s: 3.0,
            busy_s: 0.5,
        }
    }

    fn calls(of: &Transfers, processes: u64) -> Vec<Call> {
        let mut all = Vec::new();
        let Ok(()) = of.for_each(processes, |call| {
            all.push(call);
            Ok::<_, std::convert::Infallible>(())
        });
        all
    }

    #[test]
    fn consecutive_calls_of_one_process_cover_the_file() {
        let all = calls(&transfers(10, 100, 9, 9, 1000), 1);
        let offsets: Vec<u64> = all.iter().map(|call| call.offset).collect();
        assert_eq!(offsets, (0..10).map(|i| i * 100).collect::<Vec<_>>());
        assert_eq!((all[0].start_s, all[9].end_s < 3.0), (1.0, true));
    }

    #[test]
    fn processes_have_segments_of_a_shared_file() {
        let mut offsets: Vec<u64> =
            calls(&transfers(16, 100, 12, 12, 1600), 4).iter().map(|c| c.offset).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, (0..16).map(|i| i * 100).collect::<Vec<_>>());
    }

    #[test]
    fn processes_that_stride_take_turns() {
        let mut offsets: Vec<u64> =
            calls(&transfers(16, 100, 0, 16, 1600), 4).iter().map(|c| c.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        assert!(offsets.len() > 12, "{offsets:?}");
        assert_eq!(offsets.last(), Some(&1500));
    }

    #[test]
    fn random_calls_stay_in_the_file() {
        let all = calls(&transfers(1000, 4096, 0, 0, 1 << 20), 3);
        assert!(all.iter().all(|call| call.offset + call.size <= 1 << 20));
        assert_eq!(all.last().unwrap().offset + 4096, 1 << 20);
    }

    #[test]
    fn a_thinned_record_has_calls_of_all_sizes() {
        let mut of = transfers(1000, 10, 900, 900, 10_000);
        of.sizes = vec![(10, 999), (20, 1)];
        assert_eq!(of.thinned(100).sizes, [(10, 10), (20, 1)]);
    }
}
