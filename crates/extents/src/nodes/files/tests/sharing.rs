//! Maps that several nodes have joined at once, with data: random writes, copies, evictions and
//! commits, each node with threads of its own.
//!
//! The nodes work in phases. In a phase they write at random, also to the same blocks. At its end
//! all commit, and then acquire. From then on all must read the same bytes, whichever copy they
//! use.

mod cases;

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use stripewise_sys::{Errno, LockKind, SysRef};

use super::support::*;
use crate::hooks::{blocked, reach};
use crate::nodes::FileEngine;
use crate::session::IS_PATIENT;
use crate::shared::NODE_BYTE;
use crate::tests::support::{SMALL, copy, nothing, real};
use crate::{CopyId, Map, MapSpec, Mask, Span};

pub(super) const COPIES: usize = 2;
pub(super) const BLOCK: u64 = 512;
const BLOCKS: u64 = 64;
const PHASES: usize = 12;
const STEPS: usize = 40;

fn all() -> Mask {
    Mask::all(COPIES)
}

/// A small random number generator, so that a failure can be repeated up to the scheduling.
pub(super) struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The copies of the file, as a node has them open.
pub(super) struct Copies {
    pub files: Vec<File>,
    /// What the node has written and not synced, if the test wants to lose it.
    cache: Option<PageCache>,
}

impl Copies {
    pub fn open(bed: &Bed) -> Self {
        let open = |number| {
            let path = bed.dir.path().join(format!("copy{number}"));
            File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
        };
        Self { files: (0..COPIES).map(open).collect(), cache: None }
    }

    /// The copies as a node has them open that may lose what it has not synced.
    pub fn cached(bed: &Bed, cache: PageCache) -> Self {
        Self { cache: Some(cache), ..Self::open(bed) }
    }

    pub fn read(&self, range: &Range<u64>, from: CopyId) -> Vec<u8> {
        self.cache.iter().for_each(|cache| cache.others_flush(range, from));
        self.content(range, from)
    }

    /// The bytes after the end of a copy are zeros.
    pub fn content(&self, range: &Range<u64>, of: CopyId) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut at = 0;
        while at < bytes.len() {
            match self.files[of.index()].read_at(&mut bytes[at..], range.start + at as u64).unwrap() {
                0 => break,
                read => at += read,
            }
        }
        bytes
    }

    pub fn write(&self, range: &Range<u64>, to: CopyId, bytes: &[u8]) {
        assert_eq!(bytes.len() as u64, range.end - range.start);
        if let Some(cache) = &self.cache {
            cache.others_flush(range, to);
            cache.wrote(range.start, to, self.content(range, to));
        }
        self.files[to.index()].write_all_at(bytes, range.start).unwrap();
    }

    pub fn sync(&self) -> stripewise_sys::Result<()> {
        self.cache.iter().for_each(PageCache::sync);
        Ok(())
    }
}

/// What the nodes have written to the copies and not synced. A node's bytes are flushed before
/// another node reads or overwrites them.
#[derive(Clone)]
pub(super) struct PageCache {
    node: u8,
    unsynced: Arc<Mutex<Vec<Unsynced>>>,
}

struct Unsynced {
    node: u8,
    copy: CopyId,
    start: u64,
    /// What was there before.
    bytes: Vec<u8>,
}

impl PageCache {
    pub fn new() -> Self {
        Self { node: 0, unsynced: Arc::default() }
    }

    pub fn of(&self, node: u8) -> Self {
        Self { node, ..self.clone() }
    }

    fn others_flush(&self, range: &Range<u64>, copy: CopyId) {
        let overlaps = |old: &Unsynced| {
            old.copy == copy && old.start < range.end && range.start < old.start + old.bytes.len() as u64
        };
        self.unsynced.lock().unwrap().retain(|old| old.node == self.node || !overlaps(old));
    }

    fn wrote(&self, start: u64, copy: CopyId, bytes: Vec<u8>) {
        self.unsynced.lock().unwrap().push(Unsynced { node: self.node, copy, start, bytes });
    }

    fn sync(&self) {
        self.unsynced.lock().unwrap().retain(|old| old.node != self.node);
    }

    /// The node dies, and everything that it had not synced is lost.
    pub fn lose(&self, copies: &Copies) {
        let mut unsynced = self.unsynced.lock().unwrap();
        for old in unsynced.iter().rev().filter(|old| old.node == self.node) {
            copies.files[old.copy.index()].write_all_at(&old.bytes, old.start).unwrap();
        }
        unsynced.retain(|old| old.node != self.node);
    }
}

/// Where the nodes wait for each other. A node that panics lets the others panic, too.
#[derive(Default)]
struct Meeting {
    nodes: usize,
    /// Nodes that wait, meetings so far, and whether a node has failed.
    state: Mutex<(usize, usize, bool)>,
    all_are_there: Condvar,
}

impl Meeting {
    fn state(&self) -> std::sync::MutexGuard<'_, (usize, usize, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this node came last.
    fn wait(&self) -> bool {
        let mut state = self.state();
        state.0 += 1;
        if state.0 == self.nodes {
            (state.0, state.1) = (0, state.1 + 1);
            self.all_are_there.notify_all();
            return true;
        }
        let number = state.1;
        while state.1 == number && !state.2 {
            state = self.all_are_there.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let has_failed = state.2;
        drop(state);
        assert!(!has_failed, "another node has failed");
        false
    }
}

/// Tells the others if its thread panics.
struct Watched<'a>(&'a Meeting, &'a AtomicBool);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().2 = true;
            self.0.all_are_there.notify_all();
            self.1.store(true, Ordering::SeqCst);
        }
    }
}

/// A file with replicas.
pub(super) fn replicated() -> Bed {
    Bed::holding(&crate::journal::Header { copies: COPIES as u8, default: all(), ..HEADER }.encode())
}

pub(super) fn spec_of(bed: &Bed, number: u8) -> MapSpec {
    MapSpec { sessions: true, copies: COPIES, default: all(), ..bed.spec(number) }
}

pub(super) struct NodeOf {
    pub number: u8,
    pub map: Map,
    pub copies: Copies,
}

impl NodeOf {
    pub fn join(bed: &Bed, number: u8) -> Self {
        Self::join_on(&real(), bed, number, Copies::open(bed))
    }

    pub fn join_on(sys: &SysRef, bed: &Bed, number: u8, copies: Copies) -> Self {
        IS_PATIENT.set(true);
        let map = Map::join_tuned(sys.clone(), spec_of(bed, number), SMALL).unwrap();
        Self { number, map, copies }
    }

    /// Writes one value to some blocks, as the data path does.
    pub fn write(&self, range: Range<u64>, value: u8, rng: &mut Rng) {
        self.write_to(range, value, || copy(rng.below(COPIES as u64) as usize));
    }

    /// Writes to the copies that `wanted` names, where others do not write to another one.
    pub fn write_to(&self, range: Range<u64>, value: u8, mut wanted: impl FnMut() -> CopyId) {
        let bytes = vec![value; (range.end - range.start) as usize];
        'anew: loop {
            let mut guard = self.map.begin_write(range.clone()).unwrap();
            let spans: Vec<Span> = guard.spans().to_vec();
            for span in spans {
                let wanted = wanted();
                let allowed = all().minus(span.forbidden);
                let Some(to) = (if allowed.contains(wanted) { Some(wanted) } else { allowed.lowest() }) else {
                    drop(guard);
                    pause();
                    continue 'anew;
                };
                if !guard.may_write(&span.range(), to) {
                    drop(guard);
                    self.map.announce(span.range(), to, all(), &|| self.copies.sync()).unwrap();
                    continue 'anew;
                }
                match guard.prepare(span.range(), to) {
                    Err(error) if error.errno() == Errno::BUSY => {
                        drop(guard);
                        pause();
                        continue 'anew;
                    }
                    prepared => prepared.unwrap(),
                }
                reach("write data");
                self.copies.write(&span.range(), to, &bytes[..span.len() as usize]);
                guard.wrote(span.range(), to).unwrap();
            }
            return;
        }
    }

    pub fn read(&self, range: Range<u64>, rng: &mut Rng) -> Vec<u8> {
        loop {
            let guard = self.map.begin_read(range.clone()).unwrap();
            let chosen: Vec<(Span, CopyId)> =
                guard.spans().iter().map(|span| (*span, any_of(span.mask, rng))).collect();
            let bytes = chosen.iter().flat_map(|(span, from)| self.copies.read(&span.range(), *from)).collect();
            let from = |span: &Span| chosen.iter().find(|(other, _)| other == span).unwrap().1;
            if guard.still_valid(from).unwrap() {
                return bytes;
            }
        }
    }

    pub fn copy(&self, range: Range<u64>, to: usize) {
        let (from, to) = (copy(1 - to), copy(to));
        let Some(mut copier) = self.map.copier().unwrap() else { return };
        self.map.commit_to_copy(&range, &|| self.copies.sync()).unwrap();
        let Some(guard) = copier.begin(range, from, to).unwrap() else { return };
        for part in guard.parts() {
            reach("copy data");
            self.copies.write(part, to, &self.copies.read(part, from));
        }
        guard.finish(|| self.copies.sync()).unwrap();
    }

    /// Punching fills the copy with a value that nobody writes.
    pub fn evict(&self, range: Range<u64>, from: usize) {
        let Some(mut copier) = self.map.copier().unwrap() else { return };
        let punch = |parts: &[Range<u64>]| {
            parts.iter().for_each(|part| {
                reach("punch data");
                self.copies.write(part, copy(from), &vec![HOLE; (part.end - part.start) as usize])
            });
            Ok(())
        };
        copier.evict(range, copy(from), || self.copies.sync(), punch).unwrap();
    }

    fn poll(&self) {
        self.map.poll_now(&nothing, &nothing).unwrap();
    }
}

pub(super) const HOLE: u8 = 255;

/// Lets other threads or, if a test runs them, other nodes go on.
fn pause() {
    if !blocked() {
        std::thread::yield_now();
    }
}

fn any_of(copies: Mask, rng: &mut Rng) -> CopyId {
    let copies: Vec<CopyId> = copies.iter().collect();
    copies[rng.below(copies.len() as u64) as usize]
}

/// What the blocks may contain at the end of the phase.
struct Content {
    before: Vec<u8>,
    /// The last value of each node.
    last: Vec<[Option<u8>; 4]>,
}

impl Content {
    fn wrote(&mut self, node: u8, range: &Range<u64>, value: u8) {
        for block in range.start / BLOCK..range.end / BLOCK {
            self.last[block as usize][node as usize] = Some(value);
        }
    }

    fn found(&mut self, bytes: &[u8]) {
        for (block, bytes) in bytes.chunks(BLOCK as usize).enumerate() {
            let value = bytes[0];
            assert!(bytes.iter().all(|&byte| byte == value), "block {block} is torn");
            let last: Vec<u8> = self.last[block].iter().flatten().copied().collect();
            let expected = if last.is_empty() { vec![self.before[block]] } else { last };
            assert!(expected.contains(&value), "block {block} is {value}, not one of {expected:?}");
            self.before[block] = value;
            self.last[block] = [None; 4];
        }
    }
}

/// One run with `nodes` nodes. Threads of each node write; one serves the others, one copies and
/// evicts.
fn run(nodes: usize, seed: u64) {
    let bed = replicated();
    let copies = Copies::open(&bed);
    (0..COPIES).for_each(|number| {
        copies.write(&(0..BLOCKS * BLOCK), copy(number), &vec![0; (BLOCKS * BLOCK) as usize])
    });
    let content =
        Mutex::new(Content { before: vec![0; BLOCKS as usize], last: vec![[None; 4]; BLOCKS as usize] });
    let meeting = Meeting { nodes, ..Meeting::default() };
    std::thread::scope(|scope| {
        for number in 0..nodes as u8 {
            let (bed, content, meeting) = (&bed, &content, &meeting);
            scope.spawn(move || {
                let node = RwLock::new(NodeOf::join(bed, number + 1));
                let is_done = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let _watched = Watched(meeting, &is_done);
                    scope.spawn(|| {
                        let _watched = Watched(meeting, &is_done);
                        serve(&node, &is_done);
                    });
                    scope.spawn(|| {
                        let _watched = Watched(meeting, &is_done);
                        work(&node, &is_done, seed);
                    });
                    phases(&node.read().unwrap(), content, meeting, seed);
                    meeting.wait();
                    is_done.store(true, Ordering::SeqCst);
                });
                node.into_inner().unwrap().map.leave(nothing).unwrap();
            });
        }
    });
    let journal = crate::Journal::read(&real(), &bed.spec(9)).unwrap();
    assert_eq!(journal.nodes.unwrap().members().count(), 0);
    let node = NodeOf::join(&bed, 1);
    let mut rng = Rng(seed | 1);
    content.into_inner().unwrap().found(&node.read(0..BLOCKS * BLOCK, &mut rng));
}

fn serve(node: &RwLock<NodeOf>, is_done: &AtomicBool) {
    while !is_done.load(Ordering::SeqCst) {
        node.read().unwrap().poll();
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
}

fn work(node: &RwLock<NodeOf>, is_done: &AtomicBool, seed: u64) {
    let node = node.read().unwrap();
    let mut rng = Rng((seed + 77 * u64::from(node.number)) | 1);
    while !is_done.load(Ordering::SeqCst) {
        let first = rng.below(BLOCKS);
        let range = first * BLOCK..(first + 1 + rng.below(BLOCKS - first)) * BLOCK;
        let number = rng.below(COPIES as u64) as usize;
        if rng.below(4) == 0 {
            node.evict(range, number)
        } else {
            node.copy(range, number)
        }
        std::thread::yield_now();
    }
}

fn phases(node: &NodeOf, content: &Mutex<Content>, meeting: &Meeting, seed: u64) {
    let mut rng = Rng((seed * 31 + u64::from(node.number) * 1009) | 1);
    for _ in 0..PHASES {
        for _ in 0..STEPS {
            step(node, content, &mut rng);
        }
        node.map.sync(nothing).unwrap();
        meeting.wait();
        node.map.acquire().unwrap();
        let read = node.read(0..BLOCKS * BLOCK, &mut rng);
        assert!(!read.contains(&HOLE), "a hole was read");
        if meeting.wait() {
            content.lock().unwrap().found(&read);
        }
        meeting.wait();
        let now: Vec<u8> = content.lock().unwrap().before.clone();
        let values: Vec<u8> = read.chunks(BLOCK as usize).map(|block| block[0]).collect();
        assert_eq!(values, now, "node {} reads something else", node.number);
        meeting.wait();
    }
}

fn step(node: &NodeOf, content: &Mutex<Content>, rng: &mut Rng) {
    let first = rng.below(BLOCKS);
    let range = first * BLOCK..(first + 1 + rng.below(4).min(BLOCKS - first - 1)) * BLOCK;
    match rng.below(8) {
        0 => node.map.sync(nothing).unwrap(),
        1 | 2 => {
            let read = node.read(range.clone(), rng);
            assert!(!read.contains(&HOLE), "a hole was read in {range:?}");
        }
        _ => {
            let value = node.number * 60 + rng.below(60) as u8;
            // Before the write: another node may end the phase's check only after this node's own.
            content.lock().unwrap().wrote(node.number, &range, value);
            node.write(range, value, rng);
        }
    }
}

#[test]
fn nodes_agree_on_what_they_wrote_together() {
    let rounds = if std::env::var_os("STRIPEWISE_LONG").is_some() { 100 } else { 4 };
    for seed in 0..rounds {
        run(2 + (seed % 2) as usize, seed + 1);
    }
}
