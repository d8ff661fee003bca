//! Tiers that are pools: every plan can be expressed to the file system, and states what is left to
//! it.

use stripewise_cluster::{Cluster, Driver, FileSystem, Members};
use stripewise_model::Op;

use super::{Pattern, cluster, ior};
use crate::{Options, Scheme, plan, to_plan};

const K: u64 = 1 << 10;

/// Four slow and four fast servers, each class in a pool.
fn pools(system: FileSystem) -> Cluster {
    let mut cluster = cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", "1T"), (0.0, 0.0));
    for tier in &mut cluster.tiers {
        let members = Members::Pool { name: tier.name.clone(), count: 4 };
        tier.driver = Driver::Native { system, root: "/mnt".into(), members };
    }
    cluster
}

fn options(scheme: &str) -> Options {
    Options { scheme: Scheme::Planner(scheme.to_owned()), min_gain: 0.0, ..Options::default() }
}

#[test]
fn all_candidates_can_be_folded_whatever_the_request() {
    for system in FileSystem::ALL {
        let cluster = pools(system);
        for size in [16 * K, 256 * K, 1000 * K, 1024 * K] {
            for pattern in [Pattern::Random, Pattern::FilePerProcess] {
                let workload = ior(pattern, Op::Write, 8, size, 32);
                let decision = plan(&workload, &cluster, &options("overall")).unwrap().decisions.remove(0);
                for judged in &decision.candidates {
                    for layout in &judged.candidate.layouts.build() {
                        let folded = cluster.clone().fold(layout);
                        assert!(folded.is_ok(), "{system:?} {size} {}: {folded:?}", judged.candidate.name);
                    }
                    let said =
                        judged.candidate.remarks.iter().any(|remark| remark.contains("decides which servers"));
                    assert!(said, "{}", judged.candidate.name);
                }
            }
        }
    }
}

#[test]
fn what_the_file_system_cannot_be_told_is_left_out_and_said() {
    let workload = ior(Pattern::Random, Op::Write, 8, 64 * K, 32);
    let decision =
        plan(&workload, &pools(FileSystem::CephFs), &options("overall")).unwrap().decisions.remove(0);
    assert!(decision.candidates.iter().all(|judged| judged.candidate.name != "1-DH"));
    let note = decision.notes.iter().find(|note| note.contains("cannot be told")).unwrap();
    assert!(note.contains("1-DH") && note.contains("multiples of 64K"), "{note}");
    let whole = plan(&workload, &pools(FileSystem::OrangeFs), &options("overall")).unwrap().decisions.remove(0);
    assert!(whole.candidates.iter().any(|judged| judged.candidate.name == "1-DH"), "any width will do");
}

#[test]
fn how_uneven_a_pool_draws_objects_is_said() {
    let remark = |system, total| {
        let workload = ior(Pattern::Random, Op::Write, 8, 256 * K, total);
        let largest = workload.file_sets[0].largest();
        let decision = plan(&workload, &pools(system), &options("overall")).unwrap().decisions.remove(0);
        let on_hdd = |judged: &crate::Judged| {
            let candidate = &judged.candidate;
            let is_in = candidate.name.contains("hdd") && !candidate.name.contains("ssd");
            is_in.then(|| candidate.remarks.iter().find(|remark| remark.contains("on hdd")).cloned()).flatten()
        };
        (largest, decision.candidates.iter().find_map(on_hdd).unwrap())
    };
    let (short, said) = remark(FileSystem::CephFs, 8);
    let factor: f64 =
        said.split("holds ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert!(short <= 64 << 20 && factor > 1.3, "{short}: {said}");
    let (_, said) = remark(FileSystem::Lustre, 8);
    assert!(!said.contains("draws"), "Lustre takes servers in turn: {said}");
}

#[test]
fn psa_keeps_to_widths_that_there_are() {
    let workload = ior(Pattern::Random, Op::Write, 8, 1024 * K, 32);
    for scheme in ["psa", "pa", "def"] {
        let decisions = plan(&workload, &pools(FileSystem::CephFs), &options(scheme)).unwrap().decisions;
        let plan = to_plan(&decisions, &pools(FileSystem::CephFs), &options(scheme));
        let folded = plan.folded().unwrap();
        assert!(!folded.cluster.native_targets.is_empty());
        assert_eq!(folded.unfolded(), plan, "{scheme}: what is placed is what was predicted");
    }
    let odd = ior(Pattern::Random, Op::Write, 8, 100 * K, 32);
    let error = plan(&odd, &pools(FileSystem::CephFs), &options("psa")).unwrap_err().to_string();
    assert!(error.contains("multiples of 64K") && error.contains("servers = [...]"), "{error}");
}

#[test]
fn regions_keep_to_widths_that_there_are() {
    for size in [64 * K, 100 * K, 1024 * K] {
        let mut workload = ior(Pattern::Random, Op::Write, 8, size, 32);
        let set = &mut workload.file_sets[0];
        let mut behind = ior(Pattern::Random, Op::Write, 8, 8 * size, 32).file_sets.remove(0);
        let requests = behind.groups.iter_mut().flat_map(|group| &mut group.sample);
        requests.for_each(|request| request.offset += set.files[0].size);
        set.files[0].size += behind.files[0].size;
        set.groups.append(&mut behind.groups);
        for system in FileSystem::ALL {
            let decision = plan(&workload, &pools(system), &options("regions")).unwrap().decisions.remove(0);
            let layout = decision.best().candidate.layouts.first().unwrap();
            assert!(layout.regions().len() > 1 && pools(system).fold(&layout).is_ok(), "{system:?} {size}");
        }
    }
}

#[test]
fn files_that_are_spread_unevenly_are_on_the_servers_that_were_predicted() {
    let cluster = pools(FileSystem::CephFs);
    let workload = ior(Pattern::FilePerProcess, Op::Write, 16, 256 * K, 64);
    let options =
        Options { scheme: Scheme::Named("1-DV weighted".into()), min_gain: 0.0, ..Options::default() };
    let made = to_plan(&plan(&workload, &cluster, &options).unwrap().decisions, &cluster, &options);
    assert!(made.rules[0].layouts.len() > 8);
    assert_eq!(made.folded().unwrap().unfolded(), made);
}

#[test]
fn copies_in_pools_can_be_folded_too() {
    let workload = ior(Pattern::Random, Op::Read, 8, 256 * K, 64);
    for scheme in ["cache", "replicas"] {
        let decisions = plan(&workload, &pools(FileSystem::CephFs), &options(scheme)).unwrap().decisions;
        let plan = to_plan(&decisions, &pools(FileSystem::CephFs), &options(scheme));
        let text = plan.folded().unwrap().to_toml();
        let read = stripewise_cluster::Plan::parse(&text, "plan.toml").unwrap();
        assert_eq!(read, plan.folded().unwrap(), "{scheme}");
    }
}
