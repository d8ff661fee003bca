//! Tests of planning, and the clusters and workloads that they share.

mod by_hand;
mod client;
mod copies;
mod decisions;
mod from_traces;
mod grid;
pub(crate) mod joint;
mod joint_cases;
mod large;
mod moving;
mod only_native;
pub(crate) mod oracle;
mod overall_cost;
mod pools;
mod properties;
mod published;

pub use stripewise_random::Random;

use proptest::prelude::*;
use stripewise_cluster::{Cluster, Plan, Rule, Spread};
use stripewise_layout::{Layout, Region, Stripe};
use stripewise_model::{Access, Op};
use stripewise_sim::{Lists, Simulator, Step};
use stripewise_trace::summary::{Past, Pasts};

use crate::Present;
use crate::workload::{File, FileSet, FileUse, Group, Request, Workload};

/// `h` slow and `s` fast servers, each class with one α and β for all operations and accesses.
pub fn cluster(
    h: (usize, f64, f64),
    s: (usize, f64, f64),
    capacities: (&str, &str),
    network: (f64, f64),
) -> Cluster {
    of_tiers(&[("hdd", h, capacities.0), ("ssd", s, capacities.1)], network)
}

/// Tiers with their servers' number, α, β and capacity. Each is a class of its own.
pub fn of_tiers(tiers: &[(&str, (usize, f64, f64), &str)], network: (f64, f64)) -> Cluster {
    let class = |name: &str, alpha: f64, beta: f64| {
        let service = format!("{{ startup_s = {alpha:?}, per_byte_s = {beta:?} }}");
        let by_access = format!("{{ random = {service}, sequential = {service} }}");
        format!("[class.{name}]\nread = {by_access}\nwrite = {by_access}\n")
    };
    let tier = |name: &str, count: usize, capacity: &str| {
        let servers: Vec<String> = (0..count).map(|i| format!("\"/{name}{i}\"")).collect();
        format!(
            "[[tier]]\nname = \"{name}\"\nclass = \"{name}\"\ndriver = \"dirs\"\nservers = [{}]\n\
             capacity_per_server = \"{capacity}\"\n",
            servers.join(", ")
        )
    };
    let mut text = format!("[network]\nestablish_s = {:?}\nper_byte_s = {:?}\n", network.0, network.1);
    for &(name, (count, alpha, beta), capacity) in tiers.iter().filter(|(_, servers, _)| servers.0 > 0) {
        text += &class(name, alpha, beta);
        text += &tier(name, count, capacity);
    }
    Cluster::parse(&text, "test").unwrap()
}

/// The cluster with a quarter of the startup time for sequential accesses.
pub fn with_order(mut cluster: Cluster) -> Cluster {
    for class in cluster.classes.values_mut() {
        for by_access in [&mut class.read, &mut class.write] {
            by_access.sequential.startup_s = by_access.random.startup_s / 4.0;
        }
    }
    cluster
}

/// Seconds that the processes, `per_node` on each node, take in the simulator for these steps on a
/// file, over the network.
pub fn in_simulator(cluster: &Cluster, layout: Layout, steps: Vec<Vec<Step>>, per_node: u32) -> f64 {
    let rule = Rule {
        pattern: "/f".into(),
        scheme: "given".into(),
        reason: String::new(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts: vec![layout],
        spread: Spread::default(),
        overlay: None,
    };
    let plan = Plan { scheme: "given".into(), cluster: cluster.clone(), rules: vec![rule] };
    let options = stripewise_sim::Options { network: true, ..Default::default() };
    let mut simulator = Simulator::new(cluster, options).unwrap();
    simulator.open(&plan, &["/f"], steps.len() as u32, per_node).unwrap();
    simulator.run(&mut Lists::new(steps, per_node)).elapsed_s
}

/// The order in which processes access the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One shared file, every request at a random place.
    Random,
    /// One shared file; every process accesses a segment of its own sequentially.
    Segmented,
    /// One shared file; the processes' requests interleave.
    Strided,
    /// Every process accesses a file of its own sequentially.
    FilePerProcess,
}

/// `procs` processes, two per node, issue `per_process` requests of `size` bytes each.
pub fn ior(pattern: Pattern, op: Op, procs: u32, size: u64, per_process: u64) -> Workload {
    let total = u64::from(procs) * per_process;
    let mut blocks: Vec<u64> = (0..total).collect();
    Random(42).shuffle(&mut blocks);
    let (mut sample, mut pasts) = (Vec::new(), Pasts::default());
    for i in 0..per_process {
        for process in 0..procs {
            let rank = u64::from(process);
            let (file, block) = match pattern {
                Pattern::Random => (0, blocks[(i * u64::from(procs) + rank) as usize]),
                Pattern::Segmented => (0, rank * per_process + i),
                Pattern::Strided => (0, i * u64::from(procs) + rank),
                Pattern::FilePerProcess => (process, i),
            };
            let offset = block * size;
            // In random order, requests follow one another only by chance.
            let past = if pattern == Pattern::Random {
                Past::default()
            } else {
                pasts.next(process, file, offset, size)
            };
            sample.push(Request { process, file, offset, size, past, ..Request::default() });
        }
    }
    let private = pattern == Pattern::FilePerProcess && procs > 1;
    let files = if pattern == Pattern::FilePerProcess { procs } else { 1 };
    let file = |n| File::new(format!("/data/out.{n}"), total * size / u64::from(files));
    let access = match pattern {
        Pattern::Random | Pattern::Strided => Access::Random,
        Pattern::Segmented | Pattern::FilePerProcess => Access::Sequential,
    };
    let (count, bytes) = (total, total * size);
    let group =
        Group { procs, procs_per_node: procs.min(2), count, bytes, ..Group::of_all(op, access, sample) };
    let files = (0..files).map(file).collect();
    let set = FileSet {
        pattern: "/data/out.<n>".into(),
        files,
        groups: vec![group],
        private,
        mapped: false,
        ..FileSet::default()
    };
    Workload { file_sets: vec![set] }
}

/// The set with what is done with its files, if the samples have all requests.
pub fn counted(mut set: FileSet) -> FileSet {
    set.uses = vec![FileUse::default(); set.files.len()];
    for group in &set.groups {
        group.sample.iter().for_each(|request| set.uses[request.file as usize].add(group.op, request));
    }
    set
}

/// The same workload on files that have this layout now.
fn now(mut workload: Workload, present: &Present) -> Workload {
    workload.file_sets.iter_mut().for_each(|set| set.present = present.clone());
    workload
}

/// Layouts of up to three regions over so many servers.
pub fn layouts(servers: u32) -> impl Strategy<Value = Layout> {
    let stripe = (0..servers, 1u64..5).prop_map(|(target, width)| Stripe { target, width });
    let cycle = prop::collection::vec(stripe, 1..12);
    prop::collection::vec((cycle, 1u64..60), 1..4).prop_map(|cycles| {
        let (mut start, last) = (0, cycles.len() - 1);
        let region = |(index, (cycle, len)): (usize, (Vec<Stripe>, u64))| {
            let region = Region { start, end: (index < last).then_some(start + len), cycle };
            start += len;
            region
        };
        Layout::new(cycles.into_iter().enumerate().map(region).collect()).unwrap()
    })
}
