//! Limits on moving existing files.

use std::path::Path;

use proptest::prelude::*;
use stripewise_cluster::{Cluster, Driver, Durability, FileSystem, Members, Overlay, OverlayKind, Spread};
use stripewise_layout::Layout;
use stripewise_layout::constructors::striped;

use super::joint::{bytes, hot_in_the_middle, hybrid, set};
use super::{Pattern, cluster};
use crate::existing::moved_bytes;
use crate::workload::{FileSet, Workload};
use crate::{
    Candidate, Decision, Existing, ExistingFile, Method, Objective, Options, Planned, Present, Scheme, plan,
};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

fn planned(workload: &Workload, cluster: &Cluster, move_at_most: Option<u64>) -> Planned {
    plan(workload, cluster, &Options { move_at_most, ..Options::default() }).unwrap()
}

/// The set, of which these files exist, each plain (`None`) or in one of the layouts.
fn with_existing(mut set: FileSet, files: &[(u64, Option<u32>)], layouts: &[Layout]) -> FileSet {
    let file = |(number, &(size, layout)): (usize, &(u64, Option<u32>))| ExistingFile {
        name: format!("{}{number}", set.pattern.trim_end_matches("<n>")).into(),
        size,
        layout,
    };
    let files = files.iter().enumerate().map(file).collect();
    set.existing = Existing { files, layouts: layouts.to_vec() };
    set
}

/// Two plain files that gain from the SSDs, which have space for both.
fn small_and_large_that_exist() -> (Workload, Cluster) {
    let plain = |set: FileSet| {
        let bytes = set.total_size();
        with_existing(set, &[(bytes, None)], &[])
    };
    let large = plain(set("large", Pattern::Random, (64 * K, 256)));
    let small = plain(set("small", Pattern::Random, (4 * K, 1024)));
    (Workload { file_sets: vec![large, small] }, hybrid("1G"))
}

/// Bytes that are moved, file by file.
fn moved(set: &FileSet, decision: &Decision) -> u64 {
    if decision.keep { 0 } else { moved_to(set, &decision.best().candidate) }
}

fn moved_to(set: &FileSet, candidate: &Candidate) -> u64 {
    let planned = candidate.layouts.build();
    let is_moved = |file: &&ExistingFile| {
        let then = candidate.spread.index(&set.pattern, Path::new(&*file.name), planned.len()).unwrap();
        file.layout.is_none_or(|now| set.existing.layouts[now as usize] != planned[then])
    };
    set.existing.files.iter().filter(is_moved).map(|file| file.size).sum()
}

fn moved_by(workload: &Workload, planned: &Planned) -> u64 {
    workload.file_sets.iter().zip(&planned.decisions).map(|(set, decision)| moved(set, decision)).sum()
}

/// What the sets get, by name of the candidate.
fn names(planned: &Planned) -> Vec<&str> {
    planned.decisions.iter().map(|decision| &*decision.chosen().candidate.name).collect()
}

#[test]
fn moving_goes_where_it_saves_most() {
    let (workload, cluster) = small_and_large_that_exist();
    let [large, small] = &workload.file_sets[..] else { panic!("two file sets") };
    let (large_bytes, small_bytes) = (large.total_size(), small.total_size());
    let unlimited = planned(&workload, &cluster, None);
    assert!(unlimited.decisions.iter().all(|decision| !decision.keep), "both gain");

    let limited = planned(&workload, &cluster, Some(large_bytes - 1));
    assert!(limited.decisions[0].keep && !limited.decisions[1].keep);
    let reason = &limited.decisions[0].reason;
    assert!(reason.contains("no better one is within the limit on moving"), "{reason}");
    let (joint, all) = (limited.joint.unwrap(), unlimited.joint.unwrap());
    assert!(joint.planned_s > all.planned_s && joint.bound_s > all.bound_s, "{joint:?} {all:?}");
    let limit = joint.moving.unwrap();
    assert_eq!((limit.bytes, limit.unlimited_bytes), (large_bytes - 1, large_bytes + small_bytes));
    assert!(limit.saves_s_per_byte > 0.0 && all.moving.is_none(), "{limit:?}");
    let (unit, saves_s) = limit.worth();
    assert!(unit == 4 * M && saves_s < all.now_s, "{saves_s}");
}

#[test]
fn nothing_that_exists_moves_at_limit_0_and_new_files_get_their_layouts() {
    let (mut workload, cluster) = small_and_large_that_exist();
    let none = planned(&workload, &cluster, Some(0));
    assert!(none.decisions.iter().all(|decision| decision.keep));
    let joint = none.joint.unwrap();
    assert_eq!(joint.planned_s, joint.now_s);
    assert!(joint.bound_s > joint.now_s * (1.0 - 1e-6), "{joint:?}");
    workload.file_sets[1].existing = Existing::default();
    let new = planned(&workload, &cluster, Some(0));
    assert!(new.decisions[0].keep && !new.decisions[1].keep, "the small file does not exist yet");
}

/// Space is not scarce, so that a single set would not need a joint plan.
#[test]
fn one_file_set_keeps_the_limit_too() {
    let cluster = hybrid("1G");
    let one = with_existing(set("file", Pattern::Random, (4 * K, 64)), &[(M, None)], &[]);
    let workload = Workload { file_sets: vec![one] };
    let [none, all] = [M - 1, M].map(|limit| planned(&workload, &cluster, Some(limit)));
    assert!(none.decisions[0].keep && !all.decisions[0].keep);
    assert_eq!(names(&all), names(&planned(&workload, &cluster, None)));
    assert!(none.joint.unwrap().moving.unwrap().saves_s_per_byte > 0.0);
}

#[test]
fn files_that_are_in_the_planned_layout_cost_nothing() {
    let cluster = hybrid("1G");
    let one = set("file<n>", Pattern::Random, (4 * K, 64));
    let workload = Workload { file_sets: vec![one] };
    let free = planned(&workload, &cluster, None);
    let there = free.decisions[0].best().candidate.layouts.build();
    assert_eq!(there.len(), 1);
    let elsewhere = striped(&[0, 1], 4 * K).unwrap();
    let files = [(7 * M, Some(0)), (M, Some(1)), (2 * M, None)];
    let layouts = [there[0].clone(), elsewhere];
    let one = with_existing(workload.file_sets[0].clone(), &files, &layouts);
    let workload = Workload { file_sets: vec![one] };
    let limited = planned(&workload, &cluster, Some(3 * M));
    assert_eq!(names(&limited), names(&free));
    assert_eq!(limited.joint.unwrap().moving.unwrap().unlimited_bytes, 3 * M);
    assert!(planned(&workload, &cluster, Some(3 * M - 1)).decisions[0].keep);
}

#[test]
fn files_of_a_set_are_compared_with_the_layout_of_their_own() {
    let layouts = [striped(&[0], K).unwrap(), striped(&[1], K).unwrap()];
    let files = [(1, Some(0)), (10, Some(0)), (100, Some(0)), (1000, Some(1)), (10_000, None)];
    let of_all = with_existing(set("f<n>", Pattern::Random, (4 * K, 1)), &files, &layouts);
    let spread = Spread { field: Some(0), stride: 1 };
    let cluster = hybrid("1G");
    let moved = |candidate: &Candidate| moved_bytes(&of_all, candidate, &cluster);
    // f0, f2 and f3 are where they would be.
    let several = Candidate::spread("overall", "1-DV".to_owned(), layouts.to_vec(), spread);
    assert_eq!(moved(&several), 10_010);
    assert_eq!(moved(&Candidate::single("overall", "first".to_owned(), layouts[0].clone())), 11_000);
    let overlay = Overlay {
        kind: OverlayKind::Replicas,
        copies: Vec::new(),
        lazy_close: false,
        durability: Durability::Sync,
        background: None,
        procs: 1,
        procs_per_node: 1,
    };
    assert_eq!(moved(&several.with_copies("replicas", "two".into(), overlay)), 11_111, "copies are missing");
}

/// Which servers of a pool a file is on is up to the file system.
#[test]
fn servers_of_a_pool_are_all_the_same() {
    let mut cluster = cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", "1T"), (0.0, 0.0));
    let layouts = [striped(&[0, 1], 64 * K).unwrap(), striped(&[2, 3], 64 * K).unwrap()];
    let one = with_existing(set("f<n>", Pattern::Random, (4 * K, 1)), &[(9, Some(0))], &layouts[..1]);
    let other = Candidate::single("overall", "other".to_owned(), layouts[1].clone());
    assert_eq!(moved_bytes(&one, &other, &cluster), 9);
    let members = Members::Pool { name: "hdd".into(), count: 4 };
    cluster.tiers[0].driver = Driver::Native { system: FileSystem::CephFs, root: "/mnt".into(), members };
    assert_eq!(moved_bytes(&one, &other, &cluster), 0);
}

/// Three plain files are assumed on the first disk, which holds one of them.
#[test]
fn files_that_stay_do_not_need_space_that_there_is_not() {
    let mut cluster = hybrid("1G");
    cluster.tiers[0].capacity_per_server = 64 * M;
    let file = |(name, times): (&str, u64)| {
        let mut set = set(name, Pattern::Random, (4 * K, 512 * times));
        set.present = Present::Plain;
        set.files[0].size = 60 * M;
        with_existing(set, &[(60 * M, None)], &[])
    };
    let workload = Workload { file_sets: [("a", 1), ("b", 3), ("c", 2)].map(file).to_vec() };
    let limited = planned(&workload, &cluster, Some(60 * M));
    let keeps: Vec<bool> = limited.decisions.iter().map(|decision| decision.keep).collect();
    assert_eq!(keeps, [true, false, true], "the file with the most requests is moved");
}

/// The SSDs hold the hot part of one file, so without a limit each file gets a share of them.
#[test]
fn the_regions_of_files_that_move_get_the_space_of_those_that_stay() {
    let (workload, cluster) = hot_in_the_middle();
    let file = |name: &str, times: u64| {
        let mut file = workload.file_sets[0].clone();
        file.pattern = format!("/data/{name}");
        file.files[0].name = file.pattern.as_str().into();
        file.groups[0].times = times;
        with_existing(file, &[(64 * M, None)], &[])
    };
    let both = Workload { file_sets: vec![file("a", 2), file("b", 3)] };
    let limited = planned(&both, &cluster, Some(64 * M));
    assert!(limited.decisions[0].keep && !limited.decisions[1].keep);
    let layout = limited.decisions[1].best().candidate.layouts.build().remove(0);
    let of_ssds = layout.regions().iter().find(|region| region.cycle.iter().all(|stripe| stripe.target >= 4));
    let of_ssds = of_ssds.map(|region| (region.start, region.end));
    assert_eq!(of_ssds, Some((30 * M, Some(34 * M))), "{:?}", layout.regions());
}

#[test]
fn only_joint_plans_keep_a_limit() {
    let (workload, cluster) = small_and_large_that_exist();
    let schemes = [Scheme::Planner("def".into()), Scheme::Named("1-DH".into())];
    let of_scheme = |scheme: &Scheme| Options { scheme: scheme.clone(), ..Options::default() };
    for options in schemes.iter().map(of_scheme) {
        let error = plan(&workload, &cluster, &Options { move_at_most: Some(0), ..options }).unwrap_err();
        assert!(error.to_string().contains("needs the scheme auto"), "{error}");
    }
}

/// Sets of one traced file each, of which some files exist.
fn workloads() -> impl Strategy<Value = Workload> {
    let existing = prop::collection::vec((0..64u64, prop::option::of(0..3u32)), 0..4);
    let sets = prop::collection::vec(((0..3u32, 0..4u32, 1..64u64), existing), 1..5);
    sets.prop_map(|kinds| {
        let layouts = [striped(&[0, 1, 2, 3], 64 * K), striped(&[4, 5], 4 * K), striped(&[4, 5], 64 * K)];
        let layouts = layouts.map(Result::unwrap);
        let of = |(index, ((pattern, size, count), existing)): (usize, ((u32, u32, u64), Vec<_>))| {
            let pattern = [Pattern::Random, Pattern::Segmented, Pattern::Strided][pattern as usize];
            let set = set(&format!("file{index}-<n>"), pattern, ((4 * K) << (2 * size), count));
            let files: Vec<(u64, Option<u32>)> =
                existing.into_iter().map(|(size, layout)| (size * M, layout)).collect();
            with_existing(set, &files, &layouts)
        };
        Workload { file_sets: kinds.into_iter().enumerate().map(of).collect() }
    })
}

/// The least time of all choices of candidates that save enough and together move no more than
/// `limit`. There is space for all of them.
fn least(workload: &Workload, planned: &Planned, options: &Options) -> f64 {
    let columns = |(set, decision): (&FileSet, &Decision)| {
        let now_s = decision.present.elapsed_s;
        let judged = decision.picks.iter().map(|&pick| &decision.candidates[pick]);
        let judged = judged.filter(|judged| judged.method == Method::Full);
        let gains = judged.filter(|judged| judged.elapsed_s <= now_s * (1.0 - options.min_gain));
        let columns = gains.map(|judged| (judged.elapsed_s, moved_to(set, &judged.candidate)));
        let mut columns: Vec<(f64, u64)> = columns.chain([(now_s, 0)]).collect();
        columns.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0)));
        columns.dedup_by_key(|column| column.1);
        columns
    };
    let fixed = planned.decisions.iter().map(|decision| decision.reason.contains("of the I/O time"));
    let mut plans = vec![(0.0, 0)];
    for (of_set, is_fixed) in workload.file_sets.iter().zip(&planned.decisions).zip(fixed) {
        let columns = if is_fixed { vec![(of_set.1.present.elapsed_s, 0)] } else { columns(of_set) };
        let add = |&(seconds, bytes): &(f64, u64)| {
            columns.iter().map(move |column| (seconds + column.0, bytes + column.1))
        };
        plans = plans.iter().flat_map(add).collect();
    }
    let limit = options.move_at_most.unwrap_or(u64::MAX);
    plans.iter().filter(|plan| plan.1 <= limit).map(|plan| plan.0).fold(f64::INFINITY, f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn limits_are_kept(
        workload in workloads(),
        space in prop::sample::select(vec!["64K", "1M", "4M", "1G"]),
        limit in 0..200 * M,
        objective in prop::sample::select(vec![Objective::Elapsed, Objective::Cost]),
    ) {
        let cluster = hybrid(space);
        let with = |move_at_most| {
            let options = Options { objective, move_at_most, ..Options::default() };
            plan(&workload, &cluster, &options).unwrap()
        };
        let limited = with(Some(limit));
        prop_assert!(moved_by(&workload, &limited) <= limit);
        let joint = limited.joint.as_ref().unwrap();
        prop_assert!(joint.bound_s <= joint.planned_s && joint.planned_s <= joint.now_s, "{joint:?}");
        let used = bytes(&workload, &limited, 6);
        let capacities: Vec<u64> = cluster.targets().iter().map(|target| target.capacity).collect();
        prop_assert!(used.iter().zip(&capacities).all(|(used, capacity)| used <= capacity), "{used:?}");

        // What more moving saves is no more than its price.
        let more = with(Some(2 * limit)).joint.unwrap();
        let saves_s = joint.moving.as_ref().unwrap().saves_s_per_byte * limit as f64;
        prop_assert!(more.planned_s >= (joint.bound_s - saves_s) * (1.0 - 1e-6), "{joint:?} {more:?}");

        let none = with(Some(0));
        for (set, decision) in workload.file_sets.iter().zip(&none.decisions) {
            prop_assert_eq!(moved(set, decision), 0);
        }
        let (large, free) = (with(Some(u64::MAX)), with(None));
        prop_assert_eq!(names(&large), names(&free));
        for (large, free) in large.decisions.iter().zip(&free.decisions) {
            prop_assert_eq!((large.keep, &large.reason), (free.keep, &free.reason));
        }
    }

    #[test]
    fn plans_within_a_limit_are_as_good_as_the_best_one(workload in workloads(), limit in 0..200 * M) {
        let options = Options { move_at_most: Some(limit), ..Options::default() };
        let limited = plan(&workload, &hybrid("1G"), &options).unwrap();
        let (joint, least_s) = (limited.joint.as_ref().unwrap(), least(&workload, &limited, &options));
        prop_assert!(joint.bound_s <= least_s * (1.0 + 1e-9), "{joint:?}, and the least is {least_s}");
        // Candidates within 0.5 % count as equal.
        prop_assert!(joint.planned_s <= least_s * 1.02, "{joint:?}, and the least is {least_s}");
    }
}
