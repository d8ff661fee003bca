//! Power cuts on the faulty disk of `sys`: any part of what was not synced may be lost.
//!
//! Fault model: that of [`stripewise_faulty`], with all nodes on one machine, some of which take it
//! for another one. Nodes die at any system call, also in the middle of a write. A write or sync of
//! the journal fails, and its pages may then be lost although all still read them. A node that dies
//! while it deals with such a failure takes the others with it: only its own machine reads what is
//! lost (E2).
//!
//! A seed reproduces its run: `STRIPEWISE_SEED=n`. 20,000 seeds with STRIPEWISE_LONG=1.

use std::sync::Arc;

use stripewise_faulty::{Disk, Faulty, Journal as Names};
use stripewise_random::Random;
use stripewise_sys::{Errno, SysRef};

use super::support::*;
use crate::nodes::{Batch, Engine, FileEngine, Log, Record};
use crate::{MapSpec, Mask, Span};

const NODES: u64 = 3;
const MACHINES: u8 = 2;
const WORKS_OF_A_BOOT: u64 = 30;
const BOOTS: u8 = 3;

struct Process {
    faulty: Arc<Faulty>,
    engine: FileEngine,
    machine: u8,
    /// Its writes and syncs of the journal fail, or may have.
    has_failures: bool,
}

struct World {
    bed: Bed,
    disk: Arc<Disk>,
    random: Random,
    boot: u8,
    processes: Vec<Process>,
    /// The state of the log that survives a power cut.
    durable: Log,
    /// The batches that may be in the log as well, in order.
    perhaps: Vec<Batch>,
}

impl World {
    fn new(seed: u64) -> Self {
        let (bed, mut random) = (Bed::new(), Random(seed));
        let names = if random.below(2) == 0 { Names::Posix } else { Names::Ordered };
        let disk = Disk::new(bed.dir.path(), names).unwrap();
        let durable = bed.log();
        Self { bed, disk, random, boot: 1, processes: Vec::new(), durable, perhaps: Vec::new() }
    }

    fn spec(&self, machine: u8) -> MapSpec {
        let mut spec = self.bed.spec(machine);
        spec.node.boot = [self.boot * MACHINES + machine; 16];
        spec
    }

    /// The states that the log may have now.
    fn possible(&self) -> Vec<Log> {
        let mut states = vec![self.durable.clone()];
        for batch in &self.perhaps {
            let mut next = states[states.len() - 1].clone();
            next.apply(batch);
            states.push(next);
        }
        states.iter().map(rewritten).collect()
    }

    /// Takes the state that the log has now, which was checked, for durable.
    fn settle(&mut self, after: &str) {
        let now = rewritten(&self.bed.log());
        let is_possible = self.possible().contains(&now);
        assert!(is_possible, "{after}: {now:?}\n{:?}", self.possible());
        self.durable = now;
        self.perhaps.clear();
    }

    fn join(&mut self, machine: u8) {
        let faulty = Faulty::new(&self.disk, self.random.next_u64());
        let (_, records) = crate::nodes::join(&self.durable, &self.spec(machine).node);
        let sys: SysRef = faulty.clone();
        let engine = FileEngine::join(&sys, &self.spec(machine)).unwrap();
        self.perhaps = Batch::by(engine.session(), records);
        self.settle("join");
        self.processes.push(Process { faulty, engine, machine, has_failures: false });
    }

    fn machine(&mut self) -> u8 {
        self.random.below(MACHINES.into()) as u8
    }

    fn batches(&mut self, process: usize) -> Vec<Batch> {
        let session = self.processes[process].engine.session();
        let count = 1 + self.random.below(3);
        let mut record = || {
            let (start, mask) = (self.random.below(50), 1 + self.random.below(7) as u8);
            Record::Changes(vec![Span::new(start..start + 5, Mask::from_bits(mask))])
        };
        Batch::by(session, (0..count).map(|_| record()).collect())
    }

    /// A node appends, writes the journal anew or leaves, and perhaps dies or meets a failure.
    fn work(&mut self, process: usize) {
        let faulty = self.processes[process].faulty.clone();
        if self.random.below(3) == 0 {
            faulty.crash_at(faulty.calls() + self.random.below(25));
        }
        if self.random.below(4) == 0 {
            self.processes[process].has_failures = true;
            let call = ["fsync", "pwrite", "ftruncate"][self.random.below(3) as usize];
            faulty.fail(call, "f.extents", Errno::IO, 1);
        }
        let done = if self.random.below(6) == 0 {
            self.processes[process].engine.rewrite()
        } else {
            let batches = self.batches(process);
            self.perhaps.clone_from(&batches);
            self.processes[process].engine.append(&mut |_| batches.clone())
        };
        if done.is_ok() {
            let all = self.possible().pop();
            assert_eq!(all, Some(rewritten(&self.bed.log())), "it returned");
            self.settle("work");
        } else if faulty.is_dead() || self.processes[process].engine.is_over() {
            self.died(process);
        }
    }

    /// What a dead node has left is durable once another one has appended.
    fn died(&mut self, process: usize) {
        let Process { machine, has_failures, engine, .. } = self.processes.remove(process);
        drop(engine);
        let next = if has_failures { machine } else { self.machine() };
        if has_failures {
            self.processes.clear();
        }
        let now = rewritten(&self.bed.log());
        assert!(self.possible().contains(&now), "{now:?}");
        self.durable = now;
        self.join(next);
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for boot in 1..=BOOTS {
        world.boot = boot;
        for _ in 0..=world.random.below(WORKS_OF_A_BOOT) {
            while (world.processes.len() as u64) < NODES {
                let machine = world.machine();
                world.join(machine);
            }
            let process = world.random.below(NODES) as usize;
            world.work(process);
        }
        // Power fails in an append, or after it.
        let batches = world.batches(0);
        let faulty = world.processes[0].faulty.clone();
        faulty.crash_at(faulty.calls() + world.random.below(25));
        let done = world.processes[0].engine.append(&mut |_| batches.clone());
        world.perhaps = batches;
        if done.is_ok() {
            world.settle("last append");
        }
        world.processes.clear();
        let cut = world.random.next_u64();
        world.disk.power_cut(cut).unwrap();
        world.settle("power cut");
    }
}

#[test]
fn nothing_that_was_appended_is_lost_in_a_power_cut() {
    if let Ok(seed) = std::env::var("STRIPEWISE_SEED") {
        return run(seed.parse().unwrap());
    }
    let seeds = if std::env::var_os("STRIPEWISE_LONG").is_some() { 20_000 } else { 400 };
    for seed in 1..=seeds {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}: STRIPEWISE_SEED={seed} runs it alone");
            std::panic::resume_unwind(panic);
        }
    }
}

/// A node dies while it writes the journal anew. What another one then appends survives, to which
/// of the two journals it may be.
#[test]
fn an_append_after_an_interrupted_rewrite_survives_a_power_cut() {
    let died = (0..).take_while(|&call| (0..10).all(|cut| is_interrupted_at(call, cut)));
    assert!(died.count() > 20);
}

/// Whether the node died before its rewrite was complete.
fn is_interrupted_at(call: u64, cut: u64) -> bool {
    let bed = Bed::new();
    let disk = Disk::new(bed.dir.path(), Names::Posix).unwrap();
    let (dies, other) = (Faulty::new(&disk, 1), Faulty::new(&disk, 2));
    let join = |faulty: &Arc<Faulty>, number| {
        let sys: SysRef = faulty.clone();
        bed.join_on(&sys, number)
    };
    let (mut engine, mut other) = (join(&dies, 1), join(&other, 2));
    dies.crash_at(dies.calls() + call);
    let done = engine.rewrite();
    drop(engine);
    append(&mut other, &[Record::Changes(vec![Span::new(0..5, Mask::from_bits(2))])]).unwrap();
    let expected = rewritten(other.log());
    drop(other);
    disk.power_cut(cut).unwrap();
    assert_eq!(rewritten(&bed.log()), expected, "call {call}, cut {cut}: {done:?}");
    done.is_err()
}
