//! From a layout to the file system's terms and back.

use proptest::prelude::*;
use stripewise_cluster::{Cluster, FileSystem};
use stripewise_layout::Layout;

use super::mapping::{layouts, targets};
use super::{K, M, cluster, pool, servers};
use crate::{Component, FileNow, Names, NativeLayout, Objects, PoolServers, Stripe, express, over};

/// A pool and its servers.
fn on(name: &str, servers: &[&str]) -> PoolServers {
    let servers = servers.iter().map(|&server| server.to_owned()).collect();
    PoolServers { name: name.to_owned(), servers, groups: Vec::new() }
}

/// A file after `turn` like ones.
fn nth(turn: usize) -> FileNow {
    FileNow { turn, ..FileNow::default() }
}

fn back(system: FileSystem, native: &NativeLayout, cluster: &Cluster, turn: usize) -> Option<Layout> {
    over(system, native, cluster, &nth(turn), &[])
}

/// Whether each byte is on the server that it was on before.
fn is_same(system: FileSystem, layout: &Layout, cluster: &Cluster) -> Result<(), TestCaseError> {
    let len = 100 * 64 * K;
    let Ok(native) = express(system, layout, cluster, len) else { return Ok(()) };
    let got = back(system, &native, cluster, 0).unwrap();
    prop_assert_eq!(targets(&got, len, 16 * K), targets(layout, len, 16 * K), "{}", native);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_byte_is_on_its_ost(layout in layouts(64 * K, 3)) {
        let cluster = cluster(&servers("lustre", "a", &["7", "3"]), &servers("lustre", "b", &["12", "0"]));
        is_same(FileSystem::Lustre, &layout, &cluster)?;
    }

    #[test]
    fn every_byte_is_on_its_orangefs_server(layout in layouts(64 * K, 1)) {
        let names = ["tcp://a:1", "tcp://b:1", "tcp://c:1", "tcp://d:1"];
        let cluster = cluster(&servers("orangefs", "a", &names[..2]), &servers("orangefs", "b", &names[2..]));
        is_same(FileSystem::OrangeFs, &layout, &cluster)?;
    }

    /// A component that begins within a stripe, which no layout of ours does.
    #[test]
    fn stripes_count_from_the_beginning_of_the_file(start in 1u64..100, widths in (1u64..5, 1u64..5)) {
        let of = |width| Stripe::Listed { width: width * 64 * K, servers: ["7", "0", "3"].map(str::to_owned).into() };
        let native = NativeLayout {
            components: vec![
                Component { end: Some(start * 64 * K), stripe: of(widths.0) },
                Component { end: None, stripe: of(widths.1) },
            ],
        };
        let cluster = cluster(&servers("lustre", "a", &["7", "3"]), &servers("lustre", "b", &["12", "0"]));
        let got = back(FileSystem::Lustre, &native, &cluster, 0).unwrap();
        for (offset, target) in targets(&got, 200 * 64 * K, 64 * K) {
            let width = if offset < start * 64 * K { widths.0 } else { widths.1 } * 64 * K;
            prop_assert_eq!(target, [0, 3, 1][(offset / width % 3) as usize], "{}", offset);
        }
    }

    /// Files of a pool have its stripes again.
    #[test]
    fn a_pools_stripes_are_the_same(layout in layouts(64 * K, 1), turn in 0usize..10) {
        for (system, name) in [(FileSystem::CephFs, "cephfs"), (FileSystem::BeeGfs, "beegfs"), (FileSystem::Lustre, "lustre")] {
            let cluster = cluster(&pool(name, "p", 2), &pool(name, "q", 2));
            let Ok(native) = express(system, &layout, &cluster, u64::MAX) else { continue };
            let got = back(system, &native, &cluster, turn).unwrap();
            prop_assert_eq!(express(system, &got, &cluster, u64::MAX), Ok(native));
        }
    }
}

#[test]
fn files_of_a_pool_take_its_servers_in_turn() {
    let cluster = cluster(&pool("cephfs", "p", 3), &servers("cephfs", "b", &["only-b0", "only-b1"]));
    let native = |count, pool| NativeLayout::even(M, count, Some(pool));
    let of = |count, pool, turn| {
        let layout = back(FileSystem::CephFs, &native(count, pool), &cluster, turn)?;
        Some(layout.regions()[0].cycle.iter().map(|stripe| stripe.target).collect::<Vec<_>>())
    };
    assert_eq!(of(1, "p", 0), Some(vec![0]));
    assert_eq!(of(1, "p", 4), Some(vec![1]));
    assert_eq!(of(2, "p", 1), Some(vec![2, 0]));
    assert_eq!(of(4, "p", 0), Some(vec![0, 1, 2, 0]), "more stripes than servers");
    assert_eq!(of(1, "only-b1", 7), Some(vec![4]), "a pool of one server is that server");
    assert_eq!(of(1, "elsewhere", 0), None);
    assert_eq!(back(FileSystem::Lustre, &native(1, "p"), &cluster, 0), None, "of another file system");
}

/// Lustre names the OSTs of a file without a pool, and a cluster's pool does not.
#[test]
fn a_server_of_a_pool_is_one_of_its_targets() {
    let cluster = cluster(&pool("lustre", "slow", 4), &pool("lustre", "fast", 2));
    let listed = |servers: &[&str]| {
        let servers = servers.iter().map(|&server| server.to_owned()).collect();
        NativeLayout::uniform(Stripe::Listed { width: M, servers })
    };
    let pools = [on("slow", &["0", "1", "2", "3"]), on("fast", &["4", "5"])];
    let of = |servers: &[&str], turn| {
        let layout = over(FileSystem::Lustre, &listed(servers), &cluster, &nth(turn), &pools)?;
        Some(layout.regions()[0].cycle.iter().map(|stripe| stripe.target).collect::<Vec<_>>())
    };
    assert_eq!(of(&["2", "5", "0", "2"], 0), Some(vec![0, 4, 1, 0]));
    assert_eq!(of(&["5"], 1), Some(vec![5]));
    assert_eq!(of(&["9"], 0), None);
}

/// Clusters that name the OSDs one by one, by pools of their own, and files in a pool over them.
#[test]
fn a_pool_over_servers_that_are_named_one_by_one() {
    let slow = ["hdd0", "hdd1", "hdd2"];
    let cluster = cluster(&servers("cephfs", "a", &slow), &servers("cephfs", "b", &["ssd0"]));
    let alone = ["hdd2", "hdd0", "hdd1", "ssd0"];
    let mut pools: Vec<PoolServers> =
        alone.iter().zip(["osd.7", "osd.0", "osd.3", "osd.9"]).map(|(name, osd)| on(name, &[osd])).collect();
    pools.push(on("hdd", &["osd.0", "osd.3", "osd.7"]));
    pools.push(on("more", &["osd.0", "osd.4"]));
    pools.push(on("untold", &[]));
    let of_pool = |pools: &[PoolServers], pool, turn| {
        let layout =
            over(FileSystem::CephFs, &NativeLayout::even(M, 2, Some(pool)), &cluster, &nth(turn), pools)?;
        Some(layout.regions()[0].cycle.iter().map(|stripe| stripe.target).collect::<Vec<_>>())
    };
    assert_eq!(of_pool(&pools, "hdd", 0), Some(vec![0, 1]));
    assert_eq!(of_pool(&pools, "hdd", 1), Some(vec![2, 0]), "the next file has the next servers");
    assert_eq!(of_pool(&pools, "more", 0), None, "the cluster lacks one of its servers");
    assert_eq!(of_pool(&pools, "untold", 0), None);
    pools[1].servers.push("osd.4".to_owned());
    assert_eq!(of_pool(&pools, "hdd", 0), None, "nothing says that hdd0 is on osd.0 alone");
}

/// Sets of two objects over three OSDs, of which the cluster knows all, or only that there are
/// three.
#[test]
fn objects_are_on_the_servers_of_their_groups() {
    let named = cluster(&servers("cephfs", "a", &["hdd0", "hdd1", "hdd2"]), &servers("cephfs", "b", &["ssd0"]));
    let of_class = cluster(&servers("cephfs", "b", &["ssd0"]), &pool("cephfs", "hdd", 3));
    let mut pools = vec![on("hdd0", &["osd.0"]), on("hdd1", &["osd.3"]), on("hdd2", &["osd.7"])];
    // Objects 0 to 5 of the file are in these groups of 32.
    let mut groups = vec![9; 32];
    for (group, server) in [(0x7, 1), (0xf, 0), (0x1e, 2), (0xe, 0), (0x1d, 1)] {
        groups[group] = server;
    }
    pools.push(PoolServers { groups, ..on("hdd", &["osd.0", "osd.3", "osd.7"]) });
    let names = Names { inode: 0x100_0000_0001, namespace: String::new() };
    let file = |names| FileNow { turn: 5, len: 24 * M, objects: Some(Objects { size: 4 * M, names }) };
    let of = |cluster: &Cluster, file: &FileNow, pools: &[PoolServers]| {
        let layout =
            over(FileSystem::CephFs, &NativeLayout::even(2 * M, 2, Some("hdd")), cluster, file, pools).unwrap();
        layout.regions()[0].cycle.iter().map(|stripe| stripe.target).collect::<Vec<_>>()
    };
    let known = file(Some(names));
    assert_eq!(of(&named, &known, &pools), [1, 0, 1, 0, 2, 0, 2, 0, 2, 1, 2, 1]);
    assert_eq!(of(&of_class, &known, &pools), [2, 1, 2, 1, 3, 1, 3, 1, 3, 2, 3, 2]);
    let drawn = of(&of_class, &file(None), &pools);
    assert!(drawn.iter().all(|target| (1..4).contains(target)), "{drawn:?}");
    assert_eq!(drawn, of(&of_class, &known, &[]), "without groups it is drawn, too");
    assert_ne!(drawn, of(&of_class, &FileNow { turn: 6, ..file(None) }, &[]), "by each file anew");
}
