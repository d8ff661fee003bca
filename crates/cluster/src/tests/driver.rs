//! Tiers on parallel file systems, in `cluster.toml` and in plans.

use std::path::Path;

use proptest::prelude::*;
use stripewise_layout::Stripe;

use super::{assert_clear, mutated};
use crate::{Cluster, Driver, FileSystem, Members, NativeTarget, Plan, TargetKind, format_cycle, parse_cycle};

/// A cluster with single servers and with a pool.
pub const NATIVE: &str = r#"
[class.d]
read = { random = { startup_s = 0, per_byte_s = 0 }, sequential = { startup_s = 0, per_byte_s = 0 } }
write = { random = { startup_s = 0, per_byte_s = 0 }, sequential = { startup_s = 0, per_byte_s = 0 } }

[[tier]]
name = "ost"
class = "d"
driver = "lustre"
root = "/lustre/targets"
servers = ["0", "1"]
capacity_per_server = "1T"

[[tier]]
name = "hdd"
class = "d"
driver = "cephfs"
root = "/ceph/targets"
pool = "hdd"
count = 4
capacity_per_server = "1T"
"#;

fn parse(text: &str) -> Cluster {
    Cluster::parse(text, "some.toml").unwrap()
}

#[test]
fn servers_and_pools_are_read_and_written_back() {
    let cluster = parse(NATIVE);
    assert_eq!(
        cluster.tiers[0].driver,
        Driver::Native {
            system: FileSystem::Lustre,
            root: "/lustre/targets".into(),
            members: Members::Servers(vec!["0".into(), "1".into()]),
        }
    );
    assert_eq!((cluster.target_count(), cluster.targets_of(1)), (6, 2..6));
    assert!(!cluster.tiers[0].driver.is_pool() && cluster.tiers[1].driver.is_pool());
    assert_eq!(parse(&cluster.to_toml()), cluster);
}

#[test]
fn a_native_target_is_not_written_as_the_server_after_the_last() {
    let mut cluster = parse(NATIVE);
    cluster.native_targets.push(NativeTarget { tier: 1, width: 64 << 10, count: 4 });
    let stripe = |target| Stripe { target, width: 256 << 10 };
    let cycle = [stripe(4), stripe(5), stripe(6)];
    let text = format_cycle(&cycle, &cluster);
    assert_eq!(text, "hdd/2-3:256K hdd/64Kx4:256K");
    assert_eq!(parse_cycle(&text, &cluster).unwrap(), cycle);
}

#[test]
fn native_targets_follow_all_servers() {
    let mut cluster = parse(NATIVE);
    cluster.native_targets.push(NativeTarget { tier: 1, width: 64 << 10, count: 4 });
    let targets = cluster.targets();
    assert_eq!(targets[1].path, Path::new("/lustre/targets/ost-1"));
    assert_eq!((targets[1].kind, targets[2].kind), (TargetKind::Server, TargetKind::PoolMember));
    let native = &targets[6];
    assert_eq!(
        (native.name.as_str(), native.path.as_path()),
        ("hdd/64Kx4", Path::new("/ceph/targets/hdd-64Kx4"))
    );
    assert_eq!(native.capacity, 4 << 40);
    assert_eq!(cluster.target_index("hdd/64Kx4"), Some(6));
    assert_eq!(cluster.target_index("hdd/64Kx2"), None);
    assert_eq!(cluster.tier_of(6), Some(1));
    assert_eq!(cluster.tier_of(7), None);
    assert_eq!(cluster.target_or_native("hdd/64Kx4"), Some(6), "it is there");
    assert_eq!(cluster.target_or_native("hdd/128Kx2"), Some(7), "it is added");
    for wrong in [
        "hdd/64Kx5",
        "ost/64Kx2",
        "hdd/64Kx0",
        "hdd/0x2",
        "hdd/065536x2",
        "hdd/65536x2",
        "hdd/16777215Tx1",
        "hdd/x",
        "none",
    ] {
        assert_eq!(cluster.target_or_native(wrong), None, "{wrong}");
    }
    assert_eq!(cluster.native_targets.pop().map(|native| native.width), Some(128 << 10));
    assert_eq!(cluster.directories().map(|(index, _)| index).collect::<Vec<_>>(), [0, 1, 6]);
}

#[test]
fn impossible_values_are_named_with_line_key_value_and_remedy() {
    let cases = [
        ("driver = \"lustre\"", "driver = \"dirs\"", vec!["tier[0].root", "dirs", "leave it out"]),
        ("root = \"/lustre/targets\"", "", vec!["tier[0].root: missing", "Lustre"]),
        ("\"/lustre/targets\"", "\"targets\"", vec!["tier[0].root = \"targets\"", "absolute"]),
        ("[\"0\", \"1\"]", "[]", vec!["tier[0].servers = []", "at least one server", "OST"]),
        ("[\"0\", \"1\"]", "[\"0\", \"OST1\"]", vec!["servers[1] = \"OST1\"", "lfs osts"]),
        ("[\"0\", \"1\"]", "[\"0\", \"0\"]", vec!["servers[1] = \"0\"", "already a server"]),
        ("[\"0\", \"1\"]", "[\"0\", \"1\"]\ncount = 2", vec!["tier[0].count = 2", "belongs to a pool"]),
        ("[\"0\", \"1\"]", "[\"0\", \"1\"]\npool = \"p\"", vec!["tier[0].pool = \"p\"", "leave one out"]),
        ("servers = [\"0\", \"1\"]", "", vec!["tier[0].servers: missing", "pool = "]),
        ("count = 4", "", vec!["tier[1].count: missing", "how many servers"]),
        ("count = 4", "count = 0", vec!["tier[1].count = 0", "how many servers"]),
        ("count = 4", "count = 70000", vec!["tier[1].count = 70000", "65536"]),
        ("pool = \"hdd\"", "pool = \"a b\"", vec!["tier[1].pool = \"a b\"", "spaces"]),
        ("count = 4", "count = 4\nemulate = true", vec!["tier[1].emulate = true", "cephfs", "leave it out"]),
        ("driver = \"cephfs\"", "driver = \"ceph\"", vec!["tier[1].driver = \"ceph\"", "\"cephfs\""]),
    ];
    for (from, to, parts) in cases {
        let text = NATIVE.replacen(from, to, 1);
        assert_ne!(text, NATIVE, "{from} is in the file");
        let message = Cluster::parse(&text, "some.toml").unwrap_err().to_string();
        assert_clear(&message);
        for part in parts {
            assert!(message.contains(part), "{part:?} in {message}");
        }
    }
}

/// A plan whose files are on native targets.
fn plan() -> String {
    let cluster = NATIVE.replace("[[tier]]", "[[cluster.tier]]").replace("[class.d]", "[cluster.class.d]");
    format!(
        "version = 1\nscheme = \"auto\"\n[[rule]]\npattern = \"/data/*\"\nscheme = \"PSA\"\nreason = \"\"\n\
         predicted_s = 1\nelapsed_s = 1\nlayouts = [[{{ cycle = \"hdd/64Kx4:256K ost/0-1:8K\" }}]]\n{cluster}\n\
         [[cluster.native]]\ntier = \"hdd\"\nwidth = \"64K\"\ncount = 4\n"
    )
}

#[test]
fn a_plan_with_native_targets_is_read_and_written_back() {
    let text = plan();
    let plan = Plan::parse(&text, "some.toml").unwrap();
    assert_eq!(plan.rules[0].layouts[0].targets().collect::<Vec<_>>(), [0, 1, 6]);
    assert!(plan.to_toml().contains("cycle = \"hdd/64Kx4:256K ost/0-1:8K\""), "{}", plan.to_toml());
    assert_eq!(Plan::parse(&plan.to_toml(), "some.toml").unwrap(), plan);
}

#[test]
fn wrong_native_targets_are_named() {
    let text = plan();
    let cases = [
        (
            "tier = \"hdd\"",
            "tier = \"ost\"",
            "cluster.native[0].tier = \"ost\": there is no tier of this name that",
        ),
        ("width = \"64K\"\ncount = 4", "width = \"64K\"\ncount = 5", "native[0].count = 5: must be 1 to 4"),
        ("width = \"64K\"", "width = 0", "at least 1 byte"),
        ("4:256K", "4:128K", "one turn over the servers of hdd/64Kx4 is 256K"),
        ("hdd/64Kx4:256K", "hdd/64Kx2:128K", "there is no target \"hdd/64Kx2\""),
    ];
    for (from, to, part) in cases {
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text, "{from} is in the file");
        let message = Plan::parse(&wrong, "some.toml").unwrap_err().to_string();
        assert_clear(&message);
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let in_cluster = format!("{NATIVE}\n[[native]]\ntier = \"hdd\"\nwidth = \"64K\"\ncount = 4\n");
    let message = Cluster::parse(&in_cluster, "some.toml").unwrap_err().to_string();
    assert!(message.contains("native: unknown key"), "{message}");
}

proptest! {
    #[test]
    fn mutated_files_never_panic(text in mutated(NATIVE)) {
        match Cluster::parse(&text, "some.toml") {
            Ok(cluster) => prop_assert_eq!(&parse(&cluster.to_toml()), &cluster),
            Err(error) => assert_clear(&error.to_string()),
        }
    }
}
