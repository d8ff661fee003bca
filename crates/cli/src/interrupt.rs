//! Ctrl-C in commands that can end at any moment and leave nothing behind, and say so, and in those that come to an orderly
//! end; and Ctrl-Z in those that hold what other processes wait for.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stripewise_sys::asking::{self, Patience};

/// Signals that people and job systems end a command with.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

static LINE: OnceLock<String> = OnceLock::new();
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on a signal asks for an orderly end ([`asked`]); the next one ends this process.
pub fn ask() {
    set_handlers(note as *const () as libc::sighandler_t);
}

/// Whether a signal has come.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// From now on a signal that ends this process says `line` before. The first call counts.
pub fn say(line: &str) {
    // A progress bar stands there.
    let start = if std::io::stderr().is_terminal() { "\n" } else { "" };
    let _ = LINE.set(format!("{start}stripewise: {line}\n"));
    set_handlers(say_and_end as *const () as libc::sighandler_t);
}

/// From now on signals wait for the end, which is near: a file is being written.
pub fn too_late() {
    set_handlers(libc::SIG_IGN);
}

/// How long a command waits for a lock that another process holds, unless [`WAIT_VARIABLE`] says so
/// (seconds).
const WAIT: Duration = Duration::from_secs(30);
const WAIT_VARIABLE: &str = "STRIPEWISE_LOCK_WAIT";

/// From now on no wait for another process's lock lasts for ever: a user may hold one on what is
/// his own as long as he likes.
pub fn limit_waits() {
    let seconds = std::env::var(WAIT_VARIABLE).ok().and_then(|text| text.parse().ok());
    let limit = seconds.map_or(WAIT, Duration::from_secs);
    asking::wait_so(Patience { interrupted: asked, limit: Some(limit) });
}

static STOP_ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-Z stops this process in [`stop_if_asked`] only.
pub fn stop_when_told() {
    set_handler(libc::SIGTSTP, note_stop as *const () as libc::sighandler_t);
}

/// Stops, if Ctrl-Z asked for it: to be called often, and where nothing is held that others wait
/// for. Returns when the process goes on.
pub fn stop_if_asked() {
    if !STOP_ASKED.swap(false, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the signal does what it does by default, and the handler comes back.
    unsafe {
        let handler = libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        libc::raise(libc::SIGTSTP);
        libc::signal(libc::SIGTSTP, handler);
    }
}

fn set_handlers(handler: libc::sighandler_t) {
    SIGNALS.into_iter().for_each(|signal| set_handler(signal, handler));
}

fn set_handler(signal: libc::c_int, handler: libc::sighandler_t) {
    // SAFETY: the handler only makes calls that are allowed in one. What was ignored (nohup) stays
    // so.
    unsafe {
        if libc::signal(signal, libc::SIG_IGN) != libc::SIG_IGN {
            libc::signal(signal, handler);
        }
    }
}

extern "C" fn note_stop(_signal: libc::c_int) {
    STOP_ASKED.store(true, Ordering::Relaxed);
}

extern "C" fn say_and_end(signal: libc::c_int) {
    if let Some(line) = LINE.get() {
        // SAFETY: of a string that stays; then the signal does what it does by default.
        unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    }
    // SAFETY: the signal is blocked until this handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
    set_handlers(libc::SIG_DFL);
}
