//! Sequential or random on each server, as predicted from a request's past, against a replay of all
//! requests over the objects. Like an emulated server, the replay remembers where every process's
//! last access to each object ended.

use std::collections::HashMap;

use proptest::prelude::*;
use stripewise_cluster::Cluster;
use stripewise_layout::{Layout, constructors};
use stripewise_model::Op;
use stripewise_sim::Step;
use stripewise_trace::summary::Pasts;

use super::*;
use crate::elapsed::replay;
use crate::tests::{Pattern, cluster, in_simulator, ior, with_order};

/// Fills in the requests' pasts.
fn with_pasts(requests: &[Request]) -> Vec<Request> {
    let mut pasts = Pasts::default();
    let past = |r: &Request| Request { past: pasts.next(r.process, r.file, r.offset, r.size), ..*r };
    requests.iter().map(past).collect()
}

/// Per request: the targets that it touches, and the predicted access on each.
fn predicted(requests: &[Request], layouts: &[Layout], layout_of: &[u32]) -> Vec<Vec<(u32, Access)>> {
    let mapped = Mapped::new(
        &with_pasts(requests),
        &Placement { layouts: layouts.into(), layout_of: layout_of.to_vec() },
    );
    let pieces = |&shape: &u32| mapped.pieces_of(shape as usize).iter().map(|p| (p.target, p.access)).collect();
    mapped.order.iter().map(pieces).collect()
}

/// Per request: the targets and accesses, found by brute force.
fn replayed(requests: &[Request], layouts: &[Layout], layout_of: &[u32]) -> Vec<Vec<(u32, Access)>> {
    let mut last_end = HashMap::<(u32, u32, u32), u64>::new();
    let mut of_request = |request: &Request| {
        let layout = &layouts[layout_of[request.file as usize] as usize];
        let mut extents = std::collections::BTreeMap::<u32, (u64, u64)>::new();
        for piece in layout.pieces(request.offset, request.size) {
            let extent = extents.entry(piece.target).or_insert((piece.target_offset, piece.target_offset));
            assert_eq!(extent.1, piece.target_offset, "objects are dense");
            extent.1 += piece.len;
        }
        let mut access = |(target, (from, to))| {
            let before = last_end.insert((request.process, request.file, target), to);
            (target, if before == Some(from) { Access::Sequential } else { Access::Random })
        };
        extents.into_iter().map(&mut access).collect()
    };
    requests.iter().map(&mut of_request).collect()
}

/// Layouts of one or two regions with arbitrary cycles; a target may recur in a cycle.
fn layouts() -> impl Strategy<Value = Layout> {
    let cycle = || prop::collection::vec((0u32..4, 1u64..9), 1..6);
    (cycle(), prop::option::of((1u64..150, cycle()))).prop_map(|(first, second)| match second {
        None => constructors::varied(&first).unwrap(),
        Some((boundary, second)) => constructors::two_part(&first, boundary, &second).unwrap(),
    })
}

/// Requests of a process on a file, as (offset, size): `count` blocks, `gap` bytes apart, each of
/// `transfers` requests.
fn regular() -> impl Strategy<Value = Vec<(u64, u64)>> {
    (0u64..40, 1u64..9, 1u64..4, 0u64..60, 1u64..20).prop_map(|(from, size, transfers, gap, count)| {
        let block = |i| (0..transfers).map(move |k| (from + i * (transfers * size + gap) + k * size, size));
        (0..count).flat_map(block).collect()
    })
}

/// Arbitrary requests, some runs of which are regular.
fn irregular() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let free = prop::collection::vec((0u64..120, 1u64..20), 1..15);
    prop::collection::vec(prop_oneof![free, regular()], 1..4).prop_map(|parts| parts.concat())
}

/// Requests of several processes on two files, issued in turns.
fn in_turns(streams: &[Vec<(u64, u64)>]) -> Vec<Request> {
    let most = streams.iter().map(Vec::len).max().unwrap_or(0);
    let request = |turn: usize| {
        (0u32..).zip(streams).filter_map(move |(number, stream)| {
            let &(offset, size) = stream.get(turn)?;
            Some(Request { process: number / 2, file: number % 2, offset, size, ..Request::default() })
        })
    };
    (0..most).flat_map(request).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("STRIPEWISE_LONG").is_some() { 100_000 } else { 1000 }))]

    /// Blocks at equal distances, which is what programs do, are predicted exactly.
    #[test]
    fn regular_access_is_known_exactly(streams in prop::collection::vec(regular(), 1..5), layouts in [layouts(), layouts()]) {
        let requests = in_turns(&streams);
        let layout_of = [0, 1];
        prop_assert_eq!(predicted(&requests, &layouts, &layout_of), replayed(&requests, &layouts, &layout_of));
    }

    /// Whatever programs do, an access that is predicted as sequential is sequential.
    #[test]
    fn nothing_is_in_order_that_is_not(streams in prop::collection::vec(irregular(), 1..5), layouts in [layouts(), layouts()]) {
        let requests = in_turns(&streams);
        let layout_of = [1, 0];
        let (predicted, replayed) = (predicted(&requests, &layouts, &layout_of), replayed(&requests, &layouts, &layout_of));
        for (index, (predicted, replayed)) in predicted.iter().zip(&replayed).enumerate() {
            for (&(target, said), &(same, is)) in predicted.iter().zip(replayed) {
                prop_assert_eq!(target, same);
                prop_assert!(said == Access::Random || is == said, "request {index} of {requests:?} on {target}");
            }
        }
    }
}

/// Rank r of p accesses blocks r, r + p, ...: random in the file, sequential on p servers with
/// stripes of one block.
#[test]
fn interleaved_access_is_in_order_where_every_process_has_a_server() {
    let stride = |rank: u64, p: u64| (0..20).map(|i| ((i * p + rank) * 64, 64)).collect::<Vec<_>>();
    let requests: Vec<Request> = (0..8u32)
        .flat_map(|rank| {
            let request = move |(offset, size)| Request { process: rank, offset, size, ..Request::default() };
            stride(rank.into(), 8).into_iter().map(request)
        })
        .collect();
    let in_order = |stripe: u64, servers: u32| {
        let targets: Vec<u32> = (0..servers).collect();
        let layout = constructors::striped(&targets, stripe).unwrap();
        let found = predicted(&requests, &[layout], &[0]);
        found.iter().flatten().filter(|piece| piece.1 == Access::Sequential).count()
    };
    assert_eq!(in_order(64, 8), 8 * 19, "all but everyone's first");
    assert_eq!(in_order(32, 8), 0, "every process on two servers, on each with another one between");
    assert_eq!(in_order(64, 4), 0, "two processes on a server");
    assert_eq!(in_order(64, 16), 8 * 18, "everyone on two servers, alone on each");
    assert_eq!(in_order(512, 8), 0);
    assert_eq!(in_order(1 << 20, 1), 0, "one server sees what the file sees");
}

/// Processes that read files of their own sequentially, on two servers. On measured servers each
/// process is sequential only if it is alone, on others always.
#[test]
fn order_is_lost_to_others_on_servers_with_one_arm() {
    let mut cluster = with_order(cluster((2, 4.0, 0.0), (0, 0.0, 0.0), ("1G", "1G"), (0.0, 0.0)));
    let mut time_s = |measured: bool, processes: u32| {
        cluster.measured = if measured { cluster.classes.clone() } else { Default::default() };
        let servers = Servers::of(&cluster).unwrap();
        let request = |turn: u64, process| Request {
            process,
            file: process,
            offset: turn * 8,
            size: 8,
            ..Request::default()
        };
        let requests: Vec<Request> =
            (0..100).flat_map(|turn| (0..processes).map(move |process| request(turn, process))).collect();
        let sample = with_pasts(&requests);
        let layout = constructors::striped(&[0, 1], 4).unwrap();
        let mapped = Mapped::new(&sample, &Placement { layouts: vec![layout].into(), layout_of: vec![0, 0] });
        let count = requests.len() as u64;
        let (procs, procs_per_node) = (processes, processes);
        let group = Group { procs, procs_per_node, ..Group::of_all(Op::Read, Access::Sequential, sample) };
        replay(&mapped.flow(&group, &group.sample, &servers, usize::MAX), count)
    };
    for (measured, processes, expected_s) in
        [(false, 1, 103.0), (true, 1, 103.0), (false, 2, 206.0), (true, 2, 797.0)]
    {
        let found_s = time_s(measured, processes);
        assert!((found_s / expected_s - 1.0).abs() < 0.01, "{measured}, {processes}: {found_s}");
    }
}

/// Requests over hundreds of servers, with and without a network: a replay on representatives takes
/// as long as one on all servers.
#[test]
fn representatives_stand_for_all_servers() {
    for (network, op) in [((0.0, 0.0), Op::Read), ((2e-5, 1e-9), Op::Read), ((2e-5, 1e-9), Op::Write)] {
        let cluster = with_order(cluster((300, 3e-3, 8e-9), (200, 1e-4, 3e-9), ("1T", "1T"), network));
        let servers = Servers::of(&cluster).unwrap();
        let all: Vec<u32> = (0..500).collect();
        for (pattern, layout) in [
            (Pattern::Random, constructors::two_d(&all, 1, 4 << 20, 4096).unwrap()),
            (Pattern::Random, constructors::two_d(&all, 3, 4 << 20, 4096).unwrap()),
            (Pattern::Strided, constructors::striped(&all, 16 << 10).unwrap()),
            (Pattern::Segmented, constructors::striped(&all[..400], 8 << 10).unwrap()),
        ] {
            let group = &ior(pattern, op, 16, 4 << 20, 16).file_sets[0].groups[0];
            let copy = Placement { layouts: vec![layout].into(), layout_of: vec![0] };
            let mapped = Mapped::new(&group.sample, &copy);
            let stands_for = mapped.representatives(&servers).expect("the requests are wide");
            let sum: f64 = stands_for.iter().sum();
            assert_eq!(sum.round() as usize, copy.layouts[0].targets().count(), "all servers are counted");
            let replayed = |stands_for| {
                let flow = mapped.flow_on(stands_for, group, &group.sample, &servers, usize::MAX);
                (replay(&flow, group.count), flow.subs_of(0).len())
            };
            let ((all_s, all), (few_s, few)) = (replayed(None), replayed(Some(stands_for)));
            assert!(all > 64 && few < all / 2, "{few} of {all}");
            assert!((few_s / all_s - 1.0).abs() < 0.05, "{pattern:?} {op:?}: {few_s} s instead of {all_s} s");
        }
    }
}

/// Eight servers whose devices take less time than their network.
fn fast_devices() -> Cluster {
    cluster((8, 1e-5, 8e-9), (0, 0.0, 0.0), ("1T", "1T"), (1e-6, 8e-9))
}

/// Seconds that a replay takes for these requests, which come in rounds, with so many processes on
/// a node. The simulator is the reference.
fn over_network(cluster: &Cluster, layout: &Layout, requests: Vec<Request>, procs_per_node: u32) -> f64 {
    let servers = Servers::of(cluster).unwrap();
    let copy = Placement { layouts: std::slice::from_ref(layout).into(), layout_of: vec![0] };
    let mapped = Mapped::new(&requests, &copy);
    let count = requests.len() as u64;
    let of_all = Group::of_all(Op::Read, Access::Sequential, requests);
    let group = Group { procs: 8, procs_per_node, collective: true, ..of_all };
    let expected = replay(&mapped.flow(&group, &group.sample, &servers, usize::MAX), count);
    let processes = group.sample.iter().map(|request| request.process + 1).max().unwrap();
    let mut steps = vec![Vec::new(); processes as usize];
    for &Request { process, offset, size, .. } in &group.sample {
        let request = Step::Request { file: 0, op: Op::Read, offset, size };
        steps[process as usize].extend([request, Step::Barrier]);
    }
    let simulated = in_simulator(cluster, layout.clone(), steps, procs_per_node);
    assert!((expected / simulated - 1.0).abs() < 0.02, "{expected} {simulated}");
    expected
}

/// In every round each of eight nodes reads the same number of bytes from every server. If their
/// requests begin on different servers, all links are busy at once; if all begin on the same
/// server, every server serves the nodes in the same order. Requests touch stripes once or several
/// times.
#[test]
fn over_a_network_it_matters_where_the_requests_of_a_round_begin() {
    let size = 4u64 << 20;
    for stripe in [size / 8, size / 8 / 32] {
        let layout = constructors::striped(&(0..8).collect::<Vec<_>>(), stripe).unwrap();
        let time_s = |distance: u64| {
            let request = |turn: u64, process: u32| Request {
                process,
                offset: u64::from(process) * distance + turn * size,
                size,
                ..Request::default()
            };
            let requests = (0..6).flat_map(|turn| (0..8).map(move |process| request(turn, process)));
            over_network(&fast_devices(), &layout, requests.collect(), 1)
        };
        let (together_s, apart_s) = (time_s(8 * size), time_s(8 * size + stripe));
        assert!(apart_s < 0.75 * together_s, "{stripe}: {apart_s} {together_s}");
    }
}

/// Eight processes read from a server each. Those on the same node share its link; which ones these
/// are matters, not only how many there are on the fullest node.
#[test]
fn processes_share_the_links_of_their_nodes() {
    let size = 4u64 << 20;
    let layout = constructors::striped(&(0..8).collect::<Vec<_>>(), size).unwrap();
    let time_s = |processes: [u32; 8]| {
        let requests = (0..6).flat_map(|turn| {
            (0..8).map(move |index: u64| Request {
                process: processes[index as usize],
                offset: (8 * turn + index) * size,
                size,
                ..Request::default()
            })
        });
        over_network(&fast_devices(), &layout, requests.collect(), 2)
    };
    let (full_s, half_s) = (time_s([0, 1, 2, 3, 4, 5, 6, 7]), time_s([0, 2, 4, 6, 8, 10, 12, 14]));
    let one_pair_s = time_s([0, 1, 2, 4, 6, 8, 10, 12]);
    assert!(half_s < 0.75 * full_s && one_pair_s < 1.05 * full_s, "{half_s} {one_pair_s} {full_s}");
}

/// In every round the requests of all nodes begin on the same server. Which of them is first there
/// decides how they meet on all others, so the replay and the simulator have the same order.
#[test]
fn requests_that_meet_on_one_server_are_served_in_the_order_of_the_simulator() {
    let cluster = cluster((6, 3e-4, 8e-9), (2, 1e-4, 4e-9), ("1T", "1T"), (3e-4, 8e-9));
    let layout = constructors::striped(&(0..8).collect::<Vec<_>>(), 1 << 20).unwrap();
    let size = 16u64 << 20;
    let request = |turn: u64, process: u32| Request {
        process,
        offset: (100 << 20) * u64::from(process) + turn * size,
        size,
        ..Request::default()
    };
    let requests = (0..6).flat_map(|turn| (0..8).map(move |process| request(turn, process)));
    over_network(&cluster, &layout, requests.collect(), 1);
}
