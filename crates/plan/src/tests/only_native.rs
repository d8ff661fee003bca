//! Plans for programs that run without stripewise: the file system can express all of them.

use stripewise_cluster::{Cluster, Driver, FileSystem, Members};
use stripewise_model::Op;
use stripewise_native::{NativeLayout, express_spread};

use super::{Pattern, cluster, ior};
use crate::{OnlyNative, Options, Scheme, Workload, plan, to_plan};

const K: u64 = 1 << 10;

/// Four slow and four fast servers, each class in a pool or by name.
fn on(system: FileSystem, pools: bool) -> Cluster {
    let mut cluster = cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", "1T"), (0.0, 0.0));
    for (tier, first) in cluster.tiers.iter_mut().zip([0, 4]) {
        let names = (first..first + 4).map(|server| format!("{server}"));
        let members = match pools {
            true => Members::Pool { name: tier.name.clone(), count: 4 },
            false => Members::Servers(names.collect()),
        };
        tier.driver = Driver::Native { system, root: "/mnt".into(), members };
    }
    cluster
}

fn options(cluster: &Cluster) -> Options {
    Options { min_gain: 0.0, native: Some(OnlyNative::of(cluster).unwrap()), ..Options::default() }
}

/// The file set of `workload` under another path.
fn renamed(mut workload: Workload, prefix: &str) -> crate::workload::FileSet {
    let mut set = workload.file_sets.remove(0);
    set.pattern = set.pattern.replace("/data/out", prefix);
    set.files.iter_mut().for_each(|file| file.name = file.name.replace("/data/out", prefix).into());
    set
}

#[test]
fn every_candidate_is_one_that_the_file_system_has() {
    for (system, pools) in FileSystem::ALL.into_iter().flat_map(|system| [(system, true), (system, false)]) {
        let cluster = on(system, pools);
        for (pattern, size) in
            [(Pattern::Random, 64 * K), (Pattern::Random, 1024 * K), (Pattern::FilePerProcess, 256 * K)]
        {
            let workload = ior(pattern, Op::Write, 8, size, 32);
            let decisions = plan(&workload, &cluster, &options(&cluster));
            // A file lies in one pool. If every server is a pool of its own, no layout is left for
            // a shared file.
            if let (Err(error), false) = (&decisions, pools) {
                assert!(error.to_string().contains("pool = "), "{error}");
                continue;
            }
            let decision = decisions.unwrap().decisions.remove(0);
            for judged in &decision.candidates {
                // The layout can be expressed even if the file size is unknown.
                let native = express_spread(system, &judged.candidate.layouts.build(), &cluster, u64::MAX);
                assert!(native.is_ok(), "{system:?} {pools} {}: {native:?}", judged.candidate.name);
            }
        }
    }
}

#[test]
fn what_is_left_out_is_said_with_the_rule_of_the_file_system() {
    let cluster = on(FileSystem::CephFs, true);
    let workload = ior(Pattern::Random, Op::Write, 8, 1024 * K, 32);
    let decision = plan(&workload, &cluster, &options(&cluster)).unwrap().decisions.remove(0);
    let said = |text: &str| decision.notes.iter().any(|note| note.contains(text));
    assert!(said("CephFS has no such layout: a file lies in one pool"), "{:?}", decision.notes);
    let with = Options { scheme: Scheme::Planner("cache".into()), ..options(&cluster) };
    let error = plan(&workload, &cluster, &with).unwrap_err().to_string();
    assert!(error.contains("several copies"), "{error}");
    let lustre = on(FileSystem::Lustre, false);
    let psa = Options { scheme: Scheme::Planner("psa".into()), ..options(&lustre) };
    assert!(plan(&workload, &lustre, &psa).is_ok(), "Lustre has PSA's stripes");
}

#[test]
fn files_of_one_directory_get_one_layout() {
    let cluster = on(FileSystem::CephFs, true);
    let small = || ior(Pattern::Random, Op::Read, 16, 64 * K, 64);
    let large = || ior(Pattern::FilePerProcess, Op::Write, 2, 16 << 20, 8);
    let layouts = |prefixes: [&str; 2]| -> Vec<NativeLayout> {
        let file_sets = vec![renamed(small(), prefixes[0]), renamed(large(), prefixes[1])];
        let workload = Workload { file_sets };
        let options = options(&cluster);
        let plan = to_plan(&plan(&workload, &cluster, &options).unwrap().decisions, &cluster, &options);
        let rules = plan.rules.iter().filter(|rule| !rule.layouts.is_empty());
        rules
            .map(|rule| express_spread(FileSystem::CephFs, &rule.layouts, &cluster, u64::MAX).unwrap())
            .collect()
    };
    let apart = layouts(["/one/a", "/two/b"]);
    assert!(apart.len() == 2 && apart[0] != apart[1], "{apart:?}: they want different ones");
    let together = layouts(["/one/a", "/one/b"]);
    assert!(together.len() == 2 && together[0] == together[1], "{together:?}");
}

#[test]
fn only_for_clusters_on_one_file_system() {
    let mut cluster = cluster((2, 2e-3, 8e-9), (2, 5e-5, 2e-9), ("1T", "1T"), (0.0, 0.0));
    assert!(OnlyNative::of(&cluster).unwrap_err().to_string().contains("stripewise init"));
    for (tier, system) in cluster.tiers.iter_mut().zip([FileSystem::CephFs, FileSystem::Lustre]) {
        let members = Members::Pool { name: "p".into(), count: 2 };
        tier.driver = Driver::Native { system, root: "/mnt".into(), members };
    }
    assert!(OnlyNative::of(&cluster).unwrap_err().to_string().contains("several file systems"));
}
