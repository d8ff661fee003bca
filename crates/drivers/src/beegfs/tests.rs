use super::*;
use crate::tests::conformance::conformance;
use crate::tests::fake::Fake;
use crate::{Driver, DriverError};

const K: u64 = 1 << 10;
const CONFIGURATION: &str = "pool 1 Default\npool 2 fast\npool 3 one\npool 4 none_in_it\ntarget 101 Default 1000\ntarget 102 Default 2000\n\
                             target 201 fast 3000\ntarget 202 fast 4000\ntarget 203 fast 5000\ntarget 301 one 6000\n";

fn beegfs(fake: &Fake) -> BeeGfs {
    BeeGfs { tool: fake.tool("beegfs") }
}

fn listed(width: u64, targets: &[&str]) -> NativeLayout {
    let servers = targets.iter().map(|&target| target.to_owned()).collect();
    NativeLayout::uniform(Stripe::Listed { width, servers })
}

#[test]
fn conforms_on_a_fake() {
    let fake = Fake::new(CONFIGURATION);
    let even = NativeLayout::even;
    let supported =
        vec![even(64 * K, 2, Some("fast")), even(1024 * K, 1, Some("one")), even(128 * K, 2, Some("Default"))];
    let unsupported = vec![
        even(192 * K, 1, None),
        even(32 * K, 1, None),
        even(4 << 30, 1, None),
        NativeLayout::uniform(Stripe::Varied { stripes: vec![("101".into(), 64 * K)] }),
    ];
    let mut bed = fake.bed(supported, unsupported, false);
    bed.refused = vec![
        (even(64 * K, 1, Some("tape")), "`beegfs pool list` lists the pools".into()),
        (even(64 * K, 1, Some("none_in_it")), "does not contain any targets".into()),
        // BeeGFS uses the targets that exist.
        (even(64 * K, 4, Some("fast")), "was asked for, but it has 64K x 3".into()),
    ];
    conformance(&beegfs(&fake), &bed).require("beegfs on a fake");
}

#[test]
fn what_it_offers() {
    let fake = Fake::new(CONFIGURATION);
    let probe = beegfs(&fake).probe(&fake.path("")).unwrap().unwrap();
    let pools: Vec<_> =
        probe.pools.iter().map(|pool| (pool.name.as_str(), pool.servers, pool.free_bytes)).collect();
    let expected = [
        ("Default", Some(2), Some(3000)),
        ("fast", Some(3), Some(12000)),
        ("one", Some(1), Some(6000)),
        ("none_in_it", Some(0), Some(0)),
    ];
    assert_eq!(pools, expected);
    assert_eq!((&probe.servers[..], probe.rights.len()), (&["one".to_owned()][..], 0));
}

#[test]
fn files_on_certain_targets() {
    let fake = Fake::new(CONFIGURATION);
    let (beegfs, file) = (beegfs(&fake), fake.path("file"));
    // The tool passes the targets on in any order.
    beegfs.create(&file, &listed(64 * K, &["101", "102"]), 0o640).unwrap();
    let actual = beegfs.read_back(&file).unwrap();
    assert_eq!(actual.layout, Some(NativeLayout::even(64 * K, 2, Some("Default"))));
    assert_eq!(actual.note.unwrap(), "on targets 102, 101");
    let error = beegfs.create(&file, &listed(64 * K, &["101"]), 0o640).unwrap_err();
    assert!(matches!(error, DriverError::Exists { .. }), "{error}");
    for (layout, word) in
        [(listed(64 * K, &["7"]), "lists the targets"), (listed(64 * K, &["201"]), "not in the pool Default")]
    {
        let error = beegfs.create(&fake.path("other"), &layout, 0o600).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let error = beegfs.prepare(&fake.path("dir"), &listed(64 * K, &["101"])).unwrap_err();
    assert!(matches!(error, DriverError::Unsupported { .. }), "{error}");
}

#[test]
fn a_tool_that_makes_no_sense_is_said() {
    let path = Path::new("/tmp");
    let with = |program| BeeGfs { tool: Tool::at(program) };
    let error = with("/bin/echo").entry(path).unwrap_err().to_string();
    assert!(error.contains("is not understood"), "{error}");
    assert_eq!(with("/bin/echo").probe(path).unwrap(), None);
    assert_eq!(with("/nowhere/beegfs").probe(path).unwrap(), None);
}
