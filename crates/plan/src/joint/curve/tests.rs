//! Curves against the real plans of clusters of other sizes, and against brute force.

use proptest::prelude::*;

use super::*;
use crate::choose::decide;
use crate::joint::composed::divided;
use crate::options::Options;
use crate::problem::Problem;
use crate::tests::Pattern;
use crate::tests::joint::{hot_in_the_middle, hybrid, planned, set, small_and_large};
use crate::workload::{FileSet, Workload};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// The curve of the SSDs.
fn of_ssd(workload: &Workload, cluster: &Cluster) -> SpaceCurve {
    let curves = planned(workload, cluster).joint.unwrap().curves;
    curves.into_iter().find(|curve| curve.tier == "ssd").unwrap()
}

/// The planned time with this size.
fn time_at(curve: &SpaceCurve, bytes: u64) -> f64 {
    let point = curve.points.iter().find(|point| point.bytes == bytes);
    point.unwrap_or_else(|| panic!("no {bytes} in {curve:?}")).planned_s
}

#[test]
fn the_knee_is_where_the_small_file_fits() {
    let (workload, cluster) = small_and_large();
    let curve = of_ssd(&workload, &cluster);
    let (none_s, half_s) = (time_at(&curve, 0), time_at(&curve, 12 * M));
    let (knee_s, now_s) = (time_at(&curve, 16 * M), time_at(&curve, 24 * M));
    assert!(none_s > 1.5 * half_s && half_s > 1.5 * knee_s && knee_s < 1.1 * now_s, "{curve:#?}");
    assert!(curve.enough().unwrap().bytes > 128 * M, "the large file gains, too: {curve:#?}");
    assert_eq!(planned(&workload, &cluster).joint.unwrap().curves.len(), 1, "there are disks enough");
}

#[test]
fn the_knee_is_where_the_hot_part_of_a_file_fits() {
    let (workload, cluster) = hot_in_the_middle();
    let curve = of_ssd(&workload, &cluster);
    let (none_s, half_s, all_s) = (time_at(&curve, 0), time_at(&curve, 2 * M), time_at(&curve, 4 * M));
    assert!(none_s > 1.3 * half_s && half_s > 1.3 * all_s, "{curve:#?}");
}

/// A plan for a cluster of the other size has candidates that the curve lacks, most of them where
/// the tier is several times larger.
#[test]
fn plans_for_other_sizes_are_hardly_faster_than_the_curve_says() {
    for (workload, cluster) in [small_and_large(), hot_in_the_middle()] {
        let curve = of_ssd(&workload, &cluster);
        for point in curve.points.iter().filter(|point| point.bytes > 0 && point.bytes <= 4 * curve.bytes) {
            let other = hybrid(&(point.bytes / 2).to_string());
            let planned = planned(&workload, &other);
            let other_s: f64 = planned.decisions.iter().map(|decision| decision.chosen().elapsed_s).sum();
            assert!(point.planned_s < 1.1 * other_s, "{point:?}, but {other_s} s as a plan: {curve:#?}");
        }
    }
}

#[test]
fn less_space_than_now_may_suffice() {
    let (workload, _) = small_and_large();
    let curve = of_ssd(&workload, &hybrid("1G"));
    let telling = curve.telling();
    assert!(telling.iter().all(|point| point.bytes < curve.bytes), "{telling:?}");
    assert!(
        telling[0].bytes < 256 * M && telling[0].planned_s > 1.01 * time_at(&curve, 2 << 30),
        "{telling:?}"
    );
}

#[test]
fn where_the_space_does_not_matter_there_is_no_curve() {
    let (workload, _) = small_and_large();
    let mut cluster = hybrid("1G");
    let slow = cluster.classes.get_mut("ssd").unwrap();
    for by_access in [&mut slow.read, &mut slow.write] {
        (by_access.random.startup_s, by_access.sequential.startup_s) = (1.0, 1.0);
    }
    let curves = planned(&workload, &cluster).joint.unwrap().curves;
    assert!(curves.iter().all(|curve| curve.tier == "hdd"), "{curves:?}");
}

/// Files of some kinds: pattern, size of requests, and requests of each process.
fn files(kinds: &[(u32, u32, u64)]) -> Workload {
    let of = |(index, &(pattern, size, count)): (usize, &(u32, u32, u64))| {
        let pattern = [Pattern::Random, Pattern::Segmented, Pattern::Strided][pattern as usize];
        set(&format!("file{index}"), pattern, ((4 * K) << (2 * size), count))
    };
    Workload { file_sets: kinds.iter().enumerate().map(of).collect() }
}

/// The least time of any choice that fits into `space`, bytes by server.
fn by_brute_force(field: &Field<'_, '_>, space: &[u64]) -> Option<f64> {
    let rows = field.tier.rows.sums(space).into_iter().map(|bytes| bytes as f64).collect();
    let regions: Vec<Region> = field.all().map(region).collect();
    let mut plans: Vec<(f64, Vec<f64>)> = vec![(0.0, rows)];
    for region in &regions {
        let with = |(seconds, left): &(f64, Vec<f64>)| {
            let mut more = Vec::new();
            for column in &region.columns {
                let mut left = left.clone();
                column.uses.iter().for_each(|&(row, used)| left[row as usize] -= used);
                if left.iter().all(|&left| left >= 0.0) {
                    more.push((seconds + column.seconds, left));
                }
            }
            more
        };
        plans = plans.iter().flat_map(with).collect();
    }
    plans.into_iter().map(|(seconds, _)| seconds).min_by(f64::total_cmp)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn curves_fall_and_are_never_below_their_bound(
        kinds in prop::collection::vec((0..3u32, 0..4u32, 1..64u64), 1..5),
        space in prop::sample::select(vec!["64K", "1M", "4M", "1G"]),
        min_gain in prop::sample::select(vec![crate::MIN_GAIN, 0.0, f64::NEG_INFINITY]),
    ) {
        let options = Options { min_gain, ..Options::default() };
        let Some(joint) = crate::plan(&files(&kinds), &hybrid(space), &options).unwrap().joint else { return Ok(()) };
        for curve in &joint.curves {
            prop_assert_eq!(time_at(curve, curve.bytes), joint.planned_s);
            for pair in curve.points.windows(2) {
                prop_assert!(pair[0].bytes < pair[1].bytes);
                prop_assert!(pair[0].planned_s >= pair[1].planned_s && pair[0].bound_s >= pair[1].bound_s, "{curve:?}");
            }
            prop_assert!(curve.points.iter().all(|point| point.bound_s <= point.planned_s), "{curve:?}");
            prop_assert!(curve.telling().len() <= 3);
        }
    }

    #[test]
    fn points_are_the_best_choices(
        kinds in prop::collection::vec((0..3u32, 0..4u32, 1..64u64), 2..4),
        space in prop::sample::select(vec!["64K", "1M", "4M"]),
        fixed in any::<bool>(),
    ) {
        let (workload, cluster, options) = (files(&kinds), hybrid(space), Options::default());
        let servers = Servers::of(&cluster).unwrap();
        let rows = Rows::new(&cluster, &servers, &workload.file_sets, options.objective);
        let sets: Vec<Set<'_>> = workload.file_sets.iter().enumerate().map(|(index, set)| {
            let problem = Problem::new(set, &cluster, &servers, &options, set.total_size());
            let plan = decide(&problem).unwrap();
            Set::new((index, problem), vec![plan], &rows, (fixed && index == 0, workload.total_size()))
        }).collect();
        let tier = Tier::new((&cluster, &servers), 1, &rows, &servers.capacities);
        let mut field = Field::new(&sets, tier);
        let total: u64 = workload.file_sets.iter().map(FileSet::total_size).sum();
        let sizes: Vec<u64> = (0..6).map(|fifths| total * fifths / 5).collect();
        field.cut(&sizes, &divided(&sets, &rows));
        for size in sizes {
            let space = field.tier.space_at(size);
            let (best_s, solution) = (by_brute_force(&field, &space), field.solution(&space));
            prop_assert_eq!(best_s.is_some(), solution.is_some(), "{} {:?}", size, best_s);
            let Some((best_s, solution)) = best_s.zip(solution) else { continue };
            prop_assert!(solution.bound_s <= best_s * (1.0 + 1e-9), "{} {best_s}", solution.bound_s);
            prop_assert!(solution.seconds >= best_s * (1.0 - 1e-9) && solution.seconds <= 1.02 * best_s);
        }
    }
}

proptest! {
    #[test]
    fn a_curve_goes_through_the_present_plan(
        points in prop::collection::vec((1u64..20, 0.0f64..10.0, 0.0f64..1.0), 1..12),
        planned_s in 0.1f64..10.0,
    ) {
        let mut bytes = 0;
        let points: Vec<SpacePoint> = points.iter().map(|&(more, planned_s, gap)| {
            bytes += more;
            SpacePoint { bytes, planned_s, bound_s: planned_s * gap }
        }).collect();
        let now = points[points.len() / 2].bytes;
        let curve = monotone(SpaceCurve { tier: "ssd".into(), bytes: now, points: points.clone() }, planned_s);
        prop_assert_eq!(time_at(&curve, now), planned_s);
        for pair in curve.points.windows(2) {
            prop_assert!(pair[0].planned_s >= pair[1].planned_s && pair[0].bound_s >= pair[1].bound_s);
        }
        prop_assert!(curve.points.iter().all(|point| point.bound_s <= point.planned_s));
    }
}
