//! Runs the pieces of one request on several servers in parallel.

mod blocking;
mod jobs;
mod threads;
mod uring;

use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::str::FromStr;

use smallvec::smallvec;
use stripewise_sys::{Action, Errno, IoVec, Sys, SysRef};

use crate::TargetError;
use crate::emulate::pace::Pace;
use crate::objects::ObjectSet;
use blocking::Blocking;
pub use jobs::{Few, Outcome, Piece};
use jobs::{Gathered, Job};
use threads::Threads;
use uring::Rings;

/// How the pieces of a request run in parallel. Measurements: `docs/decisions/0004-fan-out.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The best engine that this kernel permits.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// A few threads of the library.
    Threads,
    /// One piece after the other, in the calling thread.
    Serial,
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "uring" => Ok(Self::Uring),
            "threads" => Ok(Self::Threads),
            "serial" => Ok(Self::Serial),
            _ => Err(format!("fan-out engine {text:?} is unknown; use auto, uring, threads or serial")),
        }
    }
}

fn raw_fd(set: &ObjectSet, object: u32) -> Result<RawFd, Errno> {
    set.fd(object as usize).map(|fd| fd.as_raw_fd()).map_err(|error| error.errno())
}

/// Runs the pieces of requests. One per process, shared by all threads.
///
/// Starts nothing before the first request that needs it. A forked child never shares rings and
/// threads with its parent: it creates its own when it needs them. The threads block all signals.
pub struct FanOut {
    sys: SysRef,
    engine: Engine,
    rings: Rings,
    threads: Threads,
    slow_reads: Blocking,
    slow_writes: Blocking,
}

impl FanOut {
    /// With an engine. If the kernel does not permit it, the next one is used instead.
    pub fn new(sys: SysRef, engine: Engine) -> Self {
        Self {
            sys,
            engine,
            rings: Rings::default(),
            threads: Threads::default(),
            slow_reads: Blocking::default(),
            slow_writes: Blocking::default(),
        }
    }

    /// Reads or writes all pieces, as `action` says. Returns one outcome per piece, in order. Short
    /// transfers are continued up to the end of the object. Pieces that follow one another in one
    /// object become one vectored transfer. Pieces to be written must not overlap in an object.
    ///
    /// # Safety
    /// For a read, no Rust reference to the pieces' memory is alive; for a write, no mutable one is
    /// in use. The memory need not be valid: then the outcome is EFAULT.
    pub unsafe fn transfer(&self, action: Action, set: &ObjectSet, pieces: &[Piece]) -> Few<Outcome> {
        let [piece] = pieces else {
            // SAFETY: as promised by the caller.
            return unsafe { self.transfer_sets(action, &[(set, pieces)]) }.pop().unwrap_or_default();
        };
        let mut vector = [IoVec { base: piece.base, len: piece.len }];
        let (object, offset) = (piece.object, piece.offset);
        let mut job = [Job::transfer(action, raw_fd(set, object), object, offset, &mut vector)];
        // SAFETY: as promised by the caller.
        unsafe { self.run_sets(&[(set, 0..1)], &mut job) };
        smallvec![Outcome { done: job[0].done as usize, error: job[0].error }]
    }

    /// Reads or writes pieces of several sets in parallel. Returns the outcomes of each set. As
    /// [`FanOut::transfer`].
    ///
    /// # Safety
    /// As [`FanOut::transfer`].
    pub unsafe fn transfer_sets(
        &self,
        action: Action,
        requests: &[(&ObjectSet, &[Piece])],
    ) -> Few<Few<Outcome>> {
        if let [(set, pieces @ [_])] = requests {
            // SAFETY: as promised by the caller.
            return smallvec![unsafe { self.transfer(action, set, pieces) }];
        }
        let mut gathered: Few<_> = requests.iter().map(|(_, pieces)| Gathered::new(pieces)).collect();
        let (mut jobs, mut sets) = (Vec::new(), Few::new());
        for (gathered, (set, _)) in gathered.iter_mut().zip(requests) {
            let first = jobs.len();
            gathered.add_jobs(&mut jobs, action, |object| raw_fd(set, object));
            sets.push((*set, first..jobs.len()));
        }
        // SAFETY: as promised by the caller.
        unsafe { self.run_sets(&sets, &mut jobs) };
        let ends: Vec<_> = jobs.iter().map(|job| (job.done, job.error)).collect();
        let each = gathered.iter().zip(requests).zip(sets);
        each.map(|((gathered, (_, pieces)), (_, range))| gathered.outcomes(pieces, &ends[range])).collect()
    }

    /// Runs transfers, in the time that the emulated servers among them take. `sets` pairs each set
    /// with the range of its jobs.
    ///
    /// # Safety
    /// As [`Job::run`], for every job; their descriptors belong to their set.
    unsafe fn run_sets(&self, sets: &[(&ObjectSet, Range<usize>)], jobs: &mut [Job<'_>]) {
        let sys = self.sys.as_ref();
        let mut pace = sets.iter().any(|(set, _)| set.is_emulated()).then(|| Pace::begin(sys));
        if let Some(pace) = &mut pace {
            for (set, range) in sets {
                for job in jobs[range.clone()].iter().filter(|job| !job.finished) {
                    if let Some(server) = set.server(job.object) {
                        pace.reserve(server, job.action == Action::Write, job.offset, job.len);
                    }
                }
            }
        }
        // SAFETY: as promised by the caller.
        unsafe { self.run(sets.iter().map(|(set, _)| *set), jobs) };
        if let Some(pace) = pace {
            pace.wait(sys);
        }
    }

    /// Syncs all objects in parallel. Returns the outcome of each. Opens objects that this process
    /// never opened, because other processes may have written to them.
    fn sync(&self, set: &ObjectSet, data_only: bool) -> Vec<Result<(), Errno>> {
        let action = if data_only { Action::SyncData } else { Action::Sync };
        let job = |object| Job::sync(action, raw_fd(set, object), object);
        let mut jobs: Vec<_> = (0..set.len() as u32).map(job).collect();
        // SAFETY: no memory is involved; the descriptors live as long as the set.
        unsafe { self.run([set].into_iter(), &mut jobs) };
        jobs.iter().map(|job| job.error.map_or(Ok(()), Err)).collect()
    }

    /// # Safety
    /// As [`Job::run`], for every job.
    unsafe fn run<'s>(&self, mut sets: impl Iterator<Item = &'s ObjectSet> + Clone, jobs: &mut [Job<'_>]) {
        let is_uncached = sets.clone().any(ObjectSet::is_uncached);
        let sys = self.sys.as_ref();
        let is_sync = jobs.first().is_some_and(|job| matches!(job.action, Action::Sync | Action::SyncData));
        // Emulated servers run in parallel by arithmetic, but their syncs are real.
        let serial = jobs.len() < 2 || !sys.is_real() || (!is_sync && sets.all(ObjectSet::is_all_emulated));
        // SAFETY: as promised by the caller.
        unsafe {
            match self.engine {
                _ if serial => run_serial(sys, jobs),
                Engine::Serial => run_serial(sys, jobs),
                Engine::Auto if !is_sync => self.run_auto(is_uncached, jobs),
                _ => self.run_at_once(jobs),
            }
        }
    }

    /// Runs jobs that the page cache can serve in the calling thread, which is fastest, and all
    /// others in parallel.
    ///
    /// # Safety
    /// As [`Job::run`], for every job.
    unsafe fn run_auto(&self, is_uncached: bool, jobs: &mut [Job<'_>]) {
        let sys = self.sys.as_ref();
        // SAFETY: as promised by the caller.
        unsafe {
            let done = match jobs[0].action {
                _ if is_uncached => 0,
                Action::Read => self.read_cached(jobs),
                _ => self.slow_writes.run_until_slow(sys, jobs),
            };
            match &mut jobs[done..] {
                [] => {}
                [last] => last.run(sys),
                rest => self.run_at_once(rest),
            }
        }
    }

    /// Runs reads from the page cache, up to the first that is not completely there. Returns the
    /// number done.
    ///
    /// # Safety
    /// As [`Job::run`], for every job.
    unsafe fn read_cached(&self, jobs: &mut [Job<'_>]) -> usize {
        let sys = self.sys.as_ref();
        for index in 0..jobs.len() {
            // SAFETY: as promised by the caller.
            match unsafe { jobs[index].run_cached(sys) } {
                Ok(true) => {}
                Ok(false) => return index,
                // SAFETY: as promised by the caller.
                Err(_) => return index + unsafe { self.slow_reads.run_until_slow(sys, &mut jobs[index..]) },
            }
        }
        jobs.len()
    }

    /// # Safety
    /// As [`Job::run`], for every job.
    unsafe fn run_at_once(&self, jobs: &mut [Job<'_>]) {
        let sys = self.sys.as_ref();
        // SAFETY: as promised by the caller.
        unsafe {
            let done = (self.engine != Engine::Threads && self.rings.run(jobs)) || self.threads.run(sys, jobs);
            if !done {
                run_serial(sys, jobs);
            }
        }
    }
}

/// # Safety
/// As [`Job::run`], for every job.
unsafe fn run_serial(sys: &dyn Sys, jobs: &mut [Job<'_>]) {
    for job in jobs {
        // SAFETY: as promised by the caller.
        unsafe { job.run(sys) };
    }
}

impl ObjectSet {
    /// Syncs all objects in parallel. Emulation does not pace syncs.
    ///
    /// # Errors
    /// The first failure, after trying all objects.
    pub fn sync(&self, fan_out: &FanOut, data_only: bool) -> Result<(), TargetError> {
        let results = fan_out.sync(self, data_only);
        results.into_iter().enumerate().try_for_each(|(index, result)| self.named(index, "fsync", result))
    }
}

#[cfg(test)]
mod tests;
