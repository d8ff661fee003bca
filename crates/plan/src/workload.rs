//! The planners' view of an application: files by name pattern, and their requests in groups of
//! like ones.

use stripewise_model::{Access, Op};
use stripewise_trace::summary::Past;

use crate::present::Present;

/// Everything that planning needs to know of a trace; bounded in size however long the trace is,
/// but for the file names.
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
    /// The files, indexed by [`Request::file`].
    pub files: Vec<File>,
    /// The requests, grouped by operation, size class and concurrency.
    pub groups: Vec<Group>,
    /// There are several files, and each is open in at most one process.
    pub private: bool,
    /// Programs map some of the files into memory.
    pub mapped: bool,
    /// The layout that the files have now.
    pub present: Present,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Absolute path.
    pub name: String,
    /// The largest size seen, bytes: at open, by resize, or reached by a request.
    pub size: u64,
}

/// Like requests on one file set: same operation and concurrency, sizes within an eighth of a power
/// of two.
#[derive(Clone, Debug)]
pub struct Group {
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
    /// The requests are made in collective calls, in rounds: none begins before all of the previous
    /// round are done.
    pub collective: bool,
    /// Number of requests.
    pub count: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// All requests, or evenly spaced runs of them, in order of start.
    pub sample: Vec<Request>,
}

/// One data request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The issuing process; any number, the same for the same process.
    pub process: u32,
    /// Index into [`FileSet::files`].
    pub file: u32,
    /// File offset, bytes.
    pub offset: u64,
    /// Size, bytes; more than 0.
    pub size: u64,
    /// The process's preceding accesses to the file.
    pub past: Past,
}

impl FileSet {
    /// Total size of the files, bytes.
    pub fn total_size(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Size of the largest file, bytes.
    pub fn largest(&self) -> u64 {
        self.files.iter().map(|file| file.size).max().unwrap_or(0)
    }

    /// Number of data requests.
    pub fn requests(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// Bytes of the data requests.
    pub fn bytes(&self) -> u64 {
        self.groups.iter().map(|group| group.bytes).sum()
    }

    /// The request size that moves the most bytes; of equal ones the larger. 0 without requests.
    pub fn dominant_size(&self) -> u64 {
        let mut bytes_by_size = std::collections::BTreeMap::<u64, f64>::new();
        for group in &self.groups {
            let weight = group.count as f64 / group.sample.len().max(1) as f64;
            for request in &group.sample {
                *bytes_by_size.entry(request.size).or_default() += weight * request.size as f64;
            }
        }
        let most = bytes_by_size.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        most.map_or(0, |(size, _)| size)
    }
}
