use stripewise_faulty::{Disk, Faulty, Journal};

use std::sync::Arc;

use super::*;
use crate::Targets;

fn sys() -> SysRef {
    Arc::new(stripewise_sys::Real)
}

#[test]
fn prepared_once_and_found_again() {
    let (sys, dir) = (sys(), tempfile::tempdir().unwrap());
    let first = Target::prepare(&sys, dir.path(), "hdd/0").unwrap();
    let again = Target::prepare(&sys, dir.path(), "hdd/0").unwrap();
    assert_eq!(first.reference(), again.reference());
    let opened = Target::open(&sys, dir.path(), Some(first.id())).unwrap();
    assert_eq!((opened.name(), opened.id()), ("hdd/0", first.id()));
    assert!(opened.free_bytes().unwrap() > 0);
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["stripewise", MARKER], "nothing else is left");
}

#[test]
fn many_at_once_agree_on_one_id() {
    let (sys, dir) = (sys(), tempfile::tempdir().unwrap());
    let ids: Vec<String> = std::thread::scope(|scope| {
        let prepare = || Target::prepare(&sys, dir.path(), "hdd/0").unwrap().id().to_owned();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(prepare)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn missing_and_foreign_targets_are_told_apart_and_nothing_is_created() {
    let (sys, dir) = (sys(), tempfile::tempdir().unwrap());
    let absent = dir.path().join("absent");
    let missing = |result| matches!(result, Err(TargetError::Missing { .. }));
    assert!(missing(Target::open(&sys, &absent, None)));
    assert!(missing(Target::prepare(&sys, &absent, "hdd/0")));
    assert!(!absent.exists());
    let unmarked = Target::open(&sys, dir.path(), None);
    assert!(missing(unmarked), "an unmounted disk");
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());

    Target::prepare(&sys, dir.path(), "hdd/0").unwrap();
    let foreign = |result| matches!(result, Err(TargetError::Foreign { .. }));
    assert!(foreign(Target::prepare(&sys, dir.path(), "hdd/1")));
    assert!(foreign(Target::open(&sys, dir.path(), Some(&"0".repeat(32)))));
    let error = Target::open(&sys, dir.path(), Some(&"0".repeat(32))).unwrap_err();
    assert_eq!(error.errno(), Errno::IO);
    assert!(!error.to_string().contains('\n'));
}

#[test]
fn a_target_that_lost_its_marker_gets_no_new_one() {
    let (sys, dir) = (sys(), tempfile::tempdir().unwrap());
    let target = Arc::new(Target::prepare(&sys, dir.path(), "hdd/0").unwrap());
    let mode = Mode::RUSR | Mode::WUSR;
    let (of, access) = (crate::tests::of(&sys, FileId([7; 16])), crate::Access::of_mode(mode));
    crate::ObjectSet::create(&sys, vec![target], of, &access).unwrap();
    std::fs::remove_file(dir.path().join(MARKER)).unwrap();
    let refused = Target::prepare(&sys, dir.path(), "hdd/0");
    assert!(matches!(refused, Err(TargetError::Unusable { .. })), "{refused:?}");
    assert!(!dir.path().join(MARKER).exists());
}

/// Preparing a target tests the features that it needs before creating the marker.
#[test]
fn a_file_system_that_lacks_something_is_refused_in_one_line() {
    for (call, errno, lacks) in [
        ("fallocate", Errno::OPNOTSUPP, Some("no fallocate,")),
        ("lock", Errno::INVAL, Some("no open file description locks (F_OFD_SETLK),")),
        ("lock", Errno::NOLCK, Some("no open file description locks (F_OFD_SETLK),")),
        ("fallocate", Errno::NOSPC, None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let process = Faulty::new(&Disk::new(dir.path(), Journal::Posix).unwrap(), 0);
        process.fail(call, MARKER, errno, u64::MAX);
        let sys: SysRef = process;
        let error = Target::prepare(&sys, dir.path(), "hdd/0").unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with(dir.path().to_str().unwrap()) && !said.contains('\n'), "{said}");
        match lacks {
            Some(lacks) => assert!(said.contains(lacks) && said.contains("use a directory on"), "{said}"),
            None => assert_eq!(error.errno(), errno),
        }
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is left");
    }
}

#[test]
fn the_cache_notices_a_directory_that_was_made_anew() {
    let (sys, dir) = (sys(), tempfile::tempdir().unwrap());
    let path = dir.path().join("disk");
    std::fs::create_dir(&path).unwrap();
    let reference = Target::prepare(&sys, &path, "hdd/0").unwrap().reference();
    let targets = Targets::new(sys.clone());
    let first = targets.get(&reference).unwrap();
    assert!(Arc::ptr_eq(&first, &targets.get(&reference).unwrap()));
    std::fs::remove_dir_all(&path).unwrap();
    assert!(matches!(targets.get(&reference), Err(TargetError::Missing { .. })));
    std::fs::create_dir(&path).unwrap();
    Target::prepare(&sys, &path, "hdd/0").unwrap();
    assert!(matches!(targets.get(&reference), Err(TargetError::Foreign { .. })));
}

/// A FUSE file system, or another one (`None`).
struct Mounted(Option<bool>);

impl stripewise_sys::Sys for Mounted {
    fn keeps_pages(&self, _fd: std::os::fd::BorrowedFd<'_>) -> stripewise_sys::Result<Option<bool>> {
        Ok(self.0)
    }
}

#[test]
fn only_a_mount_that_is_known_to_be_coherent_lets_nodes_share() {
    for (pages, nodes, shares) in [
        (Some(false), Nodes::Fenced, true),
        (Some(false), Nodes::One, false),
        (Some(true), Nodes::Fenced, false),
        (None, Nodes::Fenced, false),
    ] {
        let (sys, dir): (SysRef, _) = (Arc::new(Mounted(pages)), tempfile::tempdir().unwrap());
        let target = Target::prepare_for(&sys, dir.path(), "hdd/0", nodes).unwrap();
        assert_eq!(target.has_sessions(), shares, "{pages:?} {nodes:?}");
        let again = Target::prepare_for(&sys, dir.path(), "hdd/0", Nodes::One).unwrap();
        assert_eq!(again.has_sessions(), shares, "a marker stays as it is");
    }
}

#[test]
fn markers_are_checked() {
    let id = "0".repeat(32);
    let good = format!("format = 1\nname = \"a \\\" b\"\nid = \"{id}\"\n");
    assert_eq!(parse(good.as_bytes()).unwrap().name, "a \" b");
    for (bad, word) in [
        (String::new(), "format"),
        ("format = 2\nname = \"a\"\nid = \"x\"".to_owned(), "newer"),
        ("format = 1\nname = \"a\"\nid = \"x\"".to_owned(), "hexadecimal"),
        (format!("format = 1\nname = \"\"\nid = \"{id}\""), "name"),
        (format!("{good}extra = 1"), "extra"),
        ("\u{1}".to_owned(), ""),
        ("a".repeat(MARKER_BYTES_MAX + 1), "longer"),
    ] {
        let problem = parse(bad.as_bytes()).unwrap_err();
        assert!(problem.contains(word) && !problem.contains('\n'), "{bad:?}: {problem}");
    }
    assert!(parse(&[0xff, 0xfe]).unwrap_err().contains("not text"));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(0u8.., 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn names_survive_the_marker(name in "[^\\x00-\\x1f\\x7f-\\u{9f}]{1,40}") {
        let text = format!("format = 1\nname = {}\nid = \"{}\"\n", toml::Value::from(name.as_str()), "0".repeat(32));
        proptest::prop_assert_eq!(parse(text.as_bytes()).unwrap().name, name);
    }
}
