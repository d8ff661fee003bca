//! A process that dies anywhere while several nodes have the file open.
//!
//! The process dies before its n-th step, for every n: a step is a system call, or a point of the
//! protocol (`hooks::reach`) between two changes of the shared state. Then another process of its
//! node goes on, or the next one that opens the file there, or the node is dead and the other one
//! recovers it, with or without what it had not synced. Everything runs in one thread: while a
//! process waits, the other nodes look at the log, as their background threads do.

mod works;

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::time::Duration;

use stripewise_sys::{Dir, Errno, LockKind, Mode, SharedMap, Stat, Sys, SysRef};

use super::sharing::{BLOCK, COPIES, Copies, HOLE, NodeOf, PageCache, Rng, replicated, spec_of};
use super::support::*;
use crate::Span;
use crate::hooks::{self, Actor, reach};
use crate::nodes::{FileEngine, Hold, HoldKind, Record, is_write, with_hold};
use crate::shared::{COPIER_BYTE, Held, Word};
use crate::tests::support::{copy, only, real};
use works::*;

const BLOCKS: u64 = 24;
/// A hold is rounded up to this.
const HELD: u64 = 8;
/// More waits than this in one act: nothing ends them.
const WAITS_MAX: u64 = 5000;
/// Nothing else ends a wait for a lock.
const STUCK: Duration = Duration::from_secs(240);

/// Panic payload of a process that dies.
struct Died;

/// The control of a process: it dies before a step, and while it waits, others look at the log.
struct Process {
    me: Weak<Process>,
    dies_at: u64,
    steps: AtomicU64,
    waits: AtomicU64,
    is_dead: AtomicBool,
    /// The steps so far.
    trace: Mutex<Vec<&'static str>>,
    serve: Box<dyn Fn() + Send + Sync>,
}

impl Process {
    fn new(dies_at: u64, serve: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            dies_at,
            steps: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            is_dead: AtomicBool::new(false),
            trace: Mutex::default(),
            serve: Box::new(serve),
        })
    }

    /// Lets the process act. Returns whether it has died; then `act` has dropped what it had.
    fn run(self: &Arc<Self>, act: impl FnOnce()) -> bool {
        hooks::act(Some(self.clone()));
        let ended = catch_unwind(AssertUnwindSafe(act));
        hooks::act(None);
        match ended {
            Err(payload) if !payload.is::<Died>() => resume_unwind(payload),
            ended => ended.is_err(),
        }
    }
}

impl Actor for Process {
    fn reach(&self, point: &'static str) {
        if self.is_dead() || std::thread::panicking() {
            return;
        }
        self.trace.lock().unwrap().push(point);
        if self.steps.fetch_add(1, Ordering::Relaxed) == self.dies_at {
            self.is_dead.store(true, Ordering::Relaxed);
            resume_unwind(Box::new(Died));
        }
    }

    fn blocked(&self) {
        if self.is_dead() || std::thread::panicking() {
            return;
        }
        assert!(self.waits.fetch_add(1, Ordering::Relaxed) < WAITS_MAX, "a process waits for nothing");
        hooks::act(None);
        (self.serve)();
        hooks::act(self.me.upgrade().map(|me| me as Arc<dyn Actor>));
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    fn take_turn(&self) {}
    fn end_turn(&self) {}
}

/// The kernel, as a process sees it that may die before each call.
struct Mortal;

impl Mortal {
    fn before(&self, call: &'static str) -> stripewise_sys::Result<()> {
        // The end of a process frees its locks, so it may as well die before the next step. (And
        // guards unlock when they are dropped.)
        if call != "unlock" {
            reach(call);
        }
        if hooks::dead() { Err(Errno::OWNERDEAD) } else { Ok(()) }
    }
}

impl Sys for Mortal {
    stripewise_faulty::delegate!(before);
    stripewise_faulty::intercept! {
        before("lock") fn lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> ();
        before("stat") fn stat(fd: BorrowedFd<'_>) -> Stat;
        before("stat") fn stat_at(dir: Dir<'_>, path: &Path, follow: bool) -> Stat;
        before("mkdir") fn mkdir(dir: Dir<'_>, path: &Path, mode: Mode) -> ();
        before("rmdir") fn rmdir(dir: Dir<'_>, path: &Path) -> ();
        before("mmap") fn map_shared(fd: BorrowedFd<'_>, words: usize) -> SharedMap;
    }
}

/// What a block may contain.
#[derive(Clone, Debug)]
struct Content {
    /// The node that has written it last, and what its processes may read.
    node: u8,
    newest: BTreeSet<u8>,
    /// What may be read where the last write was not committed, or is lost.
    possible: BTreeSet<u8>,
}

impl Content {
    fn settled(value: u8) -> Self {
        Self { node: 0, newest: [value].into(), possible: [value].into() }
    }
}

/// The file, and what is known of it.
struct Stage {
    bed: Bed,
    cache: PageCache,
    blocks: Mutex<Vec<Content>>,
    next_value: AtomicU64,
    /// The processes that look at the log while others wait.
    nodes: Mutex<Vec<Arc<NodeOf>>>,
    /// A session that waits until the only other one is no longer alone.
    joining: Mutex<Option<FileEngine>>,
    size_lock: Mutex<()>,
}

fn range_of(block: u64) -> std::ops::Range<u64> {
    block * BLOCK..(block + 1) * BLOCK
}

impl Stage {
    fn new() -> Arc<Self> {
        let bed = replicated();
        let blocks = Mutex::new(vec![Content::settled(0); BLOCKS as usize]);
        let (cache, next_value) = (PageCache::new(), AtomicU64::new(1));
        let (nodes, joining, size_lock) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { bed, cache, blocks, next_value, nodes, joining, size_lock })
    }

    /// A process of a node.
    fn process(&self, sys: &SysRef, node: u8) -> NodeOf {
        NodeOf::join_on(sys, &self.bed, node, Copies::cached(&self.bed, self.cache.of(node)))
    }

    /// The control of a process of `node`, which waits for other nodes.
    fn control(self: &Arc<Self>, node: u8, dies_at: u64) -> Arc<Process> {
        let stage = Arc::downgrade(self);
        Process::new(dies_at, move || {
            let Some(stage) = stage.upgrade() else { return };
            let nodes = stage.nodes.lock().unwrap().clone();
            nodes.iter().filter(|other| other.number != node).for_each(|other| stage.poll(other));
        })
    }

    /// Lets a process of a node act that does not die.
    fn act<T>(self: &Arc<Self>, node: u8, act: impl FnOnce() -> T) -> T {
        let mut result = None;
        self.control(node, u64::MAX).run(|| result = Some(act()));
        result.unwrap()
    }

    /// A process of a node, which looks at the log while others wait.
    fn join(self: &Arc<Self>, node: u8) -> Arc<NodeOf> {
        self.join_on(&real(), node)
    }

    fn join_on(self: &Arc<Self>, sys: &SysRef, node: u8) -> Arc<NodeOf> {
        let joined = Arc::new(self.act(node, || self.process(sys, node)));
        self.nodes.lock().unwrap().push(joined.clone());
        joined
    }

    /// A process that looks at the log no more while others wait.
    fn gone(&self, node: Option<Arc<NodeOf>>) -> NodeOf {
        let node = node.unwrap();
        self.nodes.lock().unwrap().retain(|other| !Arc::ptr_eq(other, &node));
        Arc::into_inner(node).unwrap()
    }

    /// The process closes the file, and its node has no other one.
    fn leave(&self, node: NodeOf) {
        node.map.leave(|| node.copies.sync()).unwrap();
        self.committed(node.number);
    }

    fn committed(&self, node: u8) {
        let mut blocks = self.blocks.lock().unwrap();
        for content in blocks.iter_mut().filter(|content| content.node == node) {
            content.possible = content.newest.clone();
        }
    }

    /// What the node has not committed may be lost.
    fn is_dead(&self, node: u8) {
        for content in self.blocks.lock().unwrap().iter_mut().filter(|content| content.node == node) {
            content.newest = content.possible.clone();
        }
    }

    /// Lets a node die after it has cut one of the copies.
    fn dies_in_truncate(&self, node: NodeOf, to: u64) {
        let range = to * BLOCK..u64::MAX;
        assert!(node.map.joined().unwrap().try_exclusive(&range, true).unwrap());
        std::fs::write(self.intent(), to.to_string()).unwrap();
        node.copies.files[1].set_len(to * BLOCK).unwrap();
        self.is_dead(node.number);
    }

    fn written(&self, node: u8, block: u64) -> u8 {
        let value = (self.next_value.fetch_add(1, Ordering::Relaxed) % u64::from(HOLE - 1)) as u8 + 1;
        let content = &mut self.blocks.lock().unwrap()[block as usize];
        content.node = node;
        content.newest.insert(value);
        content.possible.insert(value);
        value
    }

    fn write(&self, node: &NodeOf, block: u64, wanted: usize) {
        let value = self.written(node.number, block);
        node.write_to(range_of(block), value, || copy(wanted));
        self.blocks.lock().unwrap()[block as usize].newest = [value].into();
    }

    fn sync(&self, node: &NodeOf) {
        node.map.sync(|| node.copies.sync()).unwrap();
        self.committed(node.number);
    }

    fn intent(&self) -> PathBuf {
        self.bed.dir.path().join("intent")
    }

    /// Cuts the file as the data path does.
    fn truncate(&self, node: &NodeOf, to: u64) {
        for content in &mut self.blocks.lock().unwrap()[to as usize..] {
            content.newest.insert(0);
            content.possible.insert(0);
        }
        let lock = self.try_lock_size().expect("nobody else truncates");
        self.finish_with(&lock, node);
        self.cut(node, to, true);
        self.blocks.lock().unwrap()[to as usize..].fill(Content::settled(0));
    }

    fn cut(&self, node: &NodeOf, to: u64, is_new: bool) {
        let guard = node.map.begin_truncate(to * BLOCK).unwrap();
        if is_new {
            reach("note intent");
            std::fs::write(self.intent(), to.to_string()).unwrap();
        }
        for file in &node.copies.files {
            reach("cut");
            file.set_len(to * BLOCK).unwrap();
        }
        node.copies.sync().unwrap();
        reach("forget intent");
        std::fs::remove_file(self.intent()).unwrap();
        drop(guard);
    }

    /// `None` if another process has it. One that dies frees it.
    fn try_lock_size(&self) -> Option<MutexGuard<'_, ()>> {
        match self.size_lock.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(lock)) => Some(lock.into_inner()),
            Ok(lock) => Some(lock),
        }
    }

    /// Finishes a truncate whose process has died.
    fn finish_with(&self, _lock: &MutexGuard<'_, ()>, node: &NodeOf) {
        if let Ok(to) = std::fs::read_to_string(self.intent()) {
            self.cut(node, to.parse().unwrap(), false);
        }
    }

    fn poll(&self, node: &NodeOf) {
        let finish = || {
            let lock = self.try_lock_size().ok_or(Errno::AGAIN)?;
            self.finish_with(&lock, node);
            Ok(())
        };
        node.map.poll_now(&|| node.copies.sync(), &finish).unwrap();
    }

    /// Checks what a process reads that has acquired: all that its node has written, and what
    /// others have committed, or newer bytes.
    fn check(&self, node: &NodeOf, what: &str) {
        node.map.acquire().unwrap();
        let mut rng = Rng(77);
        for block in 0..BLOCKS {
            let value = self.value_at(node, block, &mut rng);
            let content = &self.blocks.lock().unwrap()[block as usize];
            let is_own = content.node == node.number;
            let expected = if is_own { &content.newest } else { &content.possible };
            assert!(expected.contains(&value), "{what}: block {block} is {value}, not one of {expected:?}");
        }
    }

    fn value_at(&self, node: &NodeOf, block: u64, rng: &mut Rng) -> u8 {
        let bytes = node.read(range_of(block), rng);
        assert!(bytes.iter().all(|&byte| byte == bytes[0]), "block {block} is torn");
        bytes[0]
    }

    /// Checks that all processes read the same, and notes that.
    fn agree(&self, nodes: &[Arc<NodeOf>], what: &str) {
        let mut rng = Rng(78);
        for block in 0..BLOCKS {
            let values: BTreeSet<u8> = nodes.iter().map(|node| self.value_at(node, block, &mut rng)).collect();
            assert_eq!(values.len(), 1, "{what}: block {block} is one of {values:?}");
            let content = &mut self.blocks.lock().unwrap()[block as usize];
            assert!(values.is_subset(&content.possible), "{what}: block {block} is {values:?}, {content:?}");
            *content = Content { newest: values.clone(), possible: values, ..*content };
        }
    }

    /// Checks that all copies that the log names have the same bytes.
    fn copies_are_equal(&self) {
        let copies = Copies::open(&self.bed);
        for span in self.bed.log().spans(&(0..BLOCKS * BLOCK)) {
            let contents: BTreeSet<Vec<u8>> =
                span.mask.iter().map(|of| copies.content(&span.range(), of)).collect();
            assert_eq!(contents.len(), 1, "the copies differ in {span:?}");
        }
    }
}

/// What a process may be doing when it dies. `prepare` acts before, with all nodes.
#[derive(Clone, Copy)]
struct Work {
    name: &'static str,
    begins: Begins,
    prepare: fn(&Arc<Stage>, &mut Nodes),
    act: fn(&Arc<Stage>, &mut Option<NodeOf>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// Beside another process of its node and another node.
    Shared,
    /// Beside another node, as its node's only process.
    Last,
    /// Beside another process of its node, and the file is not open elsewhere.
    AloneShared,
    /// By joining, beside another node.
    Outside,
}

struct Nodes {
    /// The process that will die.
    first: Option<NodeOf>,
    same: Option<Arc<NodeOf>>,
    other: Option<Arc<NodeOf>>,
}

const NODE: u8 = 1;
const OTHER: u8 = 2;

/// What is left of the node of a process that has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Another of its processes goes on.
    SameNode,
    /// The next process that opens the file on the node goes on.
    NextProcess,
    /// Another node recovers it, and then a process of the node opens the file.
    Recovered,
    /// The node is dead, with what it had not synced.
    Lost,
}

const LATER: [Then; 3] = [Then::NextProcess, Then::Recovered, Then::Lost];

impl Begins {
    /// What is tried after a death before step `step`.
    fn after(self, step: usize) -> Vec<Then> {
        let same = matches!(self, Self::Shared | Self::AloneShared).then_some(Then::SameNode);
        let is_long = std::env::var_os("STRIPEWISE_LONG").is_some();
        let later = if is_long { LATER.to_vec() } else { vec![LATER[step % LATER.len()]] };
        same.into_iter().chain(later).collect()
    }
}

impl Nodes {
    fn begin(stage: &Arc<Stage>, begins: Begins) -> Self {
        let first = (begins != Begins::Outside).then(|| stage.join_on(&mortal(), NODE));
        let same = matches!(begins, Begins::Shared | Begins::AloneShared).then(|| stage.join(NODE));
        let other = (begins != Begins::AloneShared).then(|| stage.join(OTHER));
        Self { first: first.map(|first| stage.gone(Some(first))), same, other }
    }

    fn first(&self) -> &NodeOf {
        self.first.as_ref().unwrap()
    }

    fn other(&self) -> &NodeOf {
        self.other.as_ref().unwrap()
    }
}

/// Runs a work in which the process dies before its step `step`. Returns whether it has died.
fn dies_at(work: &Work, step: usize, then: Then) -> bool {
    let stage = Stage::new();
    let mut nodes = Nodes::begin(&stage, work.begins);
    stage.act(NODE, || (work.prepare)(&stage, &mut nodes));
    let process = stage.control(NODE, step as u64);
    let mut first = nodes.first.take();
    let has_died = process.run(|| {
        let ended = catch_unwind(AssertUnwindSafe(|| (work.act)(&stage, &mut first)));
        // What it had goes without a trace, as far as it is still dead here.
        drop(first.take());
        ended.unwrap_or_else(|died| resume_unwind(died));
    });
    let Nodes { same, other, .. } = nodes;
    stage.joining.lock().unwrap().take();
    let survivors = survivors(&stage, then, same, other);
    let went_on = catch_unwind(AssertUnwindSafe(|| go_on(&stage, survivors)));
    went_on.unwrap_or_else(|failure| {
        let trace = process.trace.lock().unwrap();
        eprintln!("{}, dead after {:?}, {then:?}", work.name, &trace[trace.len().saturating_sub(20)..]);
        resume_unwind(failure)
    });
    has_died
}

/// The processes that go on, one of each of two nodes.
fn survivors(
    stage: &Arc<Stage>,
    then: Then,
    same: Option<Arc<NodeOf>>,
    other: Option<Arc<NodeOf>>,
) -> Vec<Arc<NodeOf>> {
    let mut goes_on = same;
    if then != Then::SameNode {
        stage.nodes.lock().unwrap().retain(|node| node.number != NODE);
        drop(goes_on.take());
    }
    if then == Then::Lost {
        stage.cache.of(NODE).lose(&Copies::open(&stage.bed));
        std::fs::remove_dir_all(stage.bed.dir.path().join(format!("run{NODE}"))).unwrap_or_default();
    }
    if matches!(then, Then::Lost | Then::Recovered) {
        stage.is_dead(NODE);
        other.iter().for_each(|other| (0..3).for_each(|_| stage.act(OTHER, || stage.poll(other))));
    }
    if then == Then::NextProcess {
        // Before another node can recover the session.
        goes_on = Some(stage.join(NODE));
    }
    let other = other.unwrap_or_else(|| stage.join(OTHER));
    // After a reboot, the node is another one to the log.
    let node = if then == Then::Lost { NODE + 2 } else { NODE };
    let goes_on = goes_on.unwrap_or_else(|| stage.join(node));
    vec![goes_on, other]
}

/// Lets the survivors use the file in every way, and checks what they read.
fn go_on(stage: &Arc<Stage>, nodes: Vec<Arc<NodeOf>>) {
    nodes.iter().for_each(|node| stage.check(node, "after the death"));
    for node in &nodes {
        stage.act(node.number, || stage.poll(node));
        stage.act(node.number, || keeps_others_out(node));
    }
    (0..4).for_each(|_| each(stage, &nodes, |node| stage.poll(node)));
    nodes.iter().for_each(|node| stage.check(node, "after polls"));
    let copies = || stage.bed.log().members().all(|(_, member)| member.holds.iter().all(is_write));
    assert!(copies(), "{:?}", stage.bed.log());
    assert!(!stage.intent().exists(), "a truncate is not finished");
    each(stage, &nodes, |node| stage.sync(node));
    each(stage, &nodes, |node| stage.sync(node));
    stage.agree(&nodes, "after syncs");
    each(stage, &nodes, |node| use_all(stage, node));
    each(stage, &nodes, |node| stage.sync(node));
    each(stage, &nodes, |node| stage.sync(node));
    stage.agree(&nodes, "at the end");
    stage.nodes.lock().unwrap().clear();
    let mut left: Vec<NodeOf> = nodes.into_iter().filter_map(Arc::into_inner).collect();
    assert_eq!(left.len(), 2);
    left.drain(..).for_each(|node| node.map.leave(|| node.copies.sync()).unwrap());
    assert_eq!(stage.bed.log().members().count(), 0);
    stage.copies_are_equal();
    let last = stage.join(4);
    stage.agree(std::slice::from_ref(&last), "after all have left");
}

fn each(stage: &Arc<Stage>, nodes: &[Arc<NodeOf>], act: impl Fn(&Arc<NodeOf>)) {
    nodes.iter().for_each(|node| stage.act(node.number, || act(node)));
}

/// Waits until the other nodes have no holds.
fn keeps_others_out(node: &Arc<NodeOf>) {
    let joined = node.map.joined().unwrap();
    if !joined.is_sharing() {
        return;
    }
    let _copier = joined.lock_board(COPIER_BYTE).unwrap();
    joined.wait_for_exclusive(&(0..u64::MAX)).unwrap();
    joined.drop_exclusive().unwrap();
}

/// Adds the hold of a truncate, which is not granted yet.
fn asks(node: &NodeOf) {
    assert!(!node.map.joined().unwrap().try_exclusive(&(0..u64::MAX), true).unwrap());
}

/// Adds holds after the end of the file until the table is full.
fn fill_table(node: &NodeOf) {
    let joined = node.map.joined().unwrap();
    let mut holds = joined.shared.holds();
    let after = |number: u64| (BLOCKS + number * HELD) * BLOCK..(BLOCKS + (number + 1) * HELD) * BLOCK;
    let held = |number| Held { range: after(number), copy: copy(0), is_given_up: false, is_forced: false };
    holds.extend((0..63).map(held));
    let _node = joined.lock_node().unwrap();
    let add = |engine: &mut FileEngine| {
        let all = Record::Holds(engine.session(), holds.iter().map(Held::hold).collect());
        joined.append(engine, &mut |_| vec![all.clone()])
    };
    joined.with_engine(add).unwrap();
    joined.shared.set_holds(&holds);
    assert!(!joined.shared.has_room(&joined.shared.holds()));
}

/// Appends the intent of an eviction.
fn evicts(node: &NodeOf) {
    let joined = node.map.joined().unwrap();
    let hold = Hold { range: 0..HELD * BLOCK, kind: HoldKind::Evict };
    let changes = Record::Changes(vec![Span::new(hold.range.clone(), only(0))]);
    let _node = joined.lock_node().unwrap();
    let evict = |engine: &mut FileEngine| {
        let own = engine.session();
        joined.append(engine, &mut |log| vec![changes.clone(), with_hold(log, own, hold.clone())])
    };
    joined.with_engine(evict).unwrap();
}

fn mortal() -> SysRef {
    Arc::new(Mortal)
}

/// Writes to some blocks of each hold, copies, evicts, and cuts the last block.
fn use_all(stage: &Arc<Stage>, node: &Arc<NodeOf>) {
    let number = u64::from(node.number);
    for block in (number..BLOCKS).step_by(4) {
        stage.write(node, block, (block / 4 + number) as usize % COPIES);
    }
    stage.sync(node);
    for to in 0..COPIES {
        node.copy(0..BLOCKS * BLOCK, to);
    }
    node.evict(0..HELD * BLOCK, 1);
    stage.truncate(node, BLOCKS - 1);
}

/// Whether the nodes go on after every death.
fn survives(work: &Work) -> bool {
    let work = *work;
    let (progress, reached) = channel();
    let dying = std::thread::spawn(move || {
        let mut deaths = 0;
        for step in 0.. {
            let _ = progress.send(step);
            let after = work.begins.after(step);
            if after.iter().filter(|&&then| dies_at(&work, step, then)).count() == 0 {
                break;
            }
            deaths += after.len();
        }
        deaths
    });
    let mut last = 0;
    loop {
        match reached.recv_timeout(STUCK) {
            Ok(now) => last = now,
            Err(RecvTimeoutError::Timeout) => panic!("{} hangs after a death before step {last}", work.name),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let deaths = dying.join();
    println!("{}: {deaths:?} deaths", work.name);
    deaths.is_ok()
}

fn survive(works: &[Work]) {
    let failed: Vec<&str> = works.iter().filter(|work| !survives(work)).map(|work| work.name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn a_process_dies_that_writes_beside_other_nodes() {
    survive(&[WRITE, FORCED, CLAIM, FULL]);
}

#[test]
fn a_process_dies_that_commits_beside_other_nodes() {
    survive(&[GIVE_UP, REWRITE, ACQUIRE]);
}

#[test]
fn a_process_dies_that_copies_evicts_or_truncates_beside_other_nodes() {
    survive(&[COPY, EVICT, ACKNOWLEDGE, TRUNCATE, TRUNCATE_SUSPECT]);
}

#[test]
fn a_process_dies_as_nodes_come_and_go() {
    survive(&[END_ALONE, BEGIN_ALONE, RECOVER, LEAVE, JOIN]);
}
