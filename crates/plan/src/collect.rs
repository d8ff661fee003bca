//! From a trace to a [`Workload`]: one pass over the requests, in bounded memory.

use std::collections::HashMap;

use stripewise_cluster::pattern::escape;
use stripewise_model::{Access, Op};
use stripewise_policy::FastHash;
use stripewise_trace::summary::Past;
use stripewise_trace::{Classifier, Flags, ProcessInfo, Request as Call, Summary, pattern_of};

use crate::workload::{File, FileSet, Group, RUN, Request, Workload};

/// Maximum number of sampled requests of one group; planning is exact for a group of up to this
/// many requests.
const GROUP_SAMPLE_MAX: usize = 64 * 1024;
/// Maximum number of sampled requests of all groups together (56 bytes each).
const TOTAL_SAMPLE_MAX: usize = 2 * 1024 * 1024;
/// Maximum number of groups; requests of further kinds join the nearest group of their file set.
const GROUPS_MAX: usize = 4096;

/// Builds a [`Workload`] from the calls of a trace, added in the trace's order.
///
/// Memory: the file names, and at most about 200 MB of samples, groups and streams, however many
/// calls the trace has.
pub struct Collector<'a> {
    summary: &'a Summary,
    classifier: Classifier<'a>,
    /// Largest size seen, by file, bytes.
    sizes: Vec<u64>,
    known: HashMap<Key, usize, FastHash>,
    groups: Vec<(Key, Sampled)>,
    sampled: usize,
    limit: usize,
}

/// The properties that requests of one group share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    file_set: u32,
    write: bool,
    procs: u32,
    procs_per_node: u32,
    collective: bool,
    /// The size's power of two and the three bits below its leading one.
    size_class: u32,
}

/// A group's totals and its evenly spaced runs of requests.
#[derive(Default)]
struct Sampled {
    count: u64,
    bytes: u64,
    /// Requests that begin in the file where their process's previous request there ended.
    in_order: u64,
    /// The requests counted in `in_order`, and those that keep a constant distance to their
    /// process's previous ones.
    regular: u64,
    /// Every `2^thinned`-th run of `RUN` requests is kept.
    thinned: u32,
    requests: Vec<Request>,
}

impl<'a> Collector<'a> {
    /// A collector for the trace that `summary` was made from, and for the processes of that trace.
    pub fn new(summary: &'a Summary, processes: &[ProcessInfo]) -> Self {
        Self {
            summary,
            classifier: Classifier::new(summary, processes),
            sizes: vec![0; summary.files.len()],
            known: HashMap::default(),
            groups: Vec::new(),
            sampled: 0,
            limit: GROUP_SAMPLE_MAX,
        }
    }

    /// Adds the next call. The caller passes every call of the trace, in the trace's order.
    pub fn add(&mut self, call: &Call) {
        use stripewise_trace::Op::{Open, Resize, Write};
        let end = match call.op {
            Open | Resize if call.result >= 0 => call.size,
            _ => call.offset.saturating_add(call.bytes()),
        };
        let Some(class) = self.classifier.classify(call) else {
            if matches!(call.op, Open | Resize) {
                self.grow(call.file, end);
            }
            return;
        };
        self.grow(call.file, end);
        let size = call.bytes();
        let key = Key {
            file_set: class.group,
            write: call.op == Write,
            procs: class.processes.max(1),
            procs_per_node: class.per_node.clamp(1, class.processes.max(1)),
            collective: call.flags.has(Flags::COLLECTIVE),
            size_class: size_class(size),
        };
        let index = self.group(key);
        let Call { process, file, offset, .. } = *call;
        let request = Request { process, file, offset, size, past: class.past };
        let (before, group) = (self.sampled, &mut self.groups[index].1);
        self.sampled = before - group.requests.len();
        group.push(request, self.limit);
        self.sampled += group.requests.len();
        if self.sampled > TOTAL_SAMPLE_MAX {
            self.halve();
        }
    }

    /// The workload, with the largest file sets first (by bytes of their requests).
    pub fn finish(self) -> Workload {
        let mut sets: Vec<FileSet> = self.summary.groups.iter().map(|_| FileSet::default()).collect();
        let mut index_of = vec![0u32; self.summary.files.len()];
        for (file, index) in self.summary.files.iter().zip(0usize..) {
            let set = &mut sets[file.group as usize];
            // A name without a directory (in synthetic traces) matches the file of that name in any
            // directory.
            let absolute = file.name.starts_with('/');
            let name = if absolute { file.name.clone() } else { format!("/{}", file.name) };
            if set.files.is_empty() {
                set.pattern = format!("{}{}", if absolute { "" } else { "**" }, pattern_of(&escape(&name)));
            }
            index_of[index] = set.files.len() as u32;
            let size = self.sizes.get(index).copied().unwrap_or(0);
            set.files.push(File { name, size });
        }
        for (set, group) in sets.iter_mut().zip(&self.summary.groups) {
            set.private = group.shared_files == 0 && group.files > 1;
            set.mapped = group.other.map > 0;
            if group.pattern == "**" {
                set.pattern.clone_from(&group.pattern);
            }
        }
        for (key, mut sampled) in self.groups {
            sampled.requests.iter_mut().for_each(|request| request.file = index_of[request.file as usize]);
            sets[key.file_set as usize].groups.push(sampled.into_group(key));
        }
        sets.retain(|set| !set.groups.is_empty());
        sets.sort_by_key(|set| std::cmp::Reverse(set.bytes()));
        Workload { file_sets: sets }
    }

    fn grow(&mut self, file: u32, end: u64) {
        if let Some(size) = self.sizes.get_mut(file as usize) {
            *size = end.max(*size);
        }
    }

    fn group(&mut self, key: Key) -> usize {
        if let Some(&index) = self.known.get(&key) {
            return index;
        }
        let index = if self.groups.len() < GROUPS_MAX {
            self.add_group(key)
        } else {
            self.nearest(key).unwrap_or_else(|| self.add_group(key))
        };
        self.known.insert(key, index);
        index
    }

    fn add_group(&mut self, key: Key) -> usize {
        self.groups.push((key, Sampled::default()));
        self.groups.len() - 1
    }

    /// Index of the group of the same file set that is most similar to `key`.
    fn nearest(&self, key: Key) -> Option<usize> {
        let distance = |other: &Key| {
            u64::from(other.write != key.write) << 41
                | u64::from(other.collective != key.collective) << 40
                | u64::from(other.size_class.abs_diff(key.size_class)) << 24
                | u64::from(other.procs.abs_diff(key.procs).min(0xff_ffff))
        };
        let of_set = self.groups.iter().enumerate().filter(|(_, (other, _))| other.file_set == key.file_set);
        of_set.min_by_key(|(_, (other, _))| distance(other)).map(|(index, _)| index)
    }

    fn halve(&mut self) {
        self.limit = (self.limit / 2).max(16);
        self.sampled = 0;
        for (_, group) in &mut self.groups {
            group.thin(self.limit);
            self.sampled += group.requests.len();
        }
    }
}

/// In a group where a smaller fraction of the requests than this follows their process's previous
/// ones in a regular way, the regularity is taken for chance.
const STRAY: f64 = 0.05;

impl Sampled {
    fn push(&mut self, request: Request, limit: usize) {
        let run = self.count / RUN as u64;
        self.count += 1;
        self.bytes = self.bytes.saturating_add(request.size);
        let in_order = request.past.run > 0;
        self.in_order += u64::from(in_order);
        self.regular += u64::from(in_order || request.past.count > 1);
        if self.keeps(run) && self.requests.len() >= limit {
            self.thin(limit);
        }
        // Thinning may just have dropped the run that this request belongs to.
        if self.keeps(run) && self.requests.len() < limit {
            self.requests.push(request);
        }
    }

    fn keeps(&self, run: u64) -> bool {
        run.trailing_zeros() >= self.thinned
    }

    /// Drops every other run until fewer than `limit` requests are left.
    fn thin(&mut self, limit: usize) {
        while self.requests.len() >= limit && self.requests.len() > RUN {
            let mut index = 0;
            self.requests.retain(|_| {
                index += 1;
                ((index - 1) / RUN).is_multiple_of(2)
            });
            self.thinned += 1;
        }
        self.requests.truncate(limit);
    }

    fn into_group(mut self, key: Key) -> Group {
        if (self.regular as f64) < STRAY * self.count as f64 {
            self.requests.iter_mut().for_each(|request| request.past = Past::default());
        }
        Group {
            op: if key.write { Op::Write } else { Op::Read },
            access: if 2 * self.in_order >= self.count { Access::Sequential } else { Access::Random },
            procs: key.procs,
            procs_per_node: key.procs_per_node,
            collective: key.collective,
            count: self.count,
            bytes: self.bytes,
            sample: self.requests,
        }
    }
}

/// Size class: an eighth of a power of two.
fn size_class(size: u64) -> u32 {
    let log = size.max(1).ilog2();
    let eighth = if log >= 3 { (size >> (log - 3)) & 7 } else { 0 };
    log * 8 + eighth as u32
}

/// The sample that a group keeps of `requests` under a limit of `limit` requests.
#[cfg(test)]
pub(crate) fn sampled(requests: &[Request], limit: usize) -> Vec<Request> {
    let mut sampled = Sampled::default();
    requests.iter().for_each(|request| sampled.push(*request, limit));
    sampled.requests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(offset: u64) -> Request {
        Request { offset, size: 1, ..Request::default() }
    }

    #[test]
    fn small_groups_are_kept_whole_and_large_ones_evenly() {
        let limit = 16 * RUN;
        for count in [1usize, RUN, 20 * RUN, 100_000, 1_000_000] {
            let mut group = Sampled::default();
            (0..count as u64).for_each(|offset| group.push(request(offset), limit));
            assert_eq!(group.count, count as u64);
            assert!(group.requests.len() <= limit);
            if count <= limit {
                assert_eq!(group.requests.len(), count);
            } else {
                assert!(group.requests.len() >= limit / 2 - RUN, "{count}: {}", group.requests.len());
                let mean: f64 =
                    group.requests.iter().map(|r| r.offset as f64).sum::<f64>() / group.requests.len() as f64;
                let half = count as f64 / 2.0;
                assert!((mean / half - 1.0).abs() < 0.15, "{count}: mean {mean}");
            }
            let runs = group.requests.chunks(RUN);
            assert!(runs.into_iter().all(|run| run.windows(2).all(|w| w[1].offset == w[0].offset + 1)));
        }
    }

    #[test]
    fn sizes_within_an_eighth_are_alike() {
        assert_eq!(size_class(65536), size_class(65537));
        assert_ne!(size_class(65536), size_class(65536 * 9 / 8));
        assert!((1..5000u64).all(|size| size_class(size) <= size_class(size + 1)));
    }
}
