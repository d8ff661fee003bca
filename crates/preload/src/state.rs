//! What the library keeps per process: the data path and the recorder. Made on first use, never destroyed.

use std::ffi::{CStr, OsStr, c_char};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::thread::futex;
use stripewise_cluster::Plan;
use stripewise_datapath::{Runtime, Settings, notice};
use stripewise_recorder::Recorder;
use stripewise_sys::{Errno, Mode, OFlags, Real, Result, SysRef};
use stripewise_target::Engine;

use crate::inside::{self, Inside};
use crate::{background, mpi, process, stack, statistics};

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

    /// The value; who asks while it is being made waits.
    ///
    /// # Errors
    /// EBUSY where the calling thread is just making it; what `make` says: then whoever asks next tries again.
    fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        loop {
            if let Some(value) = self.value.get() {
                return Ok(value);
            }
            match self.maker.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    let _maker = Maker(&self.maker);
                    // Another thread may have made it since it was looked for.
                    return match self.value.get() {
                        Some(value) => Ok(value),
                        None => make().map(|value| self.value.get_or_init(|| value)),
                    };
                }
                Err(maker) if maker & !WAITED_FOR == thread => return Err(Errno::BUSY),
                Err(maker) => {
                    let waited_for = maker | WAITED_FOR;
                    let noted =
                        self.maker.compare_exchange(maker, waited_for, Ordering::Relaxed, Ordering::Relaxed);
                    if noted.is_ok() {
                        let _ = futex::wait(&self.maker, futex::Flags::PRIVATE, waited_for, None);
                    }
                }
            }
        }
    }
}

/// In a maker's thread id: others wait for it.
const WAITED_FOR: u32 = 1 << 31;

/// Lets others try when it is dropped.
struct Maker<'a>(&'a AtomicU32);

impl Drop for Maker<'_> {
    fn drop(&mut self) {
        if self.0.swap(0, Ordering::Release) & WAITED_FOR != 0 {
            let _ = futex::wake(self.0, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }
}

static RUNTIME: Lazily<Arc<Runtime>> = Lazily::new();
static RECORDER: Lazily<Option<Recorder>> = Lazily::new();

/// The data path.
///
/// # Errors
/// EBUSY where the calling thread is just making it; the plan could not be read now.
pub fn runtime() -> Result<&'static Runtime> {
    let runtime = match RUNTIME.value.get() {
        Some(runtime) => runtime,
        // A handler that comes in while it is made would get EBUSY.
        None => inside::undisturbed(|| RUNTIME.get(|| stack::on_own(make_runtime)))?,
    };
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

/// The data path for what is the same in parent and child: its plan. `None`: nothing needed it yet.
pub fn runtime_if_made() -> Option<&'static Runtime> {
    RUNTIME.value.get().map(|runtime| &**runtime)
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
    inside::undisturbed(|| RECORDER.get(make).ok().copied().flatten())
}

/// In a forked child, before its first record.
#[cold]
fn prepare(recorder: Recorder) -> Option<Recorder> {
    let prepared = inside::undisturbed(|| {
        stack::on_own(|| {
            recorder.prepare();
            Ok(())
        })
    });
    // Without memory the first record does it.
    let _ = prepared;
    Some(recorder)
}

/// Whether there is a plan: only then may a new file become managed.
pub fn has_plan() -> bool {
    /// Later changes of the environment count for programs that are started then.
    static FOUND: AtomicU32 = AtomicU32::new(0);
    found_once(&FOUND, || plan_path().is_some())
}

/// What `find` said when it was asked first. `found` keeps it, and begins as 0. Threads that are
/// first at the same time all ask; none waits for another.
pub fn found_once(found: &AtomicU32, find: impl FnOnce() -> bool) -> bool {
    const NO: u32 = 1;
    const YES: u32 = 2;
    if found.load(Ordering::Relaxed) == 0 {
        found.store(if find() { YES } else { NO }, Ordering::Relaxed);
    }
    found.load(Ordering::Relaxed) == YES
}

fn plan_path() -> Option<&'static Path> {
    variable(ENV_PLAN).map(|value| Path::new(OsStr::from_bytes(value.to_bytes())))
}

unsafe extern "C" {
    /// Nothing in a program that has more rights than its caller: what the caller wants must not
    /// direct it.
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

fn make_runtime() -> Result<Arc<Runtime>> {
    // The default hook would print a backtrace into the application's stderr.
    std::panic::set_hook(Box::new(|panic| {
        notice::say(&format!("a defect in the library makes a call fail with EIO: {panic}").replace('\n', " "));
    }));
    // It is new to nobody in this process.
    process::is_new_process();
    let sys: SysRef = Arc::new(Real);
    let plan = match plan_path() {
        Some(path) => find_plan(&sys, path)?,
        None => None,
    };
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
    Ok(runtime)
}

/// The plan; `None`, and a line on stderr, where there is none that can be used.
///
/// # Errors
/// It could not be read now: without it files would become plain.
fn find_plan(sys: &SysRef, path: &Path) -> Result<Option<Plan>> {
    let name = format!("STRIPEWISE_PLAN={}", path.display());
    let never = [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::ACCESS,
        Errno::PERM,
        Errno::LOOP,
        Errno::NAMETOOLONG,
    ];
    let opened = sys.open(None, path, OFlags::RDONLY, Mode::empty());
    let bytes = opened.and_then(|file| match sys.read_start(file.as_fd(), PLAN_BYTES_MAX) {
        // Once it is open, whatever else goes wrong is an error of the moment.
        Err(error) if error != Errno::ISDIR && never.contains(&error) => Err(Errno::IO),
        read => read,
    });
    let plan = match bytes {
        Ok(bytes) => parse_plan(bytes, &name),
        Err(error) if never.contains(&error) => Err(format!("{name}: cannot be read ({error})")),
        Err(error) => return Err(error),
    };
    let unplanned =
        |problem: &String| notice::say(&format!("{problem}; no file gets a planned layout in this run"));
    Ok(plan.inspect_err(unplanned).ok())
}

fn parse_plan(bytes: Vec<u8>, name: &str) -> std::result::Result<Plan, String> {
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: is not UTF-8 text"))?;
    Plan::parse(&text, name).map_err(|error| error.to_string())
}

fn make_recorder(settings: &stripewise_recorder::Settings<'_>) -> Option<Recorder> {
    let recorder = Recorder::start(settings);
    if recorder.is_none() {
        stripewise_sys::raw::say(
            b"stripewise: this process is not recorded: STRIPEWISE_TRACE_DIR cannot be written to\n",
        );
    }
    recorder
}
