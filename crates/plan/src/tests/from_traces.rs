//! From calls to workloads.

use std::path::Path;

use stripewise_model::{Access as Order, Op};
use stripewise_trace::synth::{Access, Direction, Ior, RandomWithin, write};
use stripewise_trace::{Meta, Summary, Trace, TraceWriter};

use crate::{Collector, Workload};

fn collected(path: &Path) -> Workload {
    let trace = Trace::open(path).unwrap();
    let summary = Summary::of(&trace).unwrap();
    let mut collector = Collector::new(&summary, trace.processes());
    let mut requests = trace.requests().unwrap();
    while let Some(batch) = requests.next_batch().unwrap() {
        batch.requests.iter().for_each(|request| collector.add(request));
    }
    collector.finish()
}

fn ior(access: Access, shared: bool, file: &str) -> Workload {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let ior = Ior {
        processes: 8,
        per_node: 4,
        transfer: 64 << 10,
        block: 4 << 20,
        segments: 1,
        access,
        random_within: RandomWithin::File,
        direction: Direction::Both,
        shared,
        seed: 3,
        file: file.into(),
    };
    let mut writer = TraceWriter::create(&path).unwrap();
    write(&ior, &mut writer, &mut |_| {}).unwrap();
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
