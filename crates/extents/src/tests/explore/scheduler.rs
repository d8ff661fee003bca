//! Runs one thread at a time. At every point that a thread reaches, a choice decides whether it
//! continues, another thread runs, or it dies.
//!
//! All schedules within a budget of preemptions and kills are run, depth first. A run follows the
//! choices of the last one up to the last choice that has another option, and takes that option.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::hooks::{self, Actor};

/// Limits of one run.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Maximum number of switches away from a thread that could continue.
    pub preemptions: usize,
    /// Maximum number of threads that die.
    pub kills: usize,
}

/// The choices of a run: (option taken, number of options).
#[derive(Clone, Debug, Default)]
pub struct Choices {
    taken: Vec<(usize, usize)>,
    at: usize,
    /// State of the random number generator that makes further choices; `None`: take the first
    /// option.
    random: Option<u64>,
}

/// A random run interrupts one in this many steps.
const INTERRUPT_EVERY: u64 = 8;

impl Choices {
    /// Choices made at random.
    pub fn random(seed: u64) -> Self {
        Self { random: Some(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), ..Self::default() }
    }

    /// Chooses an option. `step`: the first option is to continue with the current thread.
    fn choose(&mut self, options: usize, step: bool) -> usize {
        if options < 2 {
            return 0;
        }
        if self.at == self.taken.len() {
            let new = self.fresh(options as u64, step);
            self.taken.push((new, options));
        }
        let (taken, before) = self.taken[self.at];
        assert_eq!(options, before, "the run is not the same again");
        self.at += 1;
        taken
    }

    fn fresh(&mut self, options: u64, step: bool) -> usize {
        let Some(state) = &mut self.random else { return 0 };
        // Xorshift (Marsaglia 2003).
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let number = *state >> 16;
        let chosen = match step {
            true if !number.is_multiple_of(INTERRUPT_EVERY) => 0,
            true => 1 + number / INTERRUPT_EVERY % (options - 1),
            false => number % options,
        };
        chosen as usize
    }

    /// The choices of the next run; `None` if all have been run.
    pub fn next(mut self) -> Option<Self> {
        self.taken.truncate(self.at);
        while let Some((taken, options)) = self.taken.pop() {
            if taken + 1 < options {
                self.taken.push((taken + 1, options));
                return Some(Self { taken: self.taken, at: 0, random: None });
            }
        }
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ready,
    /// Waits for a step after this one.
    Blocked(u64),
    Over,
}

struct State {
    current: Option<usize>,
    status: Vec<Status>,
    names: Vec<&'static str>,
    choices: Choices,
    budget: Budget,
    steps: u64,
    /// The step at which each thread last checked its condition again because no other thread could
    /// run.
    looked: Vec<u64>,
    turn: Option<usize>,
    failure: Option<String>,
    trace: Vec<String>,
}

/// Checks the state at every step, while no thread runs.
pub type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A run of one schedule.
pub struct Run {
    state: Mutex<State>,
    /// One per thread, notified when it may continue.
    turns: Vec<Condvar>,
    check: Check,
}

/// Result of a run.
pub struct End {
    pub choices: Choices,
    pub steps: u64,
    pub killed: usize,
    /// The error, and the steps that led to it.
    pub failure: Option<String>,
}

/// Panic payload of a thread that is killed.
struct Killed;

struct Thread {
    run: Arc<Run>,
    me: usize,
    dead: AtomicBool,
}

/// Name and work of a thread.
pub type Program = (&'static str, Box<dyn FnOnce() + Send>);

impl Run {
    /// Runs all programs to their end.
    pub fn all(
        programs: Vec<Program>,
        choices: Choices,
        budget: Budget,
        check: Check,
        on_kill: impl Fn(usize) + Send + Sync,
    ) -> End {
        let names: Vec<&'static str> = programs.iter().map(|(name, _)| *name).collect();
        let state = State {
            current: None,
            status: vec![Status::Ready; names.len()],
            looked: vec![u64::MAX; names.len()],
            names,
            choices,
            budget,
            steps: 0,
            turn: None,
            failure: None,
            trace: Vec::new(),
        };
        let turns = state.status.iter().map(|_| Condvar::new()).collect();
        let run = Arc::new(Self { state: Mutex::new(state), turns, check });
        std::thread::scope(|scope| {
            for (me, (_, work)) in programs.into_iter().enumerate() {
                let (run, on_kill) = (run.clone(), &on_kill);
                scope.spawn(move || run.thread(me, work, on_kill));
            }
            run.schedule(&mut run.lock());
        });
        let mut state = run.lock();
        End {
            choices: std::mem::take(&mut state.choices),
            steps: state.steps,
            killed: budget.kills - state.budget.kills,
            failure: state.failure.take().map(|what| format!("{what}\n{}", state.trace.join("\n"))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn thread(self: Arc<Self>, me: usize, work: Box<dyn FnOnce() + Send>, on_kill: &(impl Fn(usize) + Sync)) {
        let thread = Arc::new(Thread { run: self.clone(), me, dead: AtomicBool::new(false) });
        let state = self.wait_for_turn(self.lock(), me);
        let failed = state.failure.is_some();
        drop(state);
        if failed {
            return;
        }
        hooks::act(Some(thread.clone()));
        let ended = catch_unwind(AssertUnwindSafe(work));
        hooks::act(None);
        let mut state = self.lock();
        if let Err(payload) = ended {
            if payload.is::<Killed>() {
                on_kill(me);
            } else {
                let text = payload.downcast_ref::<String>().cloned();
                let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let text = text.unwrap_or_else(|| "panicked".to_owned());
                let text = format!("{}: {text}", state.names[me]);
                state.failure.get_or_insert(text);
            }
        }
        state.status[me] = Status::Over;
        if state.turn == Some(me) {
            state.turn = None;
        }
        state.steps += 1;
        self.schedule(&mut state);
    }

    /// Chooses the next thread.
    fn schedule(&self, state: &mut State) {
        let can = state.runnable();
        if can.is_empty() {
            let stuck: Vec<&str> = state
                .all()
                .filter(|&actor| state.status[actor] != Status::Over)
                .map(|actor| state.names[actor])
                .collect();
            if !stuck.is_empty() && state.failure.is_none() {
                state.failure = Some(format!("deadlock of {stuck:?}"));
            }
            state.current = None;
            self.wake(state);
            return;
        }
        let chosen = state.choices.choose(can.len(), false);
        state.current = Some(can[chosen]);
        self.wake(state);
    }

    /// Wakes the current thread, or all threads if the run has failed.
    fn wake(&self, state: &State) {
        match state.current {
            Some(current) if state.failure.is_none() => self.turns[current].notify_one(),
            _ => self.turns.iter().for_each(Condvar::notify_one),
        }
    }

    /// Waits for this thread's turn. If the run has failed, all threads end, not necessarily one at
    /// a time.
    fn wait_for_turn<'s>(&self, mut state: MutexGuard<'s, State>, me: usize) -> MutexGuard<'s, State> {
        while state.current != Some(me) && state.failure.is_none() {
            state = self.turns[me].wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state
    }
}

impl State {
    fn all(&self) -> std::ops::Range<usize> {
        0..self.status.len()
    }

    fn runnable(&self) -> Vec<usize> {
        let can = |&actor: &usize| match self.status[actor] {
            Status::Ready => true,
            Status::Blocked(step) => step < self.steps,
            Status::Over => false,
        };
        self.all().filter(can).collect()
    }
}

impl Thread {
    /// Unwinds because this thread is killed or the run has failed. Guards do nothing on drop.
    fn die(&self) -> ! {
        self.dead.store(true, Ordering::Relaxed);
        resume_unwind(Box::new(Killed));
    }
}

impl Actor for Thread {
    fn reach(&self, point: &'static str) {
        if self.is_dead() || std::thread::panicking() {
            return;
        }
        let mut state = self.run.lock();
        if state.failure.is_some() {
            drop(state);
            self.die();
        }
        state.steps += 1;
        let line = format!("{:4} {} {point}", state.steps, state.names[self.me]);
        state.trace.push(line);
        if let Err(what) = (self.run.check)() {
            state.failure = Some(what);
            self.run.wake(&state);
            drop(state);
            self.die();
        }
        let others: Vec<usize> = if state.budget.preemptions > 0 {
            state.runnable().into_iter().filter(|&actor| actor != self.me).collect()
        } else {
            Vec::new()
        };
        let kill = usize::from(state.budget.kills > 0);
        let chosen = state.choices.choose(1 + others.len() + kill, true);
        if chosen == 0 {
            return;
        }
        if let Some(&other) = others.get(chosen - 1) {
            state.budget.preemptions -= 1;
            state.current = Some(other);
            self.run.wake(&state);
            let state = self.run.wait_for_turn(state, self.me);
            let failed = state.failure.is_some();
            drop(state);
            if failed {
                self.die();
            }
            return;
        }
        state.budget.kills -= 1;
        let line = format!("     {} dies", state.names[self.me]);
        state.trace.push(line);
        drop(state);
        self.die();
    }

    fn blocked(&self) {
        if self.is_dead() {
            return;
        }
        let mut state = self.run.lock();
        state.status[self.me] = Status::Blocked(state.steps);
        if state.runnable().is_empty() && state.looked[self.me] != state.steps {
            // No other thread can run: this one may check once itself whether a process has died.
            state.looked[self.me] = state.steps;
            state.status[self.me] = Status::Ready;
            return;
        }
        self.run.schedule(&mut state);
        let mut state = self.run.wait_for_turn(state, self.me);
        if state.failure.is_some() {
            drop(state);
            self.die();
        }
        state.status[self.me] = Status::Ready;
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    fn take_turn(&self) {
        loop {
            let mut state = self.run.lock();
            if state.turn.is_none() {
                state.turn = Some(self.me);
                return;
            }
            drop(state);
            self.blocked();
        }
    }

    fn end_turn(&self) {
        let mut state = self.run.lock();
        if state.turn == Some(self.me) {
            state.turn = None;
        }
    }
}
