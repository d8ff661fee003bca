//! File sets that are accessed alike, and so may share what is expensive to find out.
//!
//! Two sets are alike if their files have like sizes and the same present layout, and their
//! requests come in the same groups: same direction, order and concurrency, like sizes. How often
//! each set is accessed, and how many bytes it has, may differ. First sets are alike in a strict
//! sense. Those that are like too few others are then compared less and less strictly.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use stripewise_layout::Layout;
use stripewise_model::{Access, Op};
use stripewise_policy::FastHash;

use crate::present::Present;
use crate::workload::{FileSet, Group, Request};

/// A kind has at least this fraction of all work, but for those of the least strict sense.
const WORK_MIN: f64 = 1.0 / 64.0;
/// Maximum number of groups of a kind. Further ones join the largest one.
const GROUPS_MAX: usize = 8;
/// Number of requests of each group of a kind that are enough for a sample, and of files.
const SAMPLE: usize = 32 * 1024;
const FILES: usize = 256;

/// How strictly sets are compared, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    /// Sizes of requests differ by an eighth at most, sizes of files by a factor of two.
    Exact,
    /// Sizes and numbers of processes differ by a factor of two at most.
    Near,
    /// Only the main groups are compared; sizes differ by a factor of eight at most.
    Main,
    /// Only direction and order of the main groups are compared, and no present layouts.
    Any,
}

/// What the requests of groups have in common that are alike in some sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct GroupKey {
    is_write: bool,
    is_in_order: bool,
    collective: bool,
    size: u64,
    procs: u32,
    procs_per_node: u32,
}

/// What sets have in common that are alike in some sense.
#[derive(PartialEq, Eq, Hash)]
struct SetKey {
    private: bool,
    mapped: bool,
    /// The number of `<n>` in the pattern, on which layouts of private files depend.
    fields: usize,
    present: u64,
    files: u32,
    largest: u32,
    groups: Vec<GroupKey>,
}

/// File sets that are alike.
pub struct Kind {
    /// Indices of the sets, ascending.
    pub members: Vec<u32>,
    /// The files and sampled requests of some of them, as one set.
    pub pooled: FileSet,
    /// By group of `pooled`: the work of its requests, seconds.
    pub work_s: Vec<f64>,
    sense: Sense,
    /// The group of `pooled` that requests join.
    group_of: HashMap<GroupKey, usize>,
}

/// The seconds that a request of so many bytes takes on the slowest servers.
pub type Work<'w> = &'w (dyn Fn(Op, Access, u64) -> f64 + Sync);

/// The work of a group's requests, seconds.
pub fn work_of(group: &Group, work: Work<'_>) -> f64 {
    let (count, bytes) = (group.count.max(1), group.bytes);
    work(group.op, group.access, bytes / count) * count as f64 * group.times as f64
}

/// The kinds of these sets. Each set is of one.
pub fn kinds(sets: &[FileSet], tier_of: &[u32], work: Work<'_>) -> Vec<Kind> {
    let work_s: Vec<f64> =
        sets.iter().map(|set| set.groups.iter().map(|group| work_of(group, work)).sum()).collect();
    let least_s = work_s.iter().sum::<f64>() * WORK_MIN;
    let mut left: Vec<u32> = (0..sets.len() as u32).collect();
    let mut found: Vec<(Sense, Vec<u32>)> = Vec::new();
    for sense in [Sense::Exact, Sense::Near, Sense::Main, Sense::Any] {
        let mut alike: HashMap<SetKey, Vec<u32>> = HashMap::new();
        for index in left.drain(..) {
            let key = sense.of_set(&sets[index as usize], tier_of, work);
            alike.entry(key).or_default().push(index);
        }
        // In an order that does not depend on the hash.
        let mut alike: Vec<Vec<u32>> = alike.into_values().collect();
        alike.sort_unstable_by_key(|members| members[0]);
        for members in alike {
            let seconds: f64 = members.iter().map(|&member| work_s[member as usize]).sum();
            let is_kind = seconds >= least_s || sense == Sense::Any;
            if is_kind { found.push((sense, members)) } else { left.extend(members) }
        }
        left.sort_unstable();
    }
    found.into_iter().map(|(sense, members)| Kind::new(sets, members, sense, work)).collect()
}

impl Sense {
    fn of_group(self, group: &Group) -> GroupKey {
        let size = group.bytes / group.count.max(1);
        let log = size.max(1).ilog2();
        let (size, procs) = match self {
            Self::Exact => (u64::from(log) << 3 | (size << 3 >> log) & 7, group.procs),
            Self::Near => (log.into(), group.procs.max(1).ilog2()),
            Self::Main => ((log / 3).into(), group.procs.max(1).ilog2()),
            Self::Any => (0, 0),
        };
        let procs_per_node = match self {
            Self::Exact => group.procs_per_node,
            Self::Near => group.procs_per_node.max(1).ilog2(),
            Self::Main | Self::Any => 0,
        };
        GroupKey {
            is_write: group.op == Op::Write,
            is_in_order: group.access == Access::Sequential,
            collective: group.collective,
            size,
            procs,
            procs_per_node,
        }
    }

    fn of_set(self, set: &FileSet, tier_of: &[u32], work: Work<'_>) -> SetKey {
        let mut groups: Vec<GroupKey> = match self {
            Self::Exact | Self::Near => set.groups.iter().map(|group| self.of_group(group)).collect(),
            Self::Main | Self::Any => {
                let main = set.groups.iter().max_by(|a, b| work_of(a, work).total_cmp(&work_of(b, work)));
                main.map(|group| self.of_group(group)).into_iter().collect()
            }
        };
        groups.sort_unstable();
        groups.dedup();
        let magnitude = |number: u64| match self {
            Self::Exact | Self::Near => number.max(1).ilog2(),
            Self::Main => number.max(1).ilog2() / 3,
            Self::Any => 0,
        };
        SetKey {
            private: set.private,
            mapped: set.mapped,
            fields: if set.private { set.pattern.matches("<n>").count() } else { 0 },
            present: if self == Self::Any { 0 } else { of_present(&set.present, tier_of) },
            files: magnitude(set.count()),
            largest: magnitude(set.largest()),
            groups,
        }
    }
}

/// A number for a present layout, the same for layouts that differ only in which servers of a tier
/// come first.
fn of_present(present: &Present, tier_of: &[u32]) -> u64 {
    let of_layout = |layout: &Layout| {
        let mut parts = Vec::new();
        for region in layout.regions() {
            let mut stripes: BTreeMap<(u32, u64), u32> = BTreeMap::new();
            for stripe in &region.cycle {
                *stripes.entry((tier_of[stripe.target as usize], stripe.width)).or_default() += 1;
            }
            parts.push((region.start, region.end, stripes));
        }
        parts
    };
    match present {
        Present::Plain => 0,
        Present::Def => 1,
        Present::Known { layouts, .. } => {
            FastHash::default().hash_one(layouts.iter().map(of_layout).collect::<Vec<_>>())
        }
    }
}

impl Kind {
    /// The kind of these sets.
    fn new(sets: &[FileSet], members: Vec<u32>, sense: Sense, work: Work<'_>) -> Self {
        let mut kind = Self {
            pooled: sets[members[0] as usize].clone_without_groups(),
            members,
            work_s: Vec::new(),
            sense,
            group_of: HashMap::new(),
        };
        kind.group(sets);
        kind.pool(sets);
        kind.work_s = kind.pooled.groups.iter().map(|group| work_of(group, work)).collect();
        kind
    }

    /// The kind of one set of this kind.
    pub fn of_one(sets: &[FileSet], index: u32, work: Work<'_>) -> Self {
        Self::new(sets, vec![index], Sense::Exact, work)
    }

    /// Whether all its requests have samples.
    pub fn is_sampled(&self) -> bool {
        self.pooled.groups.iter().all(|group| !group.sample.is_empty())
    }

    /// The group of the kind that a group of a member belongs to, by its index.
    pub fn group_of(&self, group: &Group) -> usize {
        self.group_of.get(&self.sense.of_group(group)).copied().unwrap_or(0)
    }

    /// Finds the groups, without samples.
    fn group(&mut self, sets: &[FileSet]) {
        // Many sets are those of one application.
        for calls in self.members.iter().flat_map(|&member| &sets[member as usize].calls) {
            match self.pooled.calls.first_mut() {
                Some(all) => all.add(calls),
                None => self.pooled.calls.push(*calls),
            }
        }
        for group in self.members.iter().flat_map(|&member| &sets[member as usize].groups) {
            let next = self.pooled.groups.len();
            let index = match self.group_of.entry(self.sense.of_group(group)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) if next < GROUPS_MAX => {
                    // Processes are numbered anew, so c consecutive ones are on a node.
                    let empty = Group { count: 0, bytes: 0, nodes: [].into(), ..group.clone_without_sample() };
                    self.pooled.groups.push(empty);
                    *new.insert(next)
                }
                Entry::Vacant(new) => {
                    let like =
                        |known: &Group| (known.op == group.op, known.access == group.access, known.bytes);
                    let known = self.pooled.groups.iter().enumerate();
                    *new.insert(known.max_by_key(|(_, known)| like(known)).map_or(0, |(index, _)| index))
                }
            };
            let known = &mut self.pooled.groups[index];
            known.count = known.count.saturating_add(group.count);
            known.bytes = known.bytes.saturating_add(group.bytes);
        }
    }

    /// Takes samples of the members until there are enough. Of private files those of one member
    /// are taken, because the layouts of its files depend on their names.
    fn pool(&mut self, sets: &[FileSet]) {
        let mut members = self.members.clone();
        if self.pooled.private {
            let sampled = |index: u32| sets[index as usize].groups.iter().map(|group| group.sample.len()).sum();
            members.sort_by_key(|&index| std::cmp::Reverse::<usize>(sampled(index)));
            members.truncate(1);
            self.pooled = FileSet {
                groups: std::mem::take(&mut self.pooled.groups),
                calls: std::mem::take(&mut self.pooled.calls),
                ..sets[members[0] as usize].clone_without_groups()
            };
        } else {
            self.pooled.files.clear();
        }
        for index in members {
            let set = &sets[index as usize];
            if set.groups.iter().any(|group| self.wants(group)) {
                self.take(set);
            }
        }
        // Without a request there is nothing to plan; the sizes of the files count all the same.
        if self.pooled.files.is_empty() {
            self.pooled.files = sets[self.members[0] as usize].files.clone();
        }
    }

    fn wants(&self, group: &Group) -> bool {
        let has_few = self.pooled.private || self.pooled.files.len() < FILES;
        has_few && !group.sample.is_empty() && self.pooled.groups[self.group_of(group)].sample.len() < SAMPLE
    }

    /// Takes the samples of a member. Its processes get numbers from 0 on: those of different
    /// members are not at work at the same time.
    fn take(&mut self, set: &FileSet) {
        let (private, mut files, mut processes) = (self.pooled.private, HashMap::new(), HashMap::new());
        for group in &set.groups {
            if !self.wants(group) {
                continue;
            }
            let index = self.group_of(group);
            for request in &group.sample {
                let next = self.pooled.files.len() as u32;
                let file = match private {
                    true => request.file,
                    false => *files.entry(request.file).or_insert(next),
                };
                if file == next {
                    self.pooled.files.push(set.files[request.file as usize].clone());
                }
                let number = processes.len() as u32;
                let process = *processes.entry(request.process).or_insert(number);
                self.pooled.groups[index].sample.push(Request { process, file, ..*request });
            }
        }
    }
}
