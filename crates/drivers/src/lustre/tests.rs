use stripewise_native::{Component, Stripe};

use super::*;
use crate::tests::conformance::conformance;
use crate::tests::fake::Fake;
use crate::{Driver, DriverError};

pub const K: u64 = 1 << 10;
pub const CONFIGURATION: &str = "fsname testfs\nost 0 1000\nost 1 2000\nost 2 3000\nost 10 4000 D\npool hdd 0 1\npool ssd 2 10\npool none_in_it\n";

/// The versions whose sources the fake follows.
pub const VERSIONS: [&str; 5] = ["2.12.9", "2.14.0", "2.15.8", "2.16.1", "2.17.57"];

pub fn lustre(fake: &Fake) -> Lustre {
    Lustre::new(fake.tool("lfs"))
}

pub fn listed(width: u64, osts: &[&str]) -> Stripe {
    Stripe::Listed { width, servers: osts.iter().map(|&ost| ost.to_owned()).collect() }
}

pub fn components(parts: Vec<(Option<u64>, Stripe)>) -> NativeLayout {
    NativeLayout { components: parts.into_iter().map(|(end, stripe)| Component { end, stripe }).collect() }
}

#[test]
fn conforms_on_a_fake_of_each_version() {
    // At the same time: each starts some thousand processes, one after the other.
    std::thread::scope(|scope| VERSIONS.iter().for_each(|version| _ = scope.spawn(|| conforms(version))));
}

fn conforms(version: &str) {
    let fake = Fake::new(&format!("{CONFIGURATION}version {version}\n"));
    let even = |width, count, pool| NativeLayout::even(width, count, pool);
    let supported = vec![
        even(64 * K, 2, Some("hdd")),
        NativeLayout::uniform(listed(128 * K, &["10"])),
        components(vec![
            (Some(1024 * K), Stripe::Even { width: 64 * K, count: 1, pool: Some("ssd".into()) }),
            (None, Stripe::Even { width: 256 * K, count: 2, pool: Some("hdd".into()) }),
        ]),
    ];
    let unsupported = vec![
        even(28 * K, 1, None),
        even(4 << 30, 1, None),
        even(64 * K, 2001, None),
        even(64 * K, 1, Some("sixteen_letters_")),
        NativeLayout::uniform(listed(64 * K, &["OST0000"])),
        NativeLayout::uniform(Stripe::Varied { stripes: vec![("0".into(), 64 * K)] }),
        components(vec![(Some(100 * K), listed(64 * K, &["0"])), (None, listed(64 * K, &["1"]))]),
    ];
    let mut bed = fake.bed(supported, unsupported, true);
    bed.inherits_pools = version < "2.15";
    bed.refused = vec![
        (even(64 * K, 1, Some("tape")), "`lfs pool_list` lists the pools".into()),
        (even(64 * K, 1, Some("none_in_it")), "has no OSTs".into()),
        (NativeLayout::uniform(listed(64 * K, &["7"])), "`lfs osts` lists the OSTs".into()),
        // Lustre uses the OSTs that the pool has.
        (even(64 * K, 4, Some("hdd")), "was asked for, but it has 64K x 2".into()),
    ];
    conformance(&lustre(&fake), &bed).require(&format!("lustre {version} on a fake"));
}

/// For a directory `lfs` shows only the first OST; for its new files it shows all.
#[test]
fn lists_of_osts_also_overstriped() {
    let fake = Fake::new(CONFIGURATION);
    let lustre = lustre(&fake);
    for (name, osts) in [("apart", &["10", "0", "1"][..]), ("again", &["2", "0", "2", "2"])] {
        let (dir, layout) = (fake.path(name), NativeLayout::uniform(listed(64 * K, osts)));
        lustre.prepare(&dir, &layout).unwrap();
        assert_eq!(
            lustre.read_back(&dir).unwrap().layout,
            Some(NativeLayout::even(64 * K, osts.len() as u32, None))
        );
        std::fs::write(dir.join("written"), "x").unwrap();
        lustre.create(&fake.path(&format!("{name}-file")), &layout, 0o600).unwrap();
        for file in [dir.join("written"), fake.path(&format!("{name}-file"))] {
            assert_eq!(lustre.read_back(&file).unwrap().layout.as_ref(), Some(&layout));
        }
    }
}

#[test]
fn what_it_offers() {
    let fake = Fake::new(CONFIGURATION);
    let probe = lustre(&fake).probe(&fake.path("")).unwrap().unwrap();
    assert_eq!(probe.servers, ["0", "1", "2", "10"]);
    let pools: Vec<_> =
        probe.pools.iter().map(|pool| (pool.name.as_str(), pool.servers, pool.free_bytes)).collect();
    let expected =
        [("hdd", Some(2), Some(3000 * K)), ("ssd", Some(2), Some(7000 * K)), ("none_in_it", Some(0), Some(0))];
    assert_eq!(pools, expected);
    assert_eq!(
        (probe.rights.len(), &probe.notes[..]),
        (0, &["OST 10 is not well (D): see lfs-df(1)".to_owned()][..])
    );
}

#[test]
fn parts_are_read_back_as_exactly_as_they_are_known() {
    let (fake, parts) = (Fake::new(CONFIGURATION), |end| {
        components(vec![(Some(end), listed(64 * K, &["0"])), (None, listed(64 * K, &["10", "2"]))])
    });
    let (lustre, file) = (lustre(&fake), fake.path("file"));
    lustre.create(&file, &parts(1024 * K), 0o644).unwrap();
    // The second component has no objects before it is written, only the OST that it begins on.
    let actual = lustre.read_back(&file).unwrap();
    assert_eq!(actual.layout.unwrap().to_string(), "64K on 0 up to 1M, then 64K x 2");
    let pooled = fake.path("pooled");
    lustre.create(&pooled, &NativeLayout::even(64 * K, 2, Some("ssd")), 0o600).unwrap();
    assert!(lustre.read_back(&pooled).unwrap().note.unwrap().starts_with("on OSTs "));
}

#[test]
fn a_full_pool_is_said() {
    let fake = Fake::new(&format!("{CONFIGURATION}full 2 10\n"));
    let error =
        lustre(&fake).create(&fake.path("f"), &NativeLayout::even(64 * K, 1, Some("ssd")), 0o600).unwrap_err();
    assert!(matches!(error, DriverError::Full { .. }), "{error}");
}

/// The names are in the tool's errors, and long ones are not all shown.
#[test]
fn names_do_not_read_like_errors() {
    let fake = Fake::new(&format!("{CONFIGURATION}full 2 10\n"));
    for name in ["File exists", "stripe already set", &"x".repeat(250)] {
        let dir = fake.path(name).join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("Permission denied");
        let error =
            lustre(&fake).create(&file, &NativeLayout::even(64 * K, 1, Some("ssd")), 0o600).unwrap_err();
        assert!(matches!(error, DriverError::Full { .. }), "{error}");
    }
}

#[test]
fn an_lfs_that_makes_no_sense_finds_no_lustre() {
    let with = |program| Lustre::new(Tool::at(program));
    // The mount table decides what it means that a tool tells nothing about a path.
    for program in ["/bin/echo", "/bin/false", "/nowhere/lfs"] {
        assert_eq!(with(program).probe(Path::new("/tmp")).unwrap(), None);
        let error = with(program).read_back(Path::new("/tmp")).unwrap_err();
        assert!(matches!(error, DriverError::Elsewhere { .. }), "{error}");
    }
}

#[test]
fn names_that_a_tool_would_take_for_others() {
    use std::os::unix::ffi::OsStrExt;
    let fake = Fake::new(CONFIGURATION);
    for name in [&b"\xff"[..], b"-x"] {
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        let path = if name.to_str().is_none() { fake.path("").join(name) } else { name.to_owned() };
        let error = lustre(&fake).create(&path, &NativeLayout::even(64 * K, 1, None), 0o600).unwrap_err();
        assert!(matches!(error, DriverError::Refused { .. }), "{error}");
    }
}
