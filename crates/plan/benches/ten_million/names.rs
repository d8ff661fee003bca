//! Very many file names, each used once.

use std::fs;
use std::path::Path;
use std::time::Instant;

use stripewise_plan::{Options, plan};
use stripewise_random::Random;
use stripewise_trace::{FileNames, Flags, Meta, Op, Request, Summary, Trace, TraceWriter};

use crate::most_memory_mib;
use crate::sets::{PROCESSES, add_processes, cluster, collected, cpu_seconds, letters};

/// Number of directories of [`Kind::Letters`].
const DIRECTORIES: u32 = 100_000;

/// What names look like.
#[derive(Clone, Copy)]
pub enum Kind {
    /// They differ in letters, over [`DIRECTORIES`] directories.
    Letters,
    /// They differ in letters, in one directory.
    Directory,
    /// They differ in digits.
    Digits,
}

impl Kind {
    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "letters" => Some(Self::Letters),
            "directory" => Some(Self::Directory),
            "digits" => Some(Self::Digits),
            _ => None,
        }
    }

    fn name(self, number: u32) -> String {
        match self {
            Self::Letters => format!("/data/{}/{}.dat", letters(number % DIRECTORIES), letters(number)),
            Self::Directory => format!("/data/all/{}.dat", letters(number)),
            Self::Digits => format!("/data/all/{number:08}.dat"),
        }
    }
}

/// Measures a trace of so many names: writing, summarizing and planning it, with the peak memory of
/// each. The trace and a cluster for it stay in `directory`, if there is one.
pub fn measure(kind: (&str, Kind), files: u32, directory: Option<&Path>) {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.unwrap_or(temporary.path());
    let path = directory.join(format!("{}.trace", kind.0));
    let mut bytes = 0;
    step("written", || bytes = synthesise(&path, kind.1, files));
    let (cluster, text) = cluster(bytes);
    fs::write(directory.join(format!("{}.toml", kind.0)), text).expect("the cluster can be written");
    step("summarized", || {
        let trace = Trace::open(&path).expect("the trace opens");
        let summary = Summary::of(&trace).expect("the trace is readable");
        println!("{} names of {} in {} groups", trace.count(), kind.0, summary.groups.len());
    });
    let options = Options::default();
    let mut workload = None;
    step("grouped", || workload = Some(collected(&path).divided(&cluster, &options).expect("a valid cluster")));
    let workload = workload.expect("it was grouped");
    step("planned", || {
        let planned = plan(&workload, &cluster, &options).expect("there is a plan");
        println!("{} sets of files", planned.decisions.len());
    });
}

/// Prints the CPU time and the peak memory of a step.
fn step(what: &str, step: impl FnOnce()) {
    // The kernel then measures the peak from here on.
    fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let (start, cpu_s) = (Instant::now(), cpu_seconds());
    step();
    println!(
        "{what} in {:.1} s ({:.1} s of CPU), most memory {} MiB",
        start.elapsed().as_secs_f64(),
        cpu_seconds() - cpu_s,
        most_memory_mib()
    );
}

/// Writes the trace. Returns the bytes of all files.
fn synthesise(path: &Path, kind: Kind, files: u32) -> u64 {
    let mut writer = TraceWriter::create(path).expect("the trace can be written");
    add_processes(&mut writer);
    let mut bytes = 0;
    for number in 0..files {
        let file = writer.file_id(&kind.name(number));
        // Files of a directory are alike.
        let mut random = Random(u64::from(number % DIRECTORIES));
        let size = 4096 << (2 * random.below(5));
        bytes += size;
        let request = Request {
            process: number % PROCESSES,
            tid: 1,
            file,
            op: if random.below(4) == 0 { Op::Write } else { Op::Read },
            flags: Flags::POSITIONAL,
            offset: 0,
            size,
            result: size as i64,
            start_ns: 1000 * u64::from(number),
            end_ns: 1000 * u64::from(number) + 900,
        };
        writer.push(&request).expect("the trace can be written");
    }
    writer.finish(&Meta { origin: "synthetic".into(), ..Meta::default() }).expect("the trace can be written");
    bytes
}
