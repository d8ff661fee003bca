//! Layouts that a file system would refuse are refused before it is asked.

use stripewise_cluster::FileSystem::{self, BeeGfs, CephFs, Lustre, OrangeFs};

use super::{K, M};
use crate::{Component, NativeLayout, Stripe, check};

fn listed(width: u64, servers: &[&str]) -> NativeLayout {
    let servers = servers.iter().map(|&server| server.to_owned()).collect();
    NativeLayout::uniform(Stripe::Listed { width, servers })
}

fn varied(stripes: &[(&str, u64)]) -> NativeLayout {
    let stripes = stripes.iter().map(|&(server, width)| (server.to_owned(), width)).collect();
    NativeLayout::uniform(Stripe::Varied { stripes })
}

fn components(ends: &[Option<u64>]) -> NativeLayout {
    let stripe = Stripe::Even { width: 64 * K, count: 1, pool: None };
    NativeLayout { components: ends.iter().map(|&end| Component { end, stripe: stripe.clone() }).collect() }
}

#[test]
fn widths() {
    let even = |width| NativeLayout::even(width, 4, None);
    for (system, width, ok) in [
        (Lustre, 64 * K, true),
        (Lustre, 192 * K, true),
        (Lustre, 28 * K, false),
        (Lustre, 0, false),
        (Lustre, 4 << 30, false),
        (Lustre, (4 << 30) - 64 * K, true),
        (CephFs, 192 * K, true),
        (CephFs, 28 * K, false),
        (CephFs, 4 << 30, false),
        (BeeGfs, 64 * K, true),
        (BeeGfs, 192 * K, false),
        (BeeGfs, 32 * K, false),
        (BeeGfs, 2 << 30, true),
        (BeeGfs, 4 << 30, false),
        (OrangeFs, 28 * K, true),
        (OrangeFs, 1, true),
        (OrangeFs, 0, false),
    ] {
        let result = check(system, &even(width));
        assert_eq!(result.is_ok(), ok, "{} {width}: {result:?}", system.title());
    }
}

#[test]
fn counts_and_servers() {
    let osts: Vec<String> = (0..2000).map(|index| (index % 7).to_string()).collect();
    let osts: Vec<&str> = osts.iter().map(String::as_str).collect();
    for (system, layout, ok) in [
        (Lustre, NativeLayout::even(M, 2000, None), true),
        (Lustre, NativeLayout::even(M, 2001, None), false),
        (Lustre, NativeLayout::even(M, 0, None), false),
        (Lustre, listed(M, &osts[..1999]), true),
        (Lustre, listed(M, &osts), false),
        (Lustre, listed(M, &["0", "1", "1"]), true),
        (Lustre, listed(M, &["ost1"]), false),
        (Lustre, listed(M, &[]), false),
        (Lustre, NativeLayout::even(M, 1, Some("a.pool")), false),
        (Lustre, NativeLayout::even(M, 1, Some("sixteen_letters_")), false),
        (BeeGfs, listed(M, &["101", "102"]), true),
        (BeeGfs, listed(M, &["101", "101"]), false),
        (CephFs, listed(M, &["0", "1"]), false),
        (CephFs, NativeLayout::even(M, 0, None), false),
        (OrangeFs, listed(M, &["tcp://a:1", "tcp://b:1"]), true),
        (OrangeFs, listed(M, &["tcp://a:1", "tcp://a:1"]), false),
        (OrangeFs, listed(M, &["tcp://a:1,tcp://b:1"]), false),
        (OrangeFs, NativeLayout::even(M, 2, Some("hdd")), false),
        // As many as pvfs2-viewdist shows.
        (OrangeFs, NativeLayout::even(M, 256, None), true),
        (OrangeFs, NativeLayout::even(M, 257, None), false),
    ] {
        let result = check(system, &layout);
        assert_eq!(result.is_ok(), ok, "{} {layout}: {result:?}", system.title());
    }
}

#[test]
fn varied_stripes_and_groups_are_orangefs_alone() {
    let stripes = varied(&[("a", 28 * K), ("b", 172 * K), ("a", 1)]);
    let servers = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let grouped = |groups, factor| {
        NativeLayout::uniform(Stripe::Grouped { width: K, groups, factor, servers: servers.clone() })
    };
    for system in FileSystem::ALL {
        assert_eq!(check(system, &stripes).is_ok(), system == OrangeFs);
        assert_eq!(check(system, &grouped(2, 4)).is_ok(), system == OrangeFs);
    }
    assert!(check(OrangeFs, &grouped(4, 1)).is_err() && check(OrangeFs, &grouped(0, 1)).is_err());
    assert!(check(OrangeFs, &grouped(1, 0)).is_err());
    let servers: Vec<String> = (0..200).map(|index| index.to_string()).collect();
    let long: Vec<(&str, u64)> = servers.iter().map(|server| (server.as_str(), 28 * K)).collect();
    assert!(check(OrangeFs, &varied(&long[..100])).is_ok());
    assert!(check(OrangeFs, &varied(&long)).unwrap_err().contains("longer than 1024 bytes"));
    let servers: Vec<String> = (0..200).map(|index| format!("tcp://io{index:010}:3334")).collect();
    let list = NativeLayout::uniform(Stripe::Listed { width: K, servers });
    assert!(check(OrangeFs, &list).unwrap_err().contains("longer than 4095 bytes"));
}

#[test]
fn components_follow_one_another_in_lustre_only() {
    let two = components(&[Some(M), None]);
    for system in FileSystem::ALL {
        assert_eq!(check(system, &two).is_ok(), system == Lustre);
        assert!(check(system, &components(&[])).is_err());
        assert!(check(system, &components(&[Some(M)])).is_err());
    }
    for bad in [
        components(&[None, None]),
        components(&[Some(M), Some(M), None]),
        components(&[Some(2 * M), Some(M), None]),
        components(&[Some(0), None]),
        components(&[Some(M + 1), None]),
        components(&[Some(M), None, Some(M)]),
    ] {
        assert!(check(Lustre, &bad).is_err(), "{bad}");
    }
}
