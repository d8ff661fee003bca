//! What calls cost the client, against sums over single files and requests, and its effect on
//! plans.

use std::convert::Infallible;

use proptest::prelude::*;
use stripewise_cluster::Cluster;
use stripewise_layout::Layout;
use stripewise_layout::constructors::striped;
use stripewise_model::{Access, ByCall, Call, CallCost, Op};

use super::{Pattern, Random, cluster, ior, layouts, now, of_tiers};
use crate::workload::{Calls, File, FileSet, Group, Request, Workload};
use crate::{Candidate, Decision, Options, Present, Problem, Servers, judge, plan};

const K: u64 = 1 << 10;

/// The same cost for every kind of call.
fn costs(base_s: f64, per_object_s: f64, plain_s: f64) -> ByCall<CallCost> {
    let Ok(costs) = ByCall::try_of(|_| Ok::<_, Infallible>(CallCost { base_s, per_object_s, plain_s }));
    costs
}

/// Costs as they were measured on ext4 with two cores.
fn measured() -> ByCall<CallCost> {
    let cost = |base_us: f64, per_object_us: f64, plain_us: f64| CallCost {
        base_s: base_us * 1e-6,
        per_object_s: per_object_us * 1e-6,
        plain_s: plain_us * 1e-6,
    };
    ByCall {
        open: cost(54.9, 8.7, 3.0),
        create: cost(160.0, 25.6, 14.5),
        close: cost(7.6, 1.1, 1.3),
        stat: cost(27.6, 7.1, 2.2),
        unlink: cost(406.0, 41.1, 17.0),
        read: cost(0.1, 1.6, 0.8),
        write: cost(0.4, 2.0, 1.2),
    }
}

fn with(mut cluster: Cluster, costs: ByCall<CallCost>) -> Cluster {
    cluster.client = cluster.tiers.iter().map(|tier| (tier.name.clone(), costs)).collect();
    cluster
}

fn decide(workload: &Workload, cluster: &Cluster) -> Decision {
    plan(workload, cluster, &Options::default()).unwrap().decisions.remove(0)
}

/// The largest number of servers that a file of the chosen layouts is on.
fn width(decision: &Decision) -> usize {
    let of_layout = |layout: &Layout| distinct(layout).len();
    decision.chosen().candidate.layouts.build().iter().map(of_layout).max().unwrap()
}

fn distinct(layout: &Layout) -> Vec<u32> {
    let mut targets: Vec<u32> = layout.targets().collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Files of `size` bytes, each created, written by one of eight processes in one request, and
/// closed, then opened and read.
fn many_files(count: u32, size: u64) -> Workload {
    let request = |file| Request { process: file % 8, file, offset: 0, size, ..Request::default() };
    let group = |op| Group {
        procs: 8,
        procs_per_node: 8,
        ..Group::of_all(op, Access::Random, (0..count).map(request).collect())
    };
    let each = u64::from(count);
    let calls = Calls { times: 1, procs: 8, opens: each, creates: each, closes: 2 * each, ..Calls::default() };
    let set = FileSet {
        pattern: "/data/f<n>".into(),
        files: (0..count).map(|n| File::new(format!("/data/f{n}"), size)).collect(),
        groups: vec![group(Op::Write), group(Op::Read)],
        calls: vec![calls],
        private: true,
        ..FileSet::default()
    };
    Workload { file_sets: vec![set] }
}

#[test]
fn small_files_stay_whole() {
    let fast = || cluster((8, 1e-5, 5e-9), (0, 0.0, 0.0), ("1T", "1T"), (0.0, 0.0));
    // Striped files of 64 KiB are faster for the servers alone.
    let spread: Vec<Layout> = vec![striped(&[0, 1, 2, 3, 4, 5, 6, 7], 4 * K).unwrap()];
    for size in [4 * K, 64 * K] {
        let files = many_files(10_000, size);
        let whole = decide(&files, &with(fast(), measured()));
        assert!(whole.keep || width(&whole) == 1, "{size}: {}", whole.reason);
        let set = &files.file_sets[0];
        let (counted, options) = (with(fast(), measured()), Options::default());
        let servers = Servers::of(&counted).unwrap();
        let problem = Problem::new(set, &counted, &servers, &options, set.total_size());
        let striped = Candidate::spread("test", "striped", spread.clone(), Default::default());
        let striped = judge(&problem, vec![striped]).remove(0);
        assert!(striped.client_s.unwrap() > 1.5 * whole.chosen().client_s.unwrap(), "{size}");
        assert!(whole.chosen().elapsed_s < striped.elapsed_s, "{size}");
    }
    // A large file, on the other hand, uses all servers.
    let mut large = ior(Pattern::Segmented, Op::Write, 1, 4096 * K, 64);
    large.file_sets[0].calls = vec![Calls { times: 1, procs: 1, creates: 1, closes: 1, ..Calls::default() }];
    let decision = decide(&large, &with(fast(), measured()));
    assert!(!decision.keep && width(&decision) == 8, "{}", decision.reason);
    assert!(!decision.reason.contains("client"), "its share is negligible: {}", decision.reason);
}

#[test]
fn what_opens_cost_can_decide_against_striping() {
    // One process at a time reads each file: alone, the servers are faster together.
    let slow = || cluster((4, 1e-5, 1e-8), (0, 0.0, 0.0), ("1T", "1T"), (0.0, 0.0));
    let mut files = many_files(1000, 256 * K);
    let set = &mut files.file_sets[0];
    set.calls[0].procs = 1;
    for group in &mut set.groups {
        (group.procs, group.procs_per_node) = (1, 1);
        group.sample.iter_mut().for_each(|request| request.process = 0);
    }
    let without = decide(&files, &slow());
    assert!(!without.keep && width(&without) == 4, "{}", without.reason);
    assert_eq!(without.chosen().client_s, None);
    assert!(!without.reason.contains("client"));
    // Every object of a file is opened in 2 ms, as on a distant file system.
    let far = decide(&files, &with(slow(), costs(1e-3, 2e-3, 1e-5)));
    assert!(far.keep, "{}", far.reason);
    assert!(far.reason.contains("keep the client busy"), "{}", far.reason);
}

#[test]
fn plain_files_cost_what_plain_files_do() {
    let cluster =
        with(cluster((2, 1e-3, 1e-8), (2, 1e-4, 1e-9), ("1T", "1T"), (0.0, 0.0)), costs(1.0, 0.5, 0.25));
    let mut workload = ior(Pattern::Random, Op::Read, 4, 4 * K, 8);
    let calls =
        Calls { times: 3, procs: 4, opens: 4, creates: 2, closes: 6, stats: 7, unlinks: 1, ..Calls::default() };
    workload.file_sets[0].calls = vec![calls];
    let plain = decide(&workload, &cluster).present;
    assert_eq!(plain.client_s, Some(3.0 * 20.0 * 0.25 / 4.0));
    // Managed files have one object at least, and a request costs what it does beyond a plain one.
    let found = |managed| Present::Known {
        name: "two".into(),
        layouts: vec![striped(&[0, 1], 4 * K).unwrap()],
        layout_of: Some(Default::default()),
        managed,
    };
    let of_file_system = decide(&now(workload.clone(), &found(false)), &cluster).present;
    assert_eq!(of_file_system.client_s, plain.client_s, "the file system stripes it");
    let managed = decide(&now(workload.clone(), &found(true)), &cluster).present;
    let expected = 3.0 * 20.0 * 2.0 / 4.0 + 32.0 * (1.5 - 0.25) / 4.0;
    assert!((managed.client_s.unwrap() / expected - 1.0).abs() < 1e-12, "{:?}", managed.client_s);
}

#[test]
fn a_tier_that_was_not_measured_is_not_free() {
    let mut cluster = with(cluster((2, 1e-3, 1e-8), (2, 1e-4, 1e-9), ("1T", "1T"), (0.0, 0.0)), measured());
    assert!(Servers::of(&cluster).unwrap().client.is_some());
    cluster.client.remove("ssd");
    assert!(Servers::of(&cluster).unwrap().client.is_none());
    assert_eq!(decide(&ior(Pattern::Random, Op::Read, 4, 4 * K, 8), &cluster).present.client_s, None);
}

#[test]
fn the_overall_cost_is_that_of_the_papers() {
    let cluster = || cluster((2, 1e-3, 1e-8), (2, 1e-4, 1e-9), ("1T", "1T"), (0.0, 0.0));
    let files = many_files(20, 64 * K);
    let (without, counted) = (decide(&files, &cluster()), decide(&files, &with(cluster(), measured())));
    let costs = |decision: &Decision| -> Vec<f64> {
        decision.candidates.iter().map(crate::Judged::predicted_s).collect()
    };
    assert_eq!(costs(&without), costs(&counted));
    for (one, other) in without.candidates.iter().zip(&counted.candidates) {
        let difference_s = other.elapsed_s - one.elapsed_s - other.client_s.unwrap();
        assert!(difference_s.abs() < 1e-9 * other.elapsed_s, "{}", one.candidate.name);
    }
}

/// The client's seconds of calls and requests in `layout`, one after the other.
fn brute_force(cluster: &Cluster, set: &FileSet, layout: &Layout) -> f64 {
    let cost = |call: Call, targets: &[u32]| {
        let of =
            |target: &u32| cluster.client[&cluster.tiers[cluster.tier_of(*target).unwrap()].name].of_call(call);
        let base_s = targets.iter().map(|target| of(target).base_s).fold(0.0, f64::max);
        base_s + targets.iter().map(|target| of(target).per_object_s).sum::<f64>()
    };
    let objects = distinct(layout);
    let mut all_s = 0.0;
    for calls in &set.calls {
        let counts = [
            (Call::Open, calls.opens),
            (Call::Create, calls.creates),
            (Call::Close, calls.closes),
            (Call::Stat, calls.stats),
            (Call::Unlink, calls.unlinks),
        ];
        for (call, count) in counts {
            for _ in 0..calls.times * count {
                all_s += cost(call, &objects) / f64::from(calls.procs);
            }
        }
    }
    for group in &set.groups {
        let call = if group.op == Op::Read { Call::Read } else { Call::Write };
        for request in &group.sample {
            let end = request.offset + request.size;
            let mut touched: Vec<u32> = (request.offset..end)
                .map(|byte| {
                    let mut bytes = Vec::new();
                    layout.bytes_by_target(byte, 1, &mut bytes);
                    bytes[0].0
                })
                .collect();
            touched.sort_unstable();
            touched.dedup();
            all_s += cost(call, &touched) / f64::from(group.procs);
        }
    }
    all_s
}

fn any_costs() -> impl Strategy<Value = ByCall<CallCost>> {
    let cost = (0.0..1.0f64, 0.0..1.0f64);
    prop::array::uniform7(cost).prop_map(|costs| {
        let cost = |call: Call| {
            let (base_s, per_object_s) = costs[call as usize];
            Ok::<_, Infallible>(CallCost { base_s, per_object_s, plain_s: 0.0 })
        };
        let Ok(costs) = ByCall::try_of(cost);
        costs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_clients_time_is_the_sum_of_all_calls(
        layout in layouts(5),
        by_tier in prop::array::uniform2(any_costs()),
        counts in prop::array::uniform5(0u64..20),
        requests in prop::collection::vec((0u64..80, 1u64..40), 1..12),
        (procs, times, write) in (1u32..5, 1u64..4, any::<bool>()),
    ) {
        let mut cluster = of_tiers(&[("a", (2, 1e-3, 1e-8), "1G"), ("b", (3, 1e-4, 1e-9), "1G")], (0.0, 0.0));
        cluster.client = ["a", "b"].map(str::to_owned).into_iter().zip(by_tier).collect();
        let request = |&(offset, size): &(u64, u64)| Request { offset, size, ..Request::default() };
        let sample = requests.iter().map(request).collect();
        let op = if write { Op::Write } else { Op::Read };
        let [opens, creates, closes, stats, unlinks] = counts;
        let set = FileSet {
            pattern: "/f".into(),
            files: vec![File::new("/f", 120)],
            groups: vec![Group { procs, ..Group::of_all(op, Access::Random, sample) }],
            calls: vec![Calls { times, procs, opens, creates, closes, stats, unlinks, ..Calls::default() }],
            ..FileSet::default()
        };
        let (servers, options) = (Servers::of(&cluster).unwrap(), Options::default());
        let problem = Problem::new(&set, &cluster, &servers, &options, 120);
        let judged = judge(&problem, vec![Candidate::single("test", "layout", layout.clone())]).remove(0);
        let expected_s = brute_force(&cluster, &set, &layout);
        prop_assert!((judged.client_s.unwrap() - expected_s).abs() <= 1e-9 * expected_s.max(1.0));
        prop_assert!(judged.elapsed_s >= expected_s * (1.0 - 1e-9));
    }

    #[test]
    fn parts_of_a_set_have_all_its_calls(counts in prop::array::uniform5(0u64..1 << 40), seed: u64, parts in 1usize..9) {
        let [opens, creates, closes, stats, unlinks] = counts;
        let (unflushed_bytes, memory_ns, flush_ns) = (3 * opens, 5 * closes, 7 * stats);
        let of_calls = Calls { opens, creates, closes, stats, unlinks, unflushed_bytes, memory_ns, flush_ns, ..Calls::default() };
        let calls = Calls { application: 2, times: 3, procs: 4, ..of_calls };
        let mut random = Random(seed);
        let mut ends: Vec<u64> = (1..parts).map(|_| random.next_u64() % 1000).chain([1000]).collect();
        ends.sort_unstable();
        let (mut sum, mut from) = (Calls::default(), 0);
        for to in ends {
            let part = calls.of_files((from, to), 1000);
            prop_assert_eq!((part.application, part.times), (2, 3));
            sum.add(&part);
            from = to;
        }
        prop_assert_eq!(Calls { application: 2, times: 3, ..sum }, calls);
    }
}
