//! The library's state per process: the data path, its background work, and the recorder. Both are
//! created on first use and never destroyed.

use std::ffi::{CStr, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stripewise_cluster::Plan;
use stripewise_datapath::{Runtime, Settings, notice};
use stripewise_recorder::{Recorder, variable};
use stripewise_sys::{Errno, Mode, OFlags, Real, Result, SysRef};
use stripewise_target::Engine;

use crate::process::guard::{self, SignalForkGuard};
use crate::process::lock::Lock;
use crate::process::{errno, identity, job, stack, statistics};

/// The plan file. Without it no new file becomes managed.
const ENV_PLAN: &CStr = c"STRIPEWISE_PLAN";
const ENV_FANOUT: &CStr = c"STRIPEWISE_FANOUT";
/// Upper bound of the size of a plan file, bytes; a larger file is something else.
const PLAN_BYTES_MAX: usize = 1 << 30;

/// A value that the first caller of [`get`](Self::get) makes. If the thread that is making it asks
/// again (its allocator opens a file, or a signal handler runs), it gets an error instead of
/// waiting for itself.
struct Lazily<T> {
    value: OnceLock<T>,
    making: Lock,
    /// The id of the thread that is making the value; 0 if none is.
    maker: AtomicU32,
}

impl<T> Lazily<T> {
    const fn new() -> Self {
        Self { value: OnceLock::new(), making: Lock::new(), maker: AtomicU32::new(0) }
    }

    /// Returns the value. Other threads wait while one makes it.
    /// Errors: EBUSY where the calling thread is making the value at this moment. The error of
    /// `make`; the next caller then tries again.
    fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        if self.maker.load(Ordering::Relaxed) == thread {
            return Err(Errno::BUSY);
        }
        let _making = self.making.lock();
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        self.maker.store(thread, Ordering::Relaxed);
        let made = errno::caught(make);
        self.maker.store(0, Ordering::Relaxed);
        made.map(|value| self.value.get_or_init(|| value))
    }
}

static RUNTIME: Lazily<Arc<Runtime>> = Lazily::new();
static RECORDER: Lazily<Option<Recorder>> = Lazily::new();

/// The data path.
/// Errors: those of [`Lazily::get`], and of reading the plan.
pub fn runtime() -> Result<&'static Runtime> {
    let runtime = match RUNTIME.value.get() {
        Some(runtime) => runtime,
        // Signals wait: a handler that ran during the construction would get EBUSY.
        None => guard::undisturbed(|| RUNTIME.get(|| stack::on_own(make_runtime)))?,
    };
    if identity::is_new_process() {
        let _guard = SignalForkGuard::new();
        runtime.after_fork_child();
    }
    Ok(runtime)
}

/// The data path, for state that parent and child have in common: the plan. `None` if no call
/// needed it yet, in this process or in a parent before the fork. A forked child is not prepared
/// for requests by this call.
pub fn runtime_if_made() -> Option<&'static Runtime> {
    RUNTIME.value.get().map(|runtime| &**runtime)
}

/// The data path, prepared for this process, if any call needed it yet.
pub fn runtime_if_used() -> Option<&'static Runtime> {
    RUNTIME.value.get()?;
    runtime().ok()
}

/// The recorder, if this process is recorded.
#[inline]
pub fn recorder() -> Option<Recorder> {
    match RECORDER.value.get() {
        Some(Some(recorder)) if recorder.is_new() => prepare(*recorder),
        Some(recorder) => *recorder,
        None => start_recorder(),
    }
}

#[cold]
fn start_recorder() -> Option<Recorder> {
    let make = || match stripewise_recorder::Settings::from_env() {
        Some(settings) => stack::on_own(|| Ok(make_recorder(&settings))),
        None => Ok(None),
    };
    guard::undisturbed(|| RECORDER.get(make).ok().copied().flatten())
}

/// Prepares the recorder in a forked child, before its first record.
#[cold]
fn prepare(recorder: Recorder) -> Option<Recorder> {
    // If there is no memory for a stack, the first record prepares the recorder.
    let _ = guard::undisturbed(|| {
        stack::on_own(|| {
            recorder.prepare();
            Ok(())
        })
    });
    Some(recorder)
}

pub fn has_plan() -> bool {
    /// Later changes of the environment apply to programs that are started after them.
    static FOUND: AtomicU32 = AtomicU32::new(0);
    found_once(&FOUND, || plan_path().is_some())
}

/// Returns the first result of `find`, which `found` (initially 0) keeps. Threads that call at the
/// same time all run `find`; none waits for another.
pub fn found_once(found: &AtomicU32, find: impl FnOnce() -> bool) -> bool {
    const NO: u32 = 1;
    const YES: u32 = 2;
    if found.load(Ordering::Relaxed) == 0 {
        found.store(if find() { YES } else { NO }, Ordering::Relaxed);
    }
    found.load(Ordering::Relaxed) == YES
}

fn plan_path() -> Option<&'static Path> {
    variable(ENV_PLAN).map(|value| Path::new(OsStr::from_bytes(value)))
}

fn engine() -> Engine {
    let Some(value) = variable(ENV_FANOUT) else { return Engine::Auto };
    String::from_utf8_lossy(value).parse().unwrap_or_else(|problem| {
        notice::warn_once(&format!("STRIPEWISE_FANOUT: {problem}"));
        Engine::Auto
    })
}

fn make_runtime() -> Result<Arc<Runtime>> {
    // The default hook would print a backtrace into the application's stderr.
    std::panic::set_hook(Box::new(|panic| {
        notice::warn_once(
            &format!("a defect in the library makes a call fail with EIO: {panic}").replace('\n', " "),
        );
    }));
    // The new runtime belongs to this process, which therefore needs no preparation after a fork.
    identity::is_new_process();
    let sys: SysRef = Arc::new(Real);
    let plan = match plan_path() {
        Some(path) => find_plan(&sys, path)?,
        None => None,
    };
    let settings = Settings {
        engine: engine(),
        background: Some(around),
        leaving: Some(statistics::tell),
        ..Settings::default()
    };
    let runtime = Runtime::with_settings(sys, plan.as_ref(), settings);
    if let Some((procs, on_node)) = job::processes() {
        runtime.set_procs(procs, on_node);
    }
    Ok(runtime)
}

/// Reads the plan. Returns `None`, and logs a line to stderr, where there is no usable plan.
/// Errors: a temporary failure to read the plan. Going on without the plan would create plain
/// files.
fn find_plan(sys: &SysRef, path: &Path) -> Result<Option<Plan>> {
    let name = format!("STRIPEWISE_PLAN={}", path.display());
    use Errno as E;
    let never = [E::NOENT, E::NOTDIR, E::ISDIR, E::ACCESS, E::PERM, E::LOOP, E::NAMETOOLONG];
    let opened = sys.open(None, path, OFlags::RDONLY, Mode::empty());
    let bytes = opened.and_then(|file| match sys.read_start(file.as_fd(), PLAN_BYTES_MAX) {
        // Once the file is open, any other error is temporary.
        Err(error) if error != Errno::ISDIR && never.contains(&error) => Err(Errno::IO),
        read => read,
    });
    let plan = match bytes {
        Ok(bytes) => String::from_utf8(bytes)
            .map_err(|_| format!("{name}: is not UTF-8 text"))
            .and_then(|text| Plan::parse(&text, &name).map_err(|error| error.to_string())),
        Err(error) if never.contains(&error) => Err(format!("{name}: cannot be read ({error})")),
        Err(error) => return Err(error),
    };
    let unplanned =
        |problem: &String| notice::warn_once(&format!("{problem}; no file gets a planned layout in this run"));
    Ok(plan.inspect_err(unplanned).ok())
}

fn make_recorder(settings: &stripewise_recorder::Settings<'_>) -> Option<Recorder> {
    let recorder = Recorder::start(settings);
    if recorder.is_none() {
        stripewise_sys::raw::say(
            b"stripewise: this process is not recorded: no file in STRIPEWISE_TRACE_DIR can be written and mapped\n",
        );
    }
    recorder
}

/// Background threads that are at work.
static WORKING: AtomicU32 = AtomicU32::new(0);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Does a piece of background work on files with several copies like a call on a managed file:
/// forks wait for it, and calls of the library's dependencies go to the kernel. The data path has
/// threads for such work, in which all signals are blocked. The work is not recorded, because it
/// calls the data path directly.
fn around(work: &mut dyn FnMut()) {
    let _guard = SignalForkGuard::new();
    WORKING.fetch_add(1, Ordering::SeqCst);
    if !STOPPED.load(Ordering::SeqCst) {
        errno::quietly(work);
    }
    WORKING.fetch_sub(1, Ordering::SeqCst);
}

/// Called at the end of the process: waits for the background work in progress. No more begins.
pub fn stop_background() {
    STOPPED.store(true, Ordering::SeqCst);
    while WORKING.load(Ordering::SeqCst) > 0 {
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::process::guard;

    #[test]
    fn the_end_waits_for_the_work_and_ends_it() {
        let _alone = guard::TESTED.lock();
        static DONE: AtomicU32 = AtomicU32::new(0);
        around(&mut || panic!("a defect in a piece of work"));
        assert_eq!(WORKING.load(Ordering::SeqCst), 0);
        let worker = || {
            while !STOPPED.load(Ordering::SeqCst) {
                around(&mut || {
                    assert!(guard::active());
                    DONE.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(2));
                    DONE.fetch_add(1, Ordering::SeqCst);
                });
            }
        };
        let workers = [worker, worker].map(std::thread::spawn);
        while DONE.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        stop_background();
        let done = DONE.load(Ordering::SeqCst);
        assert!(done.is_multiple_of(2), "stopped in the middle");
        around(&mut || unreachable!());
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(DONE.load(Ordering::SeqCst), done);
    }
}
