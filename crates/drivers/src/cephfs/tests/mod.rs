//! Tests the driver on a strict stand-in, and, where `STRIPEWISE_CEPHFS` names a mounted directory,
//! on a real CephFS.

mod between;
mod stand_in;

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use stripewise_native::{Names, Objects, Stripe};
use stripewise_sys::Sys;
use tempfile::TempDir;

use super::handle::DIR_LAYOUT;
use super::*;
use crate::mounts::Mount;
use crate::tests::conformance::{Bed, conformance, without_rights};
use crate::tool::Tool;
use between::Between;

const K: u64 = 1 << 10;

/// A stand-in for a CephFS, in a directory.
struct Fake {
    dir: TempDir,
    between: Arc<Between>,
    ceph: CephFs,
}

impl Fake {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let between = Arc::new(Between::new(Some(top.clone())));
        let mount = Mount { point: top, kind: "ceph".into() };
        let mount_of = move |path: &Path| {
            let path = files::absolute(path)?;
            Ok(Some(mount.clone()).filter(|mount| path.starts_with(&mount.point)))
        };
        let ceph =
            CephFs { sys: between.clone(), mount_of: Arc::new(mount_of), ceph: Tool::at("/nowhere/ceph") };
        Self { dir, between, ceph }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn no_such_layouts() -> Vec<NativeLayout> {
    let servers = vec!["hdd".to_owned(), "ssd".to_owned()];
    let mut all: Vec<_> =
        [64 * K + 1, 28 * K, 0, 256 << 20].map(|width| NativeLayout::even(width, 1, Some("hdd"))).into();
    all.push(NativeLayout::even(64 * K, 0, Some("hdd")));
    all.push(NativeLayout::uniform(Stripe::Listed { width: 64 * K, servers }));
    all.push(NativeLayout::uniform(Stripe::Varied { stripes: vec![("hdd".to_owned(), 64 * K)] }));
    all
}

fn bed(dir: PathBuf, elsewhere: &TempDir, pools: &[String], between: &Arc<Between>) -> Bed {
    let (ignores, interrupts) = (between.clone(), between.clone());
    let pool = |number: usize| Some(pools[number % pools.len()].as_str());
    Bed {
        dir,
        elsewhere: Some(elsewhere.path().to_owned()),
        supported: vec![
            NativeLayout::even(64 * K, 4, pool(0)),
            NativeLayout::even(192 * K, 3, pool(1)),
            NativeLayout::even(1 << 20, 1, pool(2)),
        ],
        unsupported: no_such_layouts(),
        refused: vec![(NativeLayout::even(64 * K, 1, Some("no-such-pool")), "\"no-such-pool\"".to_owned())],
        ignore_hints: Some(Box::new(move |on| ignores.ignores_hints.store(on, Relaxed))),
        interrupt: Some(Box::new(move |after| {
            interrupts.left.store(after.map_or(-1, |after| after as i64), Relaxed);
        })),
        ..Bed::default()
    }
}

#[test]
fn conforms_on_a_stand_in() {
    let (fake, elsewhere) = (Fake::new(), tempfile::tempdir().unwrap());
    let pools = ["hdd", "ssd", "hdd0"].map(str::to_owned);
    let mut bed = bed(fake.path(""), &elsewhere, &pools, &fake.between);
    bed.full = Some(NativeLayout::even(64 * K, 1, Some("ssd")));
    let denies = fake.between.clone();
    bed.forbidden = Some(Box::new(move |_, run| {
        denies.read_only.store(true, Relaxed);
        run();
        denies.read_only.store(false, Relaxed);
    }));
    // Only one check writes to a full pool.
    bed.supported[1] = NativeLayout::even(192 * K, 3, Some("hdd0"));
    *fake.between.trouble.lock().unwrap() = Some(("ssd", Errno::NOSPC));
    let outcome = conformance(&fake.ceph, &bed);
    outcome.require("cephfs on a stand-in");
    assert_eq!(outcome.skipped, []);
}

#[test]
fn conforms_on_a_real_cephfs() {
    let Some(mounted) = env::var_os("STRIPEWISE_CEPHFS").filter(|path| !path.is_empty()) else {
        println!(
            "cephfs: SKIPPED, not tried on a real one: STRIPEWISE_CEPHFS does not name a directory on a mounted CephFS"
        );
        return;
    };
    let between = Arc::new(Between::new(None));
    let ceph = CephFs { sys: between.clone(), ..CephFs::default() };
    let probe = ceph.probe(Path::new(&mounted)).unwrap().expect("STRIPEWISE_CEPHFS is not on a CephFS");
    println!("{probe:#?}");
    let full = env::var("STRIPEWISE_CEPHFS_FULL").ok();
    let pools: Vec<String> =
        probe.pools.into_iter().map(|pool| pool.name).filter(|name| Some(name) != full.as_ref()).collect();
    let dir = tempfile::Builder::new().prefix("conformance-").tempdir_in(mounted).unwrap();
    // Readable for other users.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut bed = bed(dir.path().to_owned(), &elsewhere, &pools, &between);
    bed.full = full.map(|pool| NativeLayout::even(64 * K, 1, Some(&pool)));
    bed.forbidden = Some(without_rights());
    conformance(&ceph, &bed).require("cephfs");
}

#[test]
fn servers_are_pools_with_one_stripe() {
    let fake = Fake::new();
    let one =
        |pool: &str| NativeLayout::uniform(Stripe::Listed { width: 4 << 20, servers: vec![pool.to_owned()] });
    fake.ceph.prepare(&fake.path("t"), &one("hdd0")).unwrap();
    let actual = fake.ceph.read_back(&fake.path("t")).unwrap();
    assert_eq!(actual.layout, Some(NativeLayout::even(4 << 20, 1, Some("hdd0"))));
    assert_eq!(actual.note.unwrap(), "objects of 4M");
}

#[test]
fn who_fails_leaves_what_was_set_before() {
    let fake = Fake::new();
    *fake.between.trouble.lock().unwrap() = Some(("ssd", Errno::DQUOT));
    let (dir, full) = (fake.path("t"), NativeLayout::even(64 * K, 1, Some("ssd")));
    std::fs::create_dir(&dir).unwrap();
    let get = || fake.ceph.dir(&dir).text().unwrap();
    for before in [None, Some("stripe_unit=131072 stripe_count=2 object_size=4194304 pool=hdd")] {
        if let Some(before) = before {
            fake.between.set_xattr(Kind::Named(HERE, &dir), OsStr::new(DIR_LAYOUT), before.as_bytes()).unwrap();
        }
        let error = fake.ceph.prepare(&dir, &full).unwrap_err();
        assert!(matches!(error, DriverError::Full { .. }), "{error}");
        assert_eq!(get().as_deref(), before);
    }
}

#[test]
fn pools_are_found_by_number_and_those_of_others_are_not() {
    let fake = Fake::new();
    *fake.between.trouble.lock().unwrap() = Some(("ssd", Errno::NOSPC));
    let probe = fake.ceph.probe(fake.dir.path()).unwrap().unwrap();
    let names: Vec<_> = probe.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["hdd", "ssd", "hdd0"]);
    assert!(probe.notes.iter().any(|note| note == "pool ssd is full"), "{:?}", probe.notes);
    assert!(probe.notes.iter().any(|note| note.contains("/nowhere/ceph")), "{:?}", probe.notes);
    assert_eq!((probe.rights, probe.servers), (vec![], vec![]));
    // Servers that do not let this user write.
    *fake.between.trouble.lock().unwrap() = Some(("ssd", Errno::PERM));
    let probe = fake.ceph.probe(fake.dir.path()).unwrap().unwrap();
    let names: Vec<_> = probe.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["hdd", "hdd0"]);
    assert!(probe.rights[0].starts_with("writing to pool ssd takes OSD capabilities"), "{:?}", probe.rights);
    let error = fake.ceph.prepare(&fake.path("t"), &NativeLayout::even(64 * K, 1, Some("ssd"))).unwrap_err();
    assert!(matches!(&error, DriverError::Denied { remedy, .. } if *remedy == probe.rights[0]), "{error}");
    assert_eq!(std::fs::read_dir(fake.dir.path()).unwrap().count(), 0);
}

#[test]
fn without_the_flag_p_the_remedy_is_named() {
    let fake = Fake::new();
    fake.between.no_layouts.store(true, Relaxed);
    let probe = fake.ceph.probe(fake.dir.path()).unwrap().unwrap();
    assert!(probe.rights[0].contains("flag p"), "{:?}", probe.rights);
    let names: Vec<_> = probe.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["hdd"], "that of the directory itself");
    let layout = NativeLayout::even(64 * K, 1, Some("ssd"));
    let prepared = fake.ceph.prepare(&fake.path("t"), &layout).unwrap_err();
    let created = fake.ceph.create(&fake.path("f"), &layout, 0o600).unwrap_err();
    for error in [prepared, created] {
        assert!(matches!(error, DriverError::Denied { .. }) && error.to_string().contains("rwp"), "{error}");
    }
    assert_eq!(std::fs::read_dir(fake.dir.path()).unwrap().count(), 0);
    // A directory prepared by another user is accepted.
    fake.between.no_layouts.store(false, Relaxed);
    fake.ceph.prepare(&fake.path("t"), &layout).unwrap();
    fake.between.no_layouts.store(true, Relaxed);
    fake.ceph.prepare(&fake.path("t"), &layout).unwrap();
}

#[test]
fn objects_of_another_length_are_another_layout() {
    let fake = Fake::new();
    let layout = NativeLayout::even(64 * K, 2, Some("ssd"));
    fake.ceph.prepare(&fake.path("t"), &layout).unwrap();
    let has = |layout: &NativeLayout| fake.ceph.has(&fake.ceph.read_back(&fake.path("t")).unwrap(), layout);
    assert!(has(&layout) && !has(&NativeLayout::even(64 * K, 1, Some("ssd"))));
    let name = OsStr::new("ceph.dir.layout.object_size");
    fake.between.set_xattr(Kind::Named(HERE, &fake.path("t")), name, b"8388608").unwrap();
    assert!(!has(&layout));
    fake.between.ignores_hints.store(true, Relaxed);
    let error = fake.ceph.prepare(&fake.path("t"), &layout).unwrap_err();
    assert!(error.to_string().contains("its objects are 8M instead of 4M"), "{error}");
}

#[test]
fn what_it_says_exactly_is_given_back_exactly() {
    let fake = Fake::new();
    let exact = "stripe_unit=131072 stripe_count=2 object_size=16777216 pool=ssd";
    std::fs::create_dir(fake.path("t")).unwrap();
    let root = fake.ceph.read_back(&fake.path("t")).unwrap();
    assert!(root.inherited, "{root:?}");
    fake.ceph.prepare_exact(&fake.path("t"), exact).unwrap();
    let made = fake.ceph.create_exact(&fake.path("f"), exact, 0o600).unwrap();
    let open = fake.ceph.read_back_open(&fake.path("f"), made.as_fd()).unwrap();
    let (inside, hdd) = (fake.path("t/f"), NativeLayout::even(64 * K, 1, Some("hdd")));
    let told = fake.ceph.create_open(&inside, &hdd, 0o600).unwrap();
    let got = fake.ceph.read_back_open(&inside, told.as_fd()).unwrap().layout;
    assert_eq!(got, Some(hdd), "not what its directory gives");
    for path in ["t", "f"] {
        let actual = fake.ceph.read_back(&fake.path(path)).unwrap();
        assert_eq!((actual.exact.as_deref(), actual.inherited), (Some(exact), false), "{path}");
        assert_eq!(actual.layout, Some(NativeLayout::even(128 * K, 2, Some("ssd"))));
        assert!(path == "t" || actual == open);
        let inode = (path == "f").then(|| std::fs::metadata(fake.path("f")).unwrap().ino());
        let names = inode.map(|inode| Names { inode, namespace: String::new() });
        assert_eq!(actual.objects, Some(Objects { size: 16 << 20, names }), "{path}");
    }
    // A layout alone would have made objects of 4M.
    fake.between.ignores_hints.store(true, Relaxed);
    let other = exact.replace("16777216", "8388608");
    assert!(fake.ceph.prepare_exact(&fake.path("t"), &other).is_err());
    assert!(fake.ceph.create_exact(&fake.path("g"), &other, 0o600).is_err() && !fake.path("g").exists());
    // A layout inherited from the directory need not be set.
    drop(fake.ceph.create_exact(&fake.path("t/g"), exact, 0o600).unwrap());
    for (call, nonsense) in [(0, "stripe"), (1, "width=3 servers=ost0")] {
        let error = match call {
            0 => fake.ceph.prepare_exact(&fake.path("t"), nonsense).unwrap_err(),
            _ => fake.ceph.create_exact(&fake.path("n"), nonsense, 0o600).map(drop).unwrap_err(),
        };
        assert!(error.to_string().contains("not understood"), "{error}");
    }
    assert!(!fake.path("n").exists());
    let null = crate::tests::null::Null::default();
    assert!(null.prepare_exact(&fake.path("t"), exact).is_err(), "a driver that never says it exactly");
}
