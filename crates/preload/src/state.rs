//! What the library keeps per process: the data path and the recorder. Made on first use, never destroyed.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use stripewise_cluster::Plan;
use stripewise_datapath::{Runtime, Settings, notice};
use stripewise_recorder::Recorder;
use stripewise_sys::{Errno, Mode, OFlags, Real, Result, SysRef};
use stripewise_target::Engine;

use crate::inside::Inside;
use crate::{background, mpi, process, statistics};

/// The plan file; without it no file becomes managed, but those that are stay so.
const ENV_PLAN: &CStr = c"STRIPEWISE_PLAN";
/// How the pieces of a request are done at once: `auto`, `uring`, `threads` or `serial`.
const ENV_FANOUT: &CStr = c"STRIPEWISE_FANOUT";
/// `1`: see [`denies_io_uring`].
const ENV_DENY_IO_URING: &CStr = c"STRIPEWISE_DENY_IO_URING";
/// A plan is text for people; more than this is something else.
const PLAN_BYTES_MAX: usize = 1 << 30;

/// A value that is made by whoever asks first. A thread that asks again while it makes it (its allocator opens a file, a
/// signal handler runs) gets nothing instead of waiting for itself.
struct Lazily<T> {
    value: OnceLock<T>,
    maker: AtomicU32,
}

impl<T> Lazily<T> {
    const fn new() -> Self {
        Self { value: OnceLock::new(), maker: AtomicU32::new(0) }
    }

    fn get(&self, make: impl FnOnce() -> T) -> Option<&T> {
        if let Some(value) = self.value.get() {
            return Some(value);
        }
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        if self.maker.load(Ordering::Relaxed) == thread {
            return None;
        }
        Some(self.value.get_or_init(|| {
            self.maker.store(thread, Ordering::Relaxed);
            let value = make();
            self.maker.store(0, Ordering::Relaxed);
            value
        }))
    }
}

static RUNTIME: Lazily<Arc<Runtime>> = Lazily::new();
static RECORDER: Lazily<Option<Recorder>> = Lazily::new();

/// The data path.
///
/// # Errors
/// EBUSY where the calling thread is just making it.
pub fn runtime() -> Result<&'static Runtime> {
    let runtime = RUNTIME.get(make_runtime).ok_or(Errno::BUSY)?;
    if process::is_new_process() {
        let _inside = Inside::new();
        runtime.after_fork_child();
    }
    Ok(runtime)
}

/// Whether anything needed the data path yet, in this process or before the fork that made it.
pub fn is_runtime_used() -> bool {
    RUNTIME.value.get().is_some()
}

/// The data path, if anything needed it yet.
pub fn runtime_if_used() -> Option<&'static Runtime> {
    RUNTIME.value.get()?;
    runtime().ok()
}

/// The recorder, if this process is to be recorded.
#[inline]
pub fn recorder() -> Option<Recorder> {
    match RECORDER.value.get() {
        Some(recorder) => *recorder,
        None => RECORDER.get(make_recorder).copied().flatten(),
    }
}

/// Whether there is a plan: only then may a new file become managed.
pub fn has_plan() -> bool {
    plan_path().is_some()
}

fn plan_path() -> Option<&'static Path> {
    variable(ENV_PLAN).map(|value| Path::new(OsStr::from_bytes(value.to_bytes())))
}

unsafe extern "C" {
    /// Nothing in a program that has more rights than its caller: what the caller wants must not direct it.
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// An environment variable that is not empty. Read before the program changes its environment, or from its strings, which
/// stay where they are.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: a terminated name; the value, if there is one, is terminated, too.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value)).filter(|value| !value.is_empty())
    }
}

/// Whether io_uring is to be denied to the application.
pub fn denies_io_uring() -> bool {
    variable(ENV_DENY_IO_URING) == Some(c"1")
}

fn engine() -> Engine {
    let Some(value) = variable(ENV_FANOUT) else { return Engine::Auto };
    value.to_string_lossy().parse().unwrap_or_else(|problem| {
        notice::say(&format!("STRIPEWISE_FANOUT: {problem}"));
        Engine::Auto
    })
}

fn make_runtime() -> Arc<Runtime> {
    // The default hook would print a backtrace into the application's stderr.
    std::panic::set_hook(Box::new(|panic| {
        notice::say(&format!("a defect in the library makes a call fail with EIO: {panic}").replace('\n', " "));
    }));
    // It is new to nobody in this process.
    process::is_new_process();
    let sys: SysRef = Arc::new(Real);
    let plan = plan_path().and_then(|path| match read_plan(&sys, path) {
        Ok(plan) => Some(plan),
        Err(problem) => {
            let unplanned = "no file gets a planned layout in this run";
            notice::say(&format!("{problem}; {unplanned}"));
            None
        }
    });
    let settings = Settings {
        engine: engine(),
        background: Some(background::around),
        leaving: Some(statistics::tell),
        ..Settings::default()
    };
    let runtime = Runtime::with_settings(sys, plan.as_ref(), settings);
    if let Some((procs, on_node)) = mpi::processes() {
        runtime.set_procs(procs, on_node);
    }
    runtime
}

fn read_plan(sys: &SysRef, path: &Path) -> std::result::Result<Plan, String> {
    let read = || {
        let file = sys.open(None, path, OFlags::RDONLY, Mode::empty())?;
        use std::os::fd::AsFd;
        sys.read_start(file.as_fd(), PLAN_BYTES_MAX)
    };
    let name = format!("STRIPEWISE_PLAN={}", path.display());
    let bytes = read().map_err(|error| format!("{name}: cannot be read ({error})"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: is not UTF-8 text"))?;
    Plan::parse(&text, &name).map_err(|error| error.to_string())
}

fn make_recorder() -> Option<Recorder> {
    let settings = stripewise_recorder::Settings::from_env()?;
    let recorder = Recorder::start(&settings);
    if recorder.is_none() {
        stripewise_sys::raw::say(
            b"stripewise: this process is not recorded: STRIPEWISE_TRACE_DIR cannot be written to\n",
        );
    }
    recorder
}
