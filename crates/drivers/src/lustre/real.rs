//! How real versions of Lustre behave, point by point, on the fake. The fake names the source of
//! each behavior.

use std::fs;

use super::tests::{CONFIGURATION, K, VERSIONS, components, listed, lustre};
use super::*;
use crate::Driver;
use crate::tests::fake::Fake;

/// A fake of a version, with further lines of its configuration.
fn fake(version: &str, lines: &str) -> Fake {
    Fake::new(&format!("{CONFIGURATION}version {version}\n{lines}"))
}

fn even(count: u32, pool: Option<&str>) -> Stripe {
    Stripe::Even { width: 64 * K, count, pool: pool.map(str::to_owned) }
}

fn entries(fake: &Fake) -> Vec<String> {
    let names = fs::read_dir(fake.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

/// `lfs` as a user types it.
fn run(fake: &Fake, options: &str, path: &Path) {
    let words = options.split(' ').chain([path.to_str().unwrap()]);
    fake.tool("lfs").run(&words.collect::<Vec<_>>()).unwrap();
}

/// lfs.c: setstripe_args_init_inherit, lsa_args_stripe_count_check.
#[test]
fn a_list_follows_components_of_another_count() {
    for version in VERSIONS {
        let fake = fake(version, "");
        let layout = components(vec![
            (Some(1024 * K), even(2, Some("hdd"))),
            (Some(2048 * K), listed(64 * K, &["0", "10", "2"])),
            (None, even(1, None)),
        ]);
        lustre(&fake).create(&fake.path("file"), &layout, 0o600).unwrap();
    }
}

/// liblustreapi.c: llapi_file_open_param; lfs.c: lfs_component_create.
#[test]
fn a_refused_file_is_not_left_behind() {
    let composite = components(vec![(Some(1024 * K), even(1, Some("ssd"))), (None, even(1, None))]);
    for version in VERSIONS {
        for layout in [NativeLayout::even(64 * K, 1, Some("ssd")), composite.clone()] {
            let fake = fake(version, "full 2 10\n");
            let error = lustre(&fake).create(&fake.path("file"), &layout, 0o600).unwrap_err();
            // The composite's status is 1, which is not EPERM here.
            assert!(matches!(error, DriverError::Full { .. }), "{version}: {error}");
            assert!(entries(&fake).is_empty(), "{version}: {:?}", entries(&fake));
        }
    }
}

/// lfs.c: lfs_df prints nothing and ends with 0 up to 2.14.
#[test]
fn a_directory_elsewhere_is_no_error() {
    for version in VERSIONS {
        let fake = fake(version, "");
        assert_eq!(lustre(&fake).probe(Path::new("/")).unwrap(), None, "{version}");
    }
}

/// lod_qos.c: lod_qos_parse_config keeps the name of a pool that it ignores.
#[test]
fn a_pool_that_the_servers_ignore_is_noticed() {
    let pooled = NativeLayout::even(64 * K, 2, Some("hdd"));
    for version in VERSIONS {
        let fake = fake(version, "unpooled\n");
        let seen = (0..4).map(|n| lustre(&fake).create(&fake.path(&format!("f{n}")), &pooled, 0o600));
        // Files may be on the pool's OSTs by chance.
        let wrong: Vec<_> = seen.filter_map(Result::err).collect();
        assert!(!wrong.is_empty(), "{version}");
        assert!(wrong.iter().all(|error| error.to_string().contains("the pool has [0, 1]")), "{wrong:?}");
        assert_eq!(entries(&fake).len(), 4 - wrong.len());
    }
}

/// lfs.c: mntdf; the table is complete although the status is an error.
#[test]
fn osts_that_do_not_answer_block_nothing() {
    for version in VERSIONS {
        let fake = fake(version, "ost 3 500 f\nost 4 500\nost 5 500 fR\nsilent 3\ninactive 4\n");
        let probe = lustre(&fake).probe(&fake.path("")).unwrap().unwrap();
        assert_eq!(probe.servers, ["0", "1", "2", "5", "10"]);
        let notes = [
            "OST 5 is not well (R)",
            "OST 10 is not well (D)",
            "OST 3 does not answer (Cannot send after transport endpoint shutdown)",
            "OST 4 does not answer (inactive device)",
        ];
        assert_eq!(probe.notes.len(), notes.len(), "{:?}", probe.notes);
        assert!(
            probe.notes.iter().zip(notes).all(|(note, start)| note.starts_with(start)),
            "{:?}",
            probe.notes
        );
        lustre(&fake)
            .create(&fake.path("file"), &NativeLayout::uniform(listed(64 * K, &["0"])), 0o600)
            .unwrap();
    }
}

/// Data on the metadata server, self-extending components, mirrors and counts below 0 are read,
/// replaced, and restored exactly.
#[test]
fn defaults_that_no_layout_expresses_are_restored() {
    let plain = ["-S 1M -c -1", "-S 4M -c 2 -p ssd", "-E 1M -L mdt -E -1 -S 1M -c -1"];
    let extending = ["-E 1M -L mdt -E 1G -S 1M -c 2 -z 64M -E -1 -S 1M -c 1", "-S 1M -C 7"];
    let mirrored = ["-N -E -1 -S 1M -c 1 -p hdd --comp-flags=prefer -N -E -1 -S 1M -c 2 -p ssd"];
    for version in VERSIONS {
        let old = version.starts_with("2.12");
        let many = (version > "2.16").then_some("-S 1M -C -2");
        let extending = extending.iter().filter(|_| !old);
        for options in plain.iter().chain(extending).chain(&mirrored).copied().chain(many) {
            let fake = fake(version, "");
            let (lustre, dir) = (lustre(&fake), fake.path("dir"));
            fs::create_dir(&dir).unwrap();
            run(&fake, &format!("setstripe {options}"), &dir);
            fs::write(dir.join("old"), "x").unwrap();
            let (former, file) = (lustre.read_back(&dir).unwrap(), lustre.read_back(&dir.join("old")).unwrap());
            assert_eq!(former.exact.as_deref(), Some(options), "{version}");
            lustre.prepare(&dir, &NativeLayout::even(64 * K, 1, Some("hdd"))).unwrap();
            lustre.prepare_exact(&dir, options).unwrap();
            assert_eq!(lustre.read_back(&dir).unwrap(), former, "{version}: {options}");
            let copy = dir.join("copy");
            lustre.create_exact(&copy, file.exact.as_deref().unwrap(), 0o600).unwrap();
            assert_eq!(lustre.read_back(&copy).unwrap().exact, file.exact, "{version}: {options}");
        }
    }
}

/// A record of another file system, or one that was changed, runs no other options.
#[test]
fn only_options_of_layouts_are_restored() {
    let fake = fake("2.15.8", "");
    for text in ["-d", "-S 1M --yaml=/etc/passwd", "stripe_unit=65536"] {
        let error = lustre(&fake).prepare_exact(&fake.path(""), text).unwrap_err();
        assert!(matches!(error, DriverError::Refused { .. }), "{error}");
    }
}

/// liblustreapi.c: lov_dump_user_lmm_header prints pattern 0, llapi_lov_pattern_string (2.17) none.
#[test]
fn a_directory_without_a_default_has_no_layout() {
    for version in VERSIONS {
        let fake = fake(version, "");
        let actual = lustre(&fake).read_back(&fake.path("")).unwrap();
        assert_eq!((actual.layout, actual.exact), (None, None), "{version}");
        // A root with a default hands it down, and it comes back by itself.
        run(&fake, "setstripe -E 1M -L mdt -E -1 -S 1M -c -1", &fake.path(""));
        let dir = fake.path("dir");
        fs::create_dir(&dir).unwrap();
        let former = lustre(&fake).read_back(&dir).unwrap();
        assert!(former.exact.as_deref().is_some_and(|exact| exact.contains("-L mdt")), "{former:?}");
        lustre(&fake).prepare(&dir, &NativeLayout::even(64 * K, 1, None)).unwrap();
        lustre(&fake).prepare_exact(&dir, former.exact.as_deref().unwrap()).unwrap();
        assert_eq!(lustre(&fake).read_back(&dir).unwrap(), former);
    }
}

/// lod_qos.c:2446: since 2.15.5 a component has no more stripes than its extent has room for.
#[test]
fn a_count_that_shrinks_is_noticed() {
    let layout = components(vec![(Some(128 * K), even(3, None)), (None, even(1, None))]);
    for version in VERSIONS {
        let fake = fake(version, "");
        let made = lustre(&fake).create(&fake.path("file"), &layout, 0o600);
        assert_eq!(made.is_err(), version > "2.15", "{version}: {made:?}");
        assert_eq!(entries(&fake).len(), usize::from(made.is_ok()));
    }
}

/// A directory gets a copy of its parent's default when it is made.
#[test]
fn directories_below_keep_the_default_they_were_made_with() {
    for version in VERSIONS {
        let fake = fake(version, "");
        let (lustre, dir) = (lustre(&fake), fake.path("dir"));
        lustre.prepare(&dir, &NativeLayout::even(64 * K, 2, Some("hdd"))).unwrap();
        fs::create_dir(dir.join("below")).unwrap();
        lustre.prepare(&dir, &NativeLayout::even(128 * K, 1, Some("ssd"))).unwrap();
        let below = lustre.read_back(&dir.join("below")).unwrap().layout;
        assert_eq!(below, Some(NativeLayout::even(64 * K, 2, Some("hdd"))), "{version}");
    }
}

/// Before and after 2.15.4, which has `-p ignore`, and 2.15 and 2.15.5, which changed what becomes
/// of the pools of lists.
const POOLED: [&str; 7] = ["2.12.9", "2.14.0", "2.15.3", "2.15.4", "2.15.8", "2.16.1", "2.17.57"];
/// Plain, and with the pool in a later component.
const POOLED_DEFAULTS: [&str; 2] = ["-S 1M -c 1 -p hdd", "-E 1M -S 64K -c 1 -E -1 -S 1M -c 2 -p hdd"];

/// A directory with a default, or below a root with one, and a file that is older than the default.
fn pooled(version: &str, default: &str, of_root: bool) -> (Fake, std::path::PathBuf) {
    let fake = fake(version, "");
    let dir = fake.path("dir");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("old"), "contents").unwrap();
    assert_eq!(lustre(&fake).read_back(&dir.join("old")).unwrap().exact.as_deref(), Some("-S 1M -c 1"));
    run(&fake, &format!("setstripe {default}"), if of_root { fake.path("") } else { dir.clone() }.as_path());
    (fake, dir)
}

/// lod_qos.c: def_pool, lov_pool_is_ignored. Undone, a file has no pool again.
#[test]
fn a_file_without_a_pool_is_restored_where_the_default_has_one() {
    let other = NativeLayout::even(64 * K, 1, Some("ssd"));
    for version in POOLED {
        let has_ignore = version > "2.15.3";
        for (default, of_root) in POOLED_DEFAULTS.map(|default| [(default, false), (default, true)]).concat() {
            let what = format!("{version}: {default} {of_root}");
            let (fake, dir) = pooled(version, default, of_root);
            let (lustre, old, copy) = (lustre(&fake), dir.join("old"), dir.join("copy"));
            let former = lustre.read_back(&old).unwrap().exact.unwrap();
            let made = lustre.create_exact(&copy, &former, 0o600).map(drop);
            assert_eq!((made.is_ok(), copy.exists()), (has_ignore, has_ignore), "{what}: {made:?}");
            if has_ignore {
                assert_eq!(lustre.read_back(&copy).unwrap().exact.as_ref(), Some(&former), "{what}");
            }
            lustre.change(&old, To::Layout(&other)).unwrap();
            let undone = lustre.change(&old, To::Exact(&former));
            assert_eq!(undone.is_ok(), has_ignore, "{what}: {undone:?}");
            let now = lustre.read_back(&old).unwrap();
            let expected = if has_ignore { former.as_str() } else { "-S 64K -c 1 -p ssd" };
            assert_eq!(now.exact.as_deref(), Some(expected), "{what}");
        }
    }
}

/// lod_qos.c: lod_qos_set_pool. Where the default's pool is inherited, it cuts the count.
#[test]
fn a_layout_without_a_pool_is_not_confined_to_the_one_of_the_default() {
    let later = components(vec![(Some(1024 * K), even(1, Some("ssd"))), (None, even(3, None))]);
    for version in POOLED {
        let has_ignore = version > "2.15.3";
        for default in POOLED_DEFAULTS {
            let (fake, dir) = pooled(version, default, false);
            for (name, layout) in [("three", NativeLayout::even(64 * K, 3, None)), ("later", later.clone())] {
                let made = lustre(&fake).create(&dir.join(name), &layout, 0o600);
                assert_eq!(made.is_ok(), has_ignore, "{version}: {layout}: {made:?}");
            }
            // A count that the pool has room for is a layout without a pool, too.
            lustre(&fake).create(&dir.join("two"), &NativeLayout::even(64 * K, 2, None), 0o600).unwrap();
            let exact = lustre(&fake).read_back(&dir.join("two")).unwrap().exact.unwrap();
            assert_eq!(exact, if has_ignore { "-S 64K -c 2" } else { "-S 64K -c 2 -p hdd" }, "{version}");
        }
    }
}

/// lod_qos.c: lod_qos_parse_config up to 2.14; LU-14480 in 2.15; lod_qos_set_pool since 2.15.5.
#[test]
fn a_list_of_osts_is_not_confined_to_the_pool_of_the_default() {
    for version in POOLED {
        let old = version < "2.15";
        let (fake, dir) = pooled(version, POOLED_DEFAULTS[0], false);
        let list = |osts: &[&str]| NativeLayout::uniform(listed(64 * K, osts));
        let make = |name: &str, osts: &[&str]| lustre(&fake).create(&dir.join(name), &list(osts), 0o600);
        let outside = make("outside", &["10", "0"]);
        match &outside {
            Err(error) if old => assert!(error.to_string().contains("take its default away"), "{error}"),
            outside => assert!(outside.is_ok() && !old, "{version}: {outside:?}"),
        }
        let longer = make("longer", &["1", "0", "2"]);
        assert_eq!(matches!(longer, Err(DriverError::Differs { .. })), old, "{version}: {longer:?}");
        assert!(old || longer.is_ok(), "{version}: {longer:?}");
        make("inside", &["1", "0"]).unwrap();
        let exact = lustre(&fake).read_back(&dir.join("inside")).unwrap().exact.unwrap();
        assert_eq!(exact, if old { "-S 64K -c 2 -p hdd" } else { "-S 64K -c 2" }, "{version}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), if old { 2 } else { 4 }, "{version}");
    }
}

/// liblustreapi.c: lov_dump_user_lmm_header hides the name that older servers keep.
#[test]
fn a_new_lfs_gives_no_pool_on_old_servers() {
    for server in ["2.12.9", "2.14.0", "2.15.3"] {
        let (fake, dir) = pooled("2.15.8", POOLED_DEFAULTS[0], false);
        let configuration = fs::read_to_string(fake.state("fake.conf")).unwrap();
        fs::write(fake.state("fake.conf"), format!("{configuration}server {server}\n")).unwrap();
        let list = NativeLayout::uniform(listed(64 * K, &["10", "0"]));
        lustre(&fake).create(&dir.join("listed"), &list, 0o600).unwrap();
        drop(lustre(&fake).create_exact(&dir.join("three"), "-S 64K -c 3", 0o600).unwrap());
        // An older `lfs` of another client prints the name.
        let older = configuration.replace("version 2.15.8", &format!("version {server}"));
        fs::write(fake.state("fake.conf"), older).unwrap();
        let printed = fake.tool("lfs").run(&["getstripe", "-d", "--yaml", dir.join("three").to_str().unwrap()]);
        assert!(printed.as_ref().is_ok_and(|text| text.contains("ignore")), "{printed:?}");
        assert_eq!(lustre(&fake).read_back(&dir.join("three")).unwrap().exact.as_deref(), Some("-S 64K -c 3"));
    }
}

/// lod_object.c: lod_ah_init, lod_xattr_set_lov_on_dir. Only a composite default, which inherits
/// nothing, is without the pool of the root.
#[test]
fn new_files_of_a_plain_default_have_the_pool_of_the_root() {
    for version in POOLED {
        let fake = fake(version, "");
        run(&fake, "setstripe -S 1M -c 1 -p hdd", &fake.path(""));
        let composite = components(vec![(Some(1024 * K), even(1, None)), (None, even(2, None))]);
        for (name, layout, pool) in
            [("plain", NativeLayout::even(64 * K, 2, None), "hdd"), ("composite", composite, "")]
        {
            lustre(&fake).prepare(&fake.path(name), &layout).unwrap();
            let file = fake.path(name).join("file");
            fs::write(&file, "x").unwrap();
            let exact = lustre(&fake).read_back(&file).unwrap().exact.unwrap();
            assert_eq!(exact.split_once("-p ").unwrap_or_default().1, pool, "{version}: {exact}");
        }
    }
}

/// lod_qos.c: lod_get_stripe_count; lfs.c: lsa_args_stripe_count_check and parse_targets of 2.12.
#[test]
fn counts_have_limits() {
    let repeated = NativeLayout::uniform(listed(64 * K, &["0", "0", "1"]));
    let long = |count| NativeLayout::uniform(listed(64 * K, &vec!["0"; count]));
    for version in VERSIONS {
        let old = version.starts_with("2.12");
        let small = fake(version, "");
        let made = lustre(&small).create(&small.path("file"), &repeated, 0o600);
        assert_eq!(made.is_err(), old, "{version}: {made:?}");
        let error = lustre(&small).create(&small.path("long"), &long(161), 0o600).unwrap_err();
        assert!(error.to_string().contains("ea_inode"), "{version}: {error}");
        let error = lustre(&small).create(&small.path("longest"), &long(2000), 0o600).unwrap_err();
        assert!(matches!(error, DriverError::Unsupported { .. }), "{version}: {error}");
        let large = fake(version, "ea_inode\n");
        let made = lustre(&large).create(&large.path("file"), &long(900), 0o600);
        assert_eq!(made.is_err(), old, "{version}");
    }
}

/// lod_qos.c: lod_alloc_ost_list answers EINVAL or ENODEV. The driver knows before it asks.
#[test]
fn an_ost_that_does_not_exist_is_named() {
    for version in VERSIONS {
        let fake = fake(version, "");
        for osts in [["7", "0"], ["0", "7"]] {
            let layout = NativeLayout::uniform(listed(64 * K, &osts));
            let error = lustre(&fake).create(&fake.path("file"), &layout, 0o600).unwrap_err().to_string();
            assert!(error.contains("has no OST 7; `lfs osts` lists the OSTs"), "{version}: {error}");
        }
        assert!(entries(&fake).is_empty());
    }
}

/// lfs.c: lfs_migrate exchanges the objects, and the file keeps its inode and so its project.
#[test]
fn an_existing_file_is_changed_in_place() {
    use std::os::unix::fs::MetadataExt;
    let to = NativeLayout::even(64 * K, 2, Some("hdd"));
    for version in VERSIONS {
        let whole = fake(version, "");
        let (lustre, file) = (lustre(&whole), whole.path("file"));
        fs::write(&file, "contents").unwrap();
        let former = lustre.read_back(&file).unwrap().exact.unwrap();
        let inode = fs::metadata(&file).unwrap().ino();
        lustre.change(&file, To::Layout(&to)).unwrap();
        assert_eq!(lustre.read_back(&file).unwrap().layout.as_ref(), Some(&to), "{version}");
        lustre.change(&file, To::Exact(&former)).unwrap();
        assert_eq!(lustre.read_back(&file).unwrap().exact, Some(former), "{version}");
        assert_eq!((fs::metadata(&file).unwrap().ino(), fs::read(&file).unwrap()), (inode, b"contents".into()));
        assert!(!lustre.can_change(To::Exact("-N -E -1 -S 1M -c 1 -N -E -1 -S 1M -c 1")));
        assert!(lustre.can_change(To::Exact("-S 1M -c 1 -p flash-NVMe")));
    }
    let busy = fake("2.15.8", "busy\n");
    fs::write(busy.path("file"), "contents").unwrap();
    let error = lustre(&busy).change(&busy.path("file"), To::Layout(&to)).unwrap_err().to_string();
    assert!(error.contains("cannot get lease"), "{error}");
}

/// lfs.c: lfs_migrate succeeds with fewer stripes than requested.
#[test]
fn a_file_with_a_third_layout_is_changed_back() {
    for version in VERSIONS {
        let fake = fake(version, "");
        let (lustre, file) = (lustre(&fake), fake.path("file"));
        fs::write(&file, "contents").unwrap();
        let former = lustre.read_back(&file).unwrap().exact;
        let wide = NativeLayout::even(64 * K, 4, Some("hdd"));
        let error = lustre.change(&file, To::Layout(&wide)).unwrap_err();
        assert!(matches!(error, DriverError::Differs { .. }), "{version}: {error}");
        assert_eq!(lustre.read_back(&file).unwrap().exact, former, "{version}");
        // `lfs migrate` makes no mirrors.
        let mirrored = fake.path("mirrored");
        drop(lustre.create_exact(&mirrored, "-N -E -1 -S 1M -c 1 -N -E -1 -S 1M -c 1", 0o600).unwrap());
        let error = lustre.change(&mirrored, To::Layout(&wide)).unwrap_err();
        assert!(matches!(error, DriverError::NotPutBack { .. }), "{version}: {error}");
    }
}

/// mdt_open.c: mdt_object_open_lock counts all descriptors before 2.15, then those that write.
#[test]
fn a_file_that_is_open_is_not_changed() {
    let to = NativeLayout::even(64 * K, 2, Some("hdd"));
    for version in VERSIONS {
        let fake = fake(version, "");
        let file = fake.path("file");
        fs::write(&file, "contents").unwrap();
        let change = || lustre(&fake).change(&file, To::Layout(&to));
        let writer = fs::OpenOptions::new().append(true).open(&file).unwrap();
        let error = change().unwrap_err().to_string();
        assert!(error.contains("cannot get lease"), "{version}: {error}");
        drop(writer);
        let _reader = fs::File::open(&file).unwrap();
        assert_eq!(change().is_err(), version < "2.15", "{version}");
    }
}

/// llite/file.c: LL_IOC_LOV_SETSTRIPE answers EACCES, of which `lfs` 2.16 only warns.
#[test]
fn a_restricted_user_is_told() {
    for version in ["2.16.1", "2.17.57"] {
        let fake = fake(version, "restricted\n");
        let layout = NativeLayout::even(64 * K, 2, None);
        let error = lustre(&fake).create(&fake.path("file"), &layout, 0o600).unwrap_err();
        assert!(matches!(error, DriverError::Denied { .. }), "{version}: {error}");
        assert!(error.to_string().contains("enable_setstripe_gid"), "{version}: {error}");
        assert!(entries(&fake).is_empty(), "{version}: {:?}", entries(&fake));
        // Directories and composites are not restricted.
        lustre(&fake).prepare(&fake.path("dir"), &layout).unwrap();
        let composite = components(vec![(Some(1024 * K), even(1, None)), (None, even(2, None))]);
        lustre(&fake).create(&fake.path("file"), &composite, 0o600).unwrap();
    }
}
