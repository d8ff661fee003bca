//! Goes through the states of a scenario: all of them, or those of random schedules.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use stripewise_random::Random;

use super::files::Files;
use super::scenarios::Scenario;
use super::steps::{Kind, Step};
use super::world::{Presence, Trail, World};
use crate::nodes::{is_asked, is_usable};

/// A run that takes longer than this to settle never does.
const SETTLING_STEPS_MAX: usize = 1000;

/// Result of an exploration.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Distinct states, or schedules.
    pub states: u64,
    pub steps: u64,
    pub is_cut_off: bool,
    pub failure: Option<String>,
}

/// The fingerprints are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Goes through all states, depth first, until one is wrong or `states_max` are seen.
pub fn explore(scenario: &'static Scenario, states_max: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut seen: HashSet<u64, BuildHasherDefault<AsItIs>> = HashSet::default();
    let mut stack = vec![World::new(scenario)];
    seen.insert(stack[0].fingerprint());
    while let Some(world) = stack.pop() {
        for step in world.steps() {
            let mut next = world.clone();
            outcome.steps += 1;
            next.trail = Some(Rc::new(Trail(step, world.trail.clone())));
            let is_new = next.perform(step).map(|()| seen.insert(next.fingerprint()));
            match is_new.and_then(|is_new| if is_new { next.check().map(|()| true) } else { Ok(false) }) {
                Ok(true) => stack.push(next),
                Ok(false) => {}
                Err(what) => {
                    outcome.failure = Some(next.told(&what));
                    return outcome;
                }
            }
        }
        if seen.len() as u64 >= states_max {
            outcome.is_cut_off = !stack.is_empty();
            break;
        }
    }
    outcome.states = seen.len() as u64;
    outcome
}

/// Runs random schedules of up to `length` steps. After each, everything settles, and all nodes
/// read the same.
pub fn wander(scenario: &'static Scenario, schedules: u64, length: usize) -> Outcome {
    wander_in(scenario, schedules, length, World::new)
}

/// As [`wander`], with engines on files that do the same.
pub fn wander_on_files(scenario: &'static Scenario, schedules: u64, length: usize) -> Outcome {
    wander_in(scenario, schedules, length, |scenario| {
        let files = Files::new(scenario.nodes, scenario.copies, scenario.default);
        World { files: Some(files), ..World::new(scenario) }
    })
}

fn wander_in(
    scenario: &'static Scenario,
    schedules: u64,
    length: usize,
    new: impl Fn(&'static Scenario) -> World,
) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 1..=schedules {
        let mut random = Random(seed);
        let mut world = new(scenario);
        outcome.states += 1;
        let done = (0..length).try_for_each(|_| {
            let steps = world.steps();
            outcome.steps += 1;
            if steps.is_empty() { Ok(()) } else { world.take(steps[random.index(steps.len())]) }
        });
        if let Err(what) = done.and_then(|()| world.settle()) {
            outcome.failure = Some(world.told(&format!("seed {seed}: {what}")));
            return outcome;
        }
    }
    outcome
}

impl World {
    fn take(&mut self, step: Step) -> Result<(), String> {
        self.trail = Some(Rc::new(Trail(step, self.trail.take())));
        self.perform(step)?;
        self.check()
    }

    /// The failure, and the steps that led to it.
    fn told(&self, what: &str) -> String {
        let mut steps = Vec::new();
        let mut trail = self.trail.as_deref();
        while let Some(Trail(step, before)) = trail {
            let torn = if step.is_torn { ", torn" } else { "" };
            steps.push(format!("  node {}: {:?}{torn}", step.node, step.kind));
            trail = before.as_deref();
        }
        steps.reverse();
        format!("{}: {what}\n{}\n{:?}", self.scenario.name, steps.join("\n"), self.end.log)
    }

    /// Lets all nodes finish what they have begun, commit and acquire. Checks point 4 of the
    /// contract.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..SETTLING_STEPS_MAX {
            let steps = self.steps();
            let Some(step) = steps.into_iter().find(|step| !step.is_torn && self.settles(*step)) else {
                return self.check_settled();
            };
            self.take(step)?;
        }
        Err("never settles".to_owned())
    }

    fn settles(&self, Step { node, kind, .. }: Step) -> bool {
        let it = &self.nodes[node];
        match kind {
            Kind::Join => self.nodes.iter().all(|node| node.presence == Presence::Down),
            Kind::List { gives_up } => !gives_up || is_asked(&it.known.log, it.own.session),
            Kind::EndWork => match it.work {
                Some(super::world::Work::Evict { is_punched, .. }) => is_punched,
                _ => true,
            },
            Kind::Return
            | Kind::Read
            | Kind::Acknowledge
            | Kind::Share
            | Kind::Recover(_)
            | Kind::FinishTruncate
            | Kind::Data
            | Kind::EndWrite
            | Kind::Commit
            | Kind::CopyRead
            | Kind::CopyWrite
            | Kind::Punch
            | Kind::Cut
            | Kind::EndRead => true,
            _ => false,
        }
    }

    fn check_settled(&self) -> Result<(), String> {
        let up = || self.nodes.iter().enumerate().filter(|(_, node)| node.presence == Presence::Up);
        for (number, node) in up() {
            if node.work.is_some() || !is_usable(&node.known.log, node.own.session) {
                return Err(format!("node {number} waits forever"));
            }
            if !node.known.is(&self.end) || node.own.is_noted(&self.blocks()) {
                return Err(format!("node {number} has not settled"));
            }
        }
        for span in self.end.log.spans(&self.blocks()) {
            for block in span.range() {
                let mut values = span.mask.iter().map(|copy| self.cells[copy.index()][block as usize].now);
                let first = values.next();
                if values.any(|value| Some(value) != first) {
                    return Err(format!("the valid copies of block {block} differ at the end"));
                }
            }
        }
        Ok(())
    }
}
