use std::collections::BTreeMap;

use proptest::prelude::*;
use stripewise_cluster::profile::Accuracy;
use stripewise_cluster::{Cluster, Driver, FileSystem, Fit, Members};
use stripewise_layout::constructors::striped;
use stripewise_model::{ClassParams, Op};

use super::*;
use crate::candidate::Method;
use crate::servers::Servers;
use crate::tests::{Pattern, cluster, ior};
use crate::workload::Workload;
use crate::{Decision, Objective, Options, Present, Scheme, decide, plan};

const K: u64 = 1 << 10;

fn mixed() -> Cluster {
    cluster((4, 2e-3, 8e-9), (4, 5e-5, 2e-9), ("1T", "1T"), (0.0, 0.0))
}

/// The cluster as measured, with this relative distance of each measured size from the fit.
fn measured(mut cluster: Cluster, residuals: [f64; 2]) -> Cluster {
    let fit = |(class, residual_relative): (&str, f64)| {
        let params = cluster.classes[class];
        let of = |op, access| Fit { service: params.service(op, access), residual_relative, ..Fit::default() };
        (class.to_owned(), ClassParams::of(of))
    };
    let classes = ["hdd", "ssd"].into_iter().zip(residuals).map(fit).collect();
    cluster.accuracy = Accuracy { classes, network: None };
    cluster
}

/// The same tiers as pools of a file system.
fn in_pools(mut cluster: Cluster) -> Cluster {
    for tier in &mut cluster.tiers {
        let members = Members::Pool { name: tier.name.clone(), count: tier.driver.servers() as u32 };
        tier.driver = Driver::Native { system: FileSystem::Lustre, root: "/lustre".into(), members };
    }
    cluster
}

fn decision(workload: &Workload, cluster: &Cluster, options: &Options) -> Decision {
    plan(workload, cluster, options).unwrap().decisions.remove(0)
}

/// Index of the candidate that the rule takes, the candidates that tie with it, and whether the
/// present layout does, by trying all pairs.
fn by_brute_force(problem: &Problem<'_>, decision: &Decision, error_of_best: f64) -> (usize, Vec<usize>, bool) {
    let objective = problem.options.objective;
    let seconds = |index: usize| objective.of(&decision.candidates[index]);
    let field: Vec<usize> = decision
        .picks
        .iter()
        .copied()
        .filter(|&index| objective == Objective::Cost || decision.candidates[index].method == Method::Full)
        .collect();
    let least_s = field.iter().map(|&index| seconds(index)).fold(f64::INFINITY, f64::min);
    let most_s = least_s * (1.0 + error_of_best);
    let tied: Vec<usize> = field.into_iter().filter(|&index| seconds(index) <= most_s).collect();
    let narrowest = |index: usize| {
        let layouts = decision.candidates[index].candidate.layouts.build();
        let stripes = layouts.iter().flat_map(|layout| layout.regions()).flat_map(|region| &region.cycle);
        stripes.map(|stripe| stripe.width).min().unwrap()
    };
    let is_native = |index: usize| {
        let candidate = &decision.candidates[index].candidate;
        let native = |only: OnlyNative| only.native(candidate, problem.set, problem.cluster);
        candidate.overlay.is_none() && OnlyNative::of(problem.cluster).is_ok_and(|only| native(only).is_ok())
    };
    let is_simpler = |one: usize, other: usize| {
        let copies = |index: usize| decision.candidates[index].candidate.copies().len().min(1);
        let servers = |index: usize| decision.candidates[index].candidate.targets();
        if is_native(one) != is_native(other) {
            return is_native(one);
        }
        if copies(one) != copies(other) {
            return copies(one) < copies(other);
        }
        if servers(one) != servers(other) {
            return servers(one) < servers(other);
        }
        if narrowest(one) != narrowest(other) {
            return narrowest(one) > narrowest(other);
        }
        if seconds(one) != seconds(other) {
            return seconds(one) < seconds(other);
        }
        decision.candidates[one].candidate.name < decision.candidates[other].candidate.name
    };
    let is_simplest = |&one: &usize| tied.iter().all(|&other| other == one || is_simpler(one, other));
    let chosen = tied.iter().copied().find(is_simplest).unwrap();
    (chosen, tied, objective.of(&decision.present) <= most_s)
}

fn scenarios() -> impl Strategy<Value = (Pattern, u32, u64, bool, bool, usize)> {
    let pattern = prop::sample::select(vec![
        Pattern::Random,
        Pattern::Segmented,
        Pattern::Strided,
        Pattern::FilePerProcess,
    ]);
    let size = prop::sample::select(vec![4 * K, 64 * K, 512 * K, 2048 * K]);
    (pattern, 1u32..9, size, any::<bool>(), any::<bool>(), 0..3usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Both classes have the same relative error, so that every prediction has it.
    #[test]
    fn the_simplest_within_the_error_is_chosen(
        (pattern, procs, size, pooled, by_cost, present) in scenarios(),
        error in prop::sample::select(vec![1e-6, 0.003, 0.02, 0.1, 0.4, 2.0]),
    ) {
        let mut workload = ior(pattern, Op::Read, procs, size, 16);
        workload.file_sets[0].present = match present {
            0 => Present::Plain,
            1 => Present::Def,
            _ => {
                let layouts = vec![striped(&[4, 5], 64 * K).unwrap()];
                Present::Known { name: "now".into(), layouts, layout_of: None, managed: false }
            }
        };
        let mut cluster = measured(mixed(), [error; 2]);
        if pooled {
            cluster = in_pools(cluster);
        }
        let objective = if by_cost { Objective::Cost } else { Objective::Elapsed };
        let options = Options { objective, min_gain: 0.0, ..Options::default() };
        let (servers, set) = (Servers::of(&cluster).unwrap(), &workload.file_sets[0]);
        let problem = Problem::new(set, &cluster, &servers, &options, set.total_size());
        let decision = decide(&problem).unwrap();
        let (chosen, tied, with_present) = by_brute_force(&problem, &decision, error);
        let names = |indices: &[usize]| {
            let mut names: Vec<&str> =
                indices.iter().map(|&index| decision.candidates[index].candidate.name.as_str()).collect();
            names.sort_unstable();
            names.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        prop_assert_eq!(decision.best, chosen, "{} for {:?}", &decision.reason, names(&[chosen]));
        prop_assert_eq!(decision.keep, with_present || decision.gain < 0.0);
        let said = decision.tie.clone();
        prop_assert_eq!(said.is_some(), tied.len() > 1 || with_present);
        if let Some(mut tie) = said {
            prop_assert!((tie.error / error - 1.0).abs() < 1e-9, "{} for {error}", tie.error);
            prop_assert_eq!(&tie.between[0], &decision.best().candidate.name);
            tie.between.sort_unstable();
            prop_assert_eq!((tie.between, tie.present, tie.simplest), (names(&tied), with_present, true));
        }
    }

    /// A profile without spread, and none at all, leave the exact rule.
    #[test]
    fn without_spread_nothing_changes((pattern, procs, size, pooled, by_cost, _) in scenarios()) {
        let workload = ior(pattern, Op::Write, procs, size, 16);
        let given = if pooled { in_pools(mixed()) } else { mixed() };
        let objective = if by_cost { Objective::Cost } else { Objective::Elapsed };
        let options = Options { objective, ..Options::default() };
        let exact = decision(&workload, &given, &options);
        let problem = (&exact.candidates, &exact.picks);
        let measured = decision(&workload, &measured(given.clone(), [0.0; 2]), &options);
        prop_assert_eq!((exact.best, exact.keep, &exact.reason), (measured.best, measured.keep, &measured.reason));
        prop_assert!(exact.tie.is_none() && measured.tie.is_none());
        let (servers, set) = (Servers::of(&given).unwrap(), &workload.file_sets[0]);
        let of = Problem::new(set, &given, &servers, &options, set.total_size());
        prop_assert_eq!(exact.best, best_of(&of, problem.0, problem.1));
    }
}

#[test]
fn the_present_layout_stays_if_the_model_cannot_tell_it_from_the_best() {
    let workload = ior(Pattern::Random, Op::Read, 8, 16 * K, 256);
    let (exact, unsure) = (mixed(), measured(mixed(), [500.0; 2]));
    let options = Options::default();
    assert!(!decision(&workload, &exact, &options).keep);
    let kept = decision(&workload, &unsure, &options);
    assert!(kept.keep && kept.tie.as_ref().unwrap().present);
    let said =
        "keep the present layout: a tie within the model's error of 50000.0 % between the present layout, ";
    assert!(kept.reason.starts_with(said), "{}", kept.reason);
    // With `--min-gain none` the layouts change, to the simplest one.
    let any = Options { min_gain: f64::NEG_INFINITY, ..Options::default() };
    let changed = decision(&workload, &unsure, &any);
    assert!(!changed.keep && !changed.tie.as_ref().unwrap().present);
    let fewest = changed.competing().map(|judged| judged.candidate.targets()).min();
    assert_eq!(Some(changed.best().candidate.targets()), fewest, "{}", changed.reason);
    assert!(changed.reason.ends_with(", of which it is the simplest"), "{}", changed.reason);
}

#[test]
fn a_layout_that_was_asked_for_ties_with_nothing() {
    let workload = ior(Pattern::Random, Op::Read, 8, 16 * K, 256);
    let options = Options { scheme: Scheme::Named("1-DH".into()), ..Options::default() };
    let decision = decision(&workload, &measured(mixed(), [0.5; 2]), &options);
    assert!(!decision.keep && decision.tie.is_none());
    assert_eq!(decision.best().candidate.name, "1-DH");
}

#[test]
fn the_error_is_that_of_the_servers_which_work() {
    let workload = ior(Pattern::Random, Op::Read, 8, 16 * K, 256);
    let (cluster, options) = (measured(mixed(), [0.3, 0.01]), Options::default());
    let (servers, set) = (Servers::of(&cluster).unwrap(), &workload.file_sets[0]);
    let problem = Problem::new(set, &cluster, &servers, &options, set.total_size());
    let decision = decide(&problem).unwrap();
    let errors: BTreeMap<&str, f64> = decision
        .candidates
        .iter()
        .map(|judged| (judged.candidate.name.as_str(), error_of(&problem, judged)))
        .collect();
    assert!((errors["1-DH on hdd"] - 0.3).abs() < 1e-9 && (errors["1-DH on ssd"] - 0.01).abs() < 1e-9);
    assert!(errors["1-DH"] > 0.25 && errors["1-DH"] < 0.3, "most of the time is that of the HServers");
}

#[test]
fn two_sets_that_share_the_space_keep_to_the_rule() {
    let mut workload = ior(Pattern::Random, Op::Read, 8, 16 * K, 256);
    let mut other = ior(Pattern::Segmented, Op::Write, 4, 1024 * K, 16).file_sets.remove(0);
    other.pattern = "/data/other".into();
    other.files[0].name = "/data/other".into();
    workload.file_sets.push(other);
    let small = |cluster: Cluster| {
        let mut cluster = cluster;
        cluster.tiers[1].capacity_per_server = 4 << 20;
        cluster
    };
    let all_kept = |error: f64| {
        let cluster = measured(small(mixed()), [error; 2]);
        let planned = plan(&workload, &cluster, &Options::default()).unwrap();
        planned.decisions.iter().all(|decision| decision.keep)
    };
    assert!(!all_kept(0.01) && all_kept(500.0));
}
