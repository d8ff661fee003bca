//! What the planners see of an application: files by name pattern, and their requests in groups of like ones.

use stripewise_model::{Access, Op};
use stripewise_trace::summary::Past;

use crate::present::Present;

/// Everything that planning needs to know of a trace; bounded in size however long the trace is, but for the file
/// names.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// One per file-name pattern, those with the most bytes first.
    pub file_sets: Vec<FileSet>,
}

/// The files of one name pattern and the data requests on them.
#[derive(Clone, Debug, Default)]
pub struct FileSet {
    /// Path pattern in the form of [`stripewise_cluster::pattern`].
    pub pattern: String,
    /// The files; [`Request::file`] is an index.
    pub files: Vec<File>,
    /// Requests by operation, access, size class and concurrency.
    pub groups: Vec<Group>,
    /// Requests on files of the set that are open at most by one process each.
    pub private: bool,
    /// Programs map some of them into memory.
    pub mapped: bool,
    /// The layout that the files have now.
    pub present: Present,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Absolute path.
    pub name: String,
    /// The largest size seen: at open, set, or reached by a request; bytes.
    pub size: u64,
}

/// Like requests: same files, operation and concurrency, sizes within an eighth of a power of two.
#[derive(Clone, Debug)]
pub struct Group {
    /// Direction.
    pub op: Op,
    /// Whether most of them go on in the file where their process's last one ended. What a server sees depends on the layout:
    /// that is found out request by request, from [`Request::past`].
    pub access: Access,
    /// p: processes that issue them concurrently; at least 1.
    pub procs: u32,
    /// c: of those, on one node; at least 1, at most p.
    pub procs_per_node: u32,
    /// They are made inside collective calls, in rounds: none begins before all of the round before are done.
    pub collective: bool,
    /// How many there are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// All of them, or evenly spaced runs of them, in order of start.
    pub sample: Vec<Request>,
}

/// One data request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Who issues it; any number, the same for the same process.
    pub process: u32,
    /// Index into [`FileSet::files`].
    pub file: u32,
    /// Bytes.
    pub offset: u64,
    /// Bytes, more than 0.
    pub size: u64,
    /// What its process did in the file just before.
    pub past: Past,
}

impl FileSet {
    /// Bytes of all files.
    pub fn total_size(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Size of the largest file, bytes.
    pub fn largest(&self) -> u64 {
        self.files.iter().map(|file| file.size).max().unwrap_or(0)
    }

    /// Data requests.
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
