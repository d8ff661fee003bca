use stripewise_cluster::profile::Accuracy;
use stripewise_cluster::{Cluster, Fit};
use stripewise_model::ClassParams;

use super::*;
use crate::tests::{Pattern, cluster, ior};
use crate::{Objective, plan};

const K: u64 = 1 << 10;
/// A read of 64 KiB takes 5 ms and 8 ns for each byte on the slow servers, 5.5 ms in all.
const SLOW_NS: u32 = 6_000_000;
const QUICK_NS: u32 = 30_000;

/// Four slow and two fast servers whose parameters were measured.
fn measured() -> Cluster {
    let mut cluster = cluster((4, 5e-3, 8e-9), (2, 5e-4, 2e-9), ("1G", "1G"), (0.0, 0.0));
    let fit = |(class, params): (&String, &ClassParams)| {
        let of =
            |op, access| Fit { service: params.service(op, access), residual_relative: 0.01, ..Fit::default() };
        (class.clone(), ClassParams::of(of))
    };
    cluster.accuracy = Accuracy { classes: cluster.classes.iter().map(fit).collect(), network: None };
    cluster
}

fn without_memory(workload: &Workload, cluster: &Cluster) -> Workload {
    workload.clone().without_memory(cluster, &Options::default()).unwrap()
}

/// The workload with what each request took, by its index in the sample, and whether it was known.
fn took(mut workload: Workload, of: impl Fn(usize) -> (u32, bool)) -> Workload {
    for (index, request) in workload.file_sets[0].groups[0].sample.iter_mut().enumerate() {
        (request.took_ns, request.known) = of(index);
    }
    workload
}

fn random_reads() -> Workload {
    ior(Pattern::Random, Op::Read, 4, 64 * K, 25)
}

#[test]
fn what_memory_served_is_not_sent_to_the_servers_and_takes_its_traced_time() {
    let cluster = measured();
    let of = |index: usize| (if index.is_multiple_of(4) { SLOW_NS } else { QUICK_NS }, true);
    let left = without_memory(&took(random_reads(), of), &cluster);
    let set = &left.file_sets[0];
    let memory = FromMemory { requests: 75, bytes: 75 * 64 * K, ns: 75 * u64::from(QUICK_NS) };
    assert_eq!((set.groups[0].count, set.groups[0].bytes, set.memory), (25, 25 * 64 * K, memory));
    let options = Options { min_gain: f64::NEG_INFINITY, ..Options::default() };
    let decision = plan(&left, &cluster, &options).unwrap().decisions.remove(0);
    let memory_s = 75.0 * 3e-5;
    for judged in [&decision.present, decision.chosen()] {
        let client_s = judged.client_s.unwrap();
        // One application with four processes, or as many as its calls say.
        assert!((client_s - memory_s / 4.0).abs() < 1e-9, "{client_s}, before and after");
    }
    assert!(decision.present.elapsed_s > 0.03 && decision.present.elapsed_s < 25.0 * 6e-3);
}

#[test]
fn durations_decide_whatever_the_pattern() {
    let direct = took(random_reads(), |_| (SLOW_NS, true));
    let set = &without_memory(&direct, &measured()).file_sets[0];
    assert_eq!((set.groups[0].count, set.memory), (100, FromMemory::default()), "they were slow");
    let mut fast = measured();
    for class in fast.classes.values_mut() {
        class.read.random.startup_s = 1e-6;
        class.read.random.per_byte_s = 1e-10;
    }
    let as_fast = took(random_reads(), |_| (QUICK_NS, true));
    assert_eq!(
        without_memory(&as_fast, &fast).file_sets[0].memory.requests,
        0,
        "a server may have served them"
    );
}

#[test]
fn durations_say_nothing_of_servers_that_were_not_measured() {
    let quick = took(random_reads(), |_| (QUICK_NS, true));
    let requests = |cluster: &Cluster| without_memory(&quick, cluster).file_sets[0].memory.requests;
    assert_eq!(requests(&measured()), 100);
    let described = Cluster { accuracy: Accuracy::default(), ..measured() };
    assert_eq!(requests(&described), 0);
    let mut emulated = measured();
    emulated.tiers.iter_mut().for_each(|tier| tier.emulate = true);
    assert_eq!(requests(&emulated), 0);
}

/// A process reads in order; every other read waits for both its own bytes and the next ones.
#[test]
fn what_was_read_ahead_was_served_by_servers_unless_the_node_had_it() {
    let reads = || ior(Pattern::Segmented, Op::Read, 1, 1024 * K, 64);
    // 5 ms and 8.4 ms for each MiB.
    let of = |known| move |index: usize| (if index.is_multiple_of(2) { 25_000_000 } else { 200_000 }, known);
    let requests = |known| without_memory(&took(reads(), of(known)), &measured()).file_sets[0].memory.requests;
    assert_eq!(requests(false), 0);
    assert_eq!(requests(true), 32);
    let all = took(reads(), |_| (200_000, false));
    assert_eq!(without_memory(&all, &measured()).file_sets[0].memory.requests, 64, "no read waited");
}

#[test]
fn quick_writes_stay_in_memory_if_nothing_flushes_them() {
    let writes = |unflushed_bytes, took_ns| {
        let mut workload = took(ior(Pattern::Random, Op::Write, 4, 64 * K, 25), |_| (took_ns, false));
        workload.file_sets[0].calls = vec![Calls { times: 1, procs: 4, unflushed_bytes, ..Calls::default() }];
        without_memory(&workload, &measured()).file_sets[0].memory.requests
    };
    assert_eq!(writes(0, QUICK_NS), 0, "a sync has paid for them");
    assert_eq!(writes(40 * 64 * K, QUICK_NS), 40);
    assert_eq!(writes(1000 * 64 * K, QUICK_NS), 100);
    assert_eq!(writes(1000 * 64 * K, SLOW_NS), 0);
}

#[test]
fn files_that_memory_served_alone_keep_their_layout_beside_others() {
    let mut quick = took(random_reads(), |_| (QUICK_NS, false)).file_sets.remove(0);
    quick.pattern = "/data/other".into();
    quick.files[0].name = "/data/other".into();
    let mut both = took(random_reads(), |_| (SLOW_NS, false));
    both.file_sets.push(quick);
    for objective in [Objective::Elapsed, Objective::Cost] {
        let options = Options { objective, ..Options::default() };
        let left = both.clone().without_memory(&measured(), &options).unwrap();
        let decisions = plan(&left, &measured(), &options).unwrap().decisions;
        assert!(!decisions[0].keep && decisions[1].keep);
        assert!(decisions[1].reason.contains("memory served all 100 requests"), "{}", decisions[1].reason);
    }
    let alone = Workload { file_sets: both.file_sets.split_off(1) };
    let left = without_memory(&alone, &measured());
    assert!(plan(&left, &measured(), &Options::default()).unwrap().decisions[0].keep);
}

#[test]
fn a_sample_stands_for_all_requests() {
    let mut workload = took(random_reads(), |index| (if index < 50 { QUICK_NS } else { SLOW_NS }, true));
    let group = &mut workload.file_sets[0].groups[0];
    (group.count, group.bytes) = (1000, 1000 * 64 * K);
    let set = &without_memory(&workload, &measured()).file_sets[0];
    assert_eq!((set.groups[0].count, set.groups[0].sample.len(), set.memory.requests), (500, 50, 500));
}

#[test]
fn all_of_it_from_memory_takes_a_copy_of_every_byte() {
    let group = 25.0 * (20e-6 + 65536.0 * 1e-9);
    let near = |workload: &Workload, seconds: f64| {
        let is_s = workload.in_memory_s();
        assert!((is_s - seconds).abs() < 1e-12, "{is_s} {seconds}");
    };
    let mut workload = random_reads();
    near(&workload, group);
    workload.file_sets[0].groups[0].times = 3;
    near(&workload, 3.0 * group);
    workload.file_sets[0].calls =
        vec![Calls { times: 2, procs: 4, memory_ns: 8_000_000_000, ..Calls::default() }];
    near(&workload, 3.0 * group + 4.0);
    // The groups of a lane follow one another, the lanes of a stage overlap, and stages do not.
    let in_lane = |stage, number, times| {
        let mut set = random_reads().file_sets.remove(0);
        (set.groups[0].lane, set.groups[0].times) = (Some(Lane { stage, number }), times);
        set
    };
    let file_sets = vec![in_lane(0, 0, 1), in_lane(0, 0, 4), in_lane(0, 1, 6), in_lane(1, 1, 10)];
    near(&Workload { file_sets }, (6.0 + 10.0) * group);
}
