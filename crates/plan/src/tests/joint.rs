//! Several file sets that want the same space.

use proptest::prelude::*;
use stripewise_cluster::{Cluster, OverlayKind, Spread};
use stripewise_layout::constructors::striped;
use stripewise_layout::{Layout, Region, Stripe};
use stripewise_model::Op;

use super::by_hand::{best_by_hand, simulated};
use super::{Pattern, cluster, ior};
use crate::workload::{FileSet, Lane, Workload};
use crate::{Options, Planned, Present, plan, to_plan};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// A file set under a name of its own, now over all disks.
pub fn set(name: &str, pattern: Pattern, (size, per_process): (u64, u64)) -> FileSet {
    let mut set = ior(pattern, Op::Read, 4, size, per_process).file_sets.remove(0);
    set.pattern = format!("/data/{name}");
    set.files.iter_mut().for_each(|file| file.name = format!("/data/{name}").into());
    let layouts = vec![striped(&[0, 1, 2, 3], 64 * K).unwrap()];
    set.present = Present::Known { name: "now".into(), layouts, layout_of: None, managed: false };
    set
}

/// 4 disks with much space, and 2 SSDs with little.
pub fn hybrid(ssd: &str) -> Cluster {
    let mut cluster = cluster((4, 6e-3, 8e-9), (2, 5e-5, 2e-9), ("1G", ssd), (0.0, 0.0));
    let class = cluster.classes.get_mut("hdd").unwrap();
    for by_access in [&mut class.read, &mut class.write] {
        by_access.sequential.startup_s = 1e-4;
    }
    cluster
}

/// A small file read at random beside a large one read in order, of which the SSDs hold a tenth.
pub fn small_and_large() -> (Workload, Cluster) {
    let large = set("large", Pattern::Segmented, (M, 60));
    let small = set("small", Pattern::Random, (4 * K, 1024));
    (Workload { file_sets: vec![large, small] }, hybrid("12M"))
}

pub fn planned(workload: &Workload, cluster: &Cluster) -> Planned {
    plan(workload, cluster, &Options::default()).unwrap()
}

/// Bytes of all files and replicas on each server, and of all cached data, if a cache may fill each
/// server.
pub(super) fn bytes(workload: &Workload, planned: &Planned, servers: usize) -> Vec<u64> {
    let (mut bytes, mut cached) = (vec![0; servers], vec![0; servers]);
    for (set, decision) in workload.file_sets.iter().zip(&planned.decisions) {
        let candidate = &decision.chosen().candidate;
        let kind = candidate.overlay.as_ref().map(|overlay| &overlay.kind);
        for (index, copy) in candidate.placements(set).iter().enumerate() {
            if let (1.., Some(OverlayKind::Cache { capacity_per_server, .. })) = (index, kind) {
                let targets = copy.layouts.iter().flat_map(Layout::targets);
                targets.for_each(|target| cached[target as usize] = *capacity_per_server);
                continue;
            }
            for (file, size) in set.files.iter().map(|file| file.size).enumerate() {
                let layout = copy.layout(file);
                layout.targets().for_each(|target| bytes[target as usize] += layout.object_size(target, size));
            }
        }
    }
    // All caches of a server have one limit together.
    bytes.iter().zip(cached).map(|(bytes, cached)| bytes + cached).collect()
}

#[test]
fn the_small_file_that_is_read_at_random_gets_the_fast_servers() {
    let (workload, cluster) = small_and_large();
    let planned = planned(&workload, &cluster);
    let [large, small] = &planned.decisions[..] else { panic!("two file sets") };
    let small = small.chosen();
    assert!(small.candidate.layouts.targets().all(|target| target >= 4), "{}", small.candidate.name);
    assert!(!large.chosen().candidate.layouts.targets().all(|target| target >= 4));
    let joint = planned.joint.unwrap();
    assert!(joint.planned_s < joint.now_s / 4.0, "{joint:?}");
    assert!(joint.bound_s <= joint.planned_s && joint.bound_s > 0.9 * joint.planned_s, "{joint:?}");
    assert_eq!(joint.space[0].tier, "hdd");
    assert!(joint.space[0].saves_s_per_byte < 1e-12 && joint.space[1].saves_s_per_byte > 0.0, "{joint:?}");
}

/// In its share of the space, a tenth of the small file is on the fast servers.
#[test]
fn a_share_of_the_space_in_proportion_to_the_size_would_be_worse() {
    let (workload, cluster) = small_and_large();
    let total: u64 = workload.file_sets.iter().map(FileSet::total_size).sum();
    let servers = crate::Servers::of(&cluster).unwrap();
    let of_share = |set: &FileSet| {
        let options = Options::default();
        let problem = crate::Problem::new(set, &cluster, &servers, &options, total);
        crate::decide(&problem).unwrap().chosen().elapsed_s
    };
    let shares_s: f64 = workload.file_sets.iter().map(of_share).sum();
    let joint_s = planned(&workload, &cluster).joint.unwrap().planned_s;
    assert!(joint_s < 0.5 * shares_s, "{joint_s} and {shares_s}");
}

/// A file of 64 MiB, read at random, 5 times as much in 4 MiB in its middle as everywhere else.
pub fn hot_in_the_middle() -> (Workload, Cluster) {
    let mut file = set("file", Pattern::Random, (64 * K, 256));
    let mut random = stripewise_random::Random(3);
    let group = &mut file.groups[0];
    for (index, request) in group.sample.iter_mut().enumerate() {
        (request.size, request.offset) = (4 * K, random.below(64 * M / (4 * K)) * 4 * K);
        if index % 6 > 0 {
            request.offset = 30 * M + request.offset % (4 * M);
        }
    }
    group.bytes = group.count * 4 * K;
    file.files[0].size = 64 * M;
    (Workload { file_sets: vec![file] }, hybrid("2M"))
}

#[test]
fn a_hot_part_of_a_file_gets_the_fast_servers() {
    let (mut workload, cluster) = hot_in_the_middle();
    workload.file_sets[0].present = Present::Plain;
    let planned = planned(&workload, &cluster);
    let chosen = planned.decisions[0].chosen();
    let layout = chosen.candidate.layouts.build().remove(0);
    let on_ssd: Vec<(u64, Option<u64>)> = (layout.regions().iter())
        .filter(|region| region.cycle.iter().all(|stripe| stripe.target >= 4))
        .map(|region| (region.start, region.end))
        .collect();
    assert_eq!(on_ssd, [(30 * M, Some(34 * M))], "{} {:?}", chosen.candidate.name, layout.regions());
    let joint_plan = to_plan(&planned.decisions, &cluster, &Options::default());
    let joint_s = simulated(&workload, &joint_plan);
    assert!((joint_s / chosen.elapsed_s - 1.0).abs() < 0.05, "{joint_s} instead of {}", chosen.elapsed_s);
    let mut best_s = f64::INFINITY;
    for (slow, fast) in [(64 * K, 4 * K), (M, 4 * K), (64 * K, 64 * K), (16 * M, 64 * K), (M, 2 * M)] {
        let cycle =
            |targets: std::ops::Range<u32>, width| targets.map(|target| Stripe { target, width }).collect();
        let region = |start, end, cycle| Region { start, end, cycle };
        let by_hand = Layout::new(vec![
            region(0, Some(30 * M), cycle(0..4, slow)),
            region(30 * M, Some(34 * M), cycle(4..6, fast)),
            region(34 * M, None, cycle(0..4, slow)),
        ]);
        let mut plan = joint_plan.clone();
        plan.rules[0].layouts = vec![by_hand.unwrap()];
        best_s = best_s.min(simulated(&workload, &plan));
    }
    assert!(joint_s < 1.05 * best_s, "{joint_s} and {best_s} by hand");
    assert!(
        joint_s
            < 0.4
                * planned.decisions[0]
                    .candidates
                    .iter()
                    .filter(|it| it.candidate.scheme != "joint")
                    .map(|it| it.elapsed_s)
                    .fold(f64::INFINITY, f64::min)
    );
}

/// The rest of a file gets the space that its hot part leaves, or a part of the hot part what there
/// is.
#[test]
fn space_that_is_no_multiple_of_a_region_is_used() {
    let (mut workload, _) = hot_in_the_middle();
    workload.file_sets[0].present = Present::Plain;
    let time = |ssd| {
        let cluster = hybrid(ssd);
        let planned = planned(&workload, &cluster);
        let used = bytes(&workload, &planned, 6);
        let space = cluster.targets()[4].capacity;
        assert!(used[4..].iter().all(|used| 10 * used > 9 * space && *used <= space), "{ssd}: {used:?}");
        planned.joint.unwrap().planned_s
    };
    let times = ["512K", "1M", "2M", "3M", "6M"].map(time);
    assert!(times.windows(2).all(|pair| pair[1] < 1.05 * pair[0]), "{times:?}");
    assert!(times[2] < 0.4 * times[1] && times[4] < 0.9 * times[2], "{times:?}");
}

#[test]
fn the_simulator_agrees_with_the_plan_and_with_the_best_made_by_hand() {
    let (mut workload, cluster) = small_and_large();
    workload.file_sets.iter_mut().for_each(|set| set.present = Present::Plain);
    let planned = planned(&workload, &cluster);
    let joint = planned.joint.as_ref().unwrap();
    let joint_plan = to_plan(&planned.decisions, &cluster, &Options::default());
    let joint_s = simulated(&workload, &joint_plan);
    assert!((joint_s / joint.planned_s - 1.0).abs() < 0.05, "{joint_s} instead of {}", joint.planned_s);
    // By hand: the small file on the SSDs, the large one over all disks or each process's part on
    // one of them.
    let mut best_s = f64::INFINITY;
    for large in [striped(&[0, 1, 2, 3], 64 * K), striped(&[0, 1, 2, 3], M), striped(&[0, 1, 2, 3], 60 * M)] {
        for small in [striped(&[4, 5], 4 * K), striped(&[4, 5], 64 * K)] {
            let mut by_hand = joint_plan.clone();
            for (name, layout) in [("/data/large", &large), ("/data/small", &small)] {
                let rule = by_hand.rules.iter_mut().find(|rule| rule.pattern == name).unwrap();
                (rule.layouts, rule.spread) = (vec![layout.clone().unwrap()], Spread::default());
            }
            best_s = best_s.min(simulated(&workload, &by_hand));
        }
    }
    assert!(joint_s < 1.05 * best_s, "{joint_s} and {best_s} by hand");
}

/// Two files that different processes read at the same time, one in order and one at random.
fn at_the_same_time(order: (Pattern, u64, u64), random: (u64, u64)) -> Workload {
    let mut in_order = set("in-order", order.0, (order.1, order.2));
    let mut at_random = set("at-random", Pattern::Random, random);
    for (number, set) in (0..).zip([&mut in_order, &mut at_random]) {
        set.present = Present::Plain;
        set.groups[0].lane = Some(Lane { stage: 0, number });
        set.groups[0].sample.iter_mut().for_each(|request| request.process += 4 * number);
    }
    Workload { file_sets: vec![in_order, at_random] }
}

/// Whether both fit on the SSDs or not, and whichever takes longer.
#[test]
fn files_that_are_used_at_the_same_time_share_the_servers() {
    for (order, random, ssd) in [
        ((Pattern::Segmented, M, 60), (4 * K, 1024), "12M"),
        ((Pattern::Segmented, M, 60), (64 * K, 256), "1G"),
        ((Pattern::Strided, 256 * K, 100), (256 * K, 100), "64M"),
        ((Pattern::Strided, M, 30), (M, 30), "1G"),
    ] {
        let (workload, cluster) = (at_the_same_time(order, random), hybrid(ssd));
        let planned = planned(&workload, &cluster);
        let joint = planned.joint.as_ref().unwrap();
        let joint_plan = to_plan(&planned.decisions, &cluster, &Options::default());
        let joint_s = simulated(&workload, &joint_plan);
        let what = format!("{order:?} {random:?} {ssd}: {joint_s} s, {joint:?}");
        assert!((joint_s / joint.planned_s - 1.0).abs() < 0.05, "{what}");
        assert!(joint.bound_s <= joint.planned_s, "{what}");
        let best_s = best_by_hand(&workload, &joint_plan, &[4 * K, 64 * K, 256 * K, M, 16 * M]);
        assert!(joint_s < 1.05 * best_s, "{what}, {best_s} s by hand");
    }
}

#[test]
fn what_loses_the_space_says_so() {
    let (mut workload, cluster) = small_and_large();
    workload.file_sets[0] = set("large", Pattern::Random, (64 * K, 256));
    let planned = planned(&workload, &cluster);
    let reason = &planned.decisions[0].reason;
    assert!(reason.contains("saves more on other files"), "{reason}");
}

#[test]
fn what_hardly_counts_takes_no_space() {
    let (mut workload, cluster) = small_and_large();
    workload.file_sets.push(set("log", Pattern::Segmented, (100, 1)));
    let planned = planned(&workload, &cluster);
    assert!(planned.decisions[2].keep && planned.decisions[2].reason.contains("of the I/O time"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The files fit, and take no longer than in shares of the space.
    #[test]
    fn joint_plans_fit_and_are_no_worse(
        kinds in prop::collection::vec((0..3u32, 0..4u32, 1..64u64), 2..6),
        space in prop::sample::select(vec!["64K", "1M", "4M", "1G"]),
        min_gain in prop::sample::select(vec![crate::MIN_GAIN, 0.0, f64::NEG_INFINITY]),
        with in prop::sample::subsequence(vec!["replicas", "cache"], 0..=2),
    ) {
        let cluster = hybrid(space);
        let of = |(index, &(pattern, size, count)): (usize, &(u32, u32, u64))| {
            let pattern = [Pattern::Random, Pattern::Segmented, Pattern::Strided][pattern as usize];
            set(&format!("file{index}"), pattern, ((4 * K) << (2 * size), count))
        };
        let workload = Workload { file_sets: kinds.iter().enumerate().map(of).collect() };
        let with = with.into_iter().map(str::to_owned).collect();
        let options = Options { min_gain, with, ..Options::default() };
        let planned = plan(&workload, &cluster, &options).unwrap();
        let capacities: Vec<u64> = cluster.targets().iter().map(|target| target.capacity).collect();
        let used = bytes(&workload, &planned, capacities.len());
        prop_assert!(used.iter().zip(&capacities).all(|(used, capacity)| used <= capacity), "{used:?}");
        let total: u64 = workload.file_sets.iter().map(FileSet::total_size).sum();
        let servers = crate::Servers::of(&cluster).unwrap();
        let mut shares_s = 0.0;
        for set in &workload.file_sets {
            let problem = crate::Problem::new(set, &cluster, &servers, &options, total);
            shares_s += crate::decide(&problem).unwrap().chosen().elapsed_s;
        }
        let joint = planned.joint.unwrap();
        let planned_s: f64 = planned.decisions.iter().map(|decision| decision.chosen().elapsed_s).sum();
        prop_assert_eq!(planned_s, joint.planned_s);
        // Of equally good candidates, within 0.5 %, the simplest is taken, and files that hardly
        // count stay, 1 % at most each.
        let shares_s = 1.005 * shares_s;
        prop_assert!(joint.planned_s <= shares_s + 0.01 * kinds.len() as f64 * joint.now_s, "{joint:?}, {shares_s}");
        prop_assert!(joint.bound_s <= joint.planned_s);
    }
}
