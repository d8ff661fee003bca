//! The file system, the log and the nodes of a run.
//!
//! # Fault model
//!
//! - The bytes of copies are coherent between nodes. Bytes that a node wrote and did not sync may
//!   be lost if it crashes or is cut off, unless another node has overwritten them (which flushes
//!   them first).
//! - A node crashes between any two steps, or in an append, which leaves a first part of its
//!   batches. Its lock is freed.
//! - A node that is cut off does nothing until it returns. Its lock is freed, and its memory stays.
//! - A node reads the log at any time, or not at all. It reads without a lock, so it may see a
//!   first part of the last append.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;

use super::files::Files;
use super::oracle::{BLOCKS_MAX, GARBAGE, Id, NODES_MAX, Oracle, Set};
use super::scenarios::{Budget, Scenario};
use super::steps::Step;
use crate::nodes::{Batch, Engine, Log, Own, Record, Session, is_usable, owes_acknowledgement, recover};
use crate::{CopyId, Span};

pub const COPIES_MAX: usize = 3;

/// A state of the log, with its hash.
#[derive(Clone)]
pub struct Known {
    pub log: Rc<Log>,
    hash: u64,
}

impl Known {
    pub fn new(log: Log) -> Self {
        let mut hasher = DefaultHasher::new();
        log.hash(&mut hasher);
        Self { log: Rc::new(log), hash: hasher.finish() }
    }

    pub fn is(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A byte of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    pub now: Id,
    /// What is left if the node that wrote `now` crashes.
    pub durable: Id,
    /// The node that has not synced it, plus 1; 0 if it is synced.
    pub dirty: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Presence {
    Down,
    Up,
    CutOff,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Writing {
    pub id: Id,
    pub range: Range<u64>,
    pub copy: usize,
    /// Number of blocks that are written.
    pub done: u64,
}

/// A copy, an eviction or a truncate in progress.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Work {
    Copy { block: u64, to: usize, buffer: Option<Id>, is_written: bool, is_tainted: bool },
    Evict { block: u64, copy: usize, is_punched: bool },
    Truncate { to: u64, id: Option<Id>, cut: usize },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Reading {
    pub block: u64,
    pub copy: usize,
    pub too_old: Set,
    /// An eviction has come meanwhile: the read starts over.
    pub is_disturbed: bool,
}

#[derive(Clone, Hash)]
pub struct Node {
    pub presence: Presence,
    pub own: Own,
    pub known: Known,
    pub writing: Option<Writing>,
    pub work: Option<Work>,
    pub reading: Option<Reading>,
}

/// The steps that led to a state, last one first.
pub struct Trail(pub Step, pub Option<Rc<Trail>>);

#[derive(Clone)]
pub struct World {
    pub scenario: &'static Scenario,
    pub end: Known,
    /// The log after the first batch of the last append, if it had several.
    pub between: Option<Known>,
    pub nodes: Vec<Node>,
    pub cells: [[Cell; BLOCKS_MAX]; COPIES_MAX],
    /// The truncate intent in `ID.manifest`: its session is the holder of the size lock.
    pub intent: Option<(Session, u64, Id)>,
    pub oracle: Oracle,
    pub budget: Budget,
    /// Writes of dead sessions that are not recovered.
    pub lost: Vec<(Session, Set)>,
    /// The append of this step is cut short after so many batches.
    pub torn: Option<usize>,
    pub trail: Option<Rc<Trail>>,
    /// The engines on files, which do the same.
    pub files: Option<Files>,
}

impl World {
    pub fn new(scenario: &'static Scenario) -> Self {
        let cell = |copy| {
            let value = if scenario.default.contains(CopyId::new(copy)) { 0 } else { GARBAGE };
            Cell { now: value, durable: value, dirty: 0 }
        };
        let end = Known::new(Log::new(scenario.default, Session::NONE));
        let node = Node {
            presence: Presence::Down,
            own: Own::new(Session::NONE),
            known: end.clone(),
            writing: None,
            work: None,
            reading: None,
        };
        Self {
            scenario,
            nodes: vec![node; scenario.nodes],
            end,
            between: None,
            cells: std::array::from_fn(|copy| [cell(copy); BLOCKS_MAX]),
            intent: None,
            oracle: Oracle::new(scenario.blocks),
            budget: scenario.budget,
            lost: Vec::new(),
            torn: None,
            trail: None,
            files: None,
        }
    }

    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Self { end, between, nodes, cells, intent, oracle, budget, lost, .. } = self;
        (end, between, nodes, cells, intent, oracle, budget, lost).hash(&mut hasher);
        hasher.finish()
    }

    pub fn blocks(&self) -> Range<u64> {
        0..self.scenario.blocks as u64
    }

    /// Whether a node lives whose session this is.
    pub fn is_alive(&self, session: Session) -> bool {
        self.nodes.iter().any(|node| node.presence == Presence::Up && node.own.session == session)
    }

    pub fn put(&mut self, node: usize, copy: usize, block: u64, value: Id) {
        let cell = &mut self.cells[copy][block as usize];
        if cell.dirty != node as u8 + 1 {
            // Another node's bytes are flushed before this node gets the right to write.
            *cell = Cell { now: value, durable: cell.now, dirty: node as u8 + 1 };
        } else {
            cell.now = value;
        }
    }

    /// Changes a byte at once and durably, as punching and cutting do.
    pub fn put_durably(&mut self, copy: usize, block: u64, value: Id) {
        self.cells[copy][block as usize] = Cell { now: value, durable: value, dirty: 0 };
    }

    pub fn sync(&mut self, node: usize) {
        for cell in self.cells.iter_mut().flatten().filter(|cell| cell.dirty == node as u8 + 1) {
            *cell = Cell { durable: cell.now, dirty: 0, ..*cell };
        }
    }

    pub fn cut(&mut self, copy: usize, to: u64, id: Id) {
        (to..self.blocks().end).for_each(|block| self.put_durably(copy, block, id));
    }

    /// The node's unsynced bytes are lost or not, and its session is dead.
    pub fn die(&mut self, node: usize, is_reverted: bool) {
        for cell in self.cells.iter_mut().flatten().filter(|cell| cell.dirty == node as u8 + 1) {
            let value = if is_reverted { cell.durable } else { cell.now };
            *cell = Cell { now: value, durable: value, dirty: 0 };
        }
        let (session, writes) = (self.nodes[node].own.session, self.oracle.crash(node));
        if self.end.log.member(session).is_some() {
            self.lost.push((session, writes));
        } else {
            self.oracle.decide(writes);
        }
        self.nodes[node].presence = Presence::Down;
        self.on_files(|files, _| files.end(node));
    }

    /// Forgets what was in the node's memory.
    pub fn clear(&mut self, node: usize) {
        let blank = Own::new(Session::NONE);
        let known = self.end.clone();
        let presence = Presence::Down;
        self.nodes[node] = Node { presence, own: blank, known, writing: None, work: None, reading: None };
        self.on_files(|files, _| files.end(node));
    }

    /// Does the same with the engines on files, and compares.
    fn on_files(&mut self, does: impl FnOnce(&mut Files, &Log)) {
        if let Some(files) = &mut self.files {
            does(files, &self.end.log);
        }
    }

    /// Reads the log to its end.
    pub fn read(&mut self, node: usize) {
        Port { world: self, node }.read().unwrap();
    }

    /// Appends what `decide` makes of the log's state, by the node's session.
    pub fn append(&mut self, node: usize, mut decide: impl FnMut(&Log) -> Vec<Record>) {
        let session = self.nodes[node].own.session;
        Port { world: self, node }.append(&mut |log| Batch::by(session, decide(log))).unwrap();
    }

    pub fn view(&self, node: usize, range: &Range<u64>) -> Vec<Span> {
        let node = &self.nodes[node];
        node.own.spans(&node.known.log, range)
    }

    /// Checks every read that a node could make now, and what a crash of all nodes would leave.
    pub fn check(&self) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            let Node { presence, own, known, .. } = &self.nodes[node];
            if *presence == Presence::Up && is_usable(&known.log, own.session) {
                self.check_reads(node)?;
            }
        }
        self.check_crash_of_all()
    }

    fn check_reads(&self, node: usize) -> Result<(), String> {
        for span in self.view(node, &self.blocks()) {
            for block in span.range() {
                let too_old = self.oracle.too_old(node, block as usize);
                for copy in span.mask.iter() {
                    let value = self.cells[copy.index()][block as usize].now;
                    let checked = self.oracle.check(value, too_old, block as usize);
                    checked.map_err(|what| format!("a read on node {node} from copy {copy}: {what}"))?;
                }
            }
        }
        Ok(())
    }

    fn check_crash_of_all(&self) -> Result<(), String> {
        let mut log = (*self.end.log).clone();
        let sessions: Vec<Session> = log.members().map(|(session, _)| session).collect();
        for session in sessions {
            Batch::by(session, recover(&log, session)).iter().for_each(|batch| log.apply(batch));
        }
        self.check_left(&log, true)?;
        self.check_left(&log, false)
    }

    /// Checks what is left of all copies if no node lives.
    fn check_left(&self, log: &Log, is_reverted: bool) -> Result<(), String> {
        for span in log.spans(&self.blocks()) {
            for block in span.range() {
                let cut = self.intent.filter(|&(_, to, _)| block >= to).map(|(_, _, id)| id);
                let value = |copy: CopyId| {
                    let cell = self.cells[copy.index()][block as usize];
                    cut.unwrap_or(if is_reverted { cell.durable } else { cell.now })
                };
                let values: Vec<Id> = span.mask.iter().map(value).collect();
                let too_old = self.oracle.too_old_for_all(block as usize);
                let checked = self.oracle.check(values[0], too_old, block as usize);
                checked.map_err(|what| format!("after a crash of all nodes: {what}"))?;
                if values.iter().any(|&value| value != values[0]) {
                    return Err(format!("after a crash of all nodes block {block} is {values:?}"));
                }
            }
        }
        Ok(())
    }
}

/// A node's engine.
struct Port<'w> {
    world: &'w mut World,
    node: usize,
}

impl Engine for Port<'_> {
    type Error = std::convert::Infallible;

    fn log(&self) -> &Log {
        &self.world.nodes[self.node].known.log
    }

    fn read(&mut self) -> Result<(), Self::Error> {
        self.world.nodes[self.node].known = self.world.end.clone();
        self.world.oracle.acquire(self.node);
        let node = self.node;
        self.world.on_files(|files, log| files.read(node, log));
        Ok(())
    }

    fn append(&mut self, decide: &mut dyn FnMut(&Log) -> Vec<Batch>) -> Result<(), Self::Error> {
        let session = self.world.nodes[self.node].own.session;
        if owes_acknowledgement(&self.world.end.log, session)
            && let Some(reading) = &mut self.world.nodes[self.node].reading
        {
            reading.is_disturbed = true;
        }
        let batches = decide(&self.world.end.log);
        if !batches.is_empty() {
            let mut log = (*self.world.end.log).clone();
            let kept = self.world.torn.unwrap_or(batches.len());
            self.world.between = None;
            for (number, batch) in batches.iter().take(kept).enumerate() {
                if number == 1 {
                    self.world.between = Some(Known::new(log.clone()));
                }
                log.apply(batch);
            }
            self.world.end = Known::new(log);
            let node = self.node;
            self.world.on_files(|files, _| files.append(node, &batches, kept));
        }
        self.read()
    }

    fn rewrite(&mut self) -> Result<(), Self::Error> {
        let old = &self.world.end.log;
        let mut log = Log::new(old.default_mask(), old.last_session());
        old.restated().iter().for_each(|batch| log.apply(batch));
        self.world.end = Known::new(log);
        self.world.between = None;
        let node = self.node;
        self.world.on_files(|files, _| files.rewrite(node));
        self.read()
    }

    fn lock_dead(&mut self, session: Session) -> Result<bool, Self::Error> {
        let (is_dead, node) = (!self.world.is_alive(session), self.node);
        self.world.on_files(|files, _| files.lock_dead(node, session, is_dead));
        Ok(is_dead)
    }
}

impl World {
    pub fn rewrite(&mut self, node: usize) {
        Port { world: self, node }.rewrite().unwrap();
    }

    pub fn lock_dead(&mut self, node: usize, session: Session) -> bool {
        Port { world: self, node }.lock_dead(session).unwrap()
    }

    pub fn join(&mut self, node: usize) {
        let mut number = Session::NONE;
        let mut port = Port { world: self, node };
        let decide = &mut |log: &Log| {
            let (session, records) = crate::nodes::join(log, &machine(node, log));
            number = session;
            Batch::by(session, records)
        };
        port.append(decide).unwrap();
        self.nodes[node].own.rejoin(number);
        self.nodes[node].presence = Presence::Up;
    }
}

/// The machine of a node that joins. Each boot joins once.
pub fn machine(node: usize, log: &Log) -> crate::Node {
    crate::Node { name: format!("node{node}"), boot: [log.last_session().0 as u8; 16] }
}

const _: () = assert!(NODES_MAX <= 8);
