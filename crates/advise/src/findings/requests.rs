//! Requests that are small, misaligned, out of order, or made again and again.

use super::finding::{Finding, Job, Said};
use super::thresholds::{
    MISALIGNED_SHARE, RANDOM_CALLS, RANDOM_SHARE, REPEATED_READS, SMALL_CALLS, SMALL_SHARE,
};
use crate::commands::Command;
use crate::facts::FileFacts;
use crate::interface;
use crate::text::{bytes, number, percent};

/// `read` and `write`, by the index of [`FileFacts::data`].
const VERBS: [&str; 2] = ["read", "write"];

/// Many requests of less than 1 MiB.
pub(super) fn small(job: &Job<'_>) -> Vec<Finding> {
    (0..2).filter_map(|side| small_of(job, side)).collect()
}

fn small_of(job: &Job<'_>, side: usize) -> Option<Finding> {
    let all = &job.facts.files;
    let sum = |of: fn(&crate::facts::Transfers) -> u64| {
        all.iter().fold(0, |sum: u64, file| sum.saturating_add(of(&file.data[side])))
    };
    let (calls, small) = (sum(|data| data.calls), sum(|data| data.small));
    if small <= SMALL_CALLS || small as f64 <= SMALL_SHARE * calls as f64 {
        return None;
    }
    let has = |file: &&FileFacts| file.data[side].small as f64 > SMALL_SHARE * file.data[side].calls as f64;
    let files: Vec<&FileFacts> = all.iter().filter(has).collect();
    let time_s = |file: &FileFacts| {
        let data = &file.data[side];
        data.time_s * data.small as f64 / data.calls.max(1) as f64
    };
    let moved: u64 = files.iter().map(|file| file.data[side].bytes).fold(0, u64::saturating_add);
    let many: u64 = files.iter().map(|file| file.data[side].calls).fold(0, u64::saturating_add);
    let verb = VERBS[side];
    let first = most(&files, time_s)?;
    let (remedy, commands) = joined(first, side);
    let said = Said {
        code: if side == 0 { "small-reads" } else { "small-writes" },
        what: format!(
            "{} {verb}s of {} on average, to {}",
            number(many),
            bytes(moved / many.max(1)),
            job.named(&files, time_s)
        ),
        why: "each request costs a round trip and a seek, whatever its size".into(),
        remedy,
        commands,
    };
    Some(job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum())))
}

/// How a program makes fewer, larger requests.
fn joined(file: &FileFacts, side: usize) -> (String, Vec<Command>) {
    if let Some(mpi) = file.mpi.filter(|_| file.is_shared()) {
        if mpi.collective[side] == 0 {
            return (interface::collective_call(file, side), interface::collective_hints(side));
        }
        return (
            "let collective calls join the requests (two-phase I/O)".into(),
            interface::collective_hints(side),
        );
    }
    let remedy = match (file.is_hdf5, file.stdio_bytes > 0) {
        (true, _) => "access whole chunks, and enlarge the chunk cache (H5Pset_chunk_cache)".to_owned(),
        (_, true) => "give the stream a buffer of its own: setvbuf(f, NULL, _IOFBF, 4 << 20)".to_owned(),
        _ => format!("{} 1 MiB or more at a time, through a buffer in the program", VERBS[side]),
    };
    (remedy, Vec::new())
}

/// Many requests that go back in the file.
pub(super) fn random(job: &Job<'_>) -> Vec<Finding> {
    (0..2).filter_map(|side| random_of(job, side)).collect()
}

fn random_of(job: &Job<'_>, side: usize) -> Option<Finding> {
    let all = &job.facts.files;
    let sum = |of: fn(&crate::facts::Transfers) -> u64| {
        all.iter().fold(0, |sum: u64, file| sum.saturating_add(of(&file.data[side])))
    };
    let (calls, random) = (sum(|data| data.calls), sum(|data| data.random));
    if random <= RANDOM_CALLS || random as f64 <= RANDOM_SHARE * calls as f64 {
        return None;
    }
    let has = |file: &&FileFacts| file.data[side].random as f64 > RANDOM_SHARE * file.data[side].calls as f64;
    let files: Vec<&FileFacts> = all.iter().filter(has).collect();
    let time_s = |file: &FileFacts| {
        let data = &file.data[side];
        data.time_s * data.random as f64 / data.calls.max(1) as f64
    };
    let verb = VERBS[side];
    let said = Said {
        code: if side == 0 { "random-reads" } else { "random-writes" },
        what: format!(
            "{} of the {verb}s go back in the file, most in {}",
            percent(random as f64 / calls.max(1) as f64),
            job.named(&files, time_s)
        ),
        why: "servers cannot read ahead or join what comes out of order".into(),
        remedy: if side == 0 {
            "sort the requests by offset, or read larger pieces and pick from memory".into()
        } else {
            "sort the requests by offset, or let collective calls do it".into()
        },
        commands: Vec::new(),
    };
    Some(job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum())))
}

/// Requests that begin off the file system's blocks, in files whose requests are large enough to be
/// aligned.
pub(super) fn misaligned(job: &Job<'_>) -> Vec<Finding> {
    let could_be = |file: &&FileFacts| file.calls() > 0 && file.bytes() / file.calls() >= file.alignment.max(1);
    let all: Vec<&FileFacts> = job.facts.files.iter().filter(could_be).collect();
    let files: Vec<&FileFacts> = all
        .iter()
        .copied()
        .filter(|file| file.unaligned as f64 > MISALIGNED_SHARE * file.calls() as f64)
        .collect();
    let sum = |of: fn(&FileFacts) -> u64| all.iter().fold(0, |sum: u64, file| sum.saturating_add(of(file)));
    let (calls, unaligned) = (sum(FileFacts::calls), sum(|file| file.unaligned));
    if unaligned as f64 <= MISALIGNED_SHARE * calls as f64 {
        return Vec::new();
    }
    let time_s = |file: &FileFacts| {
        let share = (file.unaligned as f64 / file.calls().max(1) as f64).min(1.0);
        share * (file.data[0].time_s + file.data[1].time_s)
    };
    let Some(first) = most(&files, time_s) else { return Vec::new() };
    let stripe = job.stripe();
    let said = Said {
        code: "misaligned-requests",
        what: format!(
            "{} of the requests begin off a multiple of {}, most in {}",
            percent(unaligned as f64 / calls.max(1) as f64),
            bytes(first.alignment.max(1)),
            job.named(&files, time_s)
        ),
        why: if first.is_shared() {
            "a block or stripe that two requests share is locked to and fro, and read first".into()
        } else {
            "a part of a block is read before it can be written".into()
        },
        remedy: interface::aligned(first, stripe),
        // Files with known stripes have them already.
        commands: match first.mpi.is_some() && first.striping.is_none() {
            true => interface::stripe_hints(stripe),
            false => Vec::new(),
        },
    };
    vec![job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum()))]
}

/// Files whose bytes are read many times in all, such as an input that every process reads.
pub(super) fn repeated(job: &Job<'_>) -> Vec<Finding> {
    let is_so = |file: &&FileFacts| {
        let read = &file.data[0];
        file.data[1].bytes == 0 && read.extent > 0 && read.bytes / read.extent >= REPEATED_READS
    };
    let files: Vec<&FileFacts> = job.facts.files.iter().filter(is_so).collect();
    let time_s = |file: &FileFacts| file.data[0].time_s + file.meta_s;
    let Some(first) = most(&files, time_s) else { return Vec::new() };
    let times = first.data[0].bytes / first.data[0].extent.max(1);
    let said = Said {
        code: "repeated-reads",
        what: format!("every byte of {} is read {} times on average", job.named(&files, time_s), number(times)),
        why: "all but the first read move bytes that the job has already".into(),
        remedy: if first.is_shared() {
            "let one process read the file and send it to the others (MPI_Bcast)".into()
        } else {
            "keep what was read in memory".into()
        },
        commands: Vec::new(),
    };
    vec![job.finding(said, job.facts.of_busiest_s(files.iter().map(|file| time_s(file)).sum()))]
}

/// The file with most time by a measure.
fn most<'f>(files: &[&'f FileFacts], time_s: impl Fn(&FileFacts) -> f64) -> Option<&'f FileFacts> {
    files.iter().copied().max_by(|a, b| time_s(a).total_cmp(&time_s(b)))
}
