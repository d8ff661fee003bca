//! Several processes use a file's journal as nodes do, and are killed.
//!
//! Fault model: processes die between any two system calls, or between any two instructions; the
//! kernel survives. Each process is a node of its own. All count in one counter that is kept in the
//! log, each from the value that it has read under the commit lock. So nothing that returned may be
//! lost, and no two nodes may append at the same time. 300 rounds with STRIPEWISE_LONG=1.

#![allow(missing_docs, reason = "a test")]

#[path = "../kill/dying.rs"]
mod dying;
mod fork;

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dying::Dying;
use stripewise_extents::nodes::{Batch, Engine, FileEngine, Log, Record, Session, recover};
use stripewise_extents::{MapSpec, Mask, Node, Span};
use stripewise_random::Random;
use stripewise_sys::{Real, SysRef};

const NODES: usize = 3;
/// A wait that takes longer than this is considered hung, however busy the machine is.
const HANGS: Duration = Duration::from_secs(1800);
/// A process that kills itself does so within this number of calls.
const CALLS_MAX: u64 = 300;
const BITS: u64 = 32;

pub fn spec(root: &Path, node: usize) -> MapSpec {
    MapSpec {
        owner: None,
        run_dir: root.join(format!("run{node}/file")),
        journal_base: root.to_owned(),
        journal_below: Default::default(),
        journal_name: "f.extents".into(),
        id: [7; 16],
        copies: 2,
        default: Mask::ORIGINAL,
        node: Node { name: format!("node{node}"), boot: [node as u8; 16] },
        create: true,
        sessions: false,
    }
}

pub fn new_file() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::write(dir.path().join("f.manifest"), b"").unwrap();
    dir
}

pub fn real() -> SysRef {
    Arc::new(Real)
}

/// The counter: a bit is 1 where copy 1 is valid.
fn count(log: &Log) -> u64 {
    let ones = log.spans(&(0..BITS)).into_iter().filter(|span| span.mask.bits() == 2);
    ones.flat_map(|span| span.range()).map(|bit| 1 << bit).sum()
}

fn counted(number: u64) -> Record {
    let bit = |bit: u64| Span::new(bit..bit + 1, Mask::from_bits(1 + (number >> bit & 1) as u8));
    Record::Changes((0..BITS).map(bit).collect())
}

/// Recovers the dead sessions, as far as no other node is doing so.
fn recover_dead(engine: &mut FileEngine) {
    let own = engine.session();
    let sessions: Vec<Session> = engine.log().members().map(|(session, _)| session).collect();
    for session in sessions.into_iter().filter(|&session| session != own) {
        if engine.lock_dead(session).unwrap() {
            let decide = &mut |log: &Log| {
                let records = if log.member(session).is_some() { recover(log, session) } else { Vec::new() };
                Batch::by(own, records)
            };
            engine.append(decide).unwrap();
        }
    }
}

/// What a node does until it is killed.
fn work(root: &Path, node: usize, sys: &SysRef, mut random: Random) -> ! {
    let options = std::fs::OpenOptions::new().append(true).create(true).open(root.join(format!("notes{node}")));
    let mut notes = options.unwrap();
    loop {
        let mut engine = FileEngine::join(sys, &spec(root, node)).unwrap();
        let own = engine.session();
        for _ in 0..random.below(40) {
            match random.below(12) {
                0 => engine.rewrite().unwrap(),
                1 => recover_dead(&mut engine),
                2..=4 => engine.read().unwrap(),
                _ => {
                    let mut number = 0;
                    let decide = &mut |log: &Log| {
                        number = count(log) + 1;
                        Batch::by(own, vec![counted(number)])
                    };
                    engine.append(decide).unwrap();
                    assert_eq!(count(engine.log()), number);
                    notes.write_all(b".").unwrap();
                }
            }
        }
        engine.leave().unwrap();
    }
}

fn spawn(root: &Path, node: usize, seed: u64, random: &mut Random) -> Child {
    let dies = if random.coin() { random.below(CALLS_MAX) as i64 } else { -1 };
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--nocapture"])
        .env("STRIPEWISE_TEST_NODE", format!("{node} {seed} {dies} {}", root.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn other_process() {
    let Ok(job) = std::env::var("STRIPEWISE_TEST_NODE") else { return };
    let words: Vec<&str> = job.splitn(4, ' ').collect();
    let sys = Dying::after(words[2].parse().unwrap());
    work(words[3].as_ref(), words[0].parse().unwrap(), &sys, Random(words[1].parse().unwrap()));
}

fn noted(root: &Path) -> u64 {
    (0..NODES)
        .map(|node| std::fs::metadata(root.join(format!("notes{node}"))).map_or(0, |notes| notes.len()))
        .sum()
}

#[test]
fn nodes_that_are_killed_lose_nothing_and_are_recovered() {
    let rounds = if std::env::var_os("STRIPEWISE_LONG").is_some() { 300 } else { 20 };
    let dir = new_file();
    let (root, mut random) = (dir.path(), Random(1));
    let mut killed = 0;
    for round in 0..rounds {
        let before = noted(root);
        let mut nodes: Vec<Child> =
            (0..NODES).map(|node| spawn(root, node, round * 10 + node as u64, &mut random)).collect();
        let enough = before + random.below(60);
        let began = Instant::now();
        let mut has_ended = |child: &mut Child| child.try_wait().unwrap().is_some();
        while noted(root) < enough && !nodes.iter_mut().all(&mut has_ended) {
            assert!(began.elapsed() < HANGS, "the nodes hang");
            std::thread::sleep(Duration::from_millis(1));
        }
        for node in &mut nodes {
            node.kill().unwrap();
            let status = node.wait().unwrap();
            assert!(status.code().is_none(), "round {round}: a node ended by itself: {status}");
        }
        killed += NODES as u64;
        let mut engine = FileEngine::join(&real(), &spec(root, NODES)).unwrap();
        recover_dead(&mut engine);
        assert_eq!(engine.log().members().count(), 1, "round {round}: {:?}", engine.log());
        let (found, noted) = (count(engine.log()), noted(root));
        assert!((noted..=noted + killed).contains(&found), "round {round}: {found} counted, {noted} noted");
        engine.leave().unwrap();
    }
    println!("{} appends by {killed} nodes", noted(root));
    assert!(noted(root) > rounds * 10, "the nodes did almost nothing");
}

/// While a node lives, no other one recovers it, also if it does nothing; once it is killed, one
/// does.
#[test]
fn the_kernel_tells_which_node_is_alive() {
    let dir = new_file();
    let root = dir.path();
    let mut engine = FileEngine::join(&real(), &spec(root, 1)).unwrap();
    let mut node = spawn_idle(root);
    let began = Instant::now();
    let session = loop {
        engine.read().unwrap();
        if let Some((session, _)) = engine.log().members().find(|(session, _)| *session != engine.session()) {
            break session;
        }
        assert!(began.elapsed() < HANGS && node.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(!engine.lock_dead(session).unwrap());
    node.kill().unwrap();
    node.wait().unwrap();
    assert!(engine.lock_dead(session).unwrap());
    recover_dead(&mut engine);
    assert_eq!(engine.log().members().count(), 1);
}

/// A node that joins and then waits to be killed.
fn spawn_idle(root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "idle_process", "--nocapture"])
        .env("STRIPEWISE_TEST_IDLE_NODE", root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn idle_process() {
    let Some(root) = std::env::var_os("STRIPEWISE_TEST_IDLE_NODE") else { return };
    let _engine = FileEngine::join(&real(), &spec(root.as_ref(), 0)).unwrap();
    // Ends with the parent, which never writes.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
