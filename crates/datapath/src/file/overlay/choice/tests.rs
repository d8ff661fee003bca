//! Copies on a pool, over which the file system stripes, cost the same as if their servers were
//! modeled one by one.

use proptest::prelude::*;
use stripewise_cluster::{
    CacheAdmission, CacheMode, Driver, Durability, FileSystem, Members, OverlayKind, Tier,
};
use stripewise_layout::constructors::two_part;
use stripewise_model::{Access, ByAccess, Network, Op, Service};
use stripewise_policy::{CopyView, Costs, Identifier, Kind};
use stripewise_target::{FileId, TargetRef};

use super::*;
use crate::manifest::{ExtraCopy, copy_id};

/// Number of servers in the pool.
const COUNT: u32 = 4;

/// Targets 0 and 1 are hdd/0-1; targets 2 to 5 are the servers of the pool ssd, on OrangeFS, which
/// supports all stripe widths.
fn cluster() -> Cluster {
    let class = |startup_s: f64, per_byte_s: f64| {
        let service = |startup_s| Service { startup_s, per_byte_s };
        let both = ByAccess { random: service(startup_s), sequential: service(startup_s / 10.0) };
        ClassParams { read: both, write: both }
    };
    let tier = |name: &str, driver| Tier {
        name: name.into(),
        class: name.into(),
        driver,
        capacity_per_server: 1 << 40,
        emulate: false,
    };
    let dirs = Driver::Dirs { servers: vec!["/h0".into(), "/h1".into()] };
    let members = Members::Pool { name: "fast".into(), count: COUNT };
    let pool = Driver::Native { system: FileSystem::OrangeFs, root: "/pvfs".into(), members };
    Cluster {
        network: Network { establish_s: 1e-5, per_byte_s: 1e-9 },
        classes: [("hdd".into(), class(5e-3, 1e-8)), ("ssd".into(), class(1e-4, 4e-9))].into(),
        tiers: vec![tier("hdd", dirs), tier("ssd", pool)],
        ..Cluster::default()
    }
}

/// Generates layouts over servers: a run of pool servers starting at `first`, in order or reversed,
/// perhaps with disks before it, and perhaps with a second region on one disk after some stripe
/// cycles.
fn layouts() -> impl Strategy<Value = Layout> {
    let pool = (0..COUNT, 1..=COUNT, 1u64..200_000, any::<bool>());
    (pool, 0u32..3, 1u64..100_000, 0u64..5).prop_map(
        |((first, count, width, reversed), disks, on_disk, turns)| {
            let mut run: Vec<_> = (0..count).map(|place| (2 + (first + place) % COUNT, width)).collect();
            if reversed {
                run.reverse();
            }
            let cycle: Vec<_> = (0..disks).map(|disk| (disk, on_disk)).chain(run).collect();
            let turn: u64 = cycle.iter().map(|stripe| stripe.1).sum();
            let second = if turns == 0 { cycle.clone() } else { vec![(0, on_disk)] };
            two_part(&cycle, turns * turn, &second).unwrap()
        },
    )
}

/// The manifest of a file whose copies have these layouts, as placed, and per copy the targets'
/// numbers in the cluster.
fn placed(cluster: &mut Cluster, layouts: &[Layout], kind: OverlayKind) -> (Manifest, Vec<Vec<u32>>) {
    let id = FileId([7; 16]);
    let mut planned = Vec::new();
    let mut copies: Vec<ExtraCopy> = Vec::new();
    for (number, layout) in layouts.iter().enumerate() {
        let (folded, targets) = cluster.fold(layout).unwrap().compacted();
        let specs = cluster.targets();
        let reference = |&target: &u32| {
            let spec = &specs[target as usize];
            TargetRef { name: spec.name.clone(), path: spec.path.clone(), id: target.to_string() }
        };
        copies.push(ExtraCopy {
            name: number.to_string(),
            id: copy_id(id, number),
            groups: 1 + number as u32 % 2,
            servers: 6,
            pool_servers: Vec::new(),
            targets: targets.iter().map(reference).collect(),
            layout: folded,
        });
        planned.push(targets);
    }
    let original = copies.remove(0);
    let copies = Copies {
        kind,
        lazy_close: false,
        durability: Durability::Sync,
        background: None,
        procs: 1,
        procs_per_node: 1,
        servers: 6,
        list: copies,
    };
    let manifest = Manifest {
        id,
        pending_truncate: None,
        path: "/f".into(),
        created: String::new(),
        anchor: Default::default(),
        targets: original.targets,
        layout: original.layout,
        copies: Some(Box::new(copies)),
    };
    (manifest, planned)
}

fn cache() -> OverlayKind {
    let (mode, admission) = (CacheMode::Sla, CacheAdmission::Balanced);
    OverlayKind::Cache { mode, admission, capacity_per_server: 1 << 30 }
}

fn decided(layouts: &[Layout], kind: OverlayKind, procs: (u32, u32)) -> Rule {
    let mut cluster = cluster();
    let (manifest, targets) = placed(&mut cluster, layouts, kind);
    let plan = Arc::new(Plan { scheme: String::new(), cluster, rules: Vec::new() });
    let copies = manifest.copies.clone().unwrap();
    decide(&manifest, &copies, &Rates { plan, targets }, procs).unwrap()
}

fn nearly(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

proptest! {
    #[test]
    fn of_replicas(
        layouts in prop::collection::vec(layouts(), 2..4),
        procs in 1u32..40,
        requests in prop::collection::vec((0u64..1 << 22, 1u64..1 << 21), 1..20),
    ) {
        let Rule::Replicas(folded) = decided(&layouts, OverlayKind::Replicas, (procs, 1)) else { panic!() };
        let cluster = cluster();
        let classes: Vec<_> = (0..6).map(|server| *cluster.class_of(server).unwrap()).collect();
        for (number, layout) in layouts.iter().enumerate() {
            let view = CopyView { layout, spread_over: 6, groups: 1 };
            let costs = Costs::new(&[view], &classes, cluster.network, (procs, 1)).unwrap();
            for &(offset, len) in &requests {
                for kind in Kind::ALL {
                    let (here, there) = (folded.cost_s(number, kind, offset, len), costs.cost_s(0, kind, offset, len));
                    prop_assert!(nearly(here, there), "{:?} {} {}: {} {}", kind, offset, len, here, there);
                }
            }
        }
    }

    #[test]
    fn of_a_cache(
        layouts in prop::collection::vec(layouts(), 2..4),
        procs in 1u32..40,
        requests in prop::collection::vec((0u64..1 << 22, 1u64..1 << 21), 1..20),
    ) {
        let Rule::Cache(folded) = decided(&layouts, cache(), (procs, 1)) else { panic!() };
        let cluster = cluster();
        let classes: Vec<_> = (0..6).map(|server| *cluster.class_of(server).unwrap()).collect();
        let views: Vec<_> = (1..).zip(&layouts[1..]).map(|(number, layout)| CopyView { layout, spread_over: 4, groups: 1 + number % 2 }).collect();
        let one_by_one = Identifier::new(CacheMode::Sla, &layouts[0], &views, &classes, procs).unwrap();
        for &(offset, len) in &requests {
            for kind in Kind::ALL {
                let costs = |identifier: &Identifier| -> Vec<f64> {
                    (0..layouts.len()).map(|copy| identifier.cost_s(copy, kind, offset, len)).collect()
                };
                let (here, there) = (costs(&folded), costs(&one_by_one));
                prop_assert!(here.iter().zip(&there).all(|(&a, &b)| nearly(a, b)), "{:?} {:?}", here, there);
            }
        }
    }
}

/// Modeled as one server, the four servers would have the throughput of one, and the striped copy
/// would not be worth it.
#[test]
fn a_wide_copy_in_a_pool_is_chosen_for_what_its_servers_do_together() {
    let striped = stripewise_layout::constructors::striped(&[2, 3, 4, 5], 1 << 20).unwrap();
    let single = stripewise_layout::constructors::on_one(2).unwrap();
    let Rule::Replicas(costs) = decided(&[single, striped], OverlayKind::Replicas, (1, 1)) else { panic!() };
    let kind = Kind { op: Op::Read, access: Access::Random };
    let ratio = costs.cost_s(0, kind, 0, 4 << 20) / costs.cost_s(1, kind, 0, 4 << 20);
    assert!((2.0..4.5).contains(&ratio), "{ratio}");
    assert_eq!(costs.cheapest(kind, 0, 4 << 20, 0b11), Some(1));
}

#[test]
fn c_is_at_most_p() {
    let concurrency = Concurrency::default();
    assert_eq!(concurrency.get(), None);
    concurrency.set(16, 4);
    assert_eq!(concurrency.get(), Some((16, 4)));
    concurrency.set(2, 4);
    assert_eq!(concurrency.get(), Some((2, 2)));
    concurrency.set(0, 0);
    assert_eq!(concurrency.get(), Some((1, 1)));
}
