//! `kill -9` of processes that share a map, at random moments.
//!
//! Fault model: processes die between any two instructions, also inside an LMDB transaction; the
//! kernel survives. Therefore every acknowledged write must be present afterwards, synced or not; a
//! write that was in flight may be present in part. All valid copies must have the same content.
//! The surviving processes must continue, whatever the dead ones left incomplete.
//!
//! A round starts writers and one process that copies, evicts and syncs (this binary again). They
//! share one map with plain files as copies. Each writer has its own slots, which it also reads
//! back, and all write to shared ones. Each writer records what it is about to do and what was
//! acknowledged. Some processes kill themselves at a system call of the map; one may be killed
//! first while the others continue; then all are killed. The expected content of the file is kept
//! from round to round in the file `expected`. The map is never created anew: it is joined as the
//! dead processes left it, or closed and rebuilt from its journal. 500 rounds with
//! STRIPEWISE_LONG=1.

#![allow(missing_docs, reason = "a test")]

mod background;
mod dying;
mod stage;
mod writer;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dying::Dying;
use stage::{Image, Random, Stage, WRITERS, owner};

/// A process that kills itself does so within this number of calls.
const CALLS_MAX: usize = 400;
/// A wait that takes longer than this is considered hung, however busy the machine is.
const HANGS: Duration = Duration::from_secs(1800);

fn is_long() -> bool {
    std::env::var_os("STRIPEWISE_LONG").is_some()
}

#[test]
fn acknowledged_writes_survive_kill_9() {
    rounds(false);
}

#[test]
fn acknowledged_writes_survive_kill_9_in_a_session() {
    rounds(true);
}

fn rounds(sessions: bool) {
    let rounds = if is_long() { 500 } else { 15 };
    let root = tempfile::tempdir_in("/dev/shm").unwrap();
    let stage = Stage::make(root.path(), sessions);
    let (mut operations, mut random) = (0, Random(1));
    for round in 0..rounds {
        one_round(&stage, round, &mut random);
        operations += verify(&stage, round, random.index(3) == 0);
    }
    println!("{operations} acknowledged writes of {WRITERS} writers in {rounds} rounds");
    assert!(operations > rounds as usize * 10, "the writers did almost nothing");
}

fn one_round(stage: &Stage, round: u64, random: &mut Random) {
    let mut children: Vec<Child> =
        (0..=WRITERS).map(|which| spawn(&stage.root, which, round, random)).collect();
    // In even rounds processes may be killed while they join; in odd rounds they have done some
    // work.
    if round % 2 == 1 {
        wait_for_notes(stage, &mut children);
    }
    let long = Duration::from_millis(5 + random.index(70) as u64);
    std::thread::sleep(long);
    if random.index(2) == 0 {
        let first = random.index(children.len());
        kill(children.remove(first), round);
        std::thread::sleep(Duration::from_millis(5 + random.index(30) as u64));
    }
    children.into_iter().for_each(|child| kill(child, round));
}

/// Waits until each writer has recorded some operations, or has killed itself.
fn wait_for_notes(stage: &Stage, children: &mut [Child]) {
    const ENOUGH_BYTES: u64 = 500;
    let began = Instant::now();
    for (writer, child) in children.iter_mut().take(WRITERS).enumerate() {
        let len = || std::fs::metadata(stage.notes(writer)).map_or(0, |notes| notes.len());
        while len() < ENOUGH_BYTES && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < HANGS, "writer {writer} hangs");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Kills a process. One that exited by itself has found an error.
fn kill(mut child: Child, round: u64) {
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "round {round}: a process ended by itself: {status}");
}

fn spawn(root: &Path, which: usize, round: u64, random: &mut Random) -> Child {
    let dies = if random.index(3) == 0 { random.index(CALLS_MAX) as i64 } else { -1 };
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--nocapture"])
        .env("STRIPEWISE_TEST_KILLED", format!("{which} {round} {dies} {}", root.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn other_process() {
    let Ok(job) = std::env::var("STRIPEWISE_TEST_KILLED") else { return };
    let words: Vec<&str> = job.splitn(4, ' ').collect();
    let (which, round): (usize, u64) = (words[0].parse().unwrap(), words[1].parse().unwrap());
    let stage = Stage { root: words[3].into(), sys: Dying::after(words[2].parse().unwrap()) };
    let random = Random(round * 1000 + which as u64);
    if which < WRITERS { writer::run(&stage, which, round, random) } else { background::run(&stage, random) }
}

/// Compares every valid copy with the notes, and returns the number of acknowledged writes. The
/// content found becomes the expected one.
fn verify(stage: &Stage, round: u64, close: bool) -> usize {
    let map = stage.join();
    let mut expected = Image::read(&stage.expected());
    let mut acknowledged = 0;
    for number in 0..WRITERS {
        let notes = writer::notes(stage, number);
        acknowledged += notes.iter().filter(|note| note.acknowledged).count();
        notes.into_iter().for_each(|note| expected.apply(note, owner(note.slot).is_none()));
    }
    let files = stage.open_copies();
    let guard = map.begin_read(0..stage::size()).unwrap();
    for span in guard.spans() {
        let copies: Vec<Vec<u8>> =
            span.mask.iter().map(|copy| files.read(copy.index(), span.range())).collect();
        for (offset, byte) in span.range().enumerate() {
            let value = copies[0][offset];
            assert!(
                copies.iter().all(|copy| copy[offset] == value),
                "round {round}: copies {:?} differ at {byte}",
                span.mask
            );
            assert!(
                expected.allows(byte, value),
                "round {round}: byte {byte} is {value} in {:?}, not {:?}",
                span.mask,
                expected.at(byte)
            );
            expected.settle(byte, value);
        }
    }
    expected.write(&stage.expected());
    (0..WRITERS).for_each(|writer| drop(std::fs::remove_file(stage.notes(writer))));
    if close {
        map.leave(|| Ok(())).unwrap();
    }
    acknowledged
}
