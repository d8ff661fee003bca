//! A forked child joins the map by itself and leaves its parent's map alone.

#![allow(missing_docs, reason = "a test")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stripewise_extents::{CopyId, Map, MapSpec, Mask, Node};
use stripewise_sys::{Real, SysRef};

/// A wait that takes longer than this is considered hung.
const HANGS: Duration = Duration::from_secs(1800);

/// A file that shows that the processes share a session of their node.
const SESSIONS: &str = "sessions";

/// Directories of a file with the one-node protocol, and of one with sessions.
fn places() -> [tempfile::TempDir; 2] {
    let place = |sessions| {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::write(dir.path().join("f.manifest"), b"").unwrap();
        if sessions {
            std::fs::write(dir.path().join(SESSIONS), b"").unwrap();
        }
        dir
    };
    [place(false), place(true)]
}

fn join(root: &Path) -> Map {
    let sys: SysRef = Arc::new(Real);
    let node = Node::this(&sys).unwrap();
    let spec = MapSpec {
        owner: None,
        run_dir: root.join("run/file"),
        journal_base: root.to_owned(),
        journal_below: Default::default(),
        journal_name: "f.extents".into(),
        id: [7; 16],
        copies: 2,
        default: Mask::ORIGINAL,
        node,
        create: true,
        sessions: root.join(SESSIONS).exists(),
    };
    Map::join(sys, spec).unwrap()
}

fn write(map: &Map, start: u64) {
    let mut guard = map.begin_write(start..start + 10).unwrap();
    guard.prepare(start..start + 10, CopyId::new(1)).unwrap();
    guard.wrote(start..start + 10, CopyId::new(1)).unwrap();
}

fn is_cached(map: &Map, start: u64) -> bool {
    map.begin_read(start..start + 10)
        .unwrap()
        .spans()
        .iter()
        .all(|span| span.mask == Mask::only(CopyId::new(1)))
}

/// Runs `child` in a forked process and returns its wait status.
fn forked(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child only uses the map and exits without returning.
    unsafe {
        match libc::fork() {
            0 => {
                let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
                libc::_exit(i32::from(!good));
            }
            pid => {
                assert!(pid > 0);
                let mut status = 0;
                assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
                status
            }
        }
    }
}

/// Number of descriptors of this process that are open on files below `root`.
fn open_below(root: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    links
        .filter(|link| std::fs::read_link(link.as_ref().unwrap().path()).is_ok_and(|to| to.starts_with(root)))
        .count()
}

#[test]
fn children_join_by_themselves_and_parents_go_on() {
    places().iter().for_each(|dir| children_join(dir.path()));
}

fn children_join(root: &Path) {
    let map = join(root);
    write(&map, 0);
    assert!(is_cached(&map, 0));
    let before = open_below(root);
    for round in 1..=20u64 {
        let status = forked(|| {
            map.after_fork_child();
            // The child has closed the parent's descriptors and has not joined yet.
            let closed = open_below(root) == 0 && is_cached(&map, 0);
            write(&map, round * 100);
            closed && map.processes().unwrap() == 2
        });
        assert_eq!(status, 0, "round {round}");
        assert!(is_cached(&map, round * 100), "round {round}: the child's write");
        write(&map, round * 100 + 50);
        assert_eq!(map.processes().unwrap(), 1);
    }
    assert_eq!(open_below(root), before);
    // A child that never uses the map, and a grandchild that does.
    let status = forked(|| {
        map.after_fork_child();
        forked(|| {
            map.after_fork_child();
            write(&map, 9000);
            true
        }) == 0
    });
    assert_eq!(status, 0);
    assert!(is_cached(&map, 9000));
    map.leave(|| Ok(())).unwrap();
    assert!(!root.join("run/file").exists());
}

/// A child that lives on must not keep the locks of its dead parent.
#[test]
fn a_child_does_not_hold_its_parents_block() {
    places().iter().for_each(|dir| holds_no_block(dir.path()));
}

fn holds_no_block(root: &Path) {
    let map = join(root);
    let mut pipe = [0; 2];
    // SAFETY: an out pointer of this frame.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let status = forked(|| {
        let own = join(root);
        // SAFETY: as above; the grandchild waits until the pipe is closed.
        if unsafe { libc::fork() } == 0 {
            own.after_fork_child();
            unsafe {
                libc::close(pipe[1]);
                libc::read(pipe[0], [0u8; 1].as_mut_ptr().cast(), 1);
                libc::_exit(0);
            }
        }
        true
    });
    assert_eq!(status, 0);
    let began = Instant::now();
    while map.processes().unwrap() != 1 {
        assert!(began.elapsed() < HANGS, "the grandchild has not closed what it inherited");
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: an open descriptor.
    unsafe { libc::close(pipe[1]) };
}
