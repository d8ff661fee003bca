use super::*;
use crate::tests::conformance::conformance;
use crate::tests::fake::Fake;
use crate::{Driver, DriverError};

const K: u64 = 1 << 10;
const CONFIGURATION: &str = "pool 1 Default\npool 2 fast\npool 3 one\npool 4 none_in_it\ntarget 101 Default 1000\ntarget 102 Default 2000\n\
                             target 201 fast 3000\ntarget 202 fast 4000\ntarget 203 fast 5000\ntarget 301 one 6000\n";

fn beegfs(fake: &Fake) -> BeeGfs {
    BeeGfs::new(fake.tool("beegfs"))
}

fn listed(width: u64, targets: &[&str]) -> NativeLayout {
    let servers = targets.iter().map(|&target| target.to_owned()).collect();
    NativeLayout::uniform(Stripe::Listed { width, servers })
}

/// Runs the conformance suite on a fake of a release.
fn conforms_to(release: &str) {
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
    bed.files_only = vec![listed(64 * K, &["101", "102"]), listed(128 * K, &["102"])];
    let driver = BeeGfs::new(fake.tool_of(release, "beegfs"));
    conformance(&driver, &bed).require(&format!("beegfs on a fake of {release}"));
}

/// How the tool finds a mount and an entry differs between these releases (tests/fakes).
#[test]
fn conforms_to_8_0() {
    conforms_to("8.0");
}

#[test]
fn conforms_to_8_1() {
    conforms_to("8.1");
}

#[test]
fn conforms_to_8_2() {
    conforms_to("8.2");
}

#[test]
fn conforms_to_8_4() {
    conforms_to("8.4");
}

/// The tool reads the flags that are not given from BEEGFS_* (`InitGlobalFlags` in
/// ctl/internal/config/config.go).
#[test]
fn the_users_settings_do_not_matter() {
    let names = ["conforms_to_8_4", "what_it_offers", "files_on_certain_targets"];
    let settings =
        ["PAGE_SIZE=0", "DEBUG=true", "COLUMNS=alias", "MOUNT=none", "OUTPUT=ndjson", "NUM_WORKERS=0"];
    let settings = settings.map(|setting| setting.split_once('=').unwrap());
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.arg("--exact").args(names.map(|name| format!("beegfs::tests::{name}")));
    again.envs(settings.map(|(name, value)| (format!("BEEGFS_{name}"), value)));
    let output = again.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("3 passed"), "{text}");
    assert!(settings.iter().all(|(name, _)| is_hidden(&format!("BEEGFS_{name}"))));
    assert!(
        !["BEEGFS_MGMTD_ADDR", "BEEGFS_TLS_CERT_FILE", "BEEGFS_AUTH_FILE", "PATH"].into_iter().any(is_hidden)
    );
}

/// 8.4 says so in every column, earlier releases show a pattern without a type (`assembleTableRow`
/// in ctl/internal/cmd/entry/info.go).
#[test]
fn a_locked_inode_is_said() {
    let fake = Fake::new(CONFIGURATION);
    let file = fake.path("file");
    std::fs::write(&file, "x").unwrap();
    std::fs::write(fake.state("locked"), "").unwrap();
    for (release, said) in [("8.4", "does not tell now (Inode is locked)"), ("8.2", "invalid (0x0)")] {
        let error = BeeGfs::new(fake.tool_of(release, "beegfs")).entry(&file).unwrap_err().to_string();
        assert!(error.contains(said), "{release}: {error}");
    }
}

#[test]
fn what_it_offers() {
    let fake = Fake::new(&format!("{CONFIGURATION}pool 5 silent\ntarget 401 silent -\ntarget 402 silent 7\n"));
    let probe = beegfs(&fake).probe(&fake.path("")).unwrap().unwrap();
    let pools: Vec<_> =
        probe.pools.iter().map(|pool| (pool.name.as_str(), pool.servers, pool.free_bytes)).collect();
    let expected = [
        ("Default", Some(2), Some(3000)),
        ("fast", Some(3), Some(12000)),
        ("one", Some(1), Some(6000)),
        ("none_in_it", Some(0), Some(0)),
        ("silent", Some(2), None),
    ];
    assert_eq!(pools, expected);
    assert_eq!((&probe.servers[..], probe.rights.len()), (&["one".to_owned()][..], 0));
    assert_eq!(probe.notes, ["the free space of target 401 is not known"]);
}

/// `beegfs entry set` keeps the type of a pattern, which the driver must not replace.
#[test]
fn other_patterns_are_left_alone() {
    let fake = Fake::new(&format!("{CONFIGURATION}buddy 1 Default\nbuddy 2 fast\n"));
    let (beegfs, dir, layout) = (beegfs(&fake), fake.path("dir"), NativeLayout::even(64 * K, 2, Some("fast")));
    std::fs::create_dir(&dir).unwrap();
    let place = dir.to_str().unwrap();
    fake.tool("beegfs").run(&["entry", "set", "--pattern=mirrored", "--num-targets=1", place]).unwrap();
    std::fs::write(dir.join("file"), "x").unwrap();
    let before = beegfs.read_back(&dir).unwrap();
    assert_eq!((&before.layout, before.note.as_deref()), (&None, Some("its pattern is Buddy Mirror")));
    for failed in [
        beegfs.prepare(&dir, &layout),
        beegfs.prepare(&dir.join("new"), &layout),
        beegfs.create(&dir.join("made"), &layout, 0o600),
        beegfs.create(&dir.join("made"), &listed(64 * K, &["101"]), 0o600),
    ] {
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("the pattern is Buddy Mirror"), "{error}");
    }
    beegfs.remove(&dir).unwrap();
    beegfs.prepare_exact(&dir, before.exact.as_deref().unwrap()).unwrap();
    assert_eq!(beegfs.read_back(&dir).unwrap(), before);
    let file = beegfs.read_back(&dir.join("file")).unwrap();
    assert!(file.layout.is_none() && file.left_alone.is_some(), "{file:?}");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
}

/// A directory may ask for more targets than its pool has.
#[test]
fn a_directory_gets_back_what_no_file_gets() {
    let fake = Fake::new(CONFIGURATION);
    let (beegfs, dir) = (beegfs(&fake), fake.path("dir"));
    std::fs::create_dir(&dir).unwrap();
    for dir in [&dir, &fake.path("")] {
        // The root has 4 targets in a pool of 2.
        let before = beegfs.read_back(dir).unwrap();
        beegfs.prepare(dir, &NativeLayout::even(64 * K, 2, Some("fast"))).unwrap();
        assert_ne!(beegfs.read_back(dir).unwrap(), before);
        beegfs.prepare_exact(dir, before.exact.as_deref().unwrap()).unwrap();
        assert_eq!(beegfs.read_back(dir).unwrap(), before);
    }
    let error = beegfs.prepare_exact(&dir, "-S 1M -c 2").unwrap_err();
    assert!(matches!(error, DriverError::Refused { .. }), "{error}");
}

/// The directory above the root is on another file system.
#[test]
fn the_root_keeps_its_pattern() {
    let fake = Fake::new(CONFIGURATION);
    let (beegfs, root) = (beegfs(&fake), fake.path(""));
    std::fs::write(root.join("file"), "x").unwrap();
    let before = beegfs.read_back(&root).unwrap();
    beegfs.remove(&root).unwrap();
    assert_eq!(beegfs.read_back(&root).unwrap(), before);
}

#[test]
fn pools_that_are_not_told_are_not_taken_for_none() {
    let fake = Fake::new(CONFIGURATION);
    let (beegfs, dir) = (beegfs(&fake), fake.path("dir"));
    std::fs::write(fake.state("fail"), "pool list").unwrap();
    let error = beegfs.prepare(&dir, &NativeLayout::even(64 * K, 2, Some("fast"))).unwrap_err();
    assert!(matches!(error, DriverError::Tool { .. }), "{error}");
    beegfs.prepare(&dir, &NativeLayout::even(64 * K, 2, None)).unwrap();
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
    let with = |program| BeeGfs::new(Tool::at(program));
    let error = with("/bin/echo").entry(path).unwrap_err().to_string();
    assert!(error.contains("is not understood"), "{error}");
    assert_eq!(with("/bin/echo").probe(path).unwrap(), None);
    assert_eq!(with("/nowhere/beegfs").probe(path).unwrap(), None);
}
