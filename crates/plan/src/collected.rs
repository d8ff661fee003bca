//! The requests of one file set, while they are collected: in groups by phase, and when the phase
//! is closed, in groups by concurrency.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use stripewise_model::{Access, Op};
use stripewise_policy::FastHash;
use stripewise_trace::summary::Concurrency;
use stripewise_trace::{Flags, Request as Call};

use crate::sampled::Sampled;
use crate::workload::{Calls, Group, Request};

/// Maximum number of keys of a set for which the nearest group is remembered.
pub(crate) const NEAREST_MAX: usize = 256;

/// The requests of one file set.
#[derive(Default)]
pub(crate) struct Collected {
    /// By phase, from `first_open` on: the groups of an open phase, sorted by kind.
    open: VecDeque<Vec<(Kind, Sampled)>>,
    first_open: u32,
    /// What `open` has.
    open_size: Size,
    /// Index into `groups`, by key: of all groups, and of the nearest group for some further keys.
    known: HashMap<Key, usize, FastHash>,
    groups: Vec<(Key, Sampled)>,
    /// A program mapped one of the files.
    pub(crate) mapped: bool,
    /// The calls that move no data.
    pub(crate) calls: Calls,
    /// The end of the farthest request in a file, bytes.
    end: u64,
}

/// Groups, and the sampled requests in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) groups: usize,
    pub(crate) sampled: usize,
}

impl Size {
    /// Accounts for a part that was `before` and is `after`.
    pub(crate) fn update(&mut self, before: Size, after: Size) {
        self.groups = self.groups - before.groups + after.groups;
        self.sampled = self.sampled - before.sampled + after.sampled;
    }
}

/// The properties that requests of one group and phase share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind {
    write: bool,
    collective: bool,
    /// The size's power of two and the three bits below its leading one.
    size_class: u32,
}

/// What groups of several sets have in common if one of them may be planned like another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Likeness {
    kind: Kind,
    /// The power of two of the end of the farthest request in a file of the set.
    end: u32,
}

/// The properties that requests of one group share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    kind: Kind,
    procs: u32,
    procs_per_node: u32,
}

impl Collected {
    /// The first open phase.
    pub(crate) fn first_open(&self) -> u32 {
        self.first_open
    }

    /// Number of open phases.
    pub(crate) fn open_phases(&self) -> usize {
        self.open.len()
    }

    /// The groups of open phases.
    pub(crate) fn open_size(&self) -> Size {
        self.open_size
    }

    /// Number of requests in the largest sample of an open phase.
    pub(crate) fn largest_open(&self) -> usize {
        self.open.iter().flatten().map(|(_, group)| group.len()).max().unwrap_or(0)
    }

    /// Adds a request of an open phase, and keeps at most `limit` in its group. If `is_full`, no
    /// phase gets a second group.
    #[inline]
    pub(crate) fn push(&mut self, phase: u32, kind: Kind, request: Request, limit: usize, is_full: bool) {
        self.end = self.end.max(request.offset.saturating_add(request.size));
        let group = self.open_group(phase, kind, is_full);
        let before = group.len();
        group.push(request, limit);
        let after = group.len();
        self.open_size.sampled = self.open_size.sampled - before + after;
    }

    fn open_group(&mut self, phase: u32, kind: Kind, is_full: bool) -> &mut Sampled {
        let phase = (phase - self.first_open) as usize;
        if phase >= self.open.len() {
            self.open.resize_with(phase + 1, Vec::new);
        }
        let groups = &mut self.open[phase];
        let found = match groups.first() {
            // Most phases have requests of one kind.
            Some((first, _)) if *first == kind => Ok(0),
            _ => groups.binary_search_by_key(&kind, |(kind, _)| *kind),
        };
        let index = match found {
            Ok(index) => index,
            Err(_) if is_full && !groups.is_empty() => {
                let distances = groups.iter().map(|(other, _)| other.distance(kind)).enumerate();
                distances.min_by_key(|(_, distance)| *distance).map_or(0, |(index, _)| index)
            }
            Err(index) => {
                self.open_size.groups += 1;
                start_with_one(groups);
                groups.insert(index, (kind, Sampled::default()));
                index
            }
        };
        &mut groups[index].1
    }

    /// Closes the first open phase, which has this concurrency: joins its groups to those of the
    /// same concurrency, and keeps at most `limit` requests in each. `closed` is the size of the
    /// latter in all sets; there are `groups_max` at most, besides one in each set.
    pub(crate) fn close_first(
        &mut self,
        concurrency: &Concurrency,
        (limit, groups_max): (usize, usize),
        closed: &mut Size,
    ) {
        let groups = self.open.pop_front().unwrap_or_default();
        let procs = concurrency.processes.max(1);
        let procs_per_node = concurrency.per_node.clamp(1, procs);
        self.first_open += 1;
        self.open_size.groups -= groups.len();
        for (kind, sampled) in groups {
            self.open_size.sampled -= sampled.len();
            let key = Key { kind, procs, procs_per_node };
            let index = self.group(key, groups_max, &mut closed.groups);
            let group = &mut self.groups[index].1;
            closed.sampled -= group.len();
            group.join(sampled, limit);
            closed.sampled += group.len();
        }
    }

    /// Index of the group with this key; of the nearest one if there are too many in all sets.
    fn group(&mut self, key: Key, groups_max: usize, total: &mut usize) -> usize {
        if let Some(&index) = self.known.get(&key) {
            return index;
        }
        let distances = self.groups.iter().map(|(other, _)| other.distance(key)).enumerate();
        match distances.min_by_key(|(_, distance)| *distance) {
            Some((nearest, _)) if *total >= groups_max => {
                if self.known.len() < self.groups.len() + NEAREST_MAX {
                    self.known.insert(key, nearest);
                }
                nearest
            }
            _ => {
                *total += 1;
                start_with_one(&mut self.groups);
                self.groups.push((key, Sampled::default()));
                self.known.insert(key, self.groups.len() - 1);
                self.groups.len() - 1
            }
        }
    }

    /// The samples of all groups, each with what makes it like those of other sets.
    pub(crate) fn samples(&mut self) -> impl Iterator<Item = (Likeness, &mut Sampled)> {
        let end = self.end.max(1).ilog2();
        let open = self.open.iter_mut().flatten().map(|(kind, sampled)| (*kind, sampled));
        let closed = self.groups.iter_mut().map(|(key, sampled)| (key.kind, sampled));
        open.chain(closed).map(move |(kind, sampled)| (Likeness { kind, end }, sampled))
    }

    /// Counts the sampled requests anew, after samples were changed. Returns the number in groups
    /// of closed phases.
    pub(crate) fn recount(&mut self) -> usize {
        self.open_size.sampled = self.open.iter().flatten().map(|(_, group)| group.len()).sum();
        self.groups.iter().map(|(_, group)| group.len()).sum()
    }

    /// Keeps at most `limit` requests in each group of an open phase.
    pub(crate) fn thin_open(&mut self, limit: usize) {
        self.open_size.sampled = 0;
        for (_, group) in self.open.iter_mut().flatten() {
            group.shrink(limit);
            self.open_size.sampled += group.len();
        }
    }

    /// Keeps at most `limit` requests in each group of closed phases. Returns their number.
    pub(crate) fn thin_closed(&mut self, limit: usize) -> usize {
        let groups = self.groups.iter_mut().map(|(_, group)| group);
        groups
            .map(|group| {
                group.shrink(limit);
                group.len()
            })
            .sum()
    }

    /// The groups, when all phases are closed. `index_of` has the index of each file in its set,
    /// `nodes` the node of each process.
    pub(crate) fn into_groups(self, index_of: &[u32], nodes: &Arc<[u32]>) -> Vec<Group> {
        self.groups.into_iter().map(|(key, sampled)| key.into_group(sampled, index_of, nodes)).collect()
    }
}

impl Kind {
    /// The kind of a read or write.
    pub(crate) fn of(call: &Call) -> Self {
        Self {
            write: call.op == stripewise_trace::Op::Write,
            collective: call.flags.has(Flags::COLLECTIVE),
            size_class: size_class(call.bytes()),
        }
    }

    /// Read or write.
    pub(crate) fn op(self) -> Op {
        if self.write { Op::Write } else { Op::Read }
    }

    /// The smaller, the more similar are the kinds.
    fn distance(self, other: Self) -> u64 {
        u64::from(other.write != self.write) << 41
            | u64::from(other.collective != self.collective) << 40
            | u64::from(other.size_class.abs_diff(self.size_class)) << 24
    }
}

impl Key {
    fn distance(self, other: Self) -> u64 {
        self.kind.distance(other.kind) | u64::from(other.procs.abs_diff(self.procs).min(0xff_ffff))
    }

    /// The group of these requests. `index_of` has the index of each file in its set.
    fn into_group(self, sampled: Sampled, index_of: &[u32], nodes: &Arc<[u32]>) -> Group {
        let access = if sampled.is_in_order() { Access::Sequential } else { Access::Random };
        let (count, bytes) = (sampled.count(), sampled.bytes());
        let mut sample = sampled.into_requests();
        sample.iter_mut().for_each(|request| request.file = index_of[request.file as usize]);
        Group {
            application: 0,
            times: 1,
            lane: None,
            op: self.kind.op(),
            access,
            procs: self.procs,
            procs_per_node: self.procs_per_node,
            nodes: nodes.clone(),
            collective: self.kind.collective,
            count,
            bytes,
            sample,
        }
    }
}

/// Makes room for one group, if there is none yet. Most of very many sets have one, and a vector
/// would start with room for 4.
fn start_with_one<T>(groups: &mut Vec<T>) {
    if groups.is_empty() {
        groups.reserve_exact(1);
    }
}

/// Size class: an eighth of a power of two.
fn size_class(size: u64) -> u32 {
    let log = size.max(1).ilog2();
    let eighth = if log >= 3 { (size >> (log - 3)) & 7 } else { 0 };
    log * 8 + eighth as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_within_an_eighth_are_alike() {
        assert_eq!(size_class(65536), size_class(65537));
        assert_ne!(size_class(65536), size_class(65536 * 9 / 8));
        assert!((1..5000u64).all(|size| size_class(size) <= size_class(size + 1)));
    }

    /// With spare room in vectors, which grow by doubling, and from 1 item to 4.
    #[test]
    fn groups_take_little_memory() {
        let open =
            size_of::<Vec<(Kind, Sampled)>>() + 4 * size_of::<(Kind, Sampled)>() + 4 * size_of::<Request>();
        assert!(open <= 640, "{open}");
        let closed = 2 * size_of::<(Key, Sampled)>() + 4 * size_of::<(Key, usize)>();
        assert!(closed <= 384, "{closed}");
    }
}
