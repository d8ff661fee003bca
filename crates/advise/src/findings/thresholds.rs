//! From when on something is worth mentioning.
//!
//! Those with a name of Drishti are its published defaults (`thresholds` in
//! `drishti/includes/config.py` of hpc-io/drishti-io at commit 44939887). The others are
//! stripewise's own.

/// Share of small requests. Drishti: `small_requests`.
pub const SMALL_SHARE: f64 = 0.1;
/// Number of small requests. Drishti: `small_requests_absolute`.
pub const SMALL_CALLS: u64 = 1000;
/// Share of misaligned requests. Drishti: `misaligned_requests`.
pub const MISALIGNED_SHARE: f64 = 0.1;
/// Share of random requests. Drishti: `random_operations`.
pub const RANDOM_SHARE: f64 = 0.2;
/// Number of random requests. Drishti: `random_operations_absolute`.
pub const RANDOM_CALLS: u64 = 1000;
/// Time of metadata operations of a process, seconds. Drishti: `metadata_time_rank`.
pub const METADATA_S: f64 = 30.0;
/// Share of the busiest process's time that the others lack. Drishti: `imbalance_stragglers`,
/// which it compares with sums over processes.
pub const STRAGGLER_SHARE: f64 = 0.15;
/// Share of bytes that go through C streams. Drishti: `interface_stdio`.
pub const STDIO_SHARE: f64 = 0.1;
/// Share of collective calls among those of MPI-IO. Drishti: `collective_operations`.
pub const COLLECTIVE_SHARE: f64 = 0.5;
/// Number of calls of MPI-IO. Drishti: `collective_operations_absolute`.
pub const COLLECTIVE_CALLS: u64 = 1000;

/// Share of the I/O time in metadata operations, for jobs that do not reach [`METADATA_S`].
pub const METADATA_SHARE: f64 = 0.3;
/// Number of opens in all, for [`METADATA_SHARE`].
pub const OPENS: u64 = 1000;
/// How many times as long as on the median server the same files take on a slow one.
pub const SLOW_SERVER: f64 = 3.0;
/// Minimum number of servers with files, so that one differs from the others.
pub const SERVERS_COMPARED: usize = 4;
/// How often a file's bytes are read in all.
pub const REPEATED_READS: u64 = 4;
/// Share of the bytes written that MPI-IO reads back for itself.
pub const SIEVED_SHARE: f64 = 0.1;
/// How many times as long as their system calls the calls of MPI-IO take.
pub const ABOVE_SYSTEM_CALLS: f64 = 2.0;
/// Fewer requests than this show no pattern.
pub const CALLS_JUDGED: u64 = 1000;
/// I/O of less time in all is not told from what one run differs from the next, seconds.
pub const TIME_JUDGED_S: f64 = 0.5;
/// Size of a file that several processes share on one server, bytes.
pub const LARGE_BYTES: u64 = 1 << 30;
/// Share of the run from which a finding is severe, and from which it counts at all.
pub const SEVERE_SHARE: f64 = 0.2;
/// Files that take less than this share of the run keep their layout.
pub const NEGLIGIBLE_SHARE: f64 = 0.01;
/// A finding of a smaller share of the run is a note.
pub const NOTABLE_SHARE: f64 = 0.05;
