//! The planners' view of an application: files by name pattern, and their requests in groups of
//! like ones.

use std::borrow::Cow;
use std::sync::Arc;

use stripewise_layout::Layout;
use stripewise_model::{Access, Op};
use stripewise_trace::summary::{LISTED_FILES_MAX, Past};

use crate::present::Present;

/// Everything that planning needs to know of a trace; bounded in size however long the trace is and
/// however many files it has.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// One set per file-name pattern, sorted by bytes, most first.
    pub file_sets: Vec<FileSet>,
}

/// The files that match one name pattern, and the data requests on them.
#[derive(Clone, Debug, Default)]
pub struct FileSet {
    /// Path pattern in the form of [`stripewise_cluster::pattern`].
    pub pattern: String,
    /// The files, indexed by [`Request::file`]. Of very many, some stand for the others.
    pub files: Vec<File>,
    /// What is done with each file, by index; empty if it is not known.
    pub uses: Vec<FileUse>,
    /// The requests, grouped by operation, size class and concurrency.
    pub groups: Vec<Group>,
    /// The calls on the files that move no data, one entry per application.
    pub calls: Vec<Calls>,
    /// There are several files, and each is open in at most one process.
    pub private: bool,
    /// Programs map some of the files into memory.
    pub mapped: bool,
    /// What memory served; it is not among the groups.
    pub memory: FromMemory,
    /// The layout that the files have now.
    pub present: Present,
    /// The files that a change of layout moves; needed only for a limit on moving.
    pub existing: Existing,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Absolute path.
    pub name: Arc<str>,
    /// The largest size seen, bytes: at open, by resize, or reached by a request.
    pub size: u64,
    /// Number of other files of the set that it stands for. If there are any, the size is the mean
    /// of all of them, rounded up.
    pub others: u32,
}

impl File {
    /// A file that stands for itself.
    pub fn new(name: impl Into<Arc<str>>, size: u64) -> Self {
        Self { name: name.into(), size, others: 0 }
    }

    /// Number of files that it stands for, itself included.
    pub fn count(&self) -> u64 {
        1 + u64::from(self.others)
    }
}

/// The number of all requests on a file, and their bytes, by operation and access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileUse {
    requests: [u64; 4],
    bytes: [u64; 4],
}

impl FileUse {
    /// Adds a request.
    #[inline]
    pub(crate) fn add(&mut self, op: Op, request: &Request) {
        let is_in_order = request.access() == Access::Sequential;
        let kind = 2 * usize::from(op == Op::Write) + usize::from(is_in_order);
        self.requests[kind] += 1;
        self.bytes[kind] = self.bytes[kind].saturating_add(request.size);
    }

    /// Adds what another application does with the file.
    pub(crate) fn join(&mut self, other: &Self) {
        let add = |(sum, more): (&mut u64, &u64)| *sum = sum.saturating_add(*more);
        self.requests.iter_mut().zip(&other.requests).for_each(add);
        self.bytes.iter_mut().zip(&other.bytes).for_each(add);
    }

    /// The same in so many runs.
    pub(crate) fn of_runs(self, times: u64) -> Self {
        let all = |numbers: [u64; 4]| numbers.map(|number| number.saturating_mul(times));
        Self { requests: all(self.requests), bytes: all(self.bytes) }
    }

    /// Operation, access, number of requests and their bytes, of each kind that there is.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (Op, Access, u64, u64)> {
        let accesses = [Access::Random, Access::Sequential];
        let kinds = [Op::Read, Op::Write].into_iter().flat_map(move |op| accesses.map(|access| (op, access)));
        let numbers = self.requests.iter().zip(&self.bytes);
        let all = kinds.zip(numbers).map(|((op, access), (&requests, &bytes))| (op, access, requests, bytes));
        all.filter(|(.., requests, _)| *requests > 0)
    }
}

/// Calls of one application on the files of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Index of the application, if there are several.
    pub application: u32,
    /// How often it runs. All other numbers are of one run.
    pub times: u64,
    /// The largest number of processes that use the files at the same time.
    pub procs: u32,
    /// Number of opens of files that exist.
    pub opens: u64,
    /// Number of opens that create a file: the first of a file that is empty.
    pub creates: u64,
    /// Number of closes.
    pub closes: u64,
    /// Number of queries of attributes.
    pub stats: u64,
    /// Number of removals of a name.
    pub unlinks: u64,
    /// Written bytes that no call has flushed.
    pub unflushed_bytes: u64,
    /// Time of the requests that memory served, over all processes, nanoseconds.
    pub memory_ns: u64,
    /// Traced time of syncs and closes, over all processes, nanoseconds.
    pub flush_ns: u64,
}

/// Requests that memory served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FromMemory {
    /// Number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their time, over all processes, nanoseconds.
    pub ns: u64,
}

impl FromMemory {
    /// Adds other requests.
    pub fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
    }

    /// So many times as much.
    pub(crate) fn times(self, weight: f64) -> Self {
        let times = |number: u64| (number as f64 * weight).round() as u64;
        Self { requests: times(self.requests), bytes: times(self.bytes), ns: times(self.ns) }
    }
}

impl Calls {
    /// Seconds of the requests that memory served, in all runs.
    pub(crate) fn memory_s(&self) -> f64 {
        self.times as f64 * self.memory_ns as f64 * 1e-9 / f64::from(self.procs.max(1))
    }

    /// Adds calls of the same application.
    pub(crate) fn add(&mut self, other: &Self) {
        self.procs = self.procs.max(other.procs);
        self.opens += other.opens;
        self.creates += other.creates;
        self.closes += other.closes;
        self.stats += other.stats;
        self.unlinks += other.unlinks;
        self.unflushed_bytes = self.unflushed_bytes.saturating_add(other.unflushed_bytes);
        self.memory_ns = self.memory_ns.saturating_add(other.memory_ns);
        self.flush_ns = self.flush_ns.saturating_add(other.flush_ns);
    }

    /// The calls on the files from number `from` to `to`, of `all`. If all files are divided into
    /// such ranges, their calls are these calls.
    pub(crate) fn of_files(&self, (from, to): (u64, u64), all: u64) -> Self {
        let until =
            |count: u64, end: u64| (u128::from(count) * u128::from(end) / u128::from(all.max(1))) as u64;
        let within = |count: u64| until(count, to) - until(count, from);
        Self {
            opens: within(self.opens),
            creates: within(self.creates),
            closes: within(self.closes),
            stats: within(self.stats),
            unlinks: within(self.unlinks),
            unflushed_bytes: within(self.unflushed_bytes),
            memory_ns: within(self.memory_ns),
            flush_ns: within(self.flush_ns),
            ..*self
        }
    }
}

/// The files that exist and that a rule for their set would move, whether or not the trace names
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Existing {
    /// The files.
    pub files: Vec<ExistingFile>,
    /// Present layouts of managed files with one copy, with target indices as in the cluster.
    pub layouts: Vec<Layout>,
}

/// A file that exists.
#[derive(Clone, Debug, PartialEq)]
pub struct ExistingFile {
    /// Absolute path.
    pub name: Arc<str>,
    /// Present size, bytes.
    pub size: u64,
    /// Index into [`Existing::layouts`]; `None`: no candidate with one copy is its layout.
    pub layout: Option<u32>,
}

/// Like requests on one file set: same operation and concurrency, sizes within an eighth of a power
/// of two.
#[derive(Clone, Debug)]
pub struct Group {
    /// Index of the application that issues the requests, if there are several.
    pub application: u32,
    /// How often that application runs, at least 1. All other numbers are of one run.
    pub times: u64,
    /// The files are used at the same time as others by other processes; `None`: not so.
    pub lane: Option<Lane>,
    /// Read or write.
    pub op: Op,
    /// Whether most of the requests continue in the file where their process's previous one ended.
    /// The access that a server sees depends on the layout; it is derived request by request from
    /// [`Request::past`].
    pub access: Access,
    /// p: number of processes that issue the requests concurrently; at least 1.
    pub procs: u32,
    /// c: number of those processes on one node; at least 1, at most p.
    pub procs_per_node: u32,
    /// The node of each process, by its number. Of others, c consecutive ones are on a node.
    pub nodes: Arc<[u32]>,
    /// The requests are made in collective calls, in rounds: none begins before all of the previous
    /// round are done.
    pub collective: bool,
    /// Number of requests.
    pub count: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// All requests, or evenly spaced runs of them: phase by phase, and in a phase in order of
    /// start. So the requests of each process are in order of start.
    pub sample: Vec<Request>,
}

/// Files of a stage that the same processes use, one after the other.
///
/// A *stage* is a time in which different processes use different files, and so share the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// The number of the stage among those of the application.
    pub stage: u32,
    /// The number of the lane.
    pub number: u32,
}

/// One data request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The number of the issuing process.
    pub process: u32,
    /// Index into [`FileSet::files`].
    pub file: u32,
    /// File offset, bytes.
    pub offset: u64,
    /// Size, bytes; more than 0.
    pub size: u64,
    /// The process's preceding accesses to the file.
    pub past: Past,
    /// Nanoseconds that it took in the traced run, at most `u32::MAX`.
    pub took_ns: u32,
    /// The process's node has read or written all of its bytes before.
    pub known: bool,
}

impl Request {
    /// Seconds that it took in the traced run; infinite if that is more than can be noted.
    pub(crate) fn took_s(&self) -> f64 {
        if self.took_ns == u32::MAX { f64::INFINITY } else { f64::from(self.took_ns) * 1e-9 }
    }

    /// Whether it begins in the file where its process's previous one ended.
    pub(crate) fn access(&self) -> Access {
        if self.past.run > 0 { Access::Sequential } else { Access::Random }
    }
}

impl Workload {
    /// Total size of all files, bytes.
    pub fn total_size(&self) -> u64 {
        self.file_sets.iter().map(FileSet::total_size).fold(0, u64::saturating_add)
    }

    /// Whether there are too many files to keep the use of each, so that sets are not
    /// [divided](Workload::divided) by it.
    pub fn has_too_many_files(&self) -> bool {
        self.file_sets.iter().map(FileSet::count).sum::<u64>() > LISTED_FILES_MAX as u64
    }
}

impl FileSet {
    /// The set without its requests.
    pub(crate) fn clone_without_groups(&self) -> Self {
        let Self { pattern, files, private, mapped, present, .. } = self;
        let (pattern, files, present) = (pattern.clone(), files.clone(), present.clone());
        Self { pattern, files, private: *private, mapped: *mapped, present, ..Self::default() }
    }

    /// Adds the time of requests that memory served to the calls of the application of `group`.
    pub(crate) fn add_memory_time(&mut self, group: &Group, ns: u64) {
        if ns == 0 {
            return;
        }
        let Group { application, times, procs, .. } = *group;
        let known = self.calls.iter().position(|calls| calls.application == application);
        let index = known.unwrap_or_else(|| {
            self.calls.push(Calls { application, times, procs, ..Calls::default() });
            self.calls.len() - 1
        });
        self.calls[index].memory_ns = self.calls[index].memory_ns.saturating_add(ns);
    }

    /// Whether memory served some of its requests.
    pub(crate) fn has_memory_time(&self) -> bool {
        self.calls.iter().any(|calls| calls.memory_ns > 0)
    }

    /// Total size of the files, bytes.
    pub fn total_size(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.size.saturating_mul(file.count()));
        sizes.fold(0, u64::saturating_add)
    }

    /// Number of files.
    pub fn count(&self) -> u64 {
        self.files.iter().map(File::count).sum()
    }

    /// Size of the largest listed file, bytes.
    pub fn largest(&self) -> u64 {
        self.files.iter().map(|file| file.size).max().unwrap_or(0)
    }

    /// Number of data requests in all runs.
    pub fn requests(&self) -> u64 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.count.saturating_mul(group.times)))
    }

    /// Bytes of the data requests in all runs.
    pub fn bytes(&self) -> u64 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.all_bytes()))
    }

    /// The request size that moves the most bytes; of equal ones the larger. 0 without requests.
    pub fn dominant_size(&self) -> u64 {
        let mut bytes_by_size = std::collections::BTreeMap::<u64, f64>::new();
        for group in &self.groups {
            let weight = group.weight(group.sample.len());
            for request in &group.sample {
                *bytes_by_size.entry(request.size).or_default() += weight * request.size as f64;
            }
        }
        let most = bytes_by_size.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        most.map_or(0, |(size, _)| size)
    }
}

/// Number of neighboring requests that stay together when a group keeps only a sample.
pub(crate) const RUN: usize = 1024;

impl Group {
    /// Number of requests of all runs that each of `sampled` requests stands for.
    pub(crate) fn weight(&self, sampled: usize) -> f64 {
        self.times as f64 * self.count as f64 / sampled.max(1) as f64
    }

    /// Bytes of the requests in all runs.
    pub(crate) fn all_bytes(&self) -> u64 {
        self.bytes.saturating_mul(self.times)
    }

    /// The group with an empty sample.
    pub(crate) fn clone_without_sample(&self) -> Self {
        Self { nodes: self.nodes.clone(), sample: Vec::new(), ..*self }
    }

    /// The number of the node that a process runs on.
    pub(crate) fn node(&self, process: u32) -> u32 {
        let known = self.nodes.get(process as usize);
        known.copied().unwrap_or_else(|| process / self.procs_per_node.max(1))
    }

    /// About `limit` requests, in evenly spaced windows of `window` neighbors; the whole sample if
    /// it is no longer than that.
    ///
    /// Neighbors stay together because their order matters. A window shows how concurrent requests
    /// meet on the servers; several windows show how that changes over the run.
    pub(crate) fn windows(&self, limit: usize, window: usize) -> Cow<'_, [Request]> {
        let sample = &self.sample[..];
        let window = window.clamp(1, sample.len().max(1));
        if sample.len() <= limit || window == sample.len() {
            return Cow::Borrowed(sample);
        }
        // If the sample has gaps, runs of neighbors begin at multiples of RUN.
        let step = if sample.len() as u64 == self.count { 1 } else { RUN };
        let count = (limit / window).clamp(1, sample.len() / window);
        let start = |index: usize| index * sample.len() / count / step * step;
        let one = |index: usize| &sample[start(index)..(start(index) + window).min(sample.len())];
        (0..count).flat_map(one).copied().collect()
    }
}

#[cfg(test)]
impl Group {
    /// A group of exactly these requests, by one process.
    pub(crate) fn of_all(op: Op, access: Access, sample: Vec<Request>) -> Self {
        let (count, bytes) = (sample.len() as u64, sample.iter().map(|request| request.size).sum());
        let (application, times, lane, nodes, collective) = (0, 1, None, [].into(), false);
        let (procs, procs_per_node) = (1, 1);
        Self {
            application,
            times,
            lane,
            op,
            access,
            procs,
            procs_per_node,
            nodes,
            collective,
            count,
            bytes,
            sample,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(kept: usize, count: u64) -> Group {
        let request = |offset| Request { offset, size: 1, ..Request::default() };
        let sample = (0..kept as u64).map(request).collect();
        Group { count, bytes: count, ..Group::of_all(Op::Read, Access::Random, sample) }
    }

    #[test]
    fn all_or_evenly_spaced_windows() {
        let all = group(5000, 5000);
        assert_eq!(all.windows(8192, 1024).len(), 5000);
        let some = all.windows(2048, 256);
        let starts: Vec<u64> = some.chunks(256).map(|window| window[0].offset).collect();
        assert_eq!(starts, [0, 625, 1250, 1875, 2500, 3125, 3750, 4375]);
        assert!(some.chunks(256).all(|window| window[255].offset == window[0].offset + 255));
    }

    #[test]
    fn windows_of_a_sample_with_gaps_begin_behind_them() {
        let gaps = group(8 * RUN, 1_000_000);
        assert!(gaps.windows(2048, 256).chunks(256).all(|window| window[0].offset % RUN as u64 == 0));
        assert_eq!(gaps.windows(2048, 100 * RUN).len(), 8 * RUN, "a window that does not fit is the whole");
    }
}
