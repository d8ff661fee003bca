//! Files with several copies, checked with a version number per block of every copy.

use stripewise_cluster::{
    CacheAdmission, CacheMode, CopySpec, Driver, Durability, FileSystem, Members, Overlay, OverlayKind, Plan,
    Spread,
};
use stripewise_layout::constructors::{striped, two_d};
use stripewise_model::Op;

use super::{Random, cluster, plan};
use crate::file::File;
use crate::overlay::Spaces;
use crate::placed::Placed;
use crate::process::Sender;
use crate::{Lists, Options, Outcome, Simulator, Step};

const CLASSES: [(usize, [(f64, f64); 2]); 2] =
    [(4, [(3000.0, 16.0), (1000.0, 16.0)]), (2, [(100.0, 4.0), (50.0, 4.0)])];
const BLOCK: u64 = 16 << 10;
const BLOCKS: usize = 2048;
const MIB: u64 = 1 << 20;

fn with_overlay(kind: OverlayKind, copies: Vec<CopySpec>, lazy_close: bool) -> Plan {
    let mut plan = plan(&cluster(&CLASSES), vec![striped(&[0, 1, 2, 3], 64 << 10).unwrap()]);
    plan.rules[0].overlay = Some(Overlay {
        kind,
        copies,
        lazy_close,
        durability: Durability::Sync,
        background: None,
        procs: 4,
        procs_per_node: 2,
    });
    plan
}

fn copy(name: &str, layout: stripewise_layout::Layout, groups: u32) -> CopySpec {
    CopySpec { name: name.into(), layouts: vec![layout], spread: Spread::default(), groups }
}

fn replicas(lazy_close: bool) -> Plan {
    let copies = vec![
        copy("2-D", two_d(&[0, 1, 2, 3], 2, 256 << 10, 4096).unwrap(), 1),
        copy("wide", striped(&[0, 1, 2, 3], MIB).unwrap(), 1),
    ];
    with_overlay(OverlayKind::Replicas, copies, lazy_close)
}

fn cache(mode: CacheMode, admission: CacheAdmission, capacity_per_server: u64) -> Plan {
    let copies = vec![
        copy("1-DH", striped(&[4, 5], 64 << 10).unwrap(), 1),
        copy("1-DV", striped(&[4, 5], MIB).unwrap(), 2),
    ];
    with_overlay(OverlayKind::Cache { mode, admission, capacity_per_server }, copies, false)
}

/// The content of the copies of two files: for each block, the number of the write that it comes
/// from.
struct Versions {
    of_copy: Vec<Vec<Vec<u64>>>,
    newest: Vec<Vec<u64>>,
    /// The versions that the background copier has read, per file.
    copying: Vec<Vec<u64>>,
    writes: u64,
    read: usize,
}

impl Versions {
    fn new(copies: usize, cache: bool) -> Self {
        // Caches are empty at first.
        let of_copy = |copy| vec![if copy > 0 && cache { u64::MAX } else { 0 }; BLOCKS];
        let of_file = || (0..copies).map(of_copy).collect::<Vec<_>>();
        Self {
            of_copy: vec![of_file(), of_file()],
            newest: vec![vec![0; BLOCKS]; 2],
            copying: vec![vec![0; BLOCKS]; 2],
            writes: 0,
            read: 0,
        }
    }

    /// Applies the logged transfers.
    fn follow(&mut self, simulator: &mut Simulator) {
        for (file, op, sender, parts) in simulator.log.drain(..) {
            let file = file as usize;
            self.writes += 1;
            for part in parts {
                for block in (part.start / BLOCK) as usize..part.end.div_ceil(BLOCK) as usize {
                    let there = &mut self.of_copy[file][part.copy][block];
                    match (sender, op) {
                        (Sender::Process(_), Op::Read) => {
                            assert_eq!(*there, self.newest[file][block], "file {file} block {block} {part:?}");
                            self.read += 1;
                        }
                        (Sender::Process(_), Op::Write) => {
                            (*there, self.newest[file][block]) = (self.writes, self.writes);
                        }
                        (Sender::Background, Op::Read) => self.copying[file][block] = *there,
                        (Sender::Background, Op::Write) => *there = self.copying[file][block],
                    }
                }
            }
        }
    }
}

fn steps(random: &mut Random, processes: usize, each: usize) -> Vec<Vec<Step>> {
    let mut step = || match random.below(12) {
        0 => Step::Compute { seconds: random.below(80) as f64 * 1e-3 },
        1 => Step::Barrier,
        _ => {
            let size = BLOCK << random.below(7);
            let offset = random.below((BLOCKS as u64 * BLOCK - size) / BLOCK + 1) * BLOCK;
            let op = if random.below(2) > 0 { Op::Read } else { Op::Write };
            Step::Request { file: random.below(2) as u32, op, offset, size }
        }
    };
    (0..processes).map(|_| (0..each).map(|_| step()).collect()).collect()
}

/// Makes the servers of the last tier those of a pool.
fn in_pool(mut plan: Plan) -> Plan {
    let tier = plan.cluster.tiers.last_mut().unwrap();
    let members = Members::Pool { name: "fast".into(), count: tier.driver.servers() as u32 };
    tier.driver = Driver::Native { system: FileSystem::CephFs, root: "/s".into(), members };
    tier.emulate = false;
    plan
}

/// Checks that the counted space equals the space that the map implies, and does not exceed the
/// capacity.
fn check_space(simulator: &Simulator, capacity: u64) {
    let mut used = vec![0; simulator.spaces.used().len()];
    let mut servers = used.clone();
    (0..simulator.servers() as u32).for_each(|server| servers[simulator.spaces.account_of(server)] += 1);
    for file in &simulator.files.files {
        let File::Copies(overlay) = file else { panic!("{file:?} has one copy") };
        for span in overlay.map.spans(&(0..BLOCKS as u64 * BLOCK)) {
            for copy in overlay.caches().filter(|copy| span.mask & 1 << copy != 0) {
                let placed = &overlay.by.placed[copy];
                for (object, &server) in placed.servers.iter().enumerate() {
                    used[simulator.spaces.account_of(server)] +=
                        placed.layout.bytes_on(object as u32, span.start, span.end - span.start);
                }
            }
        }
    }
    assert_eq!(simulator.spaces.used(), used);
    assert!(used.iter().zip(servers).all(|(&used, servers)| used <= servers * capacity), "{used:?}");
}

/// Runs a plan several times with random requests. Returns the sum of all runs.
fn campaign(plan: &Plan, capacity: Option<u64>, network: bool, seed: u64) -> (Outcome, Versions) {
    let mut cluster = plan.cluster.clone();
    if network {
        cluster.network = stripewise_model::Network { establish_s: 1e-4, per_byte_s: 8e-9 };
    }
    let plan = Plan { cluster: cluster.clone(), ..plan.clone() };
    let mut simulator = Simulator::new(&cluster, Options { network, ..Options::default() }).unwrap();
    simulator.open(&plan, &["/d/0", "/d/1"], 4, 2).unwrap();
    let mut versions = Versions::new(3, capacity.is_some());
    let mut random = Random(seed);
    let mut sum = Outcome::default();
    for _ in 0..6 {
        let outcome = simulator.run(&mut Lists::new(steps(&mut random, 4, 60), 2));
        versions.follow(&mut simulator);
        if let Some(capacity) = capacity {
            // Space taken by a copier that ended with its process is freed when the next run
            // begins.
            simulator.begin_counting();
            check_space(&simulator, capacity);
        }
        sum.requests += outcome.requests;
        sum.counters.hits += outcome.counters.hits;
        sum.counters.copied_bytes += outcome.counters.copied_bytes;
        sum.counters.evicted_bytes += outcome.counters.evicted_bytes;
        sum.counters.fetched_bytes += outcome.counters.fetched_bytes;
        if random.below(3) == 0 {
            simulator.warm();
            versions.follow(&mut simulator);
        }
    }
    simulator.drain();
    versions.follow(&mut simulator);
    for file in 0..2 {
        let whole = if capacity.is_some() { 1 } else { 3 };
        for copy in 0..whole {
            assert_eq!(versions.of_copy[file][copy], versions.newest[file], "file {file} copy {copy}");
        }
    }
    (sum, versions)
}

#[test]
fn replicas_are_read_where_they_are_new_and_end_alike() {
    for seed in 0..8 {
        for (lazy, network) in [(false, false), (true, false), (true, true)] {
            let (sum, versions) = campaign(&replicas(lazy), None, network, seed);
            assert!(versions.read > 1000 && (lazy || sum.counters.copied_bytes > 0));
        }
    }
}

#[test]
fn caches_never_hold_more_than_fits_and_lose_nothing() {
    use CacheAdmission::{AsPrinted, Balanced};
    let kinds = [
        (CacheMode::Sla, AsPrinted),
        (CacheMode::Sla, Balanced),
        (CacheMode::Nsca, AsPrinted),
        (CacheMode::Sca, AsPrinted),
    ];
    let (mut evicted, mut copied, mut fetched) = (0, 0, 0);
    for seed in 0..4 {
        for (mode, admission) in kinds {
            for capacity in [MIB, 6 * MIB, 100 * MIB] {
                let plan = cache(mode, admission, capacity);
                let (sum, versions) = campaign(&plan, Some(capacity), seed == 3, seed);
                assert!(versions.read > 1000);
                let (sum_in_pool, versions) = campaign(&in_pool(plan), Some(capacity), seed == 3, seed);
                assert!(versions.read > 1000 && sum_in_pool.requests == sum.requests);
                if mode == CacheMode::Sla && capacity == 100 * MIB {
                    assert!(sum.counters.hits > sum.requests / 8, "{sum:?}");
                }
                evicted += sum.counters.evicted_bytes;
                copied += sum.counters.copied_bytes;
                fetched += sum.counters.fetched_bytes;
            }
        }
    }
    assert!(evicted > 0 && copied > 0 && fetched > 0, "{evicted} {copied} {fetched}");
}

/// A copy on one server may fill the space of the whole pool, because the file system decides which
/// server that is. `stripewise_datapath` has a test with the same writes.
#[test]
fn a_pool_is_filled_up_to_all_that_its_servers_may_hold() {
    let plan = cache(CacheMode::Nsca, CacheAdmission::AsPrinted, MIB);
    let (one, both) =
        (Placed::new(&striped(&[4], 1024).unwrap()), Placed::new(&striped(&[4, 5], 512).unwrap()));
    let taken = |plan: &Plan| {
        let mut spaces = Spaces::new(&plan.cluster);
        let mut take = |placed, kib: u64| spaces.take_range(placed, &(0..kib << 10), MIB);
        let taken = [take(&one, 700), take(&both, 600), take(&one, 300), take(&one, 500), take(&both, 200)];
        spaces.give(&one, &(0..700 << 10));
        (taken, spaces.take_range(&one, &(0..900 << 10), MIB), spaces.fullest(&both), spaces.servers(&one))
    };
    assert_eq!(taken(&plan), ([true, true, false, false, false], false, 300 << 10, 1));
    assert_eq!(taken(&in_pool(plan)), ([true, true, true, false, true], true, 1000 << 10, 2));
}

#[test]
fn a_cache_that_is_off_is_not_used() {
    let plan = cache(CacheMode::Off, CacheAdmission::AsPrinted, 100 * MIB);
    let (sum, _) = campaign(&plan, Some(100 * MIB), false, 1);
    assert_eq!((sum.counters.hits, sum.counters.fetched_bytes), (0, 0));
}

#[test]
fn a_second_run_profits_from_what_the_first_marked() {
    let plan = cache(CacheMode::Sla, CacheAdmission::AsPrinted, 100 * MIB);
    let mut simulator = Simulator::new(&plan.cluster, Options::default()).unwrap();
    simulator.open(&plan, &["/d/0"], 4, 4).unwrap();
    let mut random = Random(5);
    let mut reads = || {
        let request = |offset| Step::Request { file: 0, op: Op::Read, offset: offset * BLOCK, size: BLOCK };
        (0..200).map(|_| request(random.below(BLOCKS as u64))).collect::<Vec<_>>()
    };
    let reads: Vec<_> = (0..4).map(|_| reads()).collect();
    let first = simulator.run(&mut Lists::new(reads.clone(), 4));
    assert_eq!(first.counters.hits, 0);
    let warmed = simulator.warm();
    assert!(warmed.counters.fetched_bytes > 400 * BLOCK && warmed.elapsed_s > 0.0);
    let second = simulator.run(&mut Lists::new(reads, 4));
    assert_eq!(second.counters.hits, 800);
    assert!(second.elapsed_s < first.elapsed_s / 3.0, "{} {}", first.elapsed_s, second.elapsed_s);
}

#[test]
fn closing_waits_for_replicas_unless_it_is_lazy() {
    let write = |process: u64| {
        (0..20)
            .map(|i| Step::Request {
                file: 0,
                op: Op::Write,
                offset: (process * 20 + i) * MIB / 2,
                size: MIB / 2,
            })
            .collect()
    };
    let run = |lazy| {
        let plan = replicas(lazy);
        let mut simulator = Simulator::new(&plan.cluster, Options::default()).unwrap();
        simulator.open(&plan, &["/d/0"], 4, 4).unwrap();
        let outcome = simulator.run(&mut Lists::new((0..3).map(write).collect(), 4));
        (outcome, simulator.drain())
    };
    let ((eager, none), (lazy, rest)) = (run(false), run(true));
    // Two more copies of 30 MiB.
    assert_eq!((eager.counters.copied_bytes, none.counters.copied_bytes), (60 * MIB, 0));
    assert_eq!(lazy.counters.copied_bytes + rest.counters.copied_bytes, 60 * MIB);
    assert!(eager.elapsed_s > 1.5 * lazy.elapsed_s && rest.elapsed_s > 0.0);
}

/// While the process computes, there is time to write everything back.
#[test]
fn a_limit_of_background_copying_is_kept_to() {
    let copied = |background| {
        let mut plan = cache(CacheMode::Nsca, CacheAdmission::AsPrinted, 100 * MIB);
        plan.rules[0].overlay.as_mut().unwrap().background = background;
        let mut simulator = Simulator::new(&plan.cluster, Options::default()).unwrap();
        simulator.open(&plan, &["/d/0"], 4, 4).unwrap();
        let write = Step::Request { file: 0, op: Op::Write, offset: 0, size: 16 * MIB };
        let outcome = simulator.run(&mut Lists::new(vec![vec![write, Step::Compute { seconds: 20.0 }]], 4));
        (outcome.counters.copied_bytes, outcome.elapsed_s)
    };
    let (copied_bytes, elapsed_s) = copied(Some(100_000));
    assert!(copied_bytes > 1_500_000 && copied_bytes as f64 <= 100_000.0 * (elapsed_s + 1.0), "{copied_bytes}");
    assert_eq!(copied(None).0, 16 * MIB);
}
