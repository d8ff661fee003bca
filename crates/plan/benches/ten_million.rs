//! Planning time for a trace of 10 million requests: `cargo bench -p stripewise-plan --bench
//! ten_million`.
//!
//! Prints one line per application: the time of opening the trace, of the pass over it and of the
//! planning, and the peak memory of the process so far, including earlier applications.
//! `TRACE_REQUESTS` changes the number of requests.
//!
//! With `FILE_SETS` there is one application that uses so many file sets on 1000 servers of three
//! classes. `TRACE_REQUESTS` is then a list, too, and there is one line for each pair of numbers.
//!
//! With `FILE_NAMES` each of so many files is used once. `NAME_KINDS` says what their names look
//! like: letters, directory, digits (`ten_million/names.rs`). The traces are left in `TRACE_DIR`.

#[path = "ten_million/names.rs"]
mod names;
#[path = "ten_million/sets.rs"]
mod sets;

use std::path::Path;
use std::time::Instant;

use stripewise_cluster::Cluster;
use stripewise_plan::{Collector, Options, plan};
use stripewise_trace::synth::{Access, Direction, Ior, RandomWithin, write};
use stripewise_trace::{Meta, Trace, TraceWriter};

const CLUSTER: &str = r#"
[class.hdd]
read  = { random = { startup_s = 3e-4, per_byte_s = 7.95e-9 }, sequential = { startup_s = 1e-4, per_byte_s = 7.95e-9 } }
write = { random = { startup_s = 3e-4, per_byte_s = 7.95e-9 }, sequential = { startup_s = 1e-4, per_byte_s = 7.95e-9 } }
[class.ssd]
read  = { random = { startup_s = 5e-5, per_byte_s = 2.4e-9 }, sequential = { startup_s = 5e-5, per_byte_s = 2.4e-9 } }
write = { random = { startup_s = 5e-5, per_byte_s = 2.4e-9 }, sequential = { startup_s = 5e-5, per_byte_s = 2.4e-9 } }
[[tier]]
name = "hdd"
class = "hdd"
driver = "dirs"
servers = ["/h0", "/h1", "/h2", "/h3"]
capacity_per_server = "100T"
[[tier]]
name = "ssd"
class = "ssd"
driver = "dirs"
servers = ["/s0", "/s1", "/s2", "/s3"]
capacity_per_server = "64G"
"#;

fn main() {
    let numbers = |name: &str| -> Vec<u64> {
        let list = std::env::var(name).unwrap_or_default();
        list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    let file_names = numbers("FILE_NAMES");
    if !file_names.is_empty() {
        return file_names.into_iter().for_each(|files| of_names(files as u32));
    }
    let (requests, file_sets) = (numbers("TRACE_REQUESTS"), numbers("FILE_SETS"));
    let requests = if requests.is_empty() { vec![10_000_000] } else { requests };
    if file_sets.is_empty() {
        return applications(requests[0]);
    }
    for sets in file_sets {
        requests.iter().for_each(|&requests| sets::measure(sets as u32, requests));
    }
}

/// Measures so many names of each kind.
fn of_names(files: u32) {
    let kinds = std::env::var("NAME_KINDS").unwrap_or_else(|_| "letters directory digits".into());
    let directory = std::env::var_os("TRACE_DIR");
    for name in kinds.split_whitespace() {
        let kind = names::Kind::parse(name).expect("NAME_KINDS has letters, directory and digits");
        names::measure((name, kind), files, directory.as_ref().map(Path::new));
    }
}

fn applications(requests: u64) {
    let cluster = Cluster::parse(CLUSTER, "cluster").expect("the cluster is valid");
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, processes, transfer, order, shared) in [
        ("64 processes, 64 KiB at random, shared file", 64, 64 << 10, Order::Random, true),
        ("64 processes, 4 MiB at random, shared file", 64, 4 << 20, Order::Random, true),
        ("64 processes, 64 KiB in order, shared file", 64, 64 << 10, Order::Segmented, true),
        ("64 processes, 64 KiB interleaved, shared file", 64, 64 << 10, Order::Interleaved, true),
        ("4096 processes, 64 KiB in order, a file each", 4096, 64 << 10, Order::Segmented, false),
    ] {
        let path = directory.path().join("trace");
        synthesise(&path, processes, transfer, order, shared, requests);
        let start = Instant::now();
        let trace = Trace::open(&path).expect("the trace opens");
        let opened = start.elapsed();
        let collector = Collector::new(trace.processes(), &trace, Options::default().sets_max());
        let mut collector = collector.expect("the trace is readable");
        let mut rows = trace.requests().expect("the trace is readable");
        while let Some(batch) = rows.next_batch().expect("the trace is readable") {
            batch.iter().for_each(|request| collector.add(request));
        }
        let workload = collector.finish();
        let collected = start.elapsed();
        let decisions = plan(&workload, &cluster, &Options::default()).expect("there is a plan").decisions;
        let total = start.elapsed();
        println!(
            "{name}: {} requests, {} candidates: opening {:.2} s, grouping {:.2} s, planning {:.2} s, together {:.2} s; \
             most memory so far {} MiB",
            trace.len(),
            decisions[0].candidates.len(),
            opened.as_secs_f64(),
            (collected - opened).as_secs_f64(),
            (total - collected).as_secs_f64(),
            total.as_secs_f64(),
            most_memory_mib(),
        );
    }
}

/// The order in which a process accesses its blocks.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Random,
    Segmented,
    /// The processes' blocks take turns.
    Interleaved,
}

fn synthesise(path: &Path, processes: u32, transfer: u64, order: Order, shared: bool, requests: u64) {
    let each = requests / u64::from(processes);
    let (blocks, segments) = if order == Order::Interleaved { (1, each) } else { (each, 1) };
    let ior = Ior {
        processes,
        per_node: 16,
        transfer,
        block: blocks * transfer,
        segments,
        access: if order == Order::Random { Access::Random } else { Access::Sequential },
        random_within: RandomWithin::File,
        direction: Direction::Write,
        shared,
        seed: 1,
        file: "/data/ior".into(),
    };
    let mut writer = TraceWriter::create(path).expect("the trace can be written");
    write(&ior, &mut writer, &mut |_| {}).expect("the trace can be written");
    writer.finish(&Meta { origin: "synthetic".into(), ..Meta::default() }).expect("the trace can be written");
}

/// Peak resident memory of this process (VmHWM), MiB.
fn most_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}
