//! Files with several copies: replicas and the cache.

use std::collections::HashMap;

use stripewise_cluster::{CacheAdmission, CacheMode, Cluster, OverlayKind, Plan};
use stripewise_layout::Layout;
use stripewise_layout::constructors::striped;
use stripewise_model::Op;

use super::{Pattern, cluster, ior, now};
use crate::workload::Workload;
use crate::{CopyOptions, Decision, Objective, Options, Present, Scheme, plan, to_plan};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Eight equal disks with this capacity each.
fn disks(capacity: &str) -> Cluster {
    cluster((8, 2e-3, 1e-8), (0, 0.0, 0.0), (capacity, "1T"), (0.0, 0.0))
}

/// Eight disks, and four SSDs with this capacity each.
fn hybrid(ssd: &str) -> Cluster {
    cluster((8, 5e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", ssd), (1e-4, 8e-9))
}

/// A file that 64 processes access together, and then one process alone, both at random in requests
/// of 1 MiB. The 64 processes need one server per request, the single one needs all servers.
fn mixed(op: Op) -> Workload {
    mixed_of(op, 16, 512)
}

/// The same with `each` requests of each of the 64 processes, and `alone` of the single one.
fn mixed_of(op: Op, each: u64, alone: u64) -> Workload {
    let mut many = ior(Pattern::Random, op, 64, M, each);
    let alone = ior(Pattern::Random, op, 1, M, alone).file_sets.remove(0);
    let file = &mut many.file_sets[0].files[0];
    file.size = file.size.max(alone.total_size());
    many.file_sets[0].groups.extend(alone.groups);
    many
}

fn options(scheme: &str) -> Options {
    Options { scheme: Scheme::Planner(scheme.into()), ..Options::default() }
}

/// Files in stripes of 64K over the first eight servers, as the user says.
fn striped_now(workload: &Workload) -> Workload {
    let layouts = vec![striped(&(0..8).collect::<Vec<_>>(), 64 * K).unwrap()];
    now(workload.clone(), &Present::Known { name: "now".into(), layouts, layout_of: None, managed: false })
}

fn decide(workload: &Workload, cluster: &Cluster, options: &Options) -> Decision {
    plan(&striped_now(workload), cluster, options).unwrap().decisions.remove(0)
}

fn with(options: Options, change: impl FnOnce(&mut CopyOptions)) -> Options {
    let mut options = options;
    change(&mut options.copies);
    options
}

#[test]
fn two_replicas_beat_every_single_layout_on_a_mixed_workload() {
    // The cost counts a request once for every waiting process, so the 64 processes weigh more in
    // it than in elapsed time.
    for (objective, each, alone) in [(Objective::Elapsed, 16, 512), (Objective::Cost, 4, 2048)] {
        let (cluster, workload) = (disks("1T"), mixed_of(Op::Read, each, alone));
        let of = |scheme: &str| decide(&workload, &cluster, &Options { objective, ..options(scheme) });
        let (replicas, single) = (of("replicas"), of("overall"));
        let chosen = replicas.chosen();
        let seconds = |judged: &crate::Judged| match objective {
            Objective::Elapsed => judged.elapsed_s,
            Objective::Cost => judged.predicted_s(),
        };
        let overlay = chosen.candidate.overlay.as_ref().expect("several copies");
        assert_eq!((overlay.kind, overlay.copies.len()), (OverlayKind::Replicas, 1));
        for judged in &single.candidates {
            assert!(seconds(chosen) < 0.9 * seconds(judged), "{}: {}", judged.candidate.name, seconds(judged));
        }
        assert!(chosen.candidate.remarks[0].contains("than one copy in the best single layout"));
        assert!(chosen.candidate.remarks[1].starts_with("nothing is written"));
        let plan = to_plan(std::slice::from_ref(&replicas), &cluster, &options("replicas"));
        assert_eq!(plan.rules[0].overlay.as_ref(), Some(overlay));
        assert_eq!(Plan::parse(&plan.to_toml(), "plan.toml").unwrap(), plan);
    }
}

/// Each request of 1 MiB uses one server while 64 processes read, and all eight while one does.
#[test]
fn the_replicas_are_what_the_requests_want() {
    let replicas = decide(&mixed(Op::Read), &disks("1T"), &options("replicas"));
    let candidate = &replicas.chosen().candidate;
    let touched = |layout: &Layout| layout.targets_touched(0, M);
    let mut touched = [touched(&candidate.layouts.build()[0]), touched(&candidate.copies()[0].layouts[0])];
    touched.sort_unstable();
    assert_eq!(touched, [1, 8], "{}", candidate.name);
}

#[test]
fn a_copy_that_gains_too_little_is_not_recommended() {
    let uniform = ior(Pattern::Random, Op::Read, 16, 256 * K, 64);
    let decision = decide(&uniform, &disks("1T"), &options("replicas"));
    assert!(decision.best().candidate.overlay.is_none(), "{}", decision.best().candidate.name);
    let remark = &decision.best().candidate.remarks[0];
    assert!(remark.starts_with("no second copy that fits"), "{remark}");
    // A third copy is not recommended either if two copies are enough.
    let three = with(options("replicas"), |copies| copies.most = 3);
    assert_eq!(decide(&mixed(Op::Read), &disks("1T"), &three).chosen().candidate.copies().len(), 1);
    let greedy = Options { min_gain: 0.9, ..options("replicas") };
    let decision = decide(&mixed(Op::Read), &disks("1T"), &greedy);
    assert!(decision.best().candidate.overlay.is_none());
    let remark = &decision.best().candidate.remarks[0];
    assert!(remark.starts_with("more copies are not worth it: 2 copies take"), "{remark}");
}

#[test]
fn copies_have_to_fit_together() {
    // 1 GiB over eight disks takes 128 MiB on each disk and copy.
    for (capacity, copies) in [("256M", 1), ("255M", 0)] {
        let decision = decide(&mixed(Op::Read), &disks(capacity), &options("replicas"));
        assert_eq!(decision.best().candidate.copies().len(), copies, "{capacity} on each disk");
        let fits = |judged: &crate::Judged| judged.candidate.copies().len() <= copies;
        assert!(decision.candidates.iter().all(fits));
    }
}

#[test]
fn what_is_written_is_copied_later_and_close_waits() {
    let cluster = disks("1T");
    let writes = mixed(Op::Write);
    let bytes = writes.file_sets[0].total_size();
    let of = |change: fn(&mut CopyOptions)| {
        let named = with(Options { min_gain: f64::NEG_INFINITY, ..options("replicas") }, change);
        let decision = decide(&writes, &cluster, &named);
        let several = decision.candidates.iter().find(|judged| judged.candidate.overlay.is_some());
        several.expect("a set of two").clone()
    };
    let (waits, lazy) = (of(|_| {}), of(|copies| copies.lazy_close = true));
    assert_eq!(waits.background.bytes, bytes, "every byte once, however often it was written");
    // Every byte is read from one of eight disks and written to one of them, 10 ns each.
    let expected_s = bytes as f64 * 2e-8 / 8.0;
    assert!((waits.background.seconds / expected_s - 1.0).abs() < 0.01, "{:?}", waits.background);
    let waited_s = waits.elapsed_s - lazy.elapsed_s;
    assert!((waited_s - waits.background.seconds).abs() < 1e-6, "{waited_s}");
    let slow = of(|copies| copies.background = Some(1 << 20));
    assert!((slow.background.seconds - bytes as f64 / M as f64).abs() < 1e-3, "1 MiB/s at most");
    assert!(lazy.candidate.remarks[1].contains("close does not wait"), "{:?}", lazy.candidate.remarks);
    assert!(waits.candidate.remarks[1].contains("close waits"), "{:?}", waits.candidate.remarks);
}

/// The totals by which sets are chosen are those of the overall cost.
#[test]
fn three_copies_are_never_dearer_than_two() {
    let cost = |most: usize| {
        let base = Options { objective: Objective::Cost, min_gain: 0.0, ..options("replicas") };
        let decision = decide(&mixed(Op::Read), &disks("1T"), &with(base, |copies| copies.most = most));
        decision.best().predicted_s()
    };
    let (one, two, three) = (cost(1), cost(2), cost(3));
    assert!(two < one && three <= two * (1.0 + 1e-9), "{one} {two} {three}");
}

#[test]
fn the_present_layout_is_the_original_where_it_is_one_of_the_copies() {
    let layout = striped(&(0..8).collect::<Vec<_>>(), M).unwrap();
    let layout_of = Some(HashMap::new());
    let known = Present::Known { name: "now".into(), layouts: vec![layout.clone()], layout_of, managed: true };
    let workload = now(mixed(Op::Read), &known);
    let decision = plan(&workload, &disks("1T"), &options("replicas")).unwrap().decisions.remove(0);
    assert_eq!(decision.chosen().candidate.layouts.build(), [layout]);
    assert_eq!(decision.chosen().candidate.copies().len(), 1);
}

#[test]
fn the_cache_keeps_the_files_on_the_slow_servers() {
    let workload = ior(Pattern::Random, Op::Write, 32, 8 * K, 128);
    let decision = decide(&workload, &hybrid("8M"), &options("cache"));
    let candidate = &decision.chosen().candidate;
    assert!(candidate.layouts.build()[0].targets().all(|target| target < 8), "{}", candidate.name);
    let overlay = candidate.overlay.as_ref().unwrap();
    assert_eq!(
        overlay.kind,
        OverlayKind::Cache {
            mode: CacheMode::Sla,
            admission: CacheAdmission::Balanced,
            capacity_per_server: 8 << 20
        }
    );
    let copies: Vec<(&str, u32)> = overlay.copies.iter().map(|copy| (&copy.name[..], copy.groups)).collect();
    assert_eq!(copies[..2], [("1-DH", 1), ("1-DV", 4)]);
    assert!(matches!(copies[2], ("2-D g=2", 2) | ("2-D g=3", 3)));
    assert!(overlay.copies.iter().all(|copy| copy.targets() == [8, 9, 10, 11]));
    assert_eq!((overlay.procs, overlay.procs_per_node), (32, 2));
    assert!(candidate.remarks[0].contains("100.0 % of the requests are performance-critical"));
    let plan = to_plan(std::slice::from_ref(&decision), &hybrid("8M"), &options("cache"));
    assert_eq!(Plan::parse(&plan.to_toml(), "plan.toml").unwrap(), plan);
}

#[test]
fn files_of_a_process_each_are_spread_over_the_cache() {
    let workload = ior(Pattern::FilePerProcess, Op::Write, 16, 8 * K, 64);
    let decision = decide(&workload, &hybrid("1G"), &options("cache"));
    let copies = decision.best().candidate.copies();
    assert_eq!((copies[1].layouts.len(), copies[1].groups), (4, 4), "a server for every file");
    assert!(copies[1].layouts.iter().all(|layout| layout.targets().count() == 1));
    assert_eq!(copies[2].layouts.len(), copies[2].groups as usize);
}

/// The more fits, the faster; the data that fits is the cache's fraction of the data.
#[test]
fn capacity_decides_how_much_is_gained() {
    let workload = ior(Pattern::Random, Op::Read, 32, 8 * K, 256);
    let bytes = workload.file_sets[0].total_size();
    let of = |part: u64| {
        let options = with(options("cache"), |copies| copies.cache_capacity = Some(bytes / 4 * part / 100));
        decide(&workload, &hybrid("1G"), &options).best().clone()
    };
    let [none, some, all] = [1, 30, 100].map(of);
    assert!(some.candidate.remarks[0].ends_with("30.0 % fit into the cache"), "{:?}", some.candidate.remarks);
    assert!(all.elapsed_s < 0.1 * none.elapsed_s, "{} {}", all.elapsed_s, none.elapsed_s);
    let saved = |judged: &crate::Judged| 1.0 - judged.elapsed_s / none.elapsed_s;
    assert!((0.2..0.4).contains(&saved(&some)), "{}", saved(&some));
    // Data that was read was fetched once.
    let fetched = some.background.bytes as f64 / bytes as f64;
    assert!((0.27..0.33).contains(&fetched), "{fetched}");
}

/// Only accessed data needs space, each byte once.
#[test]
fn what_fits_is_a_part_of_what_is_accessed() {
    let once = ior(Pattern::Random, Op::Read, 32, 8 * K, 256);
    let bytes = once.file_sets[0].total_size();
    let (mut sparse, mut twice) = (once.clone(), once.clone());
    sparse.file_sets[0].files[0].size = 4 * bytes;
    twice.file_sets[0].groups.extend(once.file_sets[0].groups.clone());
    let options = with(options("cache"), |copies| copies.cache_capacity = Some(bytes / 4 * 30 / 100));
    for workload in [sparse, twice] {
        let decision = decide(&workload, &hybrid("1G"), &options);
        let remark = &decision.best().candidate.remarks[0];
        assert!(remark.ends_with("30.0 % fit into the cache"), "{remark}");
    }
}

#[test]
fn modes_of_the_cache() {
    let small = ior(Pattern::Random, Op::Read, 32, 8 * K, 256);
    let of = |mode: CacheMode, workload: &Workload| {
        let options = with(options("cache"), |copies| copies.cache_mode = mode);
        decide(workload, &hybrid("1G"), &options).best().clone()
    };
    let off = of(CacheMode::Off, &small);
    let plain = plan(&small, &hybrid("1G"), &options("overall")).unwrap().decisions.remove(0);
    let plain = plain.candidates.iter().find(|judged| judged.candidate.name == "stripe 64K on hdd").unwrap();
    assert!(off.elapsed_s <= plain.elapsed_s * 1.01 && off.background.bytes == 0, "nothing is cached");
    assert!(of(CacheMode::Sla, &small).elapsed_s < 0.1 * off.elapsed_s);
    // Large sequential reads of one process: the disks together are faster, so only nsca caches
    // them.
    let large = ior(Pattern::Segmented, Op::Read, 1, 64 * M, 16);
    let slow_ssds = cluster((8, 1e-4, 8e-9), (4, 5e-5, 8e-9), ("1T", "1T"), (0.0, 0.0));
    let of = |mode: CacheMode| {
        let options = with(options("cache"), |copies| copies.cache_mode = mode);
        decide(&large, &slow_ssds, &options).best().clone()
    };
    assert!(of(CacheMode::Sla).candidate.remarks[0].starts_with("0.0 %"));
    assert!(of(CacheMode::Nsca).candidate.remarks[0].starts_with("100.0 %"));
    assert!(of(CacheMode::Nsca).elapsed_s > 1.5 * of(CacheMode::Sla).elapsed_s);
}

#[test]
fn a_cache_that_cannot_be_is_refused() {
    let workload = ior(Pattern::Random, Op::Write, 8, 64 * K, 64);
    let refused = |cluster: &Cluster, options: &Options| {
        plan(&striped_now(&workload), cluster, options).unwrap_err().to_string()
    };
    let large = with(options("cache"), |copies| copies.cache_capacity = Some(2 << 30));
    let error = refused(&hybrid("1G"), &large);
    assert!(error.contains("ssd/0 may be filled to 1G only, and 2G were asked for"), "{error}");
    let error = refused(&disks("1T"), &options("cache"));
    assert!(error.contains("one class only"), "{error}");
    let full = cluster((4, 5e-3, 8e-9), (4, 5e-5, 2e-9), ("1M", "1G"), (0.0, 0.0));
    let error = refused(&full, &options("cache"));
    assert!(error.contains("do not fit on the slow servers"), "{error}");
}

#[test]
fn auto_considers_them_when_it_is_told_to() {
    let schemes = |with: &[&str]| {
        let with = with.iter().map(|&name| name.to_owned()).collect();
        let options = Options { scheme: Scheme::Auto, with, ..options("auto") };
        let decision = decide(&mixed(Op::Read), &hybrid("2G"), &options);
        let several = decision.candidates.iter().filter(|judged| judged.candidate.overlay.is_some());
        several.map(|judged| judged.candidate.scheme).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(schemes(&[]).is_empty());
    assert!(schemes(&["cache"]).into_iter().eq(["cache"]));
    assert!(schemes(&["replicas", "cache"]).into_iter().eq(["cache", "replicas"]));
}

#[test]
fn the_same_input_gives_the_same_plan() {
    for scheme in ["replicas", "cache"] {
        let text = || {
            let decision = decide(&mixed(Op::Write), &hybrid("64M"), &options(scheme));
            to_plan(&[decision], &hybrid("64M"), &options(scheme)).to_toml()
        };
        assert_eq!(text(), text());
    }
}

/// The report about the copies agrees with the prediction.
#[test]
fn what_replicas_are_expected_to_do_adds_up() {
    let workload = mixed(Op::Read);
    let decision = decide(&workload, &disks("1T"), &options("replicas"));
    let expected = decision.expected.as_ref().expect("several copies");
    assert_eq!((expected.copies[0].name.as_str(), expected.copies.len()), ("original", 2));
    assert_eq!((expected.space_factor, expected.close_waits), (2.0, true));
    assert!(expected.cache.is_none());
    for copy in &expected.copies {
        assert!(copy.alone.unwrap().alone_elapsed_s > decision.best().elapsed_s, "{copy:?}");
    }
    assert!(expected.classes.is_sorted_by(|a, b| a.bytes >= b.bytes));
    for class in &expected.classes {
        let least = class.cost_s.iter().copied().fold(f64::INFINITY, f64::min);
        let serves = class.served.iter().position(|&part| part > 0.999).expect("all by the same copy");
        assert_eq!(class.cost_s[serves], least, "{class:?}");
        assert!(class.critical.is_empty());
    }
    let served = [&expected.classes[0], &expected.classes[1]].map(|class| class.served[0] > 0.5);
    assert_ne!(served[0], served[1], "64 processes and one want different copies");
    let set = &workload.file_sets[0];
    let sum = |of: fn(&crate::ExpectedCopy) -> f64| expected.copies.iter().map(of).sum::<f64>();
    assert!((sum(|copy| copy.requests) - set.requests() as f64).abs() < 1e-6);
    assert!((sum(|copy| copy.bytes) - set.bytes() as f64).abs() < 1.0);
}

#[test]
fn what_a_cache_is_expected_to_do_adds_up() {
    let workload = ior(Pattern::Random, Op::Read, 32, 8 * K, 256);
    let bytes = workload.file_sets[0].total_size();
    let cache =
        |part: u64| with(options("cache"), |copies| copies.cache_capacity = Some(bytes / 4 * part / 100));
    let decision = decide(&workload, &hybrid("1G"), &cache(30));
    let expected = decision.expected.as_ref().unwrap();
    let of_cache = expected.cache.as_ref().unwrap();
    assert!((expected.space_factor - 1.3).abs() < 0.01, "{}", expected.space_factor);
    assert!((of_cache.fits - 0.3).abs() < 0.01);
    assert_eq!(of_cache.critical_requests, workload.file_sets[0].requests() as f64);
    assert!((of_cache.critical_request_bytes - bytes as f64).abs() < 1.0);
    assert!((of_cache.time_of_hits - 0.3).abs() < 0.03, "like requests: time goes with their number");
    let speed_up = of_cache.original_s / of_cache.cached_s;
    assert!(speed_up > 1.3 && speed_up < 1.0 / (1.0 - of_cache.time_of_hits), "{speed_up}");
    let class = &expected.classes[0];
    let hits: f64 = class.served[1..].iter().sum();
    assert!((hits - 0.3).abs() < 0.03 && (class.served[0] + hits - 1.0).abs() < 1e-9, "{class:?}");
    assert_eq!(class.critical[0], 0.0);
    let gains_most = class.critical.iter().position(|&part| part > 0.999).expect("all in the same copy");
    let least = class.cost_s[1..].iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(class.cost_s[gains_most], least);
    // A single layout is never better than all of them. The best one is as good here, because all
    // requests are alike.
    let names: Vec<&str> = of_cache.layouts.iter().map(|layout| layout.name.as_str()).collect();
    assert_eq!(names, ["1-DH", "2-D g=2", "2-D g=3", "1-DV"]);
    assert!(of_cache.layouts.iter().all(|layout| layout.cached_s >= of_cache.cached_s * (1.0 - 1e-9)));
    assert!(of_cache.layouts.iter().any(|layout| layout.cached_s <= of_cache.cached_s * (1.0 + 1e-9)));
    assert_eq!(of_cache.layouts.iter().filter(|layout| layout.chosen).count(), 3);
    let alone = expected.copies.iter().map(|copy| copy.alone.is_some());
    assert!(alone.eq([true, false, false, false]), "a cache copy holds parts only");
    let alone_s = expected.copies[0].alone.unwrap().alone_elapsed_s;
    assert!(alone_s > decision.best().elapsed_s);
    let off = with(cache(30), |copies| copies.cache_mode = CacheMode::Off);
    let off = decide(&workload, &hybrid("1G"), &off).expected.unwrap();
    assert_eq!(off.cache.as_ref().unwrap().time_of_hits, 0.0);
    assert!(off.cache.unwrap().layouts.is_empty());
}
