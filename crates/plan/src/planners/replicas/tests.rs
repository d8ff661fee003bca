//! The proposed sets, compared with all subsets, which are costed group by group without the
//! planner.

use proptest::prelude::*;
use stripewise_model::Op;

use super::*;
use crate::Options;
use crate::mapping::pieces_at_most;
use crate::options::{CopyOptions, Objective, Scheme};
use crate::servers::Servers;
use crate::tests::{Pattern, cluster, ior};
use crate::workload::{FileSet, Group};

/// Groups of one file: (processes, KiB per request, requests per process, whether they write).
fn set_of(groups: &[(u32, u64, u64, bool)]) -> FileSet {
    let mut set = FileSet::default();
    for &(procs, size, each, write) in groups {
        let op = if write { Op::Write } else { Op::Read };
        let of_group = ior(Pattern::Random, op, procs, size << 10, each).file_sets.remove(0);
        let known: Vec<Group> = std::mem::take(&mut set.groups);
        let largest = set.largest().max(of_group.largest());
        set = of_group;
        set.groups.splice(0..0, known);
        set.files[0].size = largest;
    }
    set
}

/// All sets of `size` out of `candidates` candidates.
fn all_sets(candidates: usize, size: usize) -> Vec<Vec<usize>> {
    match size {
        0 => vec![Vec::new()],
        size => (0..candidates)
            .flat_map(|last| {
                all_sets(last, size - 1).into_iter().map(move |mut set| {
                    set.push(last);
                    set
                })
            })
            .collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn no_set_of_layouts_is_cheaper(
        groups in prop::collection::vec((1u32..40, prop::sample::select(vec![4u64, 64, 512, 2048]), 4u64..16, any::<bool>()), 1..4),
        disks in 2usize..6,
        copies in 2usize..4,
    ) {
        let cluster = cluster((disks, 2e-3, 1e-8), (0, 0.0, 0.0), ("1T", "1T"), (1e-4, 8e-9));
        let set = set_of(&groups);
        let options = Options {
            scheme: Scheme::Planner("replicas".into()),
            objective: Objective::Cost,
            min_gain: f64::NEG_INFINITY,
            stripes: vec![64 << 10, 1 << 20],
            copies: CopyOptions { most: copies, ..CopyOptions::default() },
            ..Options::default()
        };
        let servers = Servers::of(&cluster).unwrap();
        let problem = Problem::new(&set, &cluster, &servers, &options, set.total_size());
        let singles = singles(&problem).unwrap();
        // The cost of every group as a problem of its own.
        let costs: Vec<Vec<f64>> = set
            .groups
            .iter()
            .map(|group| {
                let alone = FileSet { groups: vec![group.clone()], ..set.clone() };
                let problem = Problem::new(&alone, &cluster, &servers, &options, set.total_size());
                singles.iter().map(|single| problem.cost(single, 1).total_s()).collect()
            })
            .collect();
        let total = |set: &Vec<usize>| -> f64 {
            costs.iter().map(|of_group| set.iter().map(|&c| of_group[c]).fold(f64::INFINITY, f64::min)).sum()
        };
        let size = copies.min(singles.len());
        let least = all_sets(singles.len(), size).iter().map(&total).fold(f64::INFINITY, f64::min);
        let found = best_set(&rows(&problem, &singles), size, 1, |_| true).unwrap();
        prop_assert!(found.exact);
        prop_assert!((found.total - least).abs() <= 1e-9 * least, "{} instead of {}", found.total, least);
        prop_assert!((total(&found.members) - least).abs() <= 1e-9 * least);
        // The cheapest proposed candidate costs the same.
        let proposed = propose(&problem).unwrap().candidates;
        let several = proposed.iter().filter(|c| c.copies().len() < size);
        let cheapest = several.map(|c| judge(&problem, vec![c.clone()])[0].predicted_s());
        let cheapest = cheapest.fold(f64::INFINITY, f64::min);
        prop_assert!((cheapest - least).abs() <= 1e-9 * least, "{} instead of {}", cheapest, least);
    }
}

#[test]
fn samples_of_large_clusters_have_a_bounded_number_of_pieces() {
    // Requests of 1024 pages begin at every page of a cycle of 999 pages.
    let cluster = cluster((999, 2e-3, 1e-8), (0, 0.0, 0.0), ("1T", "1T"), (1e-4, 8e-9));
    let set = ior(Pattern::Random, Op::Read, 64, 4 << 20, 64).file_sets.remove(0);
    let (servers, options) = (Servers::of(&cluster).unwrap(), Options::default());
    let problem = Problem::new(&set, &cluster, &servers, &options, set.total_size());
    let singles = singles(&problem).unwrap();
    let samples = samples(&problem, &singles);
    for (group, sample) in set.groups.iter().zip(&samples) {
        assert!(sample.len() >= 64 && sample.len() < group.sample.len(), "{}", sample.len());
        let pieces = |single: &Candidate| pieces_at_most(sample, &single.original(&set), 1 << 17);
        let most = singles.iter().map(pieces).max().unwrap();
        assert!(most <= 1 << 17, "{most}");
    }
    assert!(rows(&problem, &singles).iter().all(|row| row.len() == set.groups.len()));
}
