//! From a trace to a [`Workload`]: one pass over the requests, in bounded memory.
//!
//! The concurrency of a request is that of its phase, which is known when the phase is closed. So
//! requests are sampled by phase first, and the samples of a closed phase join those of the phases
//! with the same concurrency.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use stripewise_cluster::pattern::escape;
use stripewise_model::{Access, Op};
use stripewise_policy::FastHash;
use stripewise_trace::summary::Breadth;
use stripewise_trace::{Class, Classifier, Flags, ProcessInfo, Request as Call, pattern_of};

use crate::sampled::Sampled;
use crate::workload::{File, FileSet, Group, Request, Workload};

/// Maximum number of sampled requests of one group; planning is exact for a group of up to this
/// many requests.
const GROUP_SAMPLE_MAX: usize = 64 * 1024;
/// Maximum number of sampled requests of all groups together (56 bytes each).
const TOTAL_SAMPLE_MAX: usize = 2 * 1024 * 1024;
/// Maximum number of groups, and of groups of open phases; requests of further kinds join the
/// nearest group of their file set and phase.
const GROUPS_MAX: usize = 4096;

/// Builds a [`Workload`] from the calls of a trace, added in the trace's order.
///
/// Memory: the file names, and at most about 200 MB of samples, groups and streams, however many
/// calls the trace has.
pub struct Collector<'a> {
    files: &'a [Arc<str>],
    classifier: Classifier,
    /// The uses of the files, indexed by file number.
    uses: Vec<Use>,
    /// By number of the file's group in the trace.
    sets: Vec<Collected>,
    /// Number of groups in all sets.
    groups: usize,
    /// Number of groups of open phases in all sets.
    open_groups: usize,
    sampled: usize,
    limit: usize,
}

/// What is known of a file.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Largest size seen, bytes.
    size: u64,
    /// The first process that moved data, plus 1; 0: none did.
    first_process: u32,
    /// Several processes moved data.
    shared: bool,
}

/// The requests of one file set.
#[derive(Default)]
struct Collected {
    /// By phase, from `first_open` on: the groups of an open phase, sorted by kind.
    open: VecDeque<Vec<(Kind, Sampled)>>,
    first_open: u32,
    known: HashMap<Key, usize, FastHash>,
    groups: Vec<(Key, Sampled)>,
    mapped: bool,
}

/// The properties that requests of one group and phase share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Kind {
    write: bool,
    collective: bool,
    /// The size's power of two and the three bits below its leading one.
    size_class: u32,
}

/// The properties that requests of one group share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    kind: Kind,
    procs: u32,
    procs_per_node: u32,
}

impl<'a> Collector<'a> {
    /// A collector for a trace with these processes and files.
    pub fn new(processes: &[ProcessInfo], files: &'a [Arc<str>]) -> Self {
        let classifier = Classifier::new(processes, files);
        let sets = classifier.groups().map(|_| Collected::default()).collect();
        Self {
            files,
            classifier,
            uses: vec![Use::default(); files.len()],
            sets,
            groups: 0,
            open_groups: 0,
            sampled: 0,
            limit: GROUP_SAMPLE_MAX,
        }
    }

    /// Adds the next call. The caller passes every call of the trace, in the trace's order.
    #[inline]
    pub fn add(&mut self, call: &Call) {
        let Some(class) = self.classifier.classify(call) else {
            self.add_other(call);
            return;
        };
        self.note_use(call);
        let group = class.group as usize;
        if self.classifier.closed(class.group) != self.sets[group].first_open {
            self.join_closed(group);
        }
        let Call { process, file, offset, .. } = *call;
        let request = Request { process, file, offset, size: call.bytes(), past: class.past };
        let limit = self.limit;
        let sampled = self.open_group(class, Kind::of(call));
        let before = sampled.len();
        sampled.push(request, limit);
        let after = sampled.len();
        self.sampled = self.sampled + after - before;
        if self.sampled > TOTAL_SAMPLE_MAX {
            self.halve();
        }
    }

    fn add_other(&mut self, call: &Call) {
        use stripewise_trace::Op::{Map, Open, Resize};
        match call.op {
            Open | Resize if call.result >= 0 => {
                let size = &mut self.uses[call.file as usize].size;
                *size = call.size.max(*size);
            }
            Map => self.sets[self.classifier.group(call.file) as usize].mapped = true,
            _ => {}
        }
    }

    fn note_use(&mut self, call: &Call) {
        let file = &mut self.uses[call.file as usize];
        file.size = call.offset.saturating_add(call.bytes()).max(file.size);
        let process = call.process + 1;
        if file.first_process == 0 {
            file.first_process = process;
        }
        file.shared |= file.first_process != process;
    }

    /// The group of an open phase for requests of this kind.
    fn open_group(&mut self, class: Class, kind: Kind) -> &mut Sampled {
        let set = &mut self.sets[class.group as usize];
        let phase = (class.phase - set.first_open) as usize;
        if phase >= set.open.len() {
            set.open.resize_with(phase + 1, Vec::new);
        }
        let groups = &mut set.open[phase];
        let found = match groups.first() {
            // Most phases have requests of one kind.
            Some((first, _)) if *first == kind => Ok(0),
            _ => groups.binary_search_by_key(&kind, |(kind, _)| *kind),
        };
        let index = match found {
            Ok(index) => index,
            Err(_) if self.open_groups >= GROUPS_MAX && !groups.is_empty() => {
                let distances = groups.iter().map(|(other, _)| other.distance(kind)).enumerate();
                distances.min_by_key(|(_, distance)| *distance).map_or(0, |(index, _)| index)
            }
            Err(index) => {
                self.open_groups += 1;
                groups.insert(index, (kind, Sampled::default()));
                index
            }
        };
        &mut groups[index].1
    }

    /// Moves the groups of closed phases of a set to those of the same concurrency.
    fn join_closed(&mut self, index: usize) {
        let closed = self.classifier.closed(index as u32);
        let set = &mut self.sets[index];
        while set.first_open < closed {
            let groups = set.open.pop_front().unwrap_or_default();
            let concurrency = self.classifier.concurrency(index as u32, set.first_open);
            let procs = concurrency.processes.max(1);
            let procs_per_node = concurrency.per_node.clamp(1, procs);
            set.first_open += 1;
            self.open_groups -= groups.len();
            for (kind, sampled) in groups {
                let key = Key { kind, procs, procs_per_node };
                let index = set.group(key, &mut self.groups);
                let group = &mut set.groups[index].1;
                self.sampled -= sampled.len() + group.len();
                group.join(sampled, self.limit);
                self.sampled += group.len();
            }
        }
    }

    fn halve(&mut self) {
        self.limit = (self.limit / 2).max(16);
        self.sampled = 0;
        for set in &mut self.sets {
            let open = set.open.iter_mut().flatten().map(|(_, group)| group);
            for group in open.chain(set.groups.iter_mut().map(|(_, group)| group)) {
                group.thin(self.limit);
                self.sampled += group.len();
            }
        }
    }

    /// The workload, with the largest file sets first (by bytes of their requests).
    pub fn finish(mut self) -> Workload {
        self.classifier.close();
        (0..self.sets.len()).for_each(|index| self.join_closed(index));
        let breadths: Vec<Breadth> = self.classifier.groups().collect();
        let mut sets: Vec<FileSet> = breadths.iter().map(|_| FileSet::default()).collect();
        let mut index_of = vec![0u32; self.files.len()];
        for ((file, name), used) in (0..).zip(self.files).zip(&self.uses) {
            let group = self.classifier.group(file) as usize;
            let set = &mut sets[group];
            // A name without a directory (in synthetic traces) matches the file of that name in any
            // directory.
            let absolute = name.starts_with('/');
            let name = if absolute { name.clone() } else { format!("/{name}").into() };
            if set.files.is_empty() {
                let pattern = breadths[group].of(&pattern_of(&escape(&name)));
                let anywhere = !absolute && !pattern.starts_with("**");
                set.pattern = format!("{}{pattern}", if anywhere { "**" } else { "" });
                set.private = true;
            }
            set.private &= !used.shared;
            index_of[file as usize] = set.files.len() as u32;
            set.files.push(File { name, size: used.size });
        }
        for (set, collected) in sets.iter_mut().zip(self.sets) {
            set.private &= set.files.len() > 1;
            set.mapped = collected.mapped;
            for (key, sampled) in collected.groups {
                set.groups.push(key.into_group(sampled, &index_of));
            }
        }
        sets.retain(|set| !set.groups.is_empty());
        sets.sort_by_key(|set| std::cmp::Reverse(set.bytes()));
        Workload { file_sets: sets }
    }
}

impl Collected {
    /// Index of the group with this key; of the nearest one if there are too many in all sets.
    fn group(&mut self, key: Key, total: &mut usize) -> usize {
        if let Some(&index) = self.known.get(&key) {
            return index;
        }
        let distances = self.groups.iter().map(|(other, _)| other.distance(key)).enumerate();
        let index = match distances.min_by_key(|(_, distance)| *distance) {
            Some((nearest, _)) if *total >= GROUPS_MAX => nearest,
            _ => {
                *total += 1;
                self.groups.push((key, Sampled::default()));
                self.groups.len() - 1
            }
        };
        self.known.insert(key, index);
        index
    }
}

impl Kind {
    fn of(call: &Call) -> Self {
        Self {
            write: call.op == stripewise_trace::Op::Write,
            collective: call.flags.has(Flags::COLLECTIVE),
            size_class: size_class(call.bytes()),
        }
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
    fn into_group(self, sampled: Sampled, index_of: &[u32]) -> Group {
        let access = if sampled.is_in_order() { Access::Sequential } else { Access::Random };
        let (count, bytes) = (sampled.count(), sampled.bytes());
        let mut sample = sampled.into_requests();
        sample.iter_mut().for_each(|request| request.file = index_of[request.file as usize]);
        Group {
            op: if self.kind.write { Op::Write } else { Op::Read },
            access,
            procs: self.procs,
            procs_per_node: self.procs_per_node,
            collective: self.kind.collective,
            count,
            bytes,
            sample,
        }
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
}
