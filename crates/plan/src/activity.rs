//! Which file sets are used at the same time by different processes, and so share the servers.
//!
//! Files that the same processes use come after one another in each process, however finely they
//! alternate, so their times add up. Files of different processes that are used in the same slots
//! of the run form a *stage*, whose *lanes* are the sets with the same processes.

use stripewise_trace::Request as Call;

use crate::workload::{FileSet, Lane};

/// Number of slots into which the run is divided. It is a power of two.
const SLOTS: u64 = 1024;
const WORDS: usize = SLOTS as usize / 64;
/// Logarithm of the length of a slot at first, nanoseconds.
const SHIFT_MIN: u32 = 10;

/// The slots in which each file set is used.
pub struct Timeline {
    /// Logarithm of the length of a slot, nanoseconds.
    shift: u32,
    /// By file set: a bit per slot.
    slots: Vec<[u64; WORDS]>,
}

impl Timeline {
    /// A timeline for that many sets that are not used yet.
    pub fn new(sets: usize) -> Self {
        Self { shift: SHIFT_MIN, slots: vec![[0; WORDS]; sets] }
    }

    /// Notes that a call uses a file of a set.
    #[inline]
    pub fn note(&mut self, set: usize, call: &Call) {
        while call.end_ns.max(call.start_ns) >> self.shift >= SLOTS {
            self.coarsen();
        }
        for slot in call.start_ns >> self.shift..=call.end_ns.max(call.start_ns) >> self.shift {
            self.slots[set][slot as usize / 64] |= 1 << (slot % 64);
        }
    }

    /// Makes slots twice as long.
    fn coarsen(&mut self) {
        self.shift += 1;
        for slots in &mut self.slots {
            let is_used = |slot: usize| slots[slot / 64] >> (slot % 64) & 1 == 1;
            let mut joined = [0; WORDS];
            for slot in (0..SLOTS as usize).filter(|&slot| is_used(slot)) {
                joined[slot / 128] |= 1 << (slot / 2 % 64);
            }
            *slots = joined;
        }
    }

    /// Whether one of two sets is used for at least half of its time while the other one is.
    fn overlap(&self, one: usize, other: usize) -> bool {
        let count = |words: &[u64]| words.iter().map(|word| word.count_ones()).sum::<u32>();
        let (one, other) = (&self.slots[one], &self.slots[other]);
        let both: Vec<u64> = one.iter().zip(other).map(|(one, other)| one & other).collect();
        let least = count(one).min(count(other));
        least > 0 && 2 * count(&both) >= least
    }

    /// Gives the groups of all sets, which are in the order of this timeline, their lanes.
    pub fn assign_lanes(&self, sets: &mut [FileSet]) {
        let processes: Vec<Vec<u32>> = sets.iter().map(processes).collect();
        let are_same = |one: usize, other: usize| have_same(&processes[one], &processes[other]);
        let stages = components(sets.len(), |one, other| self.overlap(one, other) && !are_same(one, other));
        let lanes = components(sets.len(), |one, other| stages[one] == stages[other] && are_same(one, other));
        let is_alone = |index: usize| {
            (0..sets.len()).all(|other| stages[other] != stages[index] || lanes[other] == lanes[index])
        };
        let alone: Vec<bool> = (0..sets.len()).map(is_alone).collect();
        for (index, set) in sets.iter_mut().enumerate().filter(|(index, _)| !alone[*index]) {
            let lane = Lane { stage: stages[index], number: lanes[index] };
            set.groups.iter_mut().for_each(|group| group.lane = Some(lane));
        }
    }
}

/// The processes that use a set, ascending.
fn processes(set: &FileSet) -> Vec<u32> {
    let samples = set.groups.iter().flat_map(|group| &group.sample);
    let mut processes: Vec<u32> = samples.map(|request| request.process).collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// Whether at least half of one of two ascending lists is in the other.
fn have_same(one: &[u32], other: &[u32]) -> bool {
    let both = one.iter().filter(|process| other.binary_search(process).is_ok()).count();
    2 * both >= one.len().min(other.len())
}

/// Per item: the first item that it is related to, directly or through others.
fn components(count: usize, related: impl Fn(usize, usize) -> bool) -> Vec<u32> {
    let mut first = vec![u32::MAX; count];
    for start in 0..count {
        if first[start] != u32::MAX {
            continue;
        }
        let mut reached = vec![start];
        first[start] = start as u32;
        while let Some(item) = reached.pop() {
            for other in (0..count).filter(|&other| first[other] == u32::MAX).collect::<Vec<_>>() {
                if related(item, other) {
                    first[other] = start as u32;
                    reached.push(other);
                }
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Pattern, ior};
    use stripewise_model::Op;

    /// The lanes of sets that these processes use from one time to another, in milliseconds.
    fn lanes(sets: &[(std::ops::Range<u32>, u64, u64)]) -> Vec<Option<Lane>> {
        let mut timeline = Timeline::new(sets.len());
        let set = |(index, (processes, from_ms, to_ms)): (usize, &(std::ops::Range<u32>, u64, u64))| {
            for ms in *from_ms..*to_ms {
                timeline.note(index, &call(ms * 1_000_000, 300_000));
            }
            let mut set = ior(Pattern::Random, Op::Read, processes.len() as u32, 4096, 8).file_sets.remove(0);
            set.groups[0].sample.iter_mut().for_each(|request| request.process += processes.start);
            set
        };
        let mut sets: Vec<FileSet> = sets.iter().enumerate().map(set).collect();
        timeline.assign_lanes(&mut sets);
        sets.iter().map(|set| set.groups[0].lane).collect()
    }

    fn call(start_ns: u64, took_ns: u64) -> Call {
        use stripewise_trace::{Flags, Op};
        let (op, flags) = (Op::Read, Flags::NONE);
        let (offset, size, result) = (0, 1, 1);
        Call {
            process: 0,
            tid: 0,
            file: 0,
            op,
            flags,
            offset,
            size,
            result,
            start_ns,
            end_ns: start_ns + took_ns,
        }
    }

    #[test]
    fn different_processes_at_the_same_time_are_lanes_of_a_stage() {
        let lane = |stage, number| Some(Lane { stage, number });
        assert_eq!(lanes(&[(0..4, 0, 100), (4..8, 20, 90)]), [lane(0, 0), lane(0, 1)]);
        assert_eq!(
            lanes(&[(0..4, 0, 100), (4..8, 20, 90), (3..8, 30, 80)]),
            [lane(0, 0), lane(0, 1), lane(0, 1)]
        );
    }

    #[test]
    fn one_after_the_other_is_no_stage() {
        assert_eq!(lanes(&[(0..4, 0, 100), (4..8, 100, 200)]), [None, None], "in time");
        assert_eq!(lanes(&[(0..4, 0, 100), (4..8, 80, 300)]), [None, None], "but for a fifth");
        assert_eq!(lanes(&[(0..4, 0, 100), (2..6, 0, 100)]), [None, None], "in the processes");
    }

    #[test]
    fn long_runs_have_long_slots() {
        let mut timeline = Timeline::new(2);
        for second in 0..5000 {
            timeline.note((second / 2500) as usize, &call(second * 1_000_000_000, 1_000_000_000));
        }
        assert!(!timeline.overlap(0, 1));
        assert!(timeline.overlap(0, 0));
        let used: Vec<u32> =
            timeline.slots.iter().map(|words| words.iter().map(|w| w.count_ones()).sum()).collect();
        assert!(used.iter().all(|used| (250..=513).contains(used)), "{used:?}");
    }
}
