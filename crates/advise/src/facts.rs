//! What is known of a job's I/O, whether it comes from Darshan's counters or from a trace.

use serde::Serialize;

/// Maximum number of files that are kept one by one, which bounds memory to some 60 MB. Of later
/// ones only the totals count.
pub const FILES_MAX: usize = 1 << 17;
/// Maximum number of processes whose times are kept one by one.
pub const RANKS_MAX: usize = 1 << 20;
/// Requests below this many bytes are small. Source: Drishti `drishti/includes/config.py`,
/// `small_bytes`, which is also the limit between two of Darshan's counters of sizes.
pub const SMALL_BYTES: u64 = 1 << 20;
/// Waiting for an open longer than this is no metadata operation but the wait for a peer: a named
/// pipe or a lock, seconds.
const WAIT_S: f64 = 1.0;
/// Maximum number of bytes that go through a file whose opens wait.
const WAIT_BYTES: u64 = 64 << 10;

/// A process that moves this many times the mean's bytes has no larger share.
const EVEN: f64 = 1.15;

/// Where the facts come from, which decides how sure an advice is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Darshan's counters: sums per file; single calls are not known.
    #[default]
    Counters,
    /// Darshan's counters and its extended trace (DXT).
    Extended,
    /// Every call, recorded by stripewise.
    Recorded,
    /// A trace that no program made: its calls have no times.
    Synthetic,
}

/// A job's I/O on its data files.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Where the facts come from.
    pub source: Source,
    /// Number of processes, at least 1.
    pub processes: u64,
    /// How long the job ran, seconds; `None` if it is not known or 0.
    pub runtime_s: Option<f64>,
    /// Mounted file systems: type and directory.
    pub mounts: Vec<(String, String)>,
    /// The data files that are kept one by one.
    pub files: Vec<FileFacts>,
    /// Times and bytes of files beyond [`FILES_MAX`].
    pub beyond: Excluded,
    /// Software, logs, settings and standard streams.
    pub left_out: Excluded,
    /// Files whose opens wait for a peer.
    pub waits: Excluded,
    /// By rank: time in files of its own, seconds.
    pub rank_s: Vec<f64>,
    /// By rank: bytes of files of its own.
    pub rank_bytes: Vec<u64>,
    /// Why the log lacks calls, one sentence each.
    pub incomplete: Vec<String>,
}

/// Files that take no part in the advice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Excluded {
    /// Number of files.
    pub files: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// Time of their calls, summed over processes, seconds.
    pub time_s: f64,
}

/// One data file.
#[derive(Clone, Debug, Default)]
pub struct FileFacts {
    /// Absolute path.
    pub name: String,
    /// Number of processes that use it, at least 1.
    pub processes: u64,
    /// Reads and writes.
    pub data: [Transfers; 2],
    /// Number of opens and of stats.
    pub opens: u64,
    /// Number of stats.
    pub stats: u64,
    /// Time of opens, closes, stats and seeks, summed over processes, seconds.
    pub meta_s: f64,
    /// Requests that do not begin at a multiple of `alignment`.
    pub unaligned: u64,
    /// The alignment that was observed, bytes; 0 if none was.
    pub alignment: u64,
    /// The slowest process's time in a file of several, seconds; 0 if it is not known.
    pub slowest_s: f64,
    /// The bytes of that process; 0 if they are not known.
    pub slowest_bytes: u64,
    /// Bytes that went through C streams.
    pub stdio_bytes: u64,
    /// Calls of MPI-IO, if there are any.
    pub mpi: Option<MpiUse>,
    /// HDF5 writes it.
    pub is_hdf5: bool,
    /// It was renamed, so that the name is no longer there.
    pub is_renamed: bool,
    /// Where Lustre has its bytes, if the log says.
    pub striping: Option<Striping>,
}

/// The reads or the writes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfers {
    /// Number of calls.
    pub calls: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Calls of less than [`SMALL_BYTES`].
    pub small: u64,
    /// Calls that begin before the end of the same process's previous one.
    pub random: u64,
    /// One past the highest byte; 0 if it is not known.
    pub extent: u64,
    /// Time of the calls, summed over processes, seconds.
    pub time_s: f64,
}

/// The calls of MPI-IO on a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MpiUse {
    /// Reads and writes by one process alone.
    pub independent: [u64; 2],
    /// Reads and writes by all processes together.
    pub collective: [u64; 2],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Time of reads, of writes and of other calls, summed over processes, seconds. It includes
    /// that of the system calls that they make.
    pub time_s: [f64; 3],
    /// The same of the system calls alone.
    pub below_s: [f64; 3],
    /// There are records of the system calls.
    pub has_below: bool,
}

/// A layout that Lustre reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Striping {
    /// Bytes of a stripe, more than 0.
    pub width: u64,
    /// The OSTs of the stripes; of the last component, if there are several.
    pub osts: Vec<u32>,
    /// The pool of the OSTs; empty if there is none.
    pub pool: String,
    /// The file has several components.
    pub is_composite: bool,
    /// Number of OSTs of the file system, if the log says.
    pub all_osts: Option<u32>,
}

impl FileFacts {
    /// Bytes that were read and written.
    pub fn bytes(&self) -> u64 {
        self.data[0].bytes.saturating_add(self.data[1].bytes)
    }

    /// Number of reads and writes.
    pub fn calls(&self) -> u64 {
        self.data[0].calls.saturating_add(self.data[1].calls)
    }

    /// Time of all calls, summed over processes, seconds.
    pub fn time_s(&self) -> f64 {
        self.data[0].time_s + self.data[1].time_s + self.meta_s
    }

    /// Whether several processes use it.
    pub fn is_shared(&self) -> bool {
        self.processes > 1
    }

    /// The highest byte that was reached.
    pub fn extent(&self) -> u64 {
        self.data[0].extent.max(self.data[1].extent)
    }

    /// Whether its opens wait for a peer, as those of a named pipe do.
    pub(crate) fn waits(&self) -> bool {
        is_waiting(self.bytes(), self.opens, self.meta_s)
    }
}

/// Whether opens that take `meta_s` seconds in all wait for a peer, as those of a named pipe do.
pub(crate) fn is_waiting(bytes: u64, opens: u64, meta_s: f64) -> bool {
    bytes <= WAIT_BYTES && meta_s > WAIT_S * opens.max(1) as f64
}

impl Excluded {
    /// Adds a file.
    pub fn add(&mut self, file: &FileFacts) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(file.bytes());
        self.time_s += file.time_s();
    }
}

impl Facts {
    /// Moves files whose opens wait for a peer out of the data files.
    pub(crate) fn leave_out_waits(&mut self) {
        let Facts { files, waits, .. } = self;
        files.retain(|file| {
            let waiting = file.waits();
            if waiting {
                waits.add(file);
            }
            !waiting
        });
    }

    /// Time of the calls on data files, summed over processes, seconds.
    pub fn time_s(&self) -> f64 {
        self.files.iter().map(FileFacts::time_s).sum::<f64>() + self.beyond.time_s
    }

    /// Bytes read, and bytes written, of data files.
    pub fn bytes(&self) -> [u64; 2] {
        let of =
            |side: usize| self.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.data[side].bytes));
        [of(0), of(1)]
    }

    /// Whether data files were used at all.
    pub fn has_io(&self) -> bool {
        self.files.iter().any(|file| file.calls() > 0) || self.beyond.bytes > 0
    }

    /// Mean time that a process does I/O, seconds.
    pub fn mean_s(&self) -> f64 {
        self.time_s() / self.processes.max(1) as f64
    }

    /// Time that the busiest process does I/O, seconds, as far as the log tells: at least the mean,
    /// at most the run time.
    pub fn busiest_s(&self) -> f64 {
        let own_s = self.rank_s.iter().copied().fold(0.0, f64::max);
        let shared = self.files.iter().filter(|file| file.is_shared() && file.slowest_s > 0.0);
        let busiest_s = own_s + shared.map(|file| file.slowest_s).sum::<f64>();
        let busiest_s = busiest_s.max(self.mean_s());
        self.runtime_s.map_or(busiest_s, |runtime_s| busiest_s.min(runtime_s))
    }

    /// Whether [`Facts::busiest_s`] may be too long, because the slowest processes of several files
    /// may be different ones.
    pub fn is_busiest_a_bound(&self) -> bool {
        self.files.iter().filter(|file| file.is_shared() && file.slowest_s > 0.0).nth(1).is_some()
    }

    /// Whether the busiest processes move no more bytes than the mean, so that their time is due to
    /// the servers.
    pub fn is_evenly_shared(&self) -> bool {
        let (most, sum) = (self.rank_bytes.iter().max(), self.rank_bytes.iter().sum::<u64>());
        let is_even =
            |most: u64, sum: u64, processes: u64| most as f64 <= EVEN * sum as f64 / processes.max(1) as f64;
        let own = most.is_none_or(|&most| most == 0 || is_even(most, sum, self.processes));
        let mut shared = self.files.iter().filter(|file| file.is_shared() && file.slowest_s > 0.0);
        own && shared
            .all(|file| file.slowest_bytes > 0 && is_even(file.slowest_bytes, file.bytes(), file.processes))
    }

    /// The share of the run in which the busiest process does I/O, 0 to 1; `None` if the run time
    /// is not known.
    pub fn io_share(&self) -> Option<f64> {
        self.share_of(self.busiest_s())
    }

    /// The share of the run of a time, 0 to 1.
    pub fn share_of(&self, time_s: f64) -> Option<f64> {
        self.runtime_s.map(|runtime_s| (time_s / runtime_s).clamp(0.0, 1.0))
    }

    /// The part of the busiest process's time that a sum over processes stands for, seconds.
    pub fn of_busiest_s(&self, sum_s: f64) -> f64 {
        let all_s = self.time_s();
        if all_s > 0.0 { self.busiest_s() * (sum_s / all_s).clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(processes: u64, time_s: f64, slowest_s: f64) -> FileFacts {
        let write = Transfers { calls: 1, bytes: 1 << 30, time_s, ..Transfers::default() };
        FileFacts { processes, slowest_s, data: [Transfers::default(), write], ..FileFacts::default() }
    }

    #[test]
    fn the_busiest_process_takes_at_least_the_mean_and_at_most_the_run_time() {
        let mut facts = Facts { processes: 4, runtime_s: Some(100.0), ..Facts::default() };
        facts.files = vec![file(4, 40.0, 0.0)];
        assert_eq!((facts.mean_s(), facts.busiest_s()), (10.0, 10.0));
        facts.files = vec![file(4, 40.0, 25.0)];
        assert_eq!(facts.busiest_s(), 25.0);
        facts.rank_s = vec![1.0, 90.0];
        assert_eq!((facts.busiest_s(), facts.io_share()), (100.0, Some(1.0)));
    }

    #[test]
    fn a_file_whose_opens_wait_is_no_io() {
        let mut facts = Facts {
            files: vec![FileFacts { opens: 1, meta_s: 1462.0, ..FileFacts::default() }],
            ..Facts::default()
        };
        facts.leave_out_waits();
        assert_eq!((facts.files.len(), facts.waits.files), (0, 1));
        // Many short opens are metadata operations.
        facts.files = vec![FileFacts { opens: 100_000, meta_s: 1462.0, ..FileFacts::default() }];
        facts.leave_out_waits();
        assert_eq!(facts.files.len(), 1);
    }
}
