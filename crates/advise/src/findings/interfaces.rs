//! How a program reaches its files: MPI-IO, collective or not, system calls, C streams.

use super::finding::{Finding, Job, Said};
use super::thresholds::{
    ABOVE_SYSTEM_CALLS, COLLECTIVE_CALLS, COLLECTIVE_SHARE, MISALIGNED_SHARE, NOTABLE_SHARE, SIEVED_SHARE,
    SMALL_SHARE, STDIO_SHARE,
};
use crate::facts::{FileFacts, Source, Transfers};
use crate::interface;
use crate::text::{bytes, count, number, percent, seconds};

/// Whether requests are so small, or so often off the blocks, that it helps to join them.
fn gains_from_joining(file: &FileFacts, side: usize) -> bool {
    let Transfers { calls, small, .. } = file.data[side];
    let is_so = |many: u64, of: u64, share: f64| many as f64 > share * of as f64;
    is_so(small, calls, SMALL_SHARE) || is_so(file.unaligned, file.calls(), MISALIGNED_SHARE)
}

/// Shared files that processes access with MPI-IO, each on its own.
pub(super) fn independent(job: &Job<'_>) -> Vec<Finding> {
    (0..2).filter_map(|side| independent_of(job, side)).collect()
}

fn independent_of(job: &Job<'_>, side: usize) -> Option<Finding> {
    let calls = |file: &FileFacts| file.mpi.map_or([0, 0], |mpi| [mpi.independent[side], mpi.collective[side]]);
    let is_so = |file: &&FileFacts| {
        let [alone, together] = calls(file);
        file.is_shared()
            && alone > 0
            && gains_from_joining(file, side)
            && (together as f64) < COLLECTIVE_SHARE * (alone + together) as f64
    };
    let files: Vec<&FileFacts> = job.facts.files.iter().filter(is_so).collect();
    let many: u64 = files.iter().map(|file| calls(file)[0]).sum();
    if many <= COLLECTIVE_CALLS {
        return None;
    }
    let time_s = |file: &FileFacts| file.data[side].time_s;
    let first = files.iter().copied().max_by(|a, b| time_s(a).total_cmp(&time_s(b)))?;
    let verb = ["reads", "writes"][side];
    let said = Said {
        code: if side == 0 { "independent-reads" } else { "independent-writes" },
        what: format!("{} MPI-IO {verb} of {} are independent", number(many), job.named(&files, time_s)),
        why: "no process knows the requests of the others, so nothing joins or orders them".into(),
        remedy: interface::collective_call(first, side),
        commands: interface::collective_hints(side),
    };
    Some(job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum())))
}

/// Files that MPI-IO reads back while it writes pieces with gaps (ROMIO's data sieving).
pub(super) fn sieving(job: &Job<'_>) -> Vec<Finding> {
    let is_so = |file: &&FileFacts| {
        file.mpi.is_some_and(|mpi| {
            let own = file.data[0].bytes.saturating_sub(mpi.bytes[0]);
            mpi.has_below && mpi.bytes[1] > 0 && own as f64 > SIEVED_SHARE * mpi.bytes[1] as f64
        })
    };
    let files: Vec<&FileFacts> = job.facts.files.iter().filter(is_so).collect();
    let time_s = |file: &FileFacts| file.data[0].time_s + file.data[1].time_s;
    let Some(first) = files.iter().copied().max_by(|a, b| time_s(a).total_cmp(&time_s(b))) else {
        return Vec::new();
    };
    let mpi = first.mpi.unwrap_or_default();
    let said = Said {
        code: "data-sieving",
        what: format!(
            "{}: {} were read and {} written for {} of the program's",
            job.named(&files, time_s),
            bytes(first.data[0].bytes),
            bytes(first.data[1].bytes),
            bytes(mpi.bytes[1])
        ),
        why: "MPI-IO reads, changes and writes back whole buffers, under a lock (data sieving)".into(),
        remedy: interface::collective_call(first, 1),
        commands: interface::without_sieving(),
    };
    vec![job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum()))]
}

/// Calls of MPI-IO that take longer than the system calls that they make.
pub(super) fn above_system_calls(job: &Job<'_>) -> Vec<Finding> {
    let sums = |file: &FileFacts| {
        let mpi = file.mpi.filter(|mpi| mpi.has_below).unwrap_or_default();
        (mpi.time_s.iter().sum::<f64>(), mpi.below_s.iter().sum::<f64>())
    };
    let is_so = |file: &&FileFacts| sums(file).0 > ABOVE_SYSTEM_CALLS * sums(file).1;
    let files: Vec<&FileFacts> = job.facts.files.iter().filter(is_so).collect();
    let above_s = |file: &FileFacts| sums(file).0 - sums(file).1;
    let Some(first) = files.iter().copied().max_by(|a, b| above_s(a).total_cmp(&above_s(b))) else {
        return Vec::new();
    };
    let (with_s, below_s) = sums(first);
    let said = Said {
        code: "mpi-io-above-system-calls",
        what: format!(
            "MPI-IO takes {} in all, its system calls {} ({})",
            seconds(with_s),
            seconds(below_s),
            job.named(&files, above_s)
        ),
        why: "the rest is spent in locks, in communication and in waiting for other processes".into(),
        remedy: match first.mpi.is_some_and(|mpi| mpi.independent[1] > mpi.collective[1]) {
            true => interface::collective_call(first, 1),
            false => "fewer, larger collective calls; let processes reach them at the same time".into(),
        },
        commands: Vec::new(),
    };
    let sum_s = files.iter().map(|file| above_s(file)).sum();
    vec![job.finding(said, job.facts.of_busiest_s(sum_s))]
}

/// Software, logs and streams that take a part of the run.
pub(super) fn left_out(job: &Job<'_>) -> Vec<Finding> {
    let (facts, left_out) = (job.facts, job.facts.left_out);
    let mean_s = left_out.time_s / facts.processes.max(1) as f64;
    if facts.share_of(mean_s).is_none_or(|share| share < NOTABLE_SHARE) {
        return Vec::new();
    }
    let said = Said {
        code: "no-data-files",
        what: format!(
            "{} of software, logs or standard streams take {} per process",
            count(left_out.files, "file"),
            seconds(mean_s)
        ),
        why: "shared file systems are slow for many small files and lines".into(),
        remedy: "keep software on the nodes (an image, /tmp), and write fewer lines of logs".into(),
        commands: Vec::new(),
    };
    vec![job.finding(said, mean_s)]
}

/// Shared files that processes write with system calls.
pub(super) fn without_mpi_io(job: &Job<'_>) -> Vec<Finding> {
    let is_so = |file: &&FileFacts| {
        let data = &file.data[1];
        file.is_shared()
            && file.mpi.is_none()
            && data.calls > COLLECTIVE_CALLS
            && file.stdio_bytes == 0
            && gains_from_joining(file, 1)
    };
    // A trace of system calls does not tell whether MPI-IO made them.
    if matches!(job.facts.source, Source::Recorded | Source::Synthetic) {
        return Vec::new();
    }
    let files: Vec<&FileFacts> = job.facts.files.iter().filter(is_so).collect();
    if files.is_empty() {
        return Vec::new();
    }
    let time_s = |file: &FileFacts| file.data[1].time_s;
    let said = Said {
        code: "shared-without-mpi-io",
        what: format!("{} is written by several processes without MPI-IO", job.named(&files, time_s)),
        why: "no process knows the requests of the others, so nothing joins or orders them".into(),
        remedy: "write it with MPI_File_write_at_all, or one file for each process".into(),
        commands: Vec::new(),
    };
    vec![job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum()))]
}

/// Bytes that go through C streams.
pub(super) fn streams(job: &Job<'_>) -> Vec<Finding> {
    let [read, written] = job.facts.bytes();
    let files: Vec<&FileFacts> = job.facts.files.iter().filter(|file| file.stdio_bytes > 0).collect();
    let streamed = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.stdio_bytes));
    let share = streamed as f64 / read.saturating_add(written).max(1) as f64;
    if share <= STDIO_SHARE {
        return Vec::new();
    }
    let time_s = |file: &FileFacts| file.data[0].time_s + file.data[1].time_s;
    let said = Said {
        code: "c-streams",
        what: format!(
            "{} of the bytes ({}, {}) go through C streams (fopen)",
            percent(share),
            bytes(streamed),
            count(files.len() as u64, "file")
        ),
        why: "a stream moves 4 KiB at a time, and one process cannot do so with others".into(),
        remedy: "use read, write or MPI-IO for data, or setvbuf(f, NULL, _IOFBF, 4 << 20)".into(),
        commands: Vec::new(),
    };
    vec![job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum()))]
}
