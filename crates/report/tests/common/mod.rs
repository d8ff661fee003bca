//! Made-up traces, plans and results, for tests and for viewing the page (`examples/sample.rs`).
#![allow(dead_code, reason = "every test uses a part")]

pub mod copies;

use std::ops::Range;
use std::path::Path;

use stripewise_cluster::Plan;
use stripewise_report::{Activity, Candidate, Collector, Machine, Results, Servers, Workload};
use stripewise_trace::{Flags, Meta, Op, ProcessInfo, Request, Summary, Trace, TraceWriter};

/// A trace of `ranks` ranks that write and then read a shared file in scattered blocks, and write
/// one small file each.
pub struct Sample {
    pub ranks: u32,
    pub blocks: u64,
    pub block: u64,
    pub shared_file: &'static str,
    pub incomplete: Vec<String>,
}

impl Default for Sample {
    fn default() -> Self {
        Self { ranks: 16, blocks: 256, block: 512 << 10, shared_file: "/data/shared.dat", incomplete: vec![] }
    }
}

impl Sample {
    /// Processes: a launcher without a rank, and the ranks on two nodes.
    pub fn processes(&self) -> Vec<ProcessInfo> {
        let process = |rank: i32| ProcessInfo {
            node: format!("node{}", rank.max(0) % 2),
            pid: (100 + rank) as u32,
            rank,
            program: if rank < 0 { "mpiexec".into() } else { "ior".into() },
        };
        (-1..self.ranks as i32).map(process).collect()
    }

    pub fn files(&self) -> Vec<String> {
        let own = (0..self.ranks).map(|rank| format!("/data/log.{rank:04}"));
        std::iter::once(self.shared_file.to_owned()).chain(own).collect()
    }

    /// All requests, ordered by start time.
    pub fn requests(&self) -> Vec<Request> {
        let mut requests = Vec::new();
        let step = 2_000_000;
        let pause = self.blocks * step + 80_000_000;
        for (phase, op) in [Op::Write, Op::Read].into_iter().enumerate() {
            for index in 0..self.blocks {
                for rank in 0..self.ranks {
                    let turn = index * u64::from(self.ranks) + u64::from(rank);
                    // A permutation of the blocks: scattered order, each block once.
                    let total = self.blocks * u64::from(self.ranks);
                    let block = if op == Op::Read { turn * 7919 % total } else { turn };
                    let start = phase as u64 * pause + index * step + u64::from(rank) * 20_000;
                    requests.push(request(rank + 1, 0, op, block * self.block, self.block, start, 1_700_000));
                }
            }
        }
        for rank in 0..self.ranks {
            for line in 0..20 {
                let start = 2 * pause + u64::from(rank) * 1_000_000 + line * 3_000_000;
                requests.push(request(rank + 1, rank + 1, Op::Write, line * 100, 100, start, 50_000));
            }
        }
        requests.sort_by_key(|request| request.start_ns);
        requests
    }

    /// Writes the sample to a trace file and gathers it from there.
    pub fn activity(&self, directory: &Path) -> Activity {
        let path = directory.join("sample.trace");
        let meta = Meta {
            origin: "recorded".into(),
            command: ["mpiexec", "-n", "16", "ior", "-t", "512k"].map(str::to_owned).to_vec(),
            wall_s: Some(2.5),
            exit_code: Some(0),
            start_unix_ns: 1_795_222_800_000_000_000,
            notes: vec![],
            incomplete: self.incomplete.clone(),
        };
        write_trace(&path, meta, &self.processes(), &self.files(), &self.requests());
        gather(&path)
    }
}

pub fn request(
    process: u32,
    file: u32,
    op: Op,
    offset: u64,
    size: u64,
    start_ns: u64,
    took_ns: u64,
) -> Request {
    Request {
        process,
        tid: process,
        file,
        op,
        flags: Flags::POSITIONAL,
        offset,
        size,
        result: size as i64,
        start_ns,
        end_ns: start_ns + took_ns,
    }
}

/// Reads a trace file twice, as the command does.
pub fn gather(path: &Path) -> Activity {
    gather_part(path, 0..u64::MAX)
}

/// As [`gather`], with charts of a part of the time.
pub fn gather_part(path: &Path, shown_ns: Range<u64>) -> Activity {
    let trace = Trace::open(path).unwrap();
    let summary = Summary::of(&trace).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let mut collector = Collector::new(&name, trace.meta(), trace.processes(), summary, shown_ns);
    let mut requests = trace.requests().unwrap();
    while let Some(batch) = requests.next_batch().unwrap() {
        collector.add(batch);
    }
    collector.finish()
}

/// Writes a trace file. Files and processes get their list indices as numbers.
pub fn write_trace(path: &Path, meta: Meta, processes: &[ProcessInfo], files: &[String], requests: &[Request]) {
    let mut writer = TraceWriter::create(path).unwrap();
    for (index, process) in processes.iter().enumerate() {
        assert_eq!(writer.process_id(process), index as u32);
    }
    for (index, file) in files.iter().enumerate() {
        assert_eq!(writer.file_id(file), index as u32);
    }
    requests.iter().for_each(|request| writer.push(request).unwrap());
    writer.finish(&meta).unwrap();
}

/// PSA on 4 + 4 emulated servers for the shared file; each other file on one server in turn; the
/// rest stays as it is.
pub const PLAN: &str = r#"
version = 1
scheme = "auto"

[[rule]]
pattern = "/data/shared.dat"
scheme = "PSA"
reason = "Varied stripes keep the 4 SSD servers as busy as the 4 HDD servers; 1-DH leaves the SSDs unused."
predicted_s = 1338.573
elapsed_s = 83.66
layouts = [
  [{ end = "1G", cycle = "hdd/0-3:120K ssd/0-3:8K" }, { cycle = "hdd/0-3:128K" }],
]

[[rule]]
pattern = "/data/log.<n>"
scheme = "1-DV"
reason = "Every process writes a small file of its own: one server per file avoids that all wait for all."
predicted_s = 0.52
elapsed_s = 0.033
spread = { field = 0, stride = 1 }
layouts = [
  [{ cycle = "ssd/0:1G" }],
  [{ cycle = "ssd/1:1G" }],
  [{ cycle = "ssd/2:1G" }],
  [{ cycle = "ssd/3:1G" }],
]

[[rule]]
pattern = "/data/other"
scheme = "keep"
reason = "The best candidate would gain 2 %, less than the threshold of 5 %."
predicted_s = 0.1
elapsed_s = 0.1
layouts = []

[cluster.network]
establish_s = 3e-4
per_byte_s = 7.95e-9

[cluster.class.hdd]
read.random = { startup_s = 3e-4, per_byte_s = 7.95e-9 }
read.sequential = { startup_s = 1e-4, per_byte_s = 7.95e-9 }
write.random = { startup_s = 3e-4, per_byte_s = 7.95e-9 }
write.sequential = { startup_s = 1e-4, per_byte_s = 7.95e-9 }
[cluster.class.ssd]
read.random = { startup_s = 5e-5, per_byte_s = 2.38e-9 }
read.sequential = { startup_s = 5e-5, per_byte_s = 2.38e-9 }
write.random = { startup_s = 5e-5, per_byte_s = 2.38e-9 }
write.sequential = { startup_s = 5e-5, per_byte_s = 2.38e-9 }
[[cluster.tier]]
name = "hdd"
class = "hdd"
driver = "dirs"
servers = ["/disks/h0", "/disks/h1", "/disks/h2", "/disks/h3"]
capacity_per_server = "1T"
emulate = true
[[cluster.tier]]
name = "ssd"
class = "ssd"
driver = "dirs"
servers = ["/disks/s0", "/disks/s1", "/disks/s2", "/disks/s3"]
capacity_per_server = "1G"
emulate = true
"#;

pub fn plan() -> Plan {
    Plan::parse(PLAN, "plan.toml").unwrap()
}

/// Two workloads on emulated servers. Every time is unique, so that tests can find it.
pub fn results() -> Results {
    Results {
        version: 1,
        date: "2026-11-21T01:00:00Z".into(),
        command: "stripewise-bench demo".into(),
        machine: Machine {
            host: "node7".into(),
            cpu: "AMD EPYC".into(),
            cores: 2,
            memory_bytes: 24 << 30,
            system: "Linux 6.18".into(),
        },
        servers: ["hdd", "ssd"]
            .map(|tier| Servers { tier: tier.into(), class: tier.into(), count: 4, emulated: true })
            .to_vec(),
        workloads: vec![workload("ior read 512K", 1.0), workload("ior write 64K", 0.61)],
    }
}

fn workload(name: &str, scale: f64) -> Workload {
    let candidate = |(name, layout, elapsed_s, measured): (&str, &str, f64, &[f64])| Candidate {
        name: name.into(),
        layout: layout.into(),
        predicted_s: Some(elapsed_s * scale * 15.7),
        elapsed_s: Some(elapsed_s * scale),
        measured_s: measured.iter().map(|s| s * scale).collect(),
        verified: Some(true),
    };
    let rows: [(&str, &str, f64, &[f64]); 7] = [
        ("1-DH", "hdd/0-3:128K", 2.1, &[2.21, 2.15, 2.32]),
        ("1-DV", "hdd/0-3:512K", 2.52, &[2.61, 2.6, 2.71]),
        ("2-D g=2", "hdd/0-1:256K hdd/2-3:256K", 2.33, &[2.41, 2.38, 2.44]),
        ("DEF", "hdd/0-3:64K ssd/0-3:64K until 1G, then hdd/0-3:64K", 1.405, &[1.43, 1.47, 1.44]),
        ("PA", "hdd/0-3:36K ssd/0-3:92K until 1G, then hdd/0-3:128K", 1.301, &[1.334, 1.31, 1.352]),
        ("PSA", "hdd/0-3:120K ssd/0-3:8K until 1G, then hdd/0-3:128K", 1.25, &[1.27, 1.23, 1.29]),
        ("SSD only", "ssd/0-3:128K", 1.85, &[]),
    ];
    Workload {
        name: name.into(),
        description: "16 ranks access blocks at random in one shared file.".into(),
        command: "mpiexec -n 16 ior -t 512k".into(),
        processes: 16,
        bytes: 2 << 30,
        trace_incomplete: None,
        trace: None,
        plan: None,
        present: "1-DH".into(),
        choice: "PSA".into(),
        reason: "Varied stripes keep the SSD servers as busy as the HDD servers.".into(),
        candidates: rows.map(candidate).to_vec(),
    }
}
