//! Sub-requests per second on one core, and the cost of a large run:
//! `cargo bench -p stripewise-sim --bench sim`.
//!
//! Every case is run three times and the best time counts, because other programs on the machine
//! only slow it down.

use std::path::PathBuf;
use std::time::Instant;

use stripewise_cluster::{Cluster, Driver, Plan, Rule, Spread, Tier};
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::{ByAccess, ClassParams, Network, Op, Service};
use stripewise_sim::{Options, Outcome, Simulator, Step, Streams};

const KIB: u64 = 1 << 10;

/// Processes that each read their own section of a file, sequentially or in random order.
struct Load {
    processes: u32,
    per_process: u64,
    size: u64,
    shared: bool,
    random: bool,
    next: Vec<u64>,
}

impl Load {
    fn new(processes: u32, per_process: u64, size: u64, shared: bool, random: bool) -> Self {
        Self { processes, per_process, size, shared, random, next: vec![0; processes as usize] }
    }
}

impl Streams for Load {
    fn processes(&self) -> u32 {
        self.processes
    }

    fn node_of(&self, process: u32) -> u32 {
        process / 16
    }

    fn next(&mut self, process: u32) -> Option<Step> {
        let next = &mut self.next[process as usize];
        if *next == self.per_process {
            return None;
        }
        let place = if self.random { next.wrapping_mul(0x9e37_79b9) % self.per_process } else { *next };
        *next += 1;
        let (file, first) = if self.shared { (0, u64::from(process) * self.per_process) } else { (process, 0) };
        Some(Step::Request { file, op: Op::Read, offset: (first + place) * self.size, size: self.size })
    }
}

fn cluster(servers: usize) -> Cluster {
    let service = |us: f64| Service { startup_s: us * 1e-6, per_byte_s: 8e-9 };
    let by = ByAccess { random: service(300.0), sequential: service(100.0) };
    let dirs = (0..servers).map(|server| PathBuf::from(format!("/s/{server}"))).collect();
    let tier = Tier {
        name: "hdd".into(),
        class: "hdd".into(),
        driver: Driver::Dirs { servers: dirs },
        capacity_per_server: 1 << 40,
        emulate: true,
    };
    Cluster {
        network: Network { establish_s: 3e-5, per_byte_s: 8e-10 },
        classes: [("hdd".to_owned(), ClassParams { read: by, write: by })].into(),
        tiers: vec![tier],
        ..Cluster::default()
    }
}

fn plan(cluster: &Cluster, layouts: Vec<Layout>) -> Plan {
    let rule = Rule {
        pattern: "/d/<n>".into(),
        scheme: "bench".into(),
        reason: "bench".into(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts,
        spread: Spread { field: Some(0), stride: 1 },
        overlay: None,
    };
    Plan { scheme: "bench".into(), cluster: cluster.clone(), rules: vec![rule] }
}

struct Case {
    name: &'static str,
    servers: usize,
    layouts: Vec<Layout>,
    processes: u32,
    per_process: u64,
    size: u64,
    shared: bool,
    random: bool,
    network: bool,
}

fn run(case: &Case) -> (f64, Outcome) {
    let cluster = cluster(case.servers);
    let options = Options { network: case.network, ..Options::default() };
    let mut simulator = Simulator::new(&cluster, options).expect("valid");
    let files = if case.shared { 1 } else { case.processes };
    let paths: Vec<String> = (0..files).map(|file| format!("/d/{file}")).collect();
    simulator.open(&plan(&cluster, case.layouts.clone()), &paths, case.processes, 16).expect("placed");
    let mut load = Load::new(case.processes, case.per_process, case.size, case.shared, case.random);
    let began = Instant::now();
    let outcome = simulator.run(&mut load);
    (began.elapsed().as_secs_f64(), outcome)
}

/// Peak memory of the process, bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn main() {
    let all = |servers: u32| (0..servers).collect::<Vec<_>>();
    let dh = |servers: u32, stripe: u64| striped(&all(servers), stripe).expect("valid");
    let small = Case {
        name: "8 servers, 16 processes, 512K over 8, shared, sequential",
        servers: 8,
        layouts: vec![dh(8, 64 * KIB)],
        processes: 16,
        per_process: 100_000,
        size: 512 * KIB,
        shared: true,
        random: false,
        network: false,
    };
    let one_dv: Vec<Layout> = (0..8).map(|server| on_one(server).expect("valid")).collect();
    let cases = [
        Case { name: "the same, random", random: true, ..copy(&small) },
        Case { name: "the same, 4M: every server 8 times", size: 4096 * KIB, ..copy(&small) },
        Case {
            name: "the same, a file each on one server",
            layouts: one_dv,
            shared: false,
            per_process: 400_000,
            ..copy(&small)
        },
        Case { name: "the same, 256 processes", processes: 256, per_process: 10_000, ..copy(&small) },
        Case { name: "the same, with network", network: true, per_process: 20_000, ..copy(&small) },
        Case {
            name: "10,000 servers, 100,000 processes, 4M over 64 of them, shared, sequential",
            servers: 10_000,
            layouts: vec![dh(10_000, 64 * KIB)],
            processes: 100_000,
            per_process: 10,
            size: 4096 * KIB,
            ..copy(&small)
        },
        Case {
            name: "10,000 servers, 100,000 processes, 100,000 files, each on 8 of them",
            servers: 10_000,
            layouts: (0..1250).map(|g| striped(&all(10_000)[g * 8..][..8], 64 * KIB).expect("valid")).collect(),
            processes: 100_000,
            per_process: 50,
            size: 512 * KIB,
            shared: false,
            ..copy(&small)
        },
    ];
    println!(
        "| case | sub-requests | real s | million sub-requests per s | virtual s | memory so far, MiB |\n|---|---|---|---|---|---|"
    );
    for case in std::iter::once(&small).chain(&cases) {
        let runs: Vec<(f64, Outcome)> = (0..3).map(|_| run(case)).collect();
        let best_s = runs.iter().map(|run| run.0).fold(f64::INFINITY, f64::min);
        let outcome = &runs[0].1;
        println!(
            "| {} | {} | {best_s:.2} | {:.1} | {:.1} | {} |",
            case.name,
            outcome.sub_requests,
            outcome.sub_requests as f64 / best_s / 1e6,
            outcome.elapsed_s,
            peak_bytes() >> 20
        );
    }
}

fn copy(case: &Case) -> Case {
    Case { layouts: case.layouts.clone(), ..*case }
}
