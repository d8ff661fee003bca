//! Explores the interleavings of a few processes that run the real code, with limited preemptions
//! and kills. At every step it also checks what a power cut would leave.
//!
//! # The model
//!
//! The map is real: its index in LMDB, its shared state, its journal and its locks. Each process is
//! a thread with a map joined through its own descriptors. A scheduler lets one thread run at a
//! time. At every step ([`crate::hooks::reach`]) and at every relevant system call it chooses
//! whether the thread continues, another one runs, or the thread dies. A dead thread unwinds: its
//! descriptors are closed, as the kernel does, and its guards do nothing. A transaction of the
//! index is one step; the campaign with real processes shows that LMDB's transactions are atomic
//! (`tests/kill`). Memory is sequentially consistent here;
//! `shared::tests::a_pin_or_a_slot_is_always_seen` shows that the fences are there.
//!
//! # What is checked at every step
//!
//! - Every copy that the index names for a byte has the value of a write that may count: no other
//!   write that was acknowledged, or that a read has seen, began after it had ended. All copies
//!   that the index names have the same value.
//! - If power failed now, whatever is left of the journal (the synced content, the written content,
//!   or half of what was written) would be a valid journal. After its collapse, every copy that it
//!   names for a byte has a value that may count since the last successful sync began, whatever
//!   that copy has lost.
//! - Reads return values that may count since the read began.
//!
//! At the end a new process joins and the same holds; it leaves, another one joins, and so on. No
//! process waits forever.

mod disk;
mod programs;
mod scenarios;
mod scheduler;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use stripewise_sys::SysRef;

use scheduler::Budget;
use scheduler::{Choices, Program, Run};
pub use world::World;

use super::support::{SMALL, Stage, node};
use crate::index::Index;
use crate::joining::collapsed;
use crate::journal::Journal;
use crate::lmdb::Env;
use crate::{Map, Mask};
use disk::{Images, Watched};

/// Only every n-th run is followed to the very end; every step has been checked before.
const FULL_END_EVERY: u64 = 4;

/// The program of one process.
pub type Work = fn(&Process);

/// An initial state, and the processes that run from it.
pub struct Scenario {
    pub name: &'static str,
    pub copies: usize,
    /// Whether the processes share a session of their node.
    pub sessions: bool,
    pub default: Mask,
    pub size: u64,
    /// Program that produces the initial state, before the other processes start.
    pub before: Work,
    pub processes: &'static [(&'static str, Work)],
}

/// A process in a run.
pub struct Process {
    /// `None` after the process has left.
    pub map: Mutex<Option<Map>>,
    pub world: Arc<World>,
    pub sys: SysRef,
    pub spec: crate::MapSpec,
    /// Number of the write that the process is performing.
    pub writing: Arc<Mutex<Option<usize>>>,
}

/// Result of several runs.
#[derive(Debug, Default)]
pub struct Outcome {
    pub runs: u64,
    pub steps: u64,
    pub kills: u64,
    /// Not all schedules were run.
    pub is_cut_off: bool,
    /// Error of the first run that failed.
    pub failure: Option<String>,
}

/// Runs all schedules, until one fails or `runs_max` is reached.
pub fn explore(scenario: &Scenario, budget: Budget, runs_max: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut choices = Choices::default();
    while outcome.failure.is_none() {
        let end = outcome.add(scenario, budget, choices);
        choices = match end.next() {
            Some(next) => next,
            None => return outcome,
        };
        if outcome.runs == runs_max {
            outcome.is_cut_off = true;
            return outcome;
        }
    }
    outcome
}

/// Runs random schedules until one fails. A seed reproduces its run.
pub fn wander(scenario: &Scenario, budget: Budget, runs: u64) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 1..=runs {
        outcome.add(scenario, budget, Choices::random(seed));
        if let Some(failure) = &mut outcome.failure {
            failure.push_str(&format!("\nseed {seed}"));
            return outcome;
        }
    }
    outcome
}

impl Outcome {
    /// Runs one schedule. Returns the choices that were made.
    fn add(&mut self, scenario: &Scenario, budget: Budget, choices: Choices) -> Choices {
        let end = run(scenario, budget, choices);
        self.runs += 1;
        self.steps += end.steps;
        self.kills += end.killed as u64;
        self.failure = end.failure;
        end.choices
    }
}

/// The files and the model of one run.
struct Place {
    stage: Stage,
    world: Arc<World>,
    images: Arc<Images>,
}

impl Place {
    fn new(scenario: &Scenario) -> Self {
        let mut stage = Stage::in_memory(scenario.copies, scenario.default);
        stage.spec.sessions = scenario.sessions;
        let images = Images::new(stage.journal());
        let world = Arc::new(World::new(scenario.size, scenario.copies, scenario.default));
        Self { stage, world, images }
    }

    fn process(&self) -> Process {
        let sys = Watched::new(&self.images);
        let map = Map::join_tuned(sys.clone(), self.stage.spec.clone(), SMALL).unwrap();
        let (world, spec) = (self.world.clone(), self.stage.spec.clone());
        Process { map: Mutex::new(Some(map)), world, sys, spec, writing: Arc::default() }
    }
}

fn run(scenario: &Scenario, budget: Budget, choices: Choices) -> scheduler::End {
    let place = Place::new(scenario);
    let mut first = place.process();
    disk::settle(&first.sys, place.stage.disk.path());
    (scenario.before)(&first);
    let processes: Vec<Process> = scenario.processes.iter().map(|_| place.process()).collect();
    first.map = Mutex::default();
    let writing: Vec<_> = processes.iter().map(|process| process.writing.clone()).collect();
    let programs = scenario.processes.iter().zip(processes).map(|(&(name, work), process)| {
        let work: Box<dyn FnOnce() + Send> = Box::new(move || work(&process));
        (name, work) as Program
    });
    let observer = Observer::new(&place, scenario.size);
    let world = place.world.clone();
    let on_kill = move |me: usize| world.died(*writing[me].lock().unwrap());
    let mut end = Run::all(programs.collect(), choices, budget, Box::new(move || observer.check()), on_kill);
    if end.failure.is_none()
        && let Err(what) = afterwards(&place, scenario.size)
    {
        end.failure = Some(format!("at the end: {what}"));
    }
    end
}

/// Checks the index and the journal between two steps.
struct Observer {
    spec: crate::MapSpec,
    world: Arc<World>,
    images: Arc<Images>,
    size: u64,
}

impl Observer {
    fn new(place: &Place, size: u64) -> Self {
        let (spec, world, images) = (place.stage.spec.clone(), place.world.clone(), place.images.clone());
        Self { spec, world, images, size }
    }

    fn check(&self) -> Result<(), String> {
        let inner = self.world.lock();
        if let Some(masks) = self.masks() {
            inner.check_now(&masks)?;
        }
        for image in self.images.possible() {
            let journal = Journal::parse(&image, &self.spec.run_dir)
                .map_err(|error| format!("after a power cut: {error}"))?;
            inner.check_power_cut(&after_power_cut(&journal, self.size))?;
        }
        Ok(())
    }

    /// The mask of every byte; `None` if there is no index at the moment.
    fn masks(&self) -> Option<Vec<Mask>> {
        if !self.spec.run_dir.join(crate::spec::SHARED_FILE).exists() {
            return None;
        }
        let env = Env::open(&super::support::real(), &self.spec.run_dir, None).ok()?;
        let index = Index::new(env.clone(), self.spec.default);
        let txn = env.read().ok()?;
        let mut masks = vec![self.spec.default; self.size as usize];
        let visited = index.map.parts(&txn, 0..self.size, |part| {
            masks[part.start as usize..part.end as usize].fill(part.mask);
            true
        });
        visited.ok().map(|()| masks)
    }
}

/// The masks that a journal gives each byte in the next boot.
fn after_power_cut(journal: &Journal, size: u64) -> Vec<Mask> {
    let spans = if journal.opened.is_some() { collapsed(journal) } else { journal.spans.clone() };
    let mut masks = vec![journal.default; size as usize];
    for span in spans {
        masks[span.start.min(size) as usize..span.end.min(size) as usize].fill(span.mask);
    }
    masks
}

/// Checks that new processes find a correct map.
fn afterwards(place: &Place, size: u64) -> Result<(), String> {
    static RUN: AtomicU64 = AtomicU64::new(0);
    let observer = Observer::new(place, size);
    let number = RUN.fetch_add(1, Ordering::Relaxed);
    let join = || Map::join_tuned(Watched::new(&place.images), place.stage.spec.clone(), SMALL);
    let read = |map: &Map| {
        let guard = map.begin_read(0..size).map_err(|error| error.to_string())?;
        let mut masks = Vec::new();
        guard.spans().iter().for_each(|span| masks.extend((span.start..span.end).map(|_| span.mask)));
        place.world.lock().check_now(&masks)
    };
    let sync = || {
        place.world.sync_all();
        Ok(())
    };
    let map = join().map_err(|error| error.to_string())?;
    read(&map)?;
    if !number.is_multiple_of(FULL_END_EVERY) {
        return Ok(());
    }
    map.leave(sync).map_err(|error| error.to_string())?;
    observer.check()?;
    let map = join().map_err(|error| error.to_string())?;
    read(&map)?;
    drop(map);
    // A power cut: everything in memory is lost.
    place.world.lock().power_cut(|options| ((number / FULL_END_EVERY) % options as u64) as usize);
    std::fs::remove_dir_all(&place.stage.spec.run_dir).map_err(|error| error.to_string())?;
    let spec = crate::MapSpec { node: node("here", 2), ..place.stage.spec.clone() };
    let map = Map::join_tuned(Watched::new(&place.images), spec, SMALL).map_err(|error| error.to_string())?;
    read(&map)
}
