//! Files with one copy.

use std::collections::{HashMap, VecDeque};

use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped, two_d, two_part};
use stripewise_model::{Access, Op};

use super::{Random, cluster, plan};
use crate::{Lists, Options, Simulator, Step};

const CLASSES: [(usize, [(f64, f64); 2]); 2] =
    [(3, [(300.0, 8.0), (100.0, 8.0)]), (2, [(50.0, 3.0), (20.0, 2.0)])];

fn layouts() -> Vec<Layout> {
    vec![
        striped(&[0, 1, 2, 3, 4], 700).unwrap(),
        two_d(&[0, 1, 2, 3, 4], 2, 3000, 1).unwrap(),
        two_part(&[(4, 100), (0, 900), (3, 50)], 21_000, &[(1, 300), (2, 4000)]).unwrap(),
        on_one(3).unwrap(),
    ]
}

/// Requests of several processes on four files, many of them sequential.
fn requests(random: &mut Random, processes: usize, each: usize) -> Vec<Vec<Step>> {
    let mut stream = || {
        let mut at = 0;
        (0..each)
            .map(|_| {
                let size = 1 + random.below(9000);
                let offset = if random.below(3) > 0 { at } else { random.below(100_000) };
                at = offset + size;
                let op = if random.below(2) > 0 { Op::Read } else { Op::Write };
                Step::Request { file: random.below(4) as u32, op, offset, size }
            })
            .collect()
    };
    (0..processes).map(|_| stream()).collect()
}

/// The time when every process ends, ns, computed with explicit queues, from one completion to the
/// next.
fn brute_force(steps: &[Vec<Step>]) -> Vec<u64> {
    let cluster = cluster(&CLASSES);
    let layouts = layouts();
    let mut queues: Vec<VecDeque<(usize, u64)>> = vec![VecDeque::new(); 5];
    let mut done_at: Vec<Option<u64>> = vec![None; 5];
    let mut last: HashMap<(usize, u32, usize), u64> = HashMap::new();
    let (mut next, mut waits) = (vec![0; steps.len()], vec![0; steps.len()]);
    let mut ends = vec![0; steps.len()];
    let (mut now, mut ready): (u64, Vec<usize>) = (0, (0..steps.len()).collect());
    loop {
        ready.sort_unstable();
        for process in ready.drain(..) {
            ends[process] = now;
            let Some(&Step::Request { file, op, offset, size }) = steps[process].get(next[process]) else {
                continue;
            };
            next[process] += 1;
            for server in 0..5u32 {
                let layout = &layouts[file as usize];
                let (from, bytes) = (layout.object_size(server, offset), layout.bytes_on(server, offset, size));
                if bytes > 0 {
                    let before = last.insert((process, file, server as usize), from + bytes);
                    let access = if before == Some(from) { Access::Sequential } else { Access::Random };
                    let busy_s = cluster.class_of(server).unwrap().service(op, access).busy_s(bytes);
                    queues[server as usize].push_back((process, (busy_s * 1e9).round() as u64));
                    waits[process] += 1;
                }
            }
        }
        for (queue, done_at) in queues.iter().zip(&mut done_at) {
            if let (None, Some(&(_, busy_ns))) = (*done_at, queue.front()) {
                *done_at = Some(now + busy_ns);
            }
        }
        let Some(next_at) = done_at.iter().flatten().copied().min() else { return ends };
        now = next_at;
        for (queue, done_at) in queues.iter_mut().zip(&mut done_at) {
            if *done_at == Some(now) {
                *done_at = None;
                let (process, _) = queue.pop_front().unwrap();
                waits[process] -= 1;
                if waits[process] == 0 {
                    ready.push(process);
                }
            }
        }
    }
}

fn simulate(steps: Vec<Vec<Step>>, options: Options) -> crate::Outcome {
    let cluster = cluster(&CLASSES);
    let mut simulator = Simulator::new(&cluster, options).unwrap();
    let paths = ["/d/0", "/d/1", "/d/2", "/d/3"];
    assert_eq!(simulator.open(&plan(&cluster, layouts()), &paths, 4, 2).unwrap(), 0..4);
    simulator.run(&mut Lists::new(steps, 2))
}

#[test]
fn runs_are_those_of_explicit_queues() {
    let exact = Options { jitter: 0.0, ..Options::default() };
    for seed in 0..300 {
        let mut random = Random(seed);
        let processes = 1 + random.below(6) as usize;
        let steps = requests(&mut random, processes, 20);
        let outcome = simulate(steps.clone(), exact);
        for (simulated, expected) in outcome.ends_s.iter().zip(brute_force(&steps)) {
            assert!((simulated * 1e9 - expected as f64).abs() < 0.5, "seed {seed}: {simulated} {expected}");
        }
    }
}

#[test]
fn every_byte_goes_where_its_layout_has_it() {
    let steps = requests(&mut Random(9), 5, 50);
    let outcome = simulate(steps.clone(), Options::default());
    let (mut bytes, mut of_request, mut touched) = ([0; 5], [0; 5], 0);
    for step in steps.iter().flatten() {
        let &Step::Request { file, offset, size, .. } = step else { continue };
        layouts()[file as usize].bytes_per_target(offset, size, &mut of_request);
        bytes.iter_mut().zip(of_request).for_each(|(sum, bytes)| *sum += bytes);
        touched += of_request.iter().filter(|bytes| **bytes > 0).count() as u64;
    }
    assert_eq!(outcome.servers.iter().map(|server| server.bytes).collect::<Vec<_>>(), bytes);
    assert_eq!(outcome.sub_requests, touched);
    assert_eq!(outcome.servers.iter().map(|server| server.requests).sum::<u64>(), touched);
    assert_eq!((outcome.requests, outcome.bytes), (250, bytes.iter().sum()));
}

#[test]
fn the_same_input_gives_the_same_bits() {
    let steps = requests(&mut Random(3), 8, 40);
    let run = |seed| simulate(steps.clone(), Options { seed, ..Options::default() });
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).elapsed_s, run(2).elapsed_s);
}

#[test]
fn streams_are_sequential_also_where_the_table_is_full() {
    let stream = |file| {
        (0..200).map(|i| Step::Request { file, op: Op::Read, offset: i * 4000, size: 4000 }).collect::<Vec<_>>()
    };
    for file in 0..4 {
        let exact = Options { jitter: 0.0, ..Options::default() };
        let table = simulate(vec![stream(file)], exact);
        let runs = simulate(vec![stream(file)], Options { order_memory: 0, ..exact });
        assert_eq!(table, runs, "file {file}");
    }
}

#[test]
fn barriers_and_computing() {
    let request = Step::Request { file: 3, op: Op::Write, offset: 0, size: 1000 };
    let fast = vec![Step::Barrier, request, Step::Barrier];
    let slow = vec![Step::Compute { seconds: 1.0 }, Step::Barrier, Step::Compute { seconds: 0.5 }];
    let outcome = simulate(vec![fast, slow, vec![]], Options { jitter: 0.0, ..Options::default() });
    // The second barrier does not wait for the process that has ended.
    assert_eq!(outcome.ends_s, [1.5, 1.5, 0.0]);
}

#[test]
fn a_measured_disk_has_one_arm() {
    let stream = |file| {
        (0..50).map(move |i| Step::Request { file, op: Op::Read, offset: i * 1000, size: 1000 }).collect()
    };
    let run = |processes: u32, measured: bool| {
        let mut cluster = cluster(&[(1, [(300.0, 0.0), (100.0, 0.0)])]);
        cluster.tiers[0].emulate = !measured;
        cluster.measured = if measured { cluster.classes.clone() } else { cluster.measured };
        let mut simulator = Simulator::new(&cluster, Options { jitter: 0.0, ..Options::default() }).unwrap();
        simulator.open(&plan(&cluster, vec![on_one(0).unwrap()]), &["/d/0", "/d/1"], 2, 2).unwrap();
        simulator.run(&mut Lists::new((0..processes).map(stream).collect(), 2)).servers[0].busy_s
    };
    let near = |busy_s: f64, us: f64| (busy_s * 1e6 - us).abs() < 1.0;
    assert!(near(run(1, true), 300.0 + 49.0 * 100.0) && near(run(2, false), 2.0 * (300.0 + 49.0 * 100.0)));
    assert!(near(run(2, true), 100.0 * 300.0), "{}", run(2, true));
}
