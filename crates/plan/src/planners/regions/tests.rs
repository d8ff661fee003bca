//! Regions and their stripe pairs, compared with brute force over every half of a file.

use proptest::prelude::*;
use stripewise_cluster::Cluster;
use stripewise_layout::constructors::varied;
use stripewise_model::Op;
use stripewise_random::Random;

use super::*;
use crate::planners::psa;
use crate::servers::Servers;
use crate::tests::{Pattern, cluster, ior};
use crate::workload::{FileSet, Request};
use crate::{Options, Scheme, Workload, plan};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Disks with a startup time of so many seconds, and SSDs with so much space.
fn hybrid(startup_s: f64, ssd: &str) -> Cluster {
    cluster((4, startup_s, 8e-9), (4, 5e-5, 2e-9), ("1T", ssd), (0.0, 0.0))
}

/// A file of random requests of one size, in 16 processes.
fn even(size: u64, per_process: u64) -> FileSet {
    ior(Pattern::Random, Op::Read, 16, size, per_process).file_sets.remove(0)
}

/// The file of `one` and behind it the one of `next`, as one file.
fn joined(mut one: FileSet, mut next: FileSet) -> FileSet {
    let size = one.largest();
    next.groups.iter_mut().flat_map(|group| &mut group.sample).for_each(|request| request.offset += size);
    one.files[0].size += next.largest();
    one.groups.append(&mut next.groups);
    one
}

fn two_kinds() -> FileSet {
    joined(even(64 * K, 64), even(4 * M, 1))
}

/// Runs `check` on the problem of a set that has all the space.
fn with_problem<T>(set: &FileSet, cluster: &Cluster, check: impl Fn(&Problem<'_>) -> T) -> T {
    let (servers, options) = (Servers::of(cluster).unwrap(), Options::default());
    check(&Problem::new(set, cluster, &servers, &options, set.total_size()))
}

/// The cheapest of all pairs in steps of 4 KiB for requests of one size that 4 + 4 servers share.
fn brute_force(set: &FileSet, cluster: &Cluster) -> Pair {
    with_problem(set, cluster, |problem| {
        let quarter = problem.size / 4;
        let pairs: Vec<Pair> = (0..quarter / (4 * K)).map(|n| (n * 4 * K, quarter - n * 4 * K)).collect();
        let cost_s = |&(h, s): &Pair| {
            let width = |target| (target, if target < 4 { h } else { s });
            let layout = varied(&(0..8).map(width).collect::<Vec<_>>()).unwrap();
            problem.cost(&Candidate::single("", "", layout), 1).total_s()
        };
        let costs_s: Vec<f64> = pairs.iter().map(cost_s).collect();
        let least_s = costs_s.iter().copied().fold(f64::INFINITY, f64::min);
        pairs[costs_s.iter().rposition(|&cost_s| cost_s <= least_s * (1.0 + 1e-12)).unwrap()]
    })
}

#[test]
fn a_file_with_two_kinds_of_requests_gets_two_regions_with_the_best_pairs() {
    let cluster = hybrid(2e-3, "1T");
    let (small, large) = (brute_force(&even(64 * K, 64), &cluster), brute_force(&even(4 * M, 1), &cluster));
    assert!(small.0 == 0 && large.0 > 0, "{small:?} and {large:?}: they are of different kinds");
    let expected = [(0, 64 * K, small), (64 * M, 4 * M, large)];
    with_problem(&two_kinds(), &cluster, |problem| {
        let found = regions(problem).unwrap();
        let found: Vec<_> = found.iter().map(|region| (region.start, region.size, region.pair)).collect();
        assert_eq!(found, expected);
        let candidate = &propose(problem).unwrap().candidates[0];
        let layout = candidate.layouts.first().unwrap();
        let used = layout.regions().iter().filter(|region| region.start < 128 * M);
        let used: Vec<(u64, usize)> = used.map(|region| (region.start, region.cycle.len())).collect();
        assert_eq!(used, [(0, 4), (64 * M, 8)], "SServers alone, then all servers");
        assert_eq!(candidate.name, format!("regions {} {}", format_pair(&small), format_pair(&large)));
        assert_eq!(candidate.remarks, ["the main size of requests is 64K from 0 on, 4M from 64M on"]);
    });
}

#[test]
fn even_requests_get_one_region_with_the_layout_of_pa() {
    for ssd in ["1T", "8M"] {
        with_problem(&even(4 * M, 16), &hybrid(2e-3, ssd), |problem| {
            let pa = psa::pa(problem).unwrap();
            let proposal = propose(problem).unwrap();
            assert_eq!(proposal.candidates[0].layouts, pa.candidates[pa.pick.unwrap()].layouts, "{ssd}");
        });
    }
}

#[test]
fn small_even_requests_are_on_sservers_alone_until_these_are_full() {
    with_problem(&even(64 * K, 64), &hybrid(2e-3, "8M"), |problem| {
        let layout = propose(problem).unwrap().candidates[0].layouts.first().unwrap();
        let [first, second] = layout.regions() else { panic!("two regions") };
        assert_eq!((first.end, first.cycle[0].width), (Some(32 * M), 16 * K));
        assert!(first.cycle.iter().all(|stripe| stripe.target >= 4));
        assert!(second.cycle.iter().all(|stripe| stripe.target < 4 && stripe.width == 16 * K));
    });
}

/// Both halves have mostly bytes of the same large requests, and the first one small ones as well.
#[test]
fn neighbors_with_the_same_stripes_become_one_region() {
    let mut first = even(4 * M, 2);
    first.groups.append(&mut even(4 * K, 512).groups);
    let set = joined(first, even(4 * M, 2));
    with_problem(&set, &hybrid(50e-3, "1T"), |problem| {
        assert_eq!(division::starts(problem).len(), 2);
        assert_eq!(regions(problem).unwrap().len(), 1, "the same pair is best for both");
    });
}

#[test]
fn every_region_has_its_share_of_the_space() {
    let mut other = even(64 * K, 64);
    other.pattern = "/data/other".into();
    other.files[0].name = "/data/other".into();
    let workload = Workload { file_sets: vec![two_kinds(), other] };
    let cluster = hybrid(2e-3, "6M");
    let options = Options {
        scheme: Scheme::Planner("regions".into()),
        min_gain: f64::NEG_INFINITY,
        ..Options::default()
    };
    let decisions = plan(&workload, &cluster, &options).unwrap().decisions;
    let layout = decisions[0].chosen().candidate.layouts.first().unwrap();
    let on = |target, size| layout.object_size(target, size);
    for target in 4..8 {
        // A third of the space for each half of the first file.
        assert_eq!(on(target, 64 * M), 2 * M);
        let second = on(target, 128 * M) - on(target, 64 * M);
        assert!(second <= 2 * M && second > M, "{second}");
    }
    assert_eq!((0..8).map(|target| on(target, 128 * M)).sum::<u64>(), 128 * M);
}

#[test]
fn stripes_of_mapped_files_are_whole_pages_whatever_the_requests() {
    let mut set = joined(even(304, 256), even(100 * K, 16));
    set.mapped = true;
    with_problem(&set, &hybrid(2e-3, "1M"), |problem| {
        let layout = propose(problem).unwrap().candidates[0].layouts.first().unwrap();
        let starts: Vec<u64> = layout.regions().iter().map(|region| region.start).collect();
        assert!(starts.len() > 1 && starts.iter().all(|start| start.is_multiple_of(4 * K)), "{starts:?}");
        let mut stripes = layout.regions().iter().flat_map(|region| &region.cycle);
        assert!(stripes.all(|stripe| stripe.width.is_multiple_of(4 * K)), "{layout:?}");
    });
}

#[test]
fn requests_of_mixed_sizes_everywhere_are_one_region() {
    let mut set = even(256 * K, 16);
    let (large, mut random) = (set.largest(), Random(5));
    let mut small = even(4 * K, 256).groups.remove(0);
    small.sample.iter_mut().for_each(|request| request.offset = random.below(large / (4 * K)) * 4 * K);
    set.groups.push(small);
    with_problem(&set, &hybrid(2e-3, "1T"), |problem| assert_eq!(division::starts(problem), [0]));
}

/// A file of runs of requests, (bits of their size, distance behind each, number).
fn runs() -> impl Strategy<Value = Vec<(u32, u64, u64)>> {
    prop::collection::vec((9u32..22, prop_oneof![Just(0), 0..100 * K], 1u64..300), 1..6)
}

/// The requests of runs in any order.
fn file_of(runs: &[(u32, u64, u64)], seed: u64) -> FileSet {
    let mut random = Random(seed);
    let (mut at, mut sample) = (0, Vec::new());
    for &(bits, distance, count) in runs {
        for _ in 0..count {
            let size = (1 << bits) + random.below(1 << (bits - 2));
            sample.push(Request { offset: at, size, ..Request::default() });
            at += size + distance;
        }
    }
    random.shuffle(&mut sample);
    let mut set = even(4 * K, 1);
    let bytes = sample.iter().map(|request| request.size).sum();
    (set.groups[0].count, set.groups[0].bytes) = (sample.len() as u64, bytes);
    (set.groups[0].sample, set.files[0].size) = (sample, at);
    set
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn no_request_is_divided_and_no_byte_lost(runs in runs(), seed in any::<u64>()) {
        let set = file_of(&runs, seed);
        with_problem(&set, &hybrid(2e-3, "64M"), |problem| {
            let starts = division::starts(problem);
            prop_assert!(starts.is_sorted_by(|one, next| one < next) && starts[0] == 0, "{:?}", starts);
            for request in &set.groups[0].sample {
                let inside = |&start: &u64| request.offset < start && start < request.offset + request.size;
                prop_assert!(!starts.iter().any(inside), "{:?} is divided at {:?}", request, starts);
            }
            let layout = propose(problem).unwrap().candidates[0].layouts.first().unwrap();
            let size = set.files[0].size;
            let stored: u64 = (0..8).map(|target| layout.object_size(target, size)).sum();
            prop_assert_eq!(stored, size);
            for (target, space) in (0..).zip(problem.space_for_set()) {
                prop_assert!(layout.object_size(target, size) <= space);
            }
            Ok(())
        })?;
    }

    /// The second run is of requests that are at least four times as large or as small.
    #[test]
    fn a_cut_is_where_the_sizes_change(bits in 9u32..18, more in 2u32..5, counts in (16u64..300, 16u64..300), smaller in any::<bool>()) {
        let mut runs = [(bits, 0, counts.0), (bits + more, 0, counts.1)];
        if smaller {
            runs.reverse();
        }
        let set = file_of(&runs, 1);
        let first: u64 = {
            let mut offsets: Vec<u64> = set.groups[0].sample.iter().map(|request| request.offset).collect();
            offsets.sort_unstable();
            offsets[runs[0].2 as usize]
        };
        let starts = with_problem(&set, &hybrid(2e-3, "64M"), division::starts);
        prop_assert_eq!(starts, [0, first]);
    }
}
