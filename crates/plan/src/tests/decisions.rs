//! Which files get a new layout, and which keep theirs.

use std::collections::HashMap;
use std::sync::Arc;

use stripewise_cluster::{Cluster, KEEP};
use stripewise_layout::constructors::on_one;
use stripewise_model::Op;

use super::{Pattern, cluster, ior, now};
use crate::workload::Workload;
use crate::{Decision, Objective, Options, Present, Scheme, plan, to_plan};

const K: u64 = 1 << 10;

fn mixed() -> Cluster {
    cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", "1T"), (0.0, 0.0))
}

fn decide(workload: &Workload, cluster: &Cluster, options: &Options) -> Decision {
    plan(workload, cluster, options).unwrap().decisions.remove(0)
}

#[test]
fn small_random_requests_stay_whole_and_on_the_fast_tier() {
    let decision = decide(&ior(Pattern::Random, Op::Read, 8, 16 * K, 256), &mixed(), &Options::default());
    assert!(!decision.keep);
    let layouts = &decision.chosen().candidate.layouts.build();
    assert!(layouts[0].targets().all(|target| target >= 4), "{}", decision.reason);
    assert!(decision.chosen().servers_per_request < 1.01, "{}", decision.reason);
}

#[test]
fn large_requests_of_one_process_use_every_server() {
    let equal = cluster((8, 3e-4, 8e-9), (0, 0.0, 0.0), ("1T", "1T"), (0.0, 0.0));
    let decision = decide(&ior(Pattern::Segmented, Op::Write, 1, 4096 * K, 64), &equal, &Options::default());
    assert_eq!(decision.chosen().candidate.name, "1-DH");
    assert!((decision.chosen().servers_per_request - 8.0).abs() < 1e-9);
}

#[test]
fn faster_servers_get_more_of_the_files() {
    let decision =
        decide(&ior(Pattern::FilePerProcess, Op::Write, 16, 256 * K, 64), &mixed(), &Options::default());
    let chosen = decision.chosen();
    assert_eq!(chosen.candidate.name, "1-DV weighted", "{}", decision.reason);
    let on_ssd = chosen
        .candidate
        .layouts
        .build()
        .iter()
        .filter(|layout| layout.targets().all(|target| target >= 4))
        .count();
    assert!(on_ssd > 8, "{on_ssd} of 16 files on the SSDs");
}

#[test]
fn what_does_not_fit_goes_on_elsewhere() {
    let small = cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", "1M"), (0.0, 0.0));
    let decision = decide(&ior(Pattern::Random, Op::Read, 8, 16 * K, 256), &small, &Options::default());
    let layouts = decision.chosen().candidate.layouts.build();
    let regions = layouts[0].regions();
    assert!(decision.chosen().candidate.name.ends_with(", then hdd"), "{}", decision.reason);
    assert_eq!(regions[0].end, Some(4 << 20), "1 MiB on each of four SSDs");
    assert!(regions[1].cycle.iter().all(|stripe| stripe.target < 4));
    let tiny = cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1M", "1M"), (0.0, 0.0));
    let error = plan(&ior(Pattern::Random, Op::Read, 8, 16 * K, 256), &tiny, &Options::default()).unwrap_err();
    let said =
        "the files take 32M, 24M more than the servers hold (hdd 4M, ssd 4M); the largest: /data/out.<n> 32M";
    assert!(error.to_string().starts_with(said), "{error}");
}

#[test]
fn every_group_count_is_offered_however_small_the_fast_tier() {
    let workload = ior(Pattern::Random, Op::Read, 16, 512 * K, 32);
    for ssd in ["4M", "16M", "24M", "32M", "40M", "48M", "1G"] {
        let cluster = cluster((4, 1.2e-3, 3.2e-8), (4, 2e-4, 9.5e-9), ("1T", ssd), (0.0, 0.0));
        let decision = decide(&workload, &cluster, &Options::default());
        let over_all = decision.candidates.iter().map(|judged| judged.candidate.name.as_str());
        let over_all: Vec<&str> = over_all.filter(|name| !name.contains(" on ")).collect();
        for name in ["1-DH", "2-D g=2", "2-D g=3", "2-D g=4", "2-D g=5", "2-D g=6", "2-D g=7", "1-DV"] {
            let offered = |found: &&str| found.split(", then").next() == Some(name);
            assert!(over_all.iter().any(offered), "{name} with {ssd} on each SSD: {over_all:?}");
        }
    }
}

#[test]
fn the_objective_decides() {
    let workload = ior(Pattern::Random, Op::Read, 16, 1024 * K, 64);
    let by = |objective| decide(&workload, &mixed(), &Options { objective, ..Options::default() });
    let (elapsed, cost) = (by(Objective::Elapsed), by(Objective::Cost));
    assert!(elapsed.chosen().elapsed_s <= cost.chosen().elapsed_s * 1.006);
    assert!(cost.chosen().predicted_s() <= elapsed.chosen().predicted_s() * (1.0 + 1e-9));
}

#[test]
fn files_that_are_laid_out_well_already_stay() {
    // The present layouts, by file, are those of an earlier plan with the same request.
    let workload = ior(Pattern::FilePerProcess, Op::Write, 16, 256 * K, 64);
    let first = decide(&workload, &mixed(), &Options::default());
    let candidate = &first.chosen().candidate;
    let layout_of: HashMap<Arc<str>, u32> = workload.file_sets[0]
        .files
        .iter()
        .map(|file| file.name.clone())
        .zip(candidate.layout_of(&workload.file_sets[0]))
        .collect();
    let layout_of = Some(layout_of);
    let present =
        Present::Known { name: "now".into(), layouts: candidate.layouts.build(), layout_of, managed: true };
    let options = Options::default();
    let again = decide(&now(workload, &present), &mixed(), &options);
    assert!(again.keep && again.gain.abs() < 0.01, "{}", again.reason);
    let rule = &to_plan(&[again], &mixed(), &options).rules[0];
    assert_eq!((rule.scheme.as_str(), rule.layouts.len()), (KEEP, 0));
}

#[test]
fn a_candidate_that_was_asked_for_is_planned_whatever_it_costs() {
    let workload = ior(Pattern::Random, Op::Read, 8, 16 * K, 256);
    let present = Present::Known {
        name: "now".into(),
        layouts: vec![on_one(7).unwrap()],
        layout_of: None,
        managed: false,
    };
    let options = Options { scheme: Scheme::Named("1-DH on hdd".into()), ..Options::default() };
    let decision = decide(&now(workload, &present), &mixed(), &options);
    assert!(!decision.keep && decision.gain < 0.0);
    assert!(decision.reason.contains("was asked for, although"), "{}", decision.reason);
}

#[test]
fn the_present_layout_of_a_hybrid_file_system_ends_where_the_fast_servers_are_full() {
    let workload = now(ior(Pattern::Random, Op::Read, 8, 64 * K, 512), &Present::Def);
    let small = cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", "1M"), (0.0, 0.0));
    let options = Options { scheme: Scheme::Planner("def".into()), ..Options::default() };
    let decision = decide(&workload, &small, &options);
    assert_eq!(decision.present.candidate.layouts.build()[0].regions().len(), 2);
    assert!(decision.gain.abs() < 1e-12, "it is the same layout: {}", decision.gain);
}

#[test]
fn files_with_hardly_any_io_stay() {
    let mut workload = ior(Pattern::Random, Op::Read, 8, 64 * K, 512);
    let mut log = ior(Pattern::Segmented, Op::Write, 1, 100, 2).file_sets.remove(0);
    log.pattern = "/data/log".into();
    log.files[0].name = "/data/log".into();
    workload.file_sets.push(log);
    let decisions = plan(&workload, &mixed(), &Options::default()).unwrap().decisions;
    assert!(!decisions[0].keep && decisions[1].keep);
    assert!(decisions[1].reason.contains("of the I/O time"), "{}", decisions[1].reason);
    let named = Options { scheme: Scheme::Named("stripe 128K".into()), ..Options::default() };
    let decisions = plan(&workload, &mixed(), &named).unwrap().decisions;
    assert_eq!(decisions[0].chosen().candidate.name, "stripe 128K");
    assert!(decisions[1].keep, "it is too small to have such a candidate");
}

#[test]
fn the_same_input_gives_the_same_plan() {
    let workload = ior(Pattern::Random, Op::Write, 8, 256 * K, 128);
    let text = || {
        let options = Options::default();
        to_plan(&plan(&workload, &mixed(), &options).unwrap().decisions, &mixed(), &options).to_toml()
    };
    assert_eq!(text(), text());
}

#[test]
fn present_layouts_are_understood() {
    let cluster = mixed();
    for (text, targets) in
        [("one:ssd/3", 7..8), ("1-DH:64K", 0..8), ("1-DH:64K@ssd", 4..8), ("cycle:hdd/1-2:64K ssd/0:8K", 1..5)]
    {
        let Ok(Present::Known { layouts, .. }) = Present::parse(text, &cluster) else { panic!("{text}") };
        let used: Vec<u32> = layouts[0].targets().filter(|target| *target != 3).collect();
        assert!(used.iter().all(|target| targets.contains(target)), "{text}: {used:?}");
    }
    assert_eq!(Present::parse("plain", &cluster).unwrap(), Present::Plain);
    assert_eq!(Present::parse("def", &cluster).unwrap(), Present::Def);
    for text in ["", "one", "one:hdd/4", "1-DH:0", "1-DH:64K@tape", "cycle:", "cycle:hdd/0", "two:64K"] {
        let error = Present::parse(text, &cluster).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{text:?}")) && error.contains("write plain, def, one:TARGET"),
            "{error}"
        );
    }
}

#[test]
fn a_file_that_is_mapped_gets_stripes_of_whole_pages() {
    let mut workload = ior(Pattern::Strided, Op::Write, 8, 304, 4096);
    let psa = Options { scheme: Scheme::Planner("psa".into()), ..Options::default() };
    let widths = |decision: &Decision| -> Vec<u64> {
        let layouts = decision.best().candidate.layouts.build();
        let regions = layouts.iter().flat_map(|layout| layout.regions());
        regions.flat_map(|region| region.cycle.iter().map(|stripe| stripe.width)).collect()
    };
    assert!(widths(&decide(&workload, &mixed(), &psa)).iter().any(|width| *width < 4096));
    workload.file_sets[0].mapped = true;
    let refused = plan(&workload, &mixed(), &psa).unwrap_err().to_string();
    assert!(refused.contains("mapped into memory"), "{refused}");
    let any_gain = Options { min_gain: f64::NEG_INFINITY, stripes: vec![1000, 65536], ..Options::default() };
    let decision = decide(&workload, &mixed(), &any_gain);
    assert!(widths(&decision).iter().all(|width| width.is_multiple_of(4096)), "{:?}", widths(&decision));
    assert!(
        decision.reason.contains("programs map the files, so stripes are multiples of 4K"),
        "{}",
        decision.reason
    );
    assert!(
        decision.notes.iter().any(|note| note.starts_with("overall: ") && note.contains("whole pages")),
        "{:?}",
        decision.notes
    );
}
