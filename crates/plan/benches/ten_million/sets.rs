//! Many file sets on many servers.

use std::path::Path;
use std::time::Instant;

use stripewise_cluster::{Cluster, Plan, RuleIndex};
use stripewise_plan::workload::FileSet;
use stripewise_plan::{Collector, Options, Workload, plan, to_plan};
use stripewise_random::Random;
use stripewise_trace::{Flags, Meta, Op, ProcessInfo, Request, Trace, TraceWriter};

use crate::most_memory_mib;

/// Number of sets that are in use at a time.
const TOGETHER: u64 = 64;
/// Number of processes.
pub const PROCESSES: u32 = 1024;

/// Measures the plan for a trace of so many requests on so many file sets.
pub fn measure(sets: u32, requests: u64) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("trace");
    let files = synthesise(&path, sets, requests);
    let (cluster, _) = cluster(files.iter().map(|file| file.bytes).sum());
    let (start, cpu_s) = (Instant::now(), cpu_seconds());
    let options = Options::default();
    let workload = collected(&path).divided(&cluster, &options).expect("the cluster is valid");
    let (grouped, grouped_cpu_s) = (start.elapsed(), cpu_seconds());
    let planned = plan(&workload, &cluster, &options).expect("there is a plan");
    let (total, total_cpu_s) = (start.elapsed(), cpu_seconds());
    let memory_mib = most_memory_mib();
    let text = to_plan(&planned.decisions, &cluster, &options).to_toml();
    let written_s = (start.elapsed() - total).as_secs_f64();
    let (read_s, found_us) = in_use(&text, &workload);
    let joint = planned.joint.expect("the space is scarce");
    println!(
        "{requests} requests, {} sets: grouping {:.2} s ({:.2} s of CPU), planning {:.2} s ({:.2} s of CPU), together \
         {:.2} s ({:.2} s of CPU); most memory {memory_mib} MiB; {:.1} s now, {:.1} s planned, bound {:.1} s; {} sets \
         move; plan.toml of {} MiB written in {written_s:.2} s, read in {read_s:.2} s, a rule found in {found_us:.2} µs",
        workload.file_sets.len(),
        grouped.as_secs_f64(),
        grouped_cpu_s - cpu_s,
        (total - grouped).as_secs_f64(),
        total_cpu_s - grouped_cpu_s,
        total.as_secs_f64(),
        total_cpu_s - cpu_s,
        joint.now_s,
        joint.planned_s,
        joint.bound_s,
        planned.decisions.iter().filter(|decision| !decision.keep).count(),
        text.len() >> 20,
    );
}

/// Seconds for reading the plan, and microseconds for finding the rule of a file.
fn in_use(text: &str, workload: &Workload) -> (f64, f64) {
    let start = Instant::now();
    let plan = Plan::parse(text, "plan.toml").expect("the plan is valid");
    let (index, read) = (RuleIndex::of(&plan), start.elapsed());
    let found = |set: &FileSet| index.rule_for(&plan, set.files[0].name.as_ref().as_ref()).is_some();
    assert!(workload.file_sets.iter().all(found), "each set has a rule");
    let each_s = (start.elapsed() - read).as_secs_f64() / workload.file_sets.len() as f64;
    (read.as_secs_f64(), each_s * 1e6)
}

/// The workload of a trace.
pub fn collected(path: &Path) -> Workload {
    let trace = Trace::open(path).expect("the trace opens");
    let collector = Collector::new(trace.processes(), &trace, Options::default().sets_max());
    let mut collector = collector.expect("the trace is readable");
    let mut rows = trace.requests().expect("the trace is readable");
    while let Some(batch) = rows.next_batch().expect("the trace is readable") {
        batch.iter().for_each(|request| collector.add(request));
    }
    collector.finish()
}

/// 600 disks with much space, 300 SSDs that together hold a tenth of all `bytes`, and 100 NVMe
/// drives that hold a fiftieth. Returns the text of the file, too.
pub fn cluster(bytes: u64) -> (Cluster, String) {
    let class = |name: &str, [random, sequential, per_byte]: [f64; 3]| {
        let of = |startup: f64| format!("{{ startup_s = {startup:?}, per_byte_s = {per_byte:?} }}");
        let of = format!("{{ random = {}, sequential = {} }}", of(random), of(sequential));
        format!("[class.{name}]\nread = {of}\nwrite = {of}\n")
    };
    let tier = |name: &str, count: u64, bytes: u64| {
        let servers: Vec<String> = (0..count).map(|index| format!("\"/{name}{index}\"")).collect();
        format!(
            "[[tier]]\nname = \"{name}\"\nclass = \"{name}\"\ndriver = \"dirs\"\nservers = [{}]\n\
             capacity_per_server = \"{}\"\n",
            servers.join(", "),
            bytes / count
        )
    };
    let text = class("hdd", [5e-3, 1e-4, 8e-9])
        + &class("ssd", [5e-5, 5e-5, 2e-9])
        + &class("nvme", [1e-5, 1e-5, 5e-10])
        + &tier("hdd", 600, bytes.saturating_mul(4))
        + &tier("ssd", 300, bytes / 10)
        + &tier("nvme", 100, bytes / 50);
    (Cluster::parse(&text, "cluster").expect("the cluster is valid"), text)
}

/// One file, a set of its own.
struct Used {
    id: u32,
    bytes: u64,
    size: u64,
    is_write: bool,
    in_order: bool,
    first_process: u32,
    processes: u32,
}

impl Used {
    fn new(id: u32, number: u32, random: &mut Random) -> Self {
        let in_order = random.below(2) == 0;
        let size = if in_order { 1 << 20 } else { 4096 << (2 * random.below(3)) };
        let processes = 1 << (2 * random.below(4));
        let (is_write, bytes) = (random.below(4) == 0, (1u64 << 20) << random.below(13));
        Self { id, bytes, size, is_write, in_order, first_process: number * 64 % PROCESSES, processes }
    }

    /// A request on the file, of `each`.
    fn request(&self, number: u64, each: u64, random: &mut Random) -> Request {
        let (processes, blocks) = (u64::from(self.processes), (self.bytes / self.size).max(1));
        let process = number % processes;
        let block = match self.in_order {
            true => process * (each / processes).min(blocks / processes) + number / processes,
            false => random.below(blocks),
        };
        Request {
            process: (self.first_process + process as u32) % PROCESSES,
            tid: 1,
            file: self.id,
            op: if self.is_write { Op::Write } else { Op::Read },
            flags: Flags::POSITIONAL,
            offset: block % blocks * self.size,
            size: self.size,
            result: self.size as i64,
            start_ns: 0,
            end_ns: 0,
        }
    }
}

/// Writes a trace of about so many requests. Names differ in letters, so each file is a set.
fn synthesise(path: &Path, sets: u32, requests: u64) -> Vec<Used> {
    let mut writer = TraceWriter::create(path).expect("the trace can be written");
    add_processes(&mut writer);
    let mut random = Random(1);
    let new = |number: u32| {
        let id = writer.file_id(&format!("/data/{}/{}.dat", letters(number % 1000), letters(number)));
        Used::new(id, number, &mut random)
    };
    let files: Vec<Used> = (0..sets).map(new).collect();
    let each = requests / u64::from(sets);
    let mut time_ns = 0;
    for together in files.chunks(TOGETHER as usize) {
        for number in 0..each {
            for file in together {
                time_ns += 1000;
                let request = file.request(number, each, &mut random);
                let request = Request { start_ns: time_ns, end_ns: time_ns + 900, ..request };
                writer.push(&request).expect("the trace can be written");
            }
        }
    }
    writer.finish(&Meta { origin: "synthetic".into(), ..Meta::default() }).expect("the trace can be written");
    files
}

/// Adds the processes to a trace.
pub fn add_processes(writer: &mut TraceWriter) {
    for pid in 0..PROCESSES {
        let node = format!("node{}", pid / 16);
        writer.process_id(&ProcessInfo { node, pid, rank: pid as i32, program: "synthetic".to_owned() });
    }
}

/// A name for a number, of letters.
pub fn letters(number: u32) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// CPU time of this process, seconds.
pub fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = |index: usize| after_name.split_whitespace().nth(index).and_then(|it| it.parse::<f64>().ok());
    // Ticks are hundredths of seconds on Linux.
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
