//! Everyday cases in which it matters what gets the fast servers, compared with the best plan made
//! by hand in the simulator.

use stripewise_cluster::Cluster;
use stripewise_model::Op;

use super::by_hand::{best_by_hand, simulated};
use super::{Pattern, counted, ior, of_tiers};
use crate::workload::{File, FileSet, Group, Request, Workload};
use crate::{Options, Planned, Present, plan, to_plan};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

fn set(name: &str, pattern: Pattern, op: Op, (size, per_process): (u64, u64)) -> FileSet {
    let mut set = ior(pattern, op, 4, size, per_process).file_sets.remove(0);
    set.pattern = format!("/data/{name}");
    set.files.iter_mut().for_each(|file| file.name = format!("/data/{name}").into());
    set.present = Present::Plain;
    set
}

/// Disks, SSDs and one NVMe device.
fn three_classes(ssd: &str, nvme: &str) -> Cluster {
    let tiers =
        [("hdd", (4, 6e-3, 8e-9), "1G"), ("ssd", (2, 2e-4, 2e-9), ssd), ("nvme", (1, 2e-5, 5e-10), nvme)];
    of_tiers(&tiers, (0.0, 0.0))
}

/// The plan, and its time in the simulator. It is at most 5 % above the best made by hand.
fn near_the_best(workload: &Workload, cluster: &Cluster) -> (Planned, f64) {
    let planned = plan(workload, cluster, &Options::default()).unwrap();
    let joint_plan = to_plan(&planned.decisions, cluster, &Options::default());
    let (joint_s, joint) = (simulated(workload, &joint_plan), planned.joint.as_ref().unwrap());
    let best_s = best_by_hand(workload, &joint_plan, &[4 * K, 64 * K, M, 16 * M]);
    assert!(joint_s < 1.05 * best_s, "{joint_s} s, {best_s} s by hand; {joint:?}");
    assert!((joint_s / joint.planned_s - 1.0).abs() < 0.05, "{joint_s} s instead of {joint:?}");
    (planned, joint_s)
}

/// The name of the tier on which all bytes of a set are.
fn tier_of(planned: &Planned, pattern: &str, cluster: &Cluster) -> Option<String> {
    let decision = planned.decisions.iter().find(|decision| decision.pattern == pattern)?;
    let mut tiers: Vec<usize> =
        decision.chosen().candidate.layouts.targets().filter_map(|target| cluster.tier_of(target)).collect();
    tiers.dedup();
    match tiers[..] {
        [tier] => Some(cluster.tiers[tier].name.clone()),
        _ => None,
    }
}

#[test]
fn each_of_three_classes_gets_what_gains_most_there() {
    let hot = set("hot", Pattern::Random, Op::Read, (4 * K, 1024));
    let warm = set("warm", Pattern::Random, Op::Read, (64 * K, 192));
    let cold = set("cold", Pattern::Segmented, Op::Write, (M, 100));
    let workload = Workload { file_sets: vec![cold, warm, hot] };
    let cluster = three_classes("25M", "17M");
    let (planned, _) = near_the_best(&workload, &cluster);
    assert_eq!(tier_of(&planned, "/data/hot", &cluster).as_deref(), Some("nvme"));
    assert_eq!(tier_of(&planned, "/data/warm", &cluster).as_deref(), Some("ssd"));
    let joint = planned.joint.unwrap();
    let worth: Vec<bool> = joint.space.iter().map(|space| space.saves_s_per_byte > 0.0).collect();
    assert!(!worth[0], "the disks have more space than is needed: {joint:?}");
}

#[test]
fn three_classes_without_much_space() {
    for (ssd, nvme) in [("12M", "4M"), ("64M", "64M"), ("1M", "32M"), ("200M", "1M")] {
        let files = [
            set("a", Pattern::Random, Op::Read, (16 * K, 256)),
            set("b", Pattern::Strided, Op::Write, (256 * K, 64)),
            set("c", Pattern::Random, Op::Write, (64 * K, 100)),
        ];
        near_the_best(&Workload { file_sets: files.into() }, &three_classes(ssd, nvme));
    }
}

/// One reads its file at random, the other one writes its own in order. Each would fill the SSDs.
#[test]
fn of_two_applications_the_one_that_gains_more_gets_the_fast_servers() {
    let cluster = of_tiers(&[("hdd", (4, 6e-3, 8e-9), "1G"), ("ssd", (2, 5e-5, 2e-9), "20M")], (0.0, 0.0));
    let of = |set: FileSet| Workload { file_sets: vec![set] };
    let reader = || of(set("reader", Pattern::Random, Op::Read, (64 * K, 128)));
    let writer = || of(set("writer", Pattern::Segmented, Op::Write, (256 * K, 32)));
    for (times, wins) in [([1, 1], "/data/reader"), ([1, 30], "/data/writer")] {
        let workload = Workload::of_applications([(reader(), times[0]), (writer(), times[1])]);
        let (planned, _) = near_the_best(&workload, &cluster);
        assert_eq!(tier_of(&planned, wins, &cluster).as_deref(), Some("ssd"), "{times:?}");
    }
}

/// Four processes write checkpoints of 16 MiB in order, and then read blocks of the newest one at
/// random. The SSDs have space for one and a half, for less than one, or for several.
#[test]
fn of_checkpoints_the_one_that_is_read_again_gets_the_fast_servers() {
    for ssd in ["12M", "6M", "40M"] {
        let (planned, cluster) = checkpoints_near_the_best(checkpoints(8, 1), ssd, ("/data/ckpt.0008", 1));
        if ssd != "6M" {
            assert_eq!(tier_of(&planned, "/data/ckpt.0008", &cluster).as_deref(), Some("ssd"));
        }
    }
}

/// As above, with a file of each process for each checkpoint.
#[test]
fn of_checkpoints_in_several_files_all_of_the_newest_get_the_fast_servers() {
    let (planned, cluster) = checkpoints_near_the_best(checkpoints(8, 4), "12M", ("/data/ckpt.0008.<n>", 4));
    assert_eq!(tier_of(&planned, "/data/ckpt.0008.<n>", &cluster).as_deref(), Some("ssd"));
}

/// The plan for checkpoints on two SSDs of this size, and the cluster. The newest checkpoint is
/// planned by itself, in so many files. All requests in their order take at most 0.4 times as long
/// as if the checkpoints were planned as one set.
fn checkpoints_near_the_best(whole: FileSet, ssd: &str, newest: (&str, usize)) -> (Planned, Cluster) {
    let cluster = of_tiers(&[("hdd", (4, 6e-3, 8e-9), "1G"), ("ssd", (2, 5e-5, 2e-9), ssd)], (0.0, 0.0));
    let (options, whole) = (Options::default(), Workload { file_sets: vec![whole] });
    let workload = whole.clone().divided(&cluster, &options).unwrap();
    let set =
        |index: usize| (workload.file_sets[index].pattern.as_str(), workload.file_sets[index].files.len());
    assert_eq!((workload.file_sets.len(), set(1)), (2, newest));
    let (planned, _) = near_the_best(&workload, &cluster);
    let seconds = |planned: &Planned| simulated(&whole, &to_plan(&planned.decisions, &cluster, &options));
    let (alike_s, divided_s) = (seconds(&plan(&whole, &cluster, &options).unwrap()), seconds(&planned));
    assert!(divided_s < 0.4 * alike_s, "{divided_s} s, {alike_s} s if all are alike");
    (planned, cluster)
}

/// Checkpoints of 16 MiB that four processes write in order, one after the other, each in so many
/// files. Then they read blocks of the last one at random.
fn checkpoints(count: u32, files: u32) -> FileSet {
    let group = |pattern, op, (size, per_process)| {
        ior(pattern, op, 4, size, per_process).file_sets.remove(0).groups.remove(0)
    };
    let size = 16 * M / u64::from(files);
    let in_file = |checkpoint: u32, request: &Request| {
        let file = checkpoint * files + (request.offset / size) as u32;
        Request { file, offset: request.offset % size, ..*request }
    };
    let write = group(Pattern::Segmented, Op::Write, (M, 4));
    let of_one = |checkpoint| write.sample.iter().map(move |request| in_file(checkpoint, request));
    let sample: Vec<Request> = (0..count).flat_map(of_one).collect();
    let all = u64::from(count);
    let writes = Group { count: all * write.count, bytes: all * write.bytes, sample, ..write.clone() };
    let mut reads = group(Pattern::Random, Op::Read, (4 * K, 1024));
    reads.sample.iter_mut().for_each(|request| *request = in_file(count - 1, request));
    let name = |checkpoint: u32, file: u32| match files {
        1 => format!("/data/ckpt.{checkpoint:04}"),
        _ => format!("/data/ckpt.{checkpoint:04}.{file}"),
    };
    let names = (1..=count).flat_map(|checkpoint| (0..files).map(move |file| name(checkpoint, file)));
    let files = names.map(|name| File::new(name, size)).collect();
    let pattern = if size == 16 * M { "/data/ckpt.<n>" } else { "/data/ckpt.<n>.<n>" };
    counted(FileSet { pattern: pattern.into(), files, groups: vec![writes, reads], ..FileSet::default() })
}
