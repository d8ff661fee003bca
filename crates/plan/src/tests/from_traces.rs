//! From the calls of a trace to workloads.

use std::path::Path;

use stripewise_cluster::Cluster;
use stripewise_layout::constructors;
use stripewise_model::{Access as Order, Op};
use stripewise_trace::summary::MAX_GROUPS;
use stripewise_trace::synth::{Access, Direction, Ior, RandomWithin, write};
use stripewise_trace::{Meta, Trace, TraceWriter};

use super::{cluster, with_order};
use crate::{Collector, Decision, Judged, Options, Workload, plan};

fn collected(path: &Path) -> Workload {
    let trace = Trace::open(path).unwrap();
    let mut collector = Collector::new(trace.processes(), &trace, MAX_GROUPS).unwrap();
    let mut requests = trace.requests().unwrap();
    while let Some(batch) = requests.next_batch().unwrap() {
        batch.iter().for_each(|request| collector.add(request));
    }
    collector.finish()
}

fn ior(access: Access, shared: bool, file: &str) -> Workload {
    traced(&Ior { access, shared, file: file.into(), ..interleaved(64 << 10, 1, 64) })
}

/// 8 processes access the blocks of a shared file in turns, `count` blocks each, in `transfers`
/// requests of `transfer` bytes per block. First all of them write, then all of them read.
fn interleaved(transfer: u64, count: u64, transfers: u64) -> Ior {
    Ior {
        processes: 8,
        per_node: 4,
        transfer,
        block: transfers * transfer,
        segments: count,
        access: Access::Sequential,
        random_within: RandomWithin::File,
        direction: Direction::Both,
        shared: true,
        seed: 3,
        file: "/data/x".into(),
    }
}

/// The workload that is collected from the benchmark's trace.
fn traced(ior: &Ior) -> Workload {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let mut writer = TraceWriter::create(&path).unwrap();
    write(ior, &mut writer, &mut |_| {}).unwrap();
    writer.finish(&Meta { origin: "synthetic".into(), ..Meta::default() }).unwrap();
    collected(&path)
}

#[test]
fn a_shared_file_has_one_group_per_operation() {
    for (access, order) in [(Access::Random, Order::Random), (Access::Sequential, Order::Sequential)] {
        let workload = ior(access, true, "/data/x");
        let [set] = &workload.file_sets[..] else { panic!("one file set") };
        assert_eq!((set.pattern.as_str(), set.private, set.largest()), ("/data/x", false, 32 << 20));
        assert_eq!(
            set.groups.len(),
            2,
            "{:?}",
            set.groups.iter().map(|g| (g.op, g.access, g.count)).collect::<Vec<_>>()
        );
        for (group, op) in set.groups.iter().zip([Op::Write, Op::Read]) {
            assert_eq!((group.op, group.access, group.procs, group.procs_per_node), (op, order, 8, 4));
            assert_eq!((group.count, group.bytes, group.sample.len()), (512, 32 << 20, 512));
            let mut offsets: Vec<u64> = group.sample.iter().map(|request| request.offset).collect();
            offsets.sort_unstable();
            assert!(offsets.into_iter().eq((0..512).map(|block| block * (64 << 10))));
        }
        assert_eq!(set.dominant_size(), 64 << 10);
    }
}

#[test]
fn files_of_one_process_each_are_private() {
    let workload = ior(Access::Sequential, false, "/data/x");
    let set = &workload.file_sets[0];
    assert!(set.private && set.pattern.contains("<n>"));
    assert_eq!((set.files.len(), set.total_size()), (8, 32 << 20));
    assert!(
        set.groups
            .iter()
            .all(|g| g.sample.iter().all(|r| set.files[r.file as usize].name.starts_with("/data/x")))
    );
}

#[test]
fn names_without_a_directory_match_anywhere() {
    let workload = ior(Access::Sequential, true, "weird<n>*name");
    assert_eq!(workload.file_sets[0].pattern, "**/weird\\<n>\\*name");
    let path = b"/some/where/weird<n>*name";
    assert!(
        stripewise_cluster::pattern::match_path(workload.file_sets[0].pattern.as_bytes(), path, None).is_some()
    );
}

/// The candidate with stripes of `stripe` bytes on all of 8 servers.
fn striped(decision: &Decision, stripe: u64) -> &Judged {
    let layout = constructors::striped(&[0, 1, 2, 3, 4, 5, 6, 7], stripe).unwrap();
    let is_it = |judged: &&Judged| judged.candidate.layouts.build() == [layout.clone()];
    decision.candidates.iter().find(is_it).unwrap()
}

/// Eight equal servers.
fn equal(alpha: f64, beta: f64) -> Cluster {
    with_order(cluster((8, alpha, beta), (0, 0.0, 0.0), ("1T", "1T"), (0.0, 0.0)))
}

/// If every process's blocks are alone on a server, all blocks but the first continue where the
/// previous one ended, although they do not in the file. If processes share a server, none does.
#[test]
fn interleaved_blocks_are_in_order_on_servers_of_their_own() {
    let (size, blocks, alpha, beta) = (64u64 << 10, 256u64, 2e-3, 8e-9);
    for transfers in [1, 4] {
        let ior = Ior { direction: Direction::Read, ..interleaved(size / transfers, blocks, transfers) };
        let decision =
            plan(&traced(&ior), &equal(alpha, beta), &Options::default()).unwrap().decisions.remove(0);
        let requests = blocks * transfers;
        let of_process = |random: u64| {
            let startups = alpha * random as f64 + alpha / 4.0 * (requests - random) as f64;
            startups + (blocks * size) as f64 * beta
        };
        let own = striped(&decision, size);
        assert!((own.predicted_s() / (8.0 * of_process(1)) - 1.0).abs() < 1e-9, "{}", own.predicted_s());
        assert!((own.elapsed_s / of_process(1) - 1.0).abs() < 0.01, "{}", own.elapsed_s);
        assert_eq!(
            decision.chosen().candidate.layouts.build(),
            own.candidate.layouts.build(),
            "{}",
            decision.reason
        );
        // The blocks of two processes lie side by side on every server.
        let shared = striped(&decision, 2 * size);
        assert!((shared.busiest_s / of_process(blocks) - 1.0).abs() < 1e-9, "{}", shared.busiest_s);
    }
}

/// Processes that read a segment of the file sequentially do so on every server, however the
/// segment is striped.
#[test]
fn what_is_in_order_in_the_file_is_in_order_in_every_object() {
    let (size, requests, alpha) = (64u64 << 10, 512u64, 2e-3);
    let ior = Ior { direction: Direction::Write, ..interleaved(size, 1, requests) };
    let decision = plan(&traced(&ior), &equal(alpha, 0.0), &Options::default()).unwrap().decisions.remove(0);
    for (stripe, touched) in [(size, 1), (size / 4, 4), (size / 8, 8)] {
        // Every process starts once on each server.
        let begin = (alpha - alpha / 4.0) * 8.0;
        let expected = alpha / 4.0 * (requests * touched) as f64 + begin;
        let busiest_s = striped(&decision, stripe).busiest_s;
        assert!((busiest_s / expected - 1.0).abs() < 1e-9, "{stripe}: {busiest_s} for {expected}");
    }
}

#[test]
fn files_that_were_mapped_are_known_as_such() {
    for op in [stripewise_trace::Op::Stat, stripewise_trace::Op::Map] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        let mut writer = TraceWriter::create(&path).unwrap();
        let process = stripewise_trace::ProcessInfo { node: "n".into(), pid: 1, rank: -1, program: "p".into() };
        writer.process_id(&process);
        writer.file_id("/data/x");
        let write = stripewise_trace::Request {
            process: 0,
            tid: 1,
            file: 0,
            op: stripewise_trace::Op::Write,
            flags: stripewise_trace::Flags::default(),
            offset: 0,
            size: 76,
            result: 76,
            start_ns: 0,
            end_ns: 1,
        };
        writer.push(&write).unwrap();
        writer.push(&stripewise_trace::Request { op, size: 8192, result: 0, ..write }).unwrap();
        writer.finish(&Meta { origin: "recorded".into(), ..Meta::default() }).unwrap();
        assert_eq!(collected(&path).file_sets[0].mapped, op == stripewise_trace::Op::Map);
    }
}

/// Numbers that no program produces, but that a file may contain.
#[test]
fn extreme_numbers_are_planned_or_refused() {
    const ENDS: [u64; 5] = [0, 1, 1 << 62, i64::MAX as u64, u64::MAX];
    let mut state = 1u64;
    let mut random = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % n) as usize
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let cluster = cluster((2, 2e-3, 8e-9), (2, 5e-5, 2e-9), ("1T", "1G"), (0.0, 0.0));
    for round in 0..60 {
        let mut writer = TraceWriter::create(&path).unwrap();
        let process = stripewise_trace::ProcessInfo { node: "n".into(), pid: 1, rank: -1, program: "p".into() };
        writer.process_id(&process);
        writer.file_id("/data/x");
        writer.file_id("/data/y");
        for start_ns in 0..6 {
            let request = stripewise_trace::Request {
                process: 0,
                tid: 1,
                file: random(2) as u32,
                op: stripewise_trace::Op::ALL[random(10)],
                flags: stripewise_trace::Flags::default(),
                offset: ENDS[random(5)],
                size: ENDS[random(5)],
                result: [i64::MIN, 0, 1, i64::MAX][random(4)],
                start_ns,
                end_ns: ENDS[random(5)].max(start_ns),
            };
            writer.push(&request).unwrap();
        }
        writer.finish(&Meta { origin: "recorded".into(), ..Meta::default() }).unwrap();
        let planned = std::panic::catch_unwind(|| {
            let workload = collected(&path);
            plan(&workload, &cluster, &Options::default()).map(drop)
        });
        assert!(planned.is_ok(), "round {round}");
    }
}
