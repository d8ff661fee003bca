//! Clusters with so many servers that not every group count is a candidate.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use stripewise_cluster::Spread;
use stripewise_layout::constructors::{group_members, two_d};
use stripewise_model::Op;

use super::{Pattern, cluster, ior, with_order};
use crate::candidate::{Candidate, Judged};
use crate::counts::{EVERY_COUNT, group_counts_beyond};
use crate::form::{Form, Shape};
use crate::workload::Workload;
use crate::{Options, Problem, Servers, judge, plan};

/// The candidate with this group count, as the planner makes it.
fn grouped(problem: &Problem<'_>, groups: usize) -> Candidate {
    let all: Vec<u32> = (0..problem.servers.count() as u32).collect();
    let form = Form::new(Shape::grouped(groups, all.len()), None);
    let (size, align) = (problem.size, problem.align());
    let layouts = if problem.set.private {
        let of_group = |group| two_d(group_members(&all, groups, group), 1, size, align).unwrap();
        (0..groups).map(of_group).collect()
    } else {
        vec![two_d(&all, groups, size, align).unwrap()]
    };
    let spread = if problem.set.private { Spread { field: Some(0), stride: 1 } } else { Spread::default() };
    Candidate::spread("overall", form, layouts, spread)
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop::sample::select(vec![Pattern::Random, Pattern::Segmented, Pattern::Strided, Pattern::FilePerProcess])
}

fn least(judged: &[Judged], of: fn(&Judged) -> f64, counts: &[usize]) -> f64 {
    counts.iter().map(|&count| of(&judged[count - 1])).fold(f64::INFINITY, f64::min)
}

/// The factors by which the least predicted cost and the least elapsed time of the reduced list
/// exceed those of all group counts.
fn excess(
    (pattern, servers, procs, pages, startup_s, network): (Pattern, usize, u32, u64, f64, bool),
) -> [f64; 2] {
    let network = if network { (2e-5, 1e-9) } else { (0.0, 0.0) };
    let cluster = with_order(cluster((servers, startup_s, 8e-9), (0, 0.0, 0.0), ("1T", "1T"), network));
    let workload = ior(pattern, Op::Read, procs, pages << 12, 12);
    let (of_cluster, options) = (Servers::of(&cluster).unwrap(), Options::default());
    let problem = Problem::new(&workload.file_sets[0], &cluster, &of_cluster, &options, 1);
    let judged = judge(&problem, (1..=servers).map(|groups| grouped(&problem, groups)).collect());
    let (all, kept) = ((1..=servers).collect::<Vec<_>>(), group_counts_beyond(4, servers, &problem.sharers()));
    assert!(kept.len() < servers || servers < 40, "{kept:?}");
    let cost: fn(&Judged) -> f64 = Judged::predicted_s;
    [cost, |judged| judged.elapsed_s].map(|of| least(&judged, of, &kept) / least(&judged, of, &all))
}

/// The best of the reduced list is nearly as good as the best of all group counts, by both
/// predictions. Few requests can meet on a count that was left out as if by appointment, so this
/// holds for nearly all workloads, not for each.
#[test]
fn the_reduced_list_has_a_best_group_count() {
    let cases = if std::env::var_os("STRIPEWISE_LONG").is_some() { 1000 } else { 100 };
    let strategy = (
        patterns(),
        20usize..65,
        2u32..40,
        prop::sample::select(vec![1u64, 3, 16, 64, 256, 1024]),
        prop::sample::select(vec![1e-5, 3e-4, 8e-3]),
        any::<bool>(),
    );
    let mut runner = TestRunner::deterministic();
    let excesses: Vec<_> =
        (0..cases).map(|_| excess(strategy.new_tree(&mut runner).unwrap().current())).collect();
    for (index, what) in ["cost", "time"].into_iter().enumerate() {
        let mut of: Vec<f64> = excesses.iter().map(|excess| excess[index]).collect();
        of.sort_by(f64::total_cmp);
        let (mean, worst) = (of.iter().sum::<f64>() / cases as f64, of[cases - 1]);
        let most = of[cases * 95 / 100];
        println!("{what}: mean {mean:.4}, 95 % below {most:.4}, worst {worst:.4}");
        assert!(mean <= 1.01 && most <= 1.05, "{what}: mean {mean}, 95 % below {most}, worst {worst}");
    }
}

/// Names of the candidates of `overall` on `servers` servers.
fn candidates(workload: &Workload, servers: usize) -> Vec<String> {
    let cluster = cluster((servers, 3e-3, 8e-9), (0, 0.0, 0.0), ("1T", "1T"), (0.0, 0.0));
    let decision = plan(workload, &cluster, &Options::default()).unwrap().decisions.swap_remove(0);
    decision.candidates.into_iter().map(|judged| judged.candidate.name).collect()
}

#[test]
fn candidates_of_large_clusters_are_few() {
    for pattern in [Pattern::Strided, Pattern::FilePerProcess] {
        let workload = ior(pattern, Op::Write, 60, 1 << 20, 4);
        let two_d =
            |servers| candidates(&workload, servers).iter().filter(|name| name.starts_with("2-D")).count();
        assert_eq!(two_d(EVERY_COUNT), EVERY_COUNT - 2, "every count but those of 1-DH and 1-DV");
        assert!(two_d(2000) < 2 * 2000usize.isqrt() + 33, "{}", two_d(2000));
        let names = candidates(&workload, 2000);
        for name in ["1-DH", "1-DV", "2-D g=60", "2-D g=1000", "2-D g=44"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
