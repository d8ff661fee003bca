//! Many sets beside the same sets planned one by one.

use stripewise_cluster::Cluster;

use super::plan_with;
use crate::candidate::bytes_by_target;
use crate::choose::Decision;
use crate::evaluate::judge;
use crate::problem::Problem;
use crate::servers::Servers;
use crate::tests::joint::{hybrid, set};
use crate::tests::{Pattern, Random};
use crate::workload::{FileSet, Workload};
use crate::{Options, Planned, plan};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
const SETS: u32 = 36;

/// Sets of few kinds, of random sizes, each accessed a random number of times.
fn workload(random: &mut Random) -> Workload {
    let mut one = |index: u32| {
        let (pattern, shape) = match random.below(3) {
            0 => (Pattern::Random, (4 * K, 64)),
            1 => (Pattern::Random, (64 * K, 32)),
            _ => (Pattern::Segmented, (M, 8)),
        };
        let mut set = set(&format!("set{index}"), pattern, shape);
        // The requests that are there, more often; and the same in a larger file.
        let (times, spread) = (1 + random.below(8), 1 << random.below(3));
        let group = &mut set.groups[0];
        (group.count, group.bytes) = (group.count * times, group.bytes * times);
        if pattern == Pattern::Random {
            group.sample.iter_mut().for_each(|request| request.offset *= spread);
        }
        set.files[0].size *= spread;
        set
    };
    let mut file_sets: Vec<FileSet> = (0..SETS).map(&mut one).collect();
    file_sets.sort_by_key(|set| std::cmp::Reverse(set.bytes()));
    Workload { file_sets }
}

fn options() -> Options {
    Options { stripes: vec![4 * K, 64 * K, M], ..Options::default() }
}

/// Seconds of the sets in the layouts of these decisions, each judged by its own requests.
fn seconds(workload: &Workload, decisions: &[Decision], cluster: &Cluster) -> f64 {
    let (servers, options) = (Servers::of(cluster).unwrap(), options());
    let of_set = |(set, decision): (&FileSet, &Decision)| {
        let problem = Problem::new(set, cluster, &servers, &options, set.total_size());
        judge(&problem, vec![decision.chosen().candidate.clone()])[0].elapsed_s
    };
    workload.file_sets.iter().zip(decisions).map(of_set).sum()
}

/// The bytes of the sets on each server in the layouts of these decisions.
fn bytes(workload: &Workload, decisions: &[Decision], servers: usize) -> Vec<u64> {
    let mut sums = vec![0; servers];
    for (set, decision) in workload.file_sets.iter().zip(decisions) {
        let candidate = &decision.chosen().candidate;
        let (layouts, layout_of) = (candidate.layouts.build(), candidate.layout_of(set));
        let bytes = bytes_by_target(&set.files, (&layouts, &layout_of), servers);
        sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
    }
    sums
}

/// Within 5 % of the plan in which each set is planned by itself, whatever part of the files the
/// SSDs hold, and the predicted time is that of the sets' own requests.
#[test]
fn many_sets_are_planned_as_well_as_one_by_one() {
    for seed in 0..6u64 {
        let mut random = Random(seed);
        let workload = workload(&mut random);
        let ssd = ((workload.total_size() / 2) >> random.below(4)).max(M);
        let cluster = hybrid(&ssd.to_string());
        let servers = Servers::of(&cluster).unwrap();
        let Planned { decisions, joint } = plan(&workload, &cluster, &options()).unwrap();
        let one_by_one_s = seconds(&workload, &decisions, &cluster);
        for alone_max in [0, 8] {
            let (many, of_many) = plan_with(&workload, (&cluster, &servers), &options(), alone_max).unwrap();
            let used = bytes(&workload, &many, servers.count());
            assert!(
                used.iter().zip(&servers.capacities).all(|(used, space)| used <= space),
                "{seed}: {used:?}"
            );
            assert!(of_many.bound_s <= of_many.planned_s, "{seed}");
            let many_s = seconds(&workload, &many, &cluster);
            assert!((many_s / of_many.planned_s - 1.0).abs() < 0.05, "{seed}: {many_s} {}", of_many.planned_s);
            assert!(many_s <= 1.05 * one_by_one_s, "{seed} {alone_max}: {many_s} {one_by_one_s} {joint:?}");
        }
    }
}
