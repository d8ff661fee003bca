//! Concurrent use of a file by threads, processes and forked children.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stripewise_sys::OFlags;

use super::support::*;
use crate::Runtime;

const RECORD: usize = 37;
const RECORDS: usize = 150;

/// A record in which every byte depends on the writer and the record number; never 0.
fn record(writer: usize, number: usize) -> Vec<u8> {
    let text = format!("[{writer:04} {number:06}]");
    text.bytes().cycle().take(RECORD).collect()
}

/// The work of one writer: appends its records to `log`, and writes its bytes of `shared`
/// interleaved with those of all other writers.
fn work(runtime: &Runtime, stage: &std::path::Path, writer: usize, writers: usize) {
    let log = open(runtime, &stage.join("log"), OFlags::RDWR).unwrap();
    let shared = open(runtime, &stage.join("shared"), OFlags::RDWR).unwrap();
    for number in 0..RECORDS {
        let bytes = record(writer, number);
        assert_eq!(log.file.append_bytes(&bytes).map(|(_, done)| done), Ok(RECORD));
        let slot = (number * writers + writer) * RECORD;
        assert_eq!(shared.file.write(&bytes, slot as u64, 2), Ok(RECORD));
    }
}

fn check(runtime: &Runtime, stage: &std::path::Path, writers: usize) {
    let all = |name: &str| open(runtime, &stage.join(name), OFlags::RDONLY).unwrap().file.all().unwrap();
    let mut appended: Vec<Vec<u8>> = all("log").chunks(RECORD).map(<[u8]>::to_vec).collect();
    let numbers = || (0..RECORDS).flat_map(|number| (0..writers).map(move |writer| (writer, number)));
    let written: Vec<Vec<u8>> = numbers().map(|(writer, number)| record(writer, number)).collect();
    assert_eq!(all("shared"), written.concat(), "every writer's bytes are at their places");
    let mut expected = written;
    appended.sort();
    expected.sort();
    assert!(appended == expected, "every record is in the log once, whole");
}

fn stage_with_files() -> (Stage, Arc<Runtime>) {
    let stage = Stage::new(small());
    let runtime = Runtime::new(Arc::new(stripewise_sys::Real), Some(&stage.plan));
    for name in ["log", "shared"] {
        drop(open(&runtime, &stage.path(name), CREATE).unwrap());
    }
    (stage, runtime)
}

/// Starts a writer in a process of its own: this test binary, running only the test
/// [`writer_process`].
fn spawn(stage: &Stage, writer: usize, writers: usize) -> Child {
    let job = format!("{writer} {writers} {}", stage.path("").display());
    this_binary("writer_process").env("STRIPEWISE_TEST_WRITER", job).spawn().unwrap()
}

fn this_binary(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("tests::concurrent::{test}"), "--nocapture"]);
    command.stdout(std::process::Stdio::null());
    command
}

#[test]
fn writer_process() {
    let Ok(job) = std::env::var("STRIPEWISE_TEST_WRITER") else { return };
    let words: Vec<&str> = job.splitn(3, ' ').collect();
    let runtime = Runtime::new(Arc::new(stripewise_sys::Real), None);
    work(&runtime, words[2].as_ref(), words[0].parse().unwrap(), words[1].parse().unwrap());
}

#[test]
fn threads_and_processes_write_side_by_side() {
    let (stage, runtime) = stage_with_files();
    let writers = 6;
    let children: Vec<Child> = (0..3).map(|writer| spawn(&stage, writer, writers)).collect();
    std::thread::scope(|scope| {
        for writer in 3..writers {
            let (runtime, stage) = (&runtime, &stage);
            scope.spawn(move || work(runtime, &stage.path(""), writer, writers));
        }
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    check(&stage.runtime(), &stage.path(""), writers);
}

/// A reader that follows a growing log never sees a byte that was not written, such as zeros in
/// place of pieces that have not arrived.
#[test]
fn a_follower_sees_only_what_was_appended() {
    let (stage, runtime) = stage_with_files();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stage, runtime, done) = (&stage, &runtime, &done);
        scope.spawn(move || {
            work(runtime, &stage.path(""), 0, 1);
            done.store(true, Ordering::Release);
        });
        let log = open(&stage.runtime(), &stage.path("log"), OFlags::RDONLY).unwrap();
        let mut at = 0;
        loop {
            let last = done.load(Ordering::Acquire);
            let bytes = log.file.read(1000, at, 1).unwrap();
            assert!(!bytes.contains(&0), "at {at}: {bytes:?}");
            at += bytes.len() as u64;
            if last && bytes.is_empty() {
                break;
            }
        }
        assert_eq!(at, (RECORD * RECORDS) as u64);
    });
}

/// The same without depending on timing: the pieces of an append have arrived on one target and not
/// on the others.
#[test]
fn a_follower_waits_for_an_append_to_be_whole() {
    let (stage, runtime) = stage_with_files();
    let bytes = record(1, 1);
    std::thread::scope(|scope| {
        let writer = open(&runtime, &stage.path("log"), OFlags::RDWR).unwrap();
        let lock = writer.file.lock_size().unwrap();
        let (there, coming): (Vec<_>, Vec<_>) =
            small().pieces(0, RECORD as u64).partition(|piece| piece.target == 2);
        let write = |pieces: Vec<stripewise_layout::Piece>| {
            for piece in pieces {
                let range = piece.file_offset as usize..(piece.file_offset + piece.len) as usize;
                writer.file.write(&bytes[range], piece.file_offset, 1).unwrap();
            }
        };
        write(there);
        let reader = scope.spawn(|| {
            let log = open(&stage.runtime(), &stage.path("log"), OFlags::RDONLY).unwrap();
            log.file.read(100, 0, 1).unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        write(coming);
        drop(lock);
        assert_eq!(reader.join().unwrap(), bytes);
    });
}

/// Finding the end of the file and writing there are one atomic step.
#[test]
fn an_append_waits_for_another_one() {
    let (stage, runtime) = stage_with_files();
    let (first, second) = (record(1, 1), record(2, 2));
    std::thread::scope(|scope| {
        let one = open(&runtime, &stage.path("log"), OFlags::RDWR).unwrap();
        let lock = one.file.lock_size().unwrap();
        let other = scope.spawn(|| {
            let log = open(&stage.runtime(), &stage.path("log"), OFlags::RDWR).unwrap();
            log.file.append_bytes(&second).unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        one.file.write(&first, 0, 1).unwrap();
        drop(lock);
        assert_eq!(other.join().unwrap(), (RECORD as u64, RECORD));
    });
    let log = open(&runtime, &stage.path("log"), OFlags::RDONLY).unwrap().file.all().unwrap();
    assert!(log == [first, second].concat());
}

/// A size queried by name, without opening the file, includes everything written before and nothing
/// not yet begun.
#[test]
fn a_size_by_name_is_never_behind() {
    let (stage, runtime) = stage_with_files();
    let (began, written) = (AtomicU64::new(0), AtomicU64::new(0));
    let path = stage.path("log");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let log = open(&runtime, &path, OFlags::RDWR).unwrap();
            for number in 1..=2000 {
                began.store(number * RECORD as u64, Ordering::SeqCst);
                log.file.append_bytes(&record(1, number as usize)).unwrap();
                written.store(number * RECORD as u64, Ordering::SeqCst);
            }
        });
        let runtime = stage.runtime();
        let mut size = 0;
        while size < 2000 * RECORD as u64 {
            let least = written.load(Ordering::SeqCst);
            let mut stat = runtime.sys().stat_at(None, &path, true).unwrap();
            assert!(runtime.correct_stat(None, &path, true, &mut stat).unwrap());
            size = stat.st_size as u64;
            assert!((least..=began.load(Ordering::SeqCst)).contains(&size), "{size}");
        }
    });
}

/// A file is replaced by another one again and again, as programs do that save their work: its size
/// is always that of one of the two.
#[test]
fn a_size_by_name_is_of_one_file_or_of_the_one_that_replaced_it() {
    let (stage, runtime) = stage_with_files();
    let (path, beside) = (stage.path("f"), stage.path("beside"));
    let save = |number: usize| {
        open(&runtime, &beside, CREATE).unwrap().file.write(&pattern(1, 1000 + number % 2), 0, 1).unwrap();
        runtime.rename(None, &beside, None, &path, 0).unwrap();
    };
    save(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..400).for_each(save);
            done.store(true, Ordering::Release);
        });
        let runtime = stage.runtime();
        while !done.load(Ordering::Acquire) {
            let mut stat = runtime.sys().stat_at(None, &path, true).unwrap();
            assert!(runtime.correct_stat(None, &path, true, &mut stat).unwrap());
            assert!([1000, 1001].contains(&stat.st_size), "{}", stat.st_size);
        }
    });
}

/// A process is killed while it holds the size lock, and its child lives on.
#[test]
fn a_lock_goes_with_its_holder_though_a_child_inherited_it() {
    let (stage, runtime) = stage_with_files();
    let mut holder = this_binary("lock_holder_process")
        .env("STRIPEWISE_TEST_HOLDER", stage.path("log"))
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The child lives until this end of the pipe is closed.
    let lives = holder.stdin.take();
    let mut ready = [0; 1];
    holder.stderr.take().unwrap().read_exact(&mut ready).unwrap();
    assert!(!holder.wait().unwrap().success(), "it has killed itself");
    let log = open(&runtime, &stage.path("log"), OFlags::RDWR).unwrap();
    let copy = log.file.objects().open_manifest(OFlags::RDWR).unwrap();
    let free = runtime.sys().try_lock(copy.as_fd(), 0, 1, stripewise_sys::LockKind::Exclusive);
    assert_eq!(free, Ok(true));
    drop(lives);
}

#[test]
fn lock_holder_process() {
    let Some(path) = std::env::var_os("STRIPEWISE_TEST_HOLDER") else { return };
    let runtime = Runtime::new(Arc::new(stripewise_sys::Real), None);
    let opened = open(&runtime, path.as_ref(), OFlags::RDWR).unwrap();
    let lock = opened.file.lock_size().unwrap();
    // SAFETY: as in `forked_children_write_on`; the child lives until the test has ended.
    unsafe {
        if libc::fork() == 0 {
            runtime.after_fork_child();
            libc::kill(libc::getppid(), libc::SIGKILL);
            libc::write(2, b"!".as_ptr().cast(), 1);
            libc::close(2);
            libc::read(0, [0u8; 1].as_mut_ptr().cast(), 1);
            libc::_exit(0)
        }
        libc::pause();
    }
    drop(lock);
}

/// Children are forked at arbitrary moments of the parent's threads.
#[test]
fn forked_children_write_on() {
    let (stage, runtime) = stage_with_files();
    let (writers, forks) = (8, 6);
    // Keep the files open, so that the children inherit them.
    let held = ["log", "shared"].map(|name| open(&runtime, &stage.path(name), OFlags::RDWR).unwrap());
    std::thread::scope(|scope| {
        for writer in forks..writers {
            let (runtime, stage) = (&runtime, &stage);
            scope.spawn(move || work(runtime, &stage.path(""), writer, writers));
        }
        let children: Vec<i32> = (0..forks)
            .map(|writer| {
                std::thread::sleep(std::time::Duration::from_millis(2));
                // SAFETY: the child uses no lock but malloc's, which glibc makes usable, and exits
                // with _exit.
                match unsafe { libc::fork() } {
                    0 => {
                        runtime.after_fork_child();
                        let work = || work(&runtime, &stage.path(""), writer, writers);
                        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                        // SAFETY: terminates the process.
                        unsafe { libc::_exit(i32::from(result.is_err())) }
                    }
                    child => child,
                }
            })
            .collect();
        for child in children {
            let mut status = 0;
            // SAFETY: `child` is a child of this process.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    });
    drop(held);
    check(&stage.runtime(), &stage.path(""), writers);
}
