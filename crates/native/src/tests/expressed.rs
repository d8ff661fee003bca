//! The commands, with the site's names and with placeholders.

use std::path::Path;

use stripewise_cluster::{Cluster, FileSystem};
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped, two_part, varied};

use super::{K, cluster, dirs, pool, servers};
use crate::{commands, express, express_spread, shell};

fn said(system: FileSystem, layout: &Layout, cluster: &Cluster, is_dir: bool) -> String {
    match express(system, layout, cluster, u64::MAX) {
        Ok(native) => commands(system, &native, Path::new("/d/f"), is_dir).join(" && "),
        Err(reason) => format!("because {reason}"),
    }
}

#[test]
fn names_of_a_tier_on_the_file_system_are_used() {
    let four = striped(&[0, 1, 2, 3], 64 * K).unwrap();
    let osts = cluster(&servers("lustre", "a", &["4", "7"]), &servers("lustre", "b", &["1", "2"]));
    assert_eq!(said(FileSystem::Lustre, &four, &osts, true), "lfs setstripe -S 64K -o 4,7,1,2 /d/f");
    let uneven = varied(&[(0, 128 * K), (2, 64 * K)]).unwrap();
    assert_eq!(said(FileSystem::Lustre, &uneven, &osts, true), "lfs setstripe -S 64K -o 4,4,1 /d/f");
    let pools = cluster(&pool("lustre", "slow", 2), &pool("lustre", "fast", 2));
    let parts = two_part(&[(2, 64 * K), (3, 64 * K)], 1 << 20, &[(0, 64 * K), (1, 64 * K)]).unwrap();
    assert_eq!(
        said(FileSystem::Lustre, &parts, &pools, false),
        "lfs setstripe -E 1M -S 64K -c 2 -p fast -E -1 -S 64K -c 2 -p slow /d/f"
    );
    let apart = said(FileSystem::Lustre, &four, &pools, false);
    assert!(apart.contains("the servers of pool slow cannot be told apart"), "{apart}");
}

#[test]
fn pools_of_cephfs_and_beegfs() {
    let two = striped(&[2, 3], 64 * K).unwrap();
    for (driver, system, text) in [
        (
            "cephfs",
            FileSystem::CephFs,
            "setfattr -n ceph.dir.layout -v \"stripe_unit=65536 stripe_count=2 object_size=4194304 pool=fast\" /d/f",
        ),
        ("beegfs", FileSystem::BeeGfs, "beegfs entry set --num-targets=2 --chunk-size=64Ki --pool=fast /d/f"),
    ] {
        let pools = cluster(&dirs("hdd", 2), &pool(driver, "fast", 2));
        assert_eq!(said(system, &two, &pools, true), text);
        let each = cluster(&dirs("hdd", 2), &servers(driver, "x", &["ssd0", "ssd1"]));
        assert!(said(system, &on_one(3).unwrap(), &each, true).contains("pool=ssd1"));
        assert!(said(system, &two, &each, true).contains("targets of their own pools"));
    }
}

#[test]
fn a_component_that_begins_within_a_turn_has_its_list_turned() {
    let osts = cluster(&servers("lustre", "a", &["4", "7"]), &servers("lustre", "b", &["1", "2"]));
    let parts = two_part(&[(0, 64 * K)], 64 * K, &[(1, 64 * K), (2, 64 * K), (3, 64 * K)]).unwrap();
    assert_eq!(
        said(FileSystem::Lustre, &parts, &osts, false),
        "lfs setstripe -E 64K -S 64K -c 1 -o 4 -E -1 -S 64K -c 3 -o 2,7,1 /d/f"
    );
    let within = two_part(&[(0, 64 * K)], 64 * K, &[(1, 128 * K), (2, 128 * K)]).unwrap();
    assert!(said(FileSystem::Lustre, &within, &osts, false).contains("begins and ends at multiples of 128K"));
}

#[test]
fn a_component_without_a_pool_does_not_inherit_one() {
    let mixed = cluster(&pool("lustre", "slow", 2), &servers("lustre", "b", &["1", "2"]));
    let parts = two_part(&[(0, 64 * K), (1, 64 * K)], 1 << 20, &[(2, 64 * K), (3, 64 * K)]).unwrap();
    assert_eq!(
        said(FileSystem::Lustre, &parts, &mixed, false),
        "lfs setstripe -E 1M -S 64K -c 2 -p slow -E -1 -S 64K -c 2 -o 1,2 -p none /d/f"
    );
}

#[test]
fn orangefs_sets_what_makes_the_others_count_last() {
    let a = ["tcp://a:3334", "tcp://b:3334"];
    let named = cluster(&servers("orangefs", "a", &a), &dirs("ssd", 2));
    let layout = varied(&[(1, 28 * K), (0, 172 * K)]).unwrap();
    let hints = |directory| {
        let set = |(hint, value)| format!("pvfs2-xattr -s -k user.pvfs2.{hint} -v {value} {directory}");
        let list = ("server_list", "\"00002 tcp://b:3334 tcp://a:3334\"");
        let distribution = [("dist_params", "\"strips:0:28K;1:172K\""), ("dist_name", "varstrip_dist")];
        [list, ("layout", "00004")].into_iter().chain(distribution).map(set).collect::<Vec<_>>().join(" && ")
    };
    assert_eq!(said(FileSystem::OrangeFs, &layout, &named, true), hints("/d/f"));
    // A file takes its layout from the directory that it is created in.
    assert_eq!(said(FileSystem::OrangeFs, &layout, &named, false), hints("/d"));
}

#[test]
fn files_spread_over_a_pool() {
    let pools = cluster(&pool("lustre", "slow", 2), &pool("lustre", "fast", 2));
    let layouts = |targets: &[u32]| targets.iter().map(|&target| on_one(target).unwrap()).collect::<Vec<_>>();
    let native = express_spread(FileSystem::Lustre, &layouts(&[0, 1]), &pools, u64::MAX).unwrap();
    assert_eq!(native.to_string(), "1G x 1 in pool slow");
    assert!(express_spread(FileSystem::Lustre, &layouts(&[0, 2]), &pools, u64::MAX).is_err());
}

#[test]
fn words_for_a_shell() {
    assert_eq!(shell("/a b'c"), "'/a b'\\''c'");
    assert_eq!(shell("/a b"), "\"/a b\"");
    assert_eq!(shell("$HOME"), "'$HOME'");
    assert_eq!((shell(""), shell("POOL(hdd)")), ("\"\"".to_owned(), "POOL(hdd)".to_owned()));
    assert_eq!(shell("/a(b)"), "\"/a(b)\"");
}
