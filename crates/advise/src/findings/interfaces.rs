//! How a program reaches its files: MPI-IO, collective or not, system calls, C streams.

use super::thresholds::{COLLECTIVE_CALLS, COLLECTIVE_SHARE, STDIO_SHARE};
use super::{Finding, Job, Said};
use crate::facts::{FileFacts, Source};
use crate::interface;
use crate::text::{bytes, count, number, percent};

/// Shared files that processes access with MPI-IO, each on its own.
pub(super) fn independent(job: &Job<'_>) -> Vec<Finding> {
    (0..2).filter_map(|side| independent_of(job, side)).collect()
}

fn independent_of(job: &Job<'_>, side: usize) -> Option<Finding> {
    let calls = |file: &FileFacts| file.mpi.map_or([0, 0], |mpi| [mpi.independent[side], mpi.collective[side]]);
    let is_so = |file: &&FileFacts| {
        let [alone, together] = calls(file);
        file.is_shared() && alone > 0 && (together as f64) < COLLECTIVE_SHARE * (alone + together) as f64
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

/// Shared files that processes write with system calls.
pub(super) fn without_mpi_io(job: &Job<'_>) -> Vec<Finding> {
    let is_so = |file: &&FileFacts| {
        let data = &file.data[1];
        file.is_shared() && file.mpi.is_none() && data.calls > COLLECTIVE_CALLS && file.stdio_bytes == 0
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
