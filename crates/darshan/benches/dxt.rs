//! Measures reading a log with DXT, and making a trace of it: segments per second of processor time
//! and the peak of memory.
//!
//!     cargo bench -p stripewise-darshan --bench dxt
//!     STRIPEWISE_BENCH_SEGMENTS=30000000 cargo bench -p stripewise-darshan --bench dxt
//!
//! The log is made first, in the directory STRIPEWISE_BENCH_DIR or that of temporary files, in a
//! process of its own, so that its memory does not count.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use common::{LogWriter, USUAL, dxt};
use stripewise_darshan::{CALLS_MAX, Layer, Log, Module, trace_from_log};
use stripewise_random::Random;

#[path = "../tests/common/mod.rs"]
mod common;

const RANKS: u64 = 64;

fn main() {
    let segments = std::env::var("STRIPEWISE_BENCH_SEGMENTS").ok().and_then(|text| text.parse().ok());
    let segments = segments.unwrap_or(4_000_000_u64);
    let dir = std::env::var_os("STRIPEWISE_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let place = tempfile::tempdir_in(dir).unwrap();
    let (log, trace) = (place.path().join("log"), place.path().join("trace"));
    match std::env::var("STRIPEWISE_BENCH_STEP").as_deref() {
        Ok("make") => make(Path::new(&std::env::var_os("STRIPEWISE_BENCH_LOG").unwrap()), segments),
        Ok(step) => {
            let log = std::env::var_os("STRIPEWISE_BENCH_LOG").unwrap();
            measure(step, Path::new(&log), &trace);
        }
        Err(_) => {
            for step in ["make", "read", "trace"] {
                let mut process = Command::new(std::env::current_exe().unwrap());
                process.env("STRIPEWISE_BENCH_STEP", step).env("STRIPEWISE_BENCH_LOG", &log);
                assert!(process.status().unwrap().success());
            }
        }
    }
}

/// Writes a log of so many segments: each rank writes and reads its part of a shared file in blocks
/// that vary in size, and takes times that vary.
fn make(path: &Path, segments: u64) {
    let mut log = LogWriter::new(BufWriter::new(File::create(path).unwrap()), USUAL);
    log.job(1_700_000_000, 1_700_003_600, RANKS as i64);
    log.names(&[(1, "/scratch/field.dat")]);
    let template = log.bytes();
    let streams = (0..RANKS).map(|rank| {
        let mut random = Random(rank);
        let each = segments / RANKS / 2;
        let (mut clock_s, mut offset) = (0.0, (rank << 36) as i64);
        let mut some = || -> Vec<(i64, i64, f64, f64)> {
            let mut next = || {
                let len = 4096 * (1 + random.below(16) as i64);
                let start_s = clock_s + random.below(1000) as f64 * 1e-6;
                clock_s = start_s + 1e-4 + random.below(1_000_000) as f64 * 1e-9;
                offset += len;
                (offset - len, len, start_s, clock_s)
            };
            (0..each).map(|_| next()).collect()
        };
        let (writes, reads) = (some(), some());
        let mut bytes = template.clone();
        dxt(&mut bytes, false, (1, rank as i64, &format!("node{}", rank / 16)), &writes, &reads);
        bytes.bytes
    });
    log.module(Module::DxtPosix, 1, streams);
    log.finish();
    println!("log: {segments} segments, {} MiB", path.metadata().unwrap().len() >> 20);
}

fn measure(step: &str, log: &Path, trace: &Path) {
    let (start, before_s) = (Instant::now(), cpu_s());
    let mut opened = Log::open(BufReader::new(File::open(log).unwrap())).unwrap();
    let count = match step {
        "read" => read(&mut opened),
        _ => trace_from_log(&mut opened, trace, CALLS_MAX, &mut |_| {}).unwrap(),
    };
    let (wall_s, cpu_s) = (start.elapsed().as_secs_f64(), cpu_s() - before_s);
    let rate = count as f64 / cpu_s / 1e6;
    println!(
        "{step}: {count} in {cpu_s:.2} s of CPU ({wall_s:.2} s): {rate:.2} million per second, {} MiB",
        peak_mib()
    );
    if step == "trace" {
        println!("trace: {} MiB", trace.metadata().unwrap().len() >> 20);
    }
}

fn read(log: &mut Log<BufReader<File>>) -> u64 {
    let (mut count, mut bytes) = (0, 0_i64);
    let mut records = log.dxt(Layer::Posix).unwrap();
    while records.next_record().unwrap().is_some() {
        while let Some((_, segments)) = records.next_segments().unwrap() {
            count += segments.len() as u64;
            bytes += segments.iter().map(|segment| segment.len).sum::<i64>();
        }
    }
    assert!(bytes > 0);
    count
}

/// Processor time of this process, seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // User and system time in ticks of 10 ms.
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

/// The peak of resident memory.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}
