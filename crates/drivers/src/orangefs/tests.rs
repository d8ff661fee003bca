use stripewise_native::Stripe;

use super::*;
use crate::Driver;
use crate::tests::conformance::{Bed, conformance, without_rights};
use crate::tests::fake::{Fake, program};

const K: u64 = 1 << 10;
const CONFIGURATION: &str = "server tcp://a:3334 1000\nserver tcp://b:3334 2000\nserver tcp://c:3334 3000\n";

fn orangefs(fake: &Fake) -> OrangeFs {
    OrangeFs { tools: TOOLS.map(|name| fake.tool(name)) }
}

fn servers(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("tcp://{name}:3334")).collect()
}

fn varied(stripes: &[(&str, u64)]) -> NativeLayout {
    let stripes = stripes.iter().map(|(name, width)| (format!("tcp://{name}:3334"), *width)).collect();
    NativeLayout::uniform(Stripe::Varied { stripes })
}

#[test]
fn conforms_on_a_fake() {
    let fake = Fake::new(CONFIGURATION);
    let listed =
        |width, names: &[&str]| NativeLayout::uniform(Stripe::Listed { width, servers: servers(names) });
    let supported = vec![
        varied(&[("b", 28 * K), ("a", 172 * K), ("b", 5)]),
        listed(28 * K, &["c", "a"]),
        NativeLayout::uniform(Stripe::Grouped {
            width: 64 * K,
            groups: 1,
            factor: 4,
            servers: servers(&["b", "c", "a"]),
        }),
    ];
    let many: Vec<(&str, u64)> = ["a", "b"].into_iter().cycle().map(|name| (name, 28 * K)).take(300).collect();
    let unsupported = vec![
        varied(&many),
        varied(&[("a", 0)]),
        listed(K, &["a", "a"]),
        NativeLayout::even(64 * K, 2, Some("hdd")),
        NativeLayout::even(64 * K, 257, None),
    ];
    let mut bed = fake.bed(supported, unsupported, false);
    bed.refused = vec![(listed(64 * K, &["a", "nobody"]), "it is no server of this OrangeFS".into())];
    conformance(&orangefs(&fake), &bed).require("orangefs on a fake");
}

#[test]
fn what_it_offers() {
    let fake = Fake::new(CONFIGURATION);
    let probe = orangefs(&fake).probe(&fake.path("")).unwrap().unwrap();
    assert_eq!((probe.servers, probe.rights.len(), probe.pools.len()), (servers(&["a", "b", "c"]), 0, 0));
    assert_eq!(probe.notes[0], "the server with the least space, tcp://a:3334, has 1000");
}

#[test]
fn stripes_over_any_servers() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, layout) = (orangefs(&fake), NativeLayout::even(96 * K, 2, None));
    orangefs.prepare(&fake.path("dir"), &layout).unwrap();
    assert_eq!(orangefs.read_back(&fake.path("dir")).unwrap().layout.as_ref(), Some(&layout));
    orangefs.create(&fake.path("file"), &layout, 0o600).unwrap();
    let picked = orangefs.read_back(&fake.path("file")).unwrap().layout.unwrap();
    assert!(layout.is_met_by(&picked), "{picked}");
}

#[test]
fn a_files_hints_are_not_its_directorys() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, dir) = (orangefs(&fake), fake.path(""));
    orangefs.create(&fake.path("file"), &varied(&[("b", 28 * K), ("a", 172 * K)]), 0o600).unwrap();
    assert_eq!(orangefs.read_back(&dir).unwrap().layout, None);
    // A shorter file is with its metadata, and shows one datafile.
    std::fs::write(fake.path("other"), vec![1; 65 << 10]).unwrap();
    let other = orangefs.read_back(&fake.path("other")).unwrap().layout.unwrap();
    assert!(NativeLayout::even(64 * K, 3, None).is_met_by(&other), "{other}");
}

/// Sets hints on a directory with the tool itself.
fn hint(fake: &Fake, dir: &Path, hint: &str, value: &str) {
    let call = orangefs::set(dir, hint, value);
    fake.tool(XATTR).run(&call[1..]).unwrap();
}

#[test]
fn former_hints_are_put_back_where_preparing_fails() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, dir) = (orangefs(&fake), fake.path("dir"));
    std::fs::create_dir(&dir).unwrap();
    // Hints that no layout describes.
    hint(&fake, &dir, "num_dfiles", "2");
    hint(&fake, &dir, "dist_name", "simple_stripe");
    let former = orangefs.hints(&dir).unwrap();
    let list = NativeLayout::uniform(Stripe::Listed { width: 64 * K, servers: servers(&["a", "nobody"]) });
    orangefs.prepare(&dir, &list).unwrap_err();
    assert_eq!(orangefs.hints(&dir).unwrap(), former);
    // More servers than there are, which only the new file shows.
    let error = orangefs.prepare(&dir, &NativeLayout::even(64 * K, 9, None)).unwrap_err();
    assert!(matches!(error, DriverError::Differs { .. }), "{error}");
    assert_eq!(orangefs.hints(&dir).unwrap(), former);
    let layout = varied(&[("b", 28 * K), ("a", 172 * K)]);
    orangefs.prepare(&dir, &layout).unwrap();
    let hints = orangefs.hints(&dir).unwrap();
    orangefs.prepare(&dir, &list).unwrap_err();
    assert_eq!(orangefs.hints(&dir).unwrap(), hints);
}

/// Every call after the first `n` fails, also those that put the hints back.
#[test]
fn hints_that_are_not_put_back_are_told_with_the_remedy() {
    let layout = varied(&[("b", 28 * K), ("a", 172 * K)]);
    let mut partly = 0;
    // Every fifth call.
    for n in (0..).step_by(5) {
        let fake = Fake::new(CONFIGURATION);
        let (orangefs, dir) = (orangefs(&fake), fake.path("its dir"));
        std::fs::create_dir(&dir).unwrap();
        hint(&fake, &dir, "num_dfiles", "2");
        hint(&fake, &dir, "dist_name", "simple_stripe");
        let former = orangefs.hints(&dir).unwrap();
        std::fs::write(fake.state("fail_after"), n.to_string()).unwrap();
        let prepared = orangefs.prepare(&dir, &layout);
        std::fs::remove_file(fake.state("fail_after")).unwrap();
        let Err(error) = prepared else { break };
        let now = orangefs.hints(&dir).unwrap();
        if now != former {
            let text = error.to_string();
            assert!(text.contains("its former layout was not put back"), "{n}: {text}");
            let DriverError::NotPutBack { by_hand, .. } = error else { panic!("{n}: {text}") };
            for call in by_hand {
                let typed =
                    call.iter().map(|word| stripewise_native::shell(word)).collect::<Vec<_>>().join(" ");
                assert!(text.contains(&typed), "{n}: {text}");
                fake.tool(&call[0]).run(&call[1..]).unwrap();
            }
            assert_eq!(orangefs.hints(&dir).unwrap(), former, "{n}");
            partly += 1;
        }
    }
    assert!(partly > 1, "{partly}");
}

/// A tool that accepts hints and does not set them puts none back.
#[test]
fn hints_that_were_put_back_are_read_back() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, dir) = (orangefs(&fake), fake.path("dir"));
    std::fs::create_dir(&dir).unwrap();
    hint(&fake, &dir, "num_dfiles", "2");
    std::fs::write(fake.state("ignore"), "").unwrap();
    let error = orangefs.prepare_exact(&dir, "num_dfiles=3").unwrap_err();
    assert!(matches!(error, DriverError::Refused { .. }), "{error}");
}

#[test]
fn a_former_layout_is_set_again() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, dir) = (orangefs(&fake), fake.path("dir"));
    let (former, other) = (NativeLayout::even(96 * K, 2, None), varied(&[("b", 28 * K), ("a", 172 * K)]));
    for (former, other) in [(&former, &other), (&other, &former)] {
        orangefs.prepare(&dir, former).unwrap();
        orangefs.prepare(&dir, other).unwrap();
        std::fs::write(dir.join("stays"), "x").unwrap();
        orangefs.remove(&dir).unwrap();
        assert_eq!(orangefs.hints(&dir).unwrap(), Hints::default());
        orangefs.prepare(&dir, former).unwrap();
        assert_eq!(orangefs.read_back(&dir).unwrap().layout.as_ref(), Some(former));
    }
}

#[test]
fn hints_that_are_no_layout_are_told_and_put_back() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, dir) = (orangefs(&fake), fake.path("dir"));
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(orangefs.read_back(&dir).unwrap().exact, None);
    for (name, value) in [("num_dfiles", "2"), ("dist_params", "strip_size:4096")] {
        hint(&fake, &dir, name, value);
    }
    let Actual { layout, exact, .. } = orangefs.read_back(&dir).unwrap();
    assert_eq!((layout, exact.as_deref()), (None, Some("num_dfiles=2\ndist_params=strip_size:4096")));
    orangefs.prepare(&dir, &varied(&[("b", 28 * K), ("a", 172 * K)])).unwrap();
    orangefs.prepare_exact(&dir, exact.as_deref().unwrap()).unwrap();
    assert_eq!(orangefs.read_back(&dir).unwrap().exact, exact);
    let error = orangefs.prepare_exact(&dir, "stripe_unit=65536 stripe_count=2").unwrap_err();
    assert!(matches!(error, DriverError::Refused { .. }), "{error}");
    assert_eq!(orangefs.read_back(&dir).unwrap().exact, exact);
}

/// Only one error means that a hint is not set.
#[test]
fn an_error_is_not_taken_for_no_hint() {
    let fake = Fake::new(CONFIGURATION);
    let failing = fake.path("pvfs2-xattr");
    let script = "#!/bin/sh\necho 'PVFS_sys_geteattr: Permission denied (error class: 0)' >&2\nexit 255\n";
    let mut driver = orangefs(&fake);
    driver.tools[0] = program(&failing, script);
    let error = driver.read_back(&fake.path("")).unwrap_err().to_string();
    assert!(error.contains("PVFS_sys_geteattr: Permission denied"), "{error}");
}

#[test]
fn a_path_with_blanks_is_on_the_file_system_of_what_is_before_them() {
    for (path, asked) in [
        ("/mnt/ofs/a b/c", "/mnt/ofs"),
        ("/mnt/ofs 2/x", "/mnt"),
        ("/a\tb", "/"),
        ("/mnt/ofs/ab", "/mnt/ofs/ab"),
    ] {
        assert_eq!(without_blanks(Path::new(path)), Path::new(asked));
    }
    let fake = Fake::new(CONFIGURATION);
    let layout = varied(&[("b", 28 * K), ("a", 172 * K)]);
    orangefs(&fake).prepare(&fake.path("a b/c"), &layout).unwrap();
    assert_eq!(orangefs(&fake).read_back(&fake.path("a b/c")).unwrap().layout, Some(layout));
}

#[test]
fn tools_that_make_no_sense_are_said() {
    let with = |program| OrangeFs { tools: TOOLS.map(|_| Tool::at(program)) };
    let error = with("/bin/echo").read_back(Path::new("/tmp")).unwrap_err().to_string();
    assert!(error.contains("is not understood (no I/O server statistics)"), "{error}");
    assert_eq!(with("/bin/false").probe(Path::new("/tmp")).unwrap(), None);
    assert_eq!(with("/nowhere/pvfs2").probe(Path::new("/tmp")).unwrap(), None);
}

#[test]
fn conforms_on_a_real_orangefs() {
    let Some(mounted) = std::env::var_os("STRIPEWISE_ORANGEFS").filter(|path| !path.is_empty()) else {
        println!(
            "orangefs: SKIPPED, not tried on a real one: STRIPEWISE_ORANGEFS does not name a directory on a mounted OrangeFS"
        );
        return;
    };
    let orangefs = OrangeFs::default();
    let probe =
        orangefs.probe(Path::new(&mounted)).unwrap().expect("STRIPEWISE_ORANGEFS is not on an OrangeFS");
    println!("{probe:#?}");
    let server = |index: usize| probe.servers[index % probe.servers.len()].clone();
    let some: Vec<String> = (1..4).map(server).collect();
    let dir = tempfile::Builder::new().prefix("conformance-").tempdir_in(mounted).unwrap();
    // Readable for other users.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let nobody = vec![server(0), "tcp://127.0.0.1:1".to_owned()];
    let bed = Bed {
        dir: dir.path().to_owned(),
        elsewhere: Some(elsewhere.path().to_owned()),
        supported: vec![
            NativeLayout::uniform(Stripe::Varied {
                stripes: vec![(server(2), 28 * K), (server(0), 172 * K), (server(2), 5)],
            }),
            NativeLayout::uniform(Stripe::Listed { width: 28 * K, servers: some.clone() }),
            NativeLayout::uniform(Stripe::Grouped { width: 64 * K, groups: 1, factor: 4, servers: some }),
            NativeLayout::even(96 * K, 2, None),
        ],
        unsupported: vec![NativeLayout::even(64 * K, 2, Some("hdd")), NativeLayout::even(64 * K, 257, None)],
        refused: vec![(
            NativeLayout::uniform(Stripe::Listed { width: 64 * K, servers: nobody }),
            "it is no server of this OrangeFS".into(),
        )],
        forbidden: Some(without_rights()),
        ..Bed::default()
    };
    conformance(&orangefs, &bed).require("orangefs");
}
