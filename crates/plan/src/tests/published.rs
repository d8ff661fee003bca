//! Algorithm 1 against the worked example of `docs/papers.md`: the published parameters, 16
//! processes, 16 GiB in requests of 512 KiB, 256 MiB per SServer.

use stripewise_cluster::Cluster;
use stripewise_model::Op;

use super::{Pattern, cluster, ior};
use crate::{Decision, Objective, Options, Scheme, plan};

const MIB: f64 = 1048576.0;

fn published() -> Cluster {
    let beta_h = 1.0 / (120.0 * MIB);
    let hdd = (4, 3e-4, beta_h);
    let ssd = (4, 5e-5, 1.0 / (400.0 * MIB));
    cluster(hdd, ssd, ("1T", "256M"), (3e-4, beta_h))
}

fn planned(scheme: &str) -> Decision {
    let workload = ior(Pattern::Random, Op::Read, 16, 512 << 10, 2048);
    let scheme = Scheme::Planner(scheme.into());
    let options = Options { scheme, objective: Objective::Elapsed, ..Options::default() };
    plan(&workload, &published(), &options).unwrap().decisions.remove(0)
}

fn predicted(decision: &Decision, name: &str) -> f64 {
    let found = decision.candidates.iter().find(|judged| judged.candidate.name == name);
    found.unwrap_or_else(|| panic!("{name} is a candidate")).predicted_s()
}

#[test]
fn algorithm_1_ties_exactly_in_the_worked_example() {
    let decision = planned("psa");
    let best = predicted(&decision, "PSA <120K,8K>");
    assert!((best - 1338.573).abs() < 5e-4, "{best}");
    for pair in ["<64K,64K>", "<96K,32K>", "<112K,16K>"] {
        let cost = predicted(&decision, &format!("PSA {pair}"));
        assert!((cost / best - 1.0).abs() < 1e-12, "{pair}: {cost} against {best}");
    }
    assert!((predicted(&decision, "PSA <124K,4K>") - 1372.7).abs() < 0.05);
    for judged in &decision.candidates {
        assert!(judged.predicted_s() >= best * (1.0 - 1e-12), "{}", judged.candidate.name);
        let between = judged.predicted_s() - best;
        let h: u64 = judged.candidate.layouts.build()[0].regions()[0].cycle[0].width;
        assert!(h > 120 << 10 || between < 0.0101, "{}: {between}", judged.candidate.name);
    }
    assert_eq!(decision.candidates.len(), 17, "64K to 128K in steps of 4K");
}

#[test]
fn the_tie_rule_takes_the_larger_h() {
    let decision = planned("psa");
    assert!(!decision.keep, "{}", decision.reason);
    assert_eq!(decision.chosen().candidate.name, "PSA <120K,8K>");
    let layouts = decision.chosen().candidate.layouts.build();
    let regions = layouts[0].regions();
    assert_eq!(regions[0].end, Some(16 << 30));
    let widths: Vec<u64> = regions[0].cycle.iter().map(|stripe| stripe.width >> 10).collect();
    assert_eq!(widths, [120, 120, 120, 120, 8, 8, 8, 8]);
    assert!(regions[1].cycle.iter().all(|stripe| stripe.width == 128 << 10 && stripe.target < 4));
}

#[test]
fn def_is_the_first_pair() {
    let decision = planned("def");
    let cost = decision.candidates[0].predicted_s();
    assert!((cost - 1338.573).abs() < 5e-4, "{cost}");
    assert_eq!(decision.candidates[0].candidate.layouts.build()[0].regions()[0].end, Some(2 << 30));
}

/// The pair of the grid with the least cost by the printed formula. Ties (here between network and
/// storage, because t = β_h) go to the larger h.
#[test]
fn pa_minimises_the_heterogeneous_cost_alone() {
    for with_network in [true, false] {
        let (e, t) = if with_network { (3e-4, 1.0 / (120.0 * MIB)) } else { (0.0, 0.0) };
        let mut cluster = published();
        (cluster.network.establish_s, cluster.network.per_byte_s) = (e, t);
        let p = 16.0;
        let cost = |h: f64, s: f64| {
            let network = 16.0 * e + (2.0 * 524288.0f64).max(p * h.max(s)) * t;
            network + p * f64::max(3e-4 + h / (120.0 * MIB), 5e-5 + s / (400.0 * MIB))
        };
        let pairs: Vec<(f64, f64)> =
            (1..32).map(|i| (f64::from(i) * 4096.0, 131072.0 - f64::from(i) * 4096.0)).collect();
        let least = pairs.iter().map(|&(h, s)| cost(h, s)).fold(f64::INFINITY, f64::min);
        let best = pairs.into_iter().rfind(|&(h, s)| cost(h, s) <= least * (1.0 + 1e-12)).unwrap();

        let options = Options { scheme: Scheme::Planner("pa".into()), ..Options::default() };
        let workload = ior(Pattern::Random, Op::Read, 16, 512 << 10, 64);
        let decision = plan(&workload, &cluster, &options).unwrap().decisions.remove(0);
        let layouts = decision.candidates[decision.best].candidate.layouts.build();
        let widths = &layouts[0].regions()[0].cycle;
        assert_eq!((widths[0].width as f64, widths[4].width as f64), best);
        assert_eq!(best.0 < best.1, !with_network);
    }
}

#[test]
fn psa_needs_two_classes() {
    let one = cluster((4, 3e-4, 1e-8), (0, 0.0, 0.0), ("1T", "1T"), (0.0, 0.0));
    let options = Options { scheme: Scheme::Planner("psa".into()), ..Options::default() };
    let error = plan(&ior(Pattern::Random, Op::Read, 4, 65536, 8), &one, &options).unwrap_err().to_string();
    assert!(error.contains("psa needs exactly two classes of servers, and the cluster has 1: hdd"), "{error}");
}
