//! A forked child leaves its parent's session alone, and does not keep it alive.

use std::path::Path;

use stripewise_extents::nodes::{Engine, FileEngine};

use super::{new_file, real, spec};

/// Number of descriptors of this process that are open on files below `root`.
fn open_below(root: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    links
        .filter(|link| std::fs::read_link(link.as_ref().unwrap().path()).is_ok_and(|to| to.starts_with(root)))
        .count()
}

fn pipe() -> [i32; 2] {
    let mut pipe = [0; 2];
    // SAFETY: an out pointer of this frame.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    pipe
}

/// Waits for a byte; 0 at the end of the pipe.
fn receive(pipe: [i32; 2]) -> u8 {
    let mut byte = [0];
    // SAFETY: a buffer of this frame.
    unsafe { libc::read(pipe[0], byte.as_mut_ptr().cast(), 1) };
    byte[0]
}

fn send(pipe: [i32; 2], byte: u8) {
    // SAFETY: a buffer of this frame.
    assert_eq!(unsafe { libc::write(pipe[1], [byte].as_ptr().cast(), 1) }, 1);
}

/// Runs `child` in a forked process, which then exits.
fn forked(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child uses only engines and pipes, and exits without returning.
    unsafe {
        match libc::fork() {
            0 => {
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
                libc::_exit(0);
            }
            process => process,
        }
    }
}

/// Joins, forks a child that gives up what it has inherited and waits, and waits itself.
fn parent(root: &Path, ready: [i32; 2], ends: [i32; 2]) {
    let mut engine = Some(FileEngine::join(&real(), &spec(root, 1)).unwrap());
    let session = engine.as_ref().unwrap().session();
    forked(|| {
        engine.take().unwrap().abandon();
        let is_closed = open_below(root) == 0;
        // It may go on with the session by itself, until it ends that.
        let own = FileEngine::attach(&real(), &spec(root, 1), session).unwrap();
        let goes_on = own.is_some_and(|mut own| own.read().is_ok());
        send(ready, if is_closed && goes_on { session.0 as u8 } else { 99 });
        // SAFETY: an open descriptor, which would keep the pipe from ending.
        unsafe { libc::close(ends[1]) };
        receive(ends);
    });
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

#[test]
fn a_child_does_not_keep_its_killed_parents_session_alive() {
    let dir = new_file();
    let root = dir.path();
    let (ready, ends) = (pipe(), pipe());
    let process = forked(|| parent(root, ready, ends));
    let session = stripewise_extents::nodes::Session(receive(ready).into());
    assert_eq!(session.0, 1);
    let mut other = FileEngine::join(&real(), &spec(root, 2)).unwrap();
    assert!(!other.lock_dead(session).unwrap(), "the parent lives");
    // SAFETY: a child of this test.
    unsafe {
        assert_eq!(libc::kill(process, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(process, std::ptr::null_mut(), 0), process);
    }
    assert!(other.lock_dead(session).unwrap(), "the child has a duplicate of the descriptor");
    // SAFETY: an open descriptor. The child ends.
    unsafe { libc::close(ends[1]) };
}
