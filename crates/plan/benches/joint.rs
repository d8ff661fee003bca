//! Planning time of file sets that share little fast space: `cargo bench -p stripewise-plan --bench
//! joint`.
//!
//! Prints one line per number of sets: the seconds of the fastest of [`RUNS`] plans, and the time
//! of all sets now, planned, and the bound. The sets have 1 MiB to 4 GiB each and are read at
//! random or in order; the SSDs have space for a tenth of all bytes. `SETS` is the list of numbers.

use std::time::Instant;

use stripewise_cluster::Cluster;
use stripewise_model::{Access, Op};
use stripewise_plan::workload::{File, FileSet, Group, Request, Workload};
use stripewise_plan::{Options, plan};
use stripewise_random::Random;
use stripewise_trace::summary::Pasts;

const RUNS: usize = 3;
const PROCESSES: u32 = 16;
const REQUESTS: u64 = 8192;

fn main() {
    let numbers = std::env::var("SETS").unwrap_or_else(|_| "2 8 32 64".to_owned());
    let fits: f64 = std::env::var("SSDS").ok().and_then(|number| number.parse().ok()).unwrap_or(0.1);
    println!("sets  seconds     now s  planned s    bound s");
    for sets in numbers.split_whitespace().filter_map(|number| number.parse().ok()) {
        let workload = workload(sets);
        let bytes: u64 = workload.file_sets.iter().map(FileSet::total_size).sum();
        let cluster = cluster((bytes as f64 * fits / 4.0) as u64);
        let mut least_s = f64::INFINITY;
        let mut joint = None;
        for _ in 0..RUNS {
            let start = Instant::now();
            joint = plan(&workload, &cluster, &Options::default()).expect("there is a plan").joint;
            least_s = least_s.min(start.elapsed().as_secs_f64());
        }
        let joint = joint.expect("the space is scarce");
        println!("{sets:4} {least_s:8.3} {:9.3} {:10.3} {:10.3}", joint.now_s, joint.planned_s, joint.bound_s);
    }
}

/// 8 disks with much space and 4 SSDs of `ssd` bytes each.
fn cluster(ssd: u64) -> Cluster {
    let by_access = |random: f64, sequential: f64, per_byte: f64| {
        let of = |startup: f64| format!("{{ startup_s = {startup:?}, per_byte_s = {per_byte:?} }}");
        format!("{{ random = {}, sequential = {} }}", of(random), of(sequential))
    };
    let class = |name: &str, of: String| format!("[class.{name}]\nread = {of}\nwrite = {of}\n");
    let tier = |name: &str, count: usize, capacity: String| {
        let servers: Vec<String> = (0..count).map(|index| format!("\"/{name}{index}\"")).collect();
        format!(
            "[[tier]]\nname = \"{name}\"\nclass = \"{name}\"\ndriver = \"dirs\"\nservers = [{}]\n\
             capacity_per_server = {capacity}\n",
            servers.join(", ")
        )
    };
    let text = class("hdd", by_access(5e-3, 1e-4, 8e-9))
        + &class("ssd", by_access(5e-5, 5e-5, 2e-9))
        + &tier("hdd", 8, "\"100T\"".to_owned())
        + &tier("ssd", 4, format!("\"{ssd}\""));
    Cluster::parse(&text, "cluster").expect("the cluster is valid")
}

fn workload(sets: usize) -> Workload {
    let mut random = Random(1);
    Workload { file_sets: (0..sets).map(|index| file_set(index, &mut random)).collect() }
}

/// One file, read at random by blocks of 4 KiB to 64 KiB, or in order by blocks of 1 MiB.
fn file_set(index: usize, random: &mut Random) -> FileSet {
    let in_order = random.below(2) == 0;
    let size = if in_order { 1 << 20 } else { 4096 << (2 * random.below(3)) };
    let file_bytes = (1u64 << 20) << random.below(13);
    let (blocks, each) = ((file_bytes / size).max(1), REQUESTS / u64::from(PROCESSES));
    let mut pasts = Pasts::default();
    let mut request = |number: u64| {
        let process = (number % u64::from(PROCESSES)) as u32;
        let block = match in_order {
            true => u64::from(process) * each + number / u64::from(PROCESSES),
            false => random.below(blocks),
        };
        let offset = block % blocks * size;
        let past = pasts.next(process, 0, offset, size);
        Request { process, offset, size, past, ..Request::default() }
    };
    let sample: Vec<Request> = (0..REQUESTS).map(&mut request).collect();
    let name = format!("/data/file{index}");
    let group = Group {
        application: 0,
        times: 1,
        lane: None,
        op: Op::Read,
        access: if in_order { Access::Sequential } else { Access::Random },
        procs: PROCESSES,
        procs_per_node: 4,
        nodes: [].into(),
        collective: false,
        count: REQUESTS,
        bytes: REQUESTS * size,
        sample,
    };
    let files = vec![File::new(name.as_str(), file_bytes)];
    FileSet { pattern: name, files, groups: vec![group], ..FileSet::default() }
}
