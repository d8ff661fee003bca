//! The cost of recording a call: reading the clock twice, storing the record, and its share of
//! moving full windows to the log.
//!
//! Uses a plain harness, for two reasons. A window is moved to the log only once in 1364 calls. And
//! other programs on the machine must not affect the result, so it takes the processor time of the
//! thread, a million calls per run, alternates between the compared calls, and reports medians.
//! `cargo bench -p stripewise-recorder --bench record`; `STRIPEWISE_BENCH_DIR` chooses the file
//! system of the spool.

use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::time::{ClockId, clock_gettime};
use stripewise_recorder::{Event, FileId, Flags, Op, Recorder, Settings};

const CALLS: u64 = 1_000_000;
const RUNS: usize = 15;

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds per call of one run.
fn run(call: &mut dyn FnMut(u64)) -> f64 {
    let start_ns = cpu_ns();
    (0..CALLS).for_each(call);
    (cpu_ns() - start_ns) / CALLS as f64
}

/// Runs the calls alternately and prints a row for each.
fn compare(calls: &mut [(&str, &mut dyn FnMut(u64))]) {
    let mut times = vec![Vec::new(); calls.len()];
    for _ in 0..RUNS {
        for ((_, call), times) in calls.iter_mut().zip(&mut times) {
            times.push(run(call));
        }
    }
    for ((what, _), mut times) in calls.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!("| {what} | {:.1} | {:.1} | {:.1} |", times[RUNS / 2], times[0], times[RUNS - 1]);
    }
}

fn main() {
    let base = std::env::var_os("STRIPEWISE_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(base).expect("a directory for the spool");
    let path = dir.path().as_os_str().as_encoded_bytes();
    let settings = Settings { dir: path, only: b"", exclude: b"", limit_bytes: u64::MAX >> 1 };
    let recorder = Recorder::start(&settings).expect("a spool");
    let file = recorder.file_id(b"/data/x");

    let data = tempfile::tempfile_in(dir.path()).expect("a data file");
    data.set_len(1 << 20).expect("room for it");
    let mut buffer = vec![0u8; 4096];
    let pointer = buffer.as_mut_ptr();
    let pread = |i: u64| {
        let offset = (i % 256 * 4096) as libc::off_t;
        // SAFETY: the buffer has this length.
        unsafe { libc::pread(data.as_raw_fd(), pointer.cast(), 4096, offset) as i64 }
    };
    let recorded = |i: u64, file: FileId, call: &dyn Fn(u64) -> i64| {
        let start = recorder.now();
        let result = call(i);
        let end = recorder.now();
        let flags = Flags::POSITIONAL;
        let event = Event { file, op: Op::Read, flags, offset: i << 12, size: 4096, start, end, result };
        recorder.record(&event);
    };
    let nothing = |i: u64| black_box(i) as i64;

    println!("| what | median ns | least | most |\n|---|---|---|---|");
    compare(&mut [
        ("empty call", &mut |i| {
            black_box(nothing(i));
        }),
        ("one `now`", &mut |_| {
            black_box(recorder.now());
        }),
        ("empty call, recorded", &mut |i| recorded(i, file, &nothing)),
        ("empty call, timed, on a file that is left out", &mut |i| recorded(i, FileId::NOT_RECORDED, &nothing)),
    ]);
    compare(&mut [
        ("pread of 4 KiB from the page cache", &mut |i| {
            black_box(pread(i));
        }),
        ("the same, recorded", &mut |i| recorded(i, file, &pread)),
    ]);
}
