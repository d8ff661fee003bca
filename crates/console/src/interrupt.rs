//! Signal handling of long-running commands.
//!
//! Some commands can end at any moment without leaving anything behind and only print a line first;
//! others finish the current step and end in order. Commands that hold resources other processes
//! wait for also handle Ctrl-Z.

use std::ffi::CString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use stripewise_sys::asking::{self, Patience};

/// Signals with which users and job systems end a command.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

static LINE: OnceLock<String> = OnceLock::new();
static TEMPORARY: OnceLock<CString> = OnceLock::new();
static ASKED: AtomicBool = AtomicBool::new(false);
/// The signal that asked.
static ASKED_BY: AtomicI32 = AtomicI32::new(libc::SIGTERM);
/// The process in the foreground; 0: none.
static FOREGROUND: AtomicI32 = AtomicI32::new(0);
/// A signal was sent to this process alone.
static TO_PASS_ON: AtomicBool = AtomicBool::new(false);

/// From now on, a signal requests an orderly end ([`asked`]). The next signal ends the process.
pub fn ask() {
    set_handlers(note as *const () as libc::sighandler_t);
}

/// As [`ask`], for a command that runs others in the foreground ([`in_foreground`]). A signal that
/// was sent to this process alone goes on to the one that runs; the terminal sends its signals to
/// both.
pub fn ask_and_pass_on() {
    let handler = note_and_pass_on as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    for signal in SIGNALS {
        // SAFETY: The handler makes only async-signal-safe calls. A signal that was ignored (nohup)
        // stays ignored.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if action.sa_sigaction != libc::SIG_IGN {
                action.sa_sigaction = handler as *const () as libc::sighandler_t;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
}

/// Waits for a process that runs in the foreground. Signals are passed on to it
/// ([`ask_and_pass_on`]).
///
/// # Errors
/// The kernel's.
pub fn in_foreground(child: &mut Child) -> std::io::Result<ExitStatus> {
    FOREGROUND.store(child.id() as i32, Ordering::SeqCst);
    if TO_PASS_ON.load(Ordering::SeqCst) {
        // It arrived before the process was known.
        pass_on();
    }
    let status = child.wait();
    FOREGROUND.store(0, Ordering::SeqCst);
    status
}

/// Returns whether a signal has arrived.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Ends the process as the signal does that has arrived since [`ask`], after the line of [`say`].
pub fn end() -> ! {
    let signal = ASKED_BY.load(Ordering::Relaxed);
    say_and_end(signal);
    std::process::exit(128 + signal)
}

/// From now on, a signal that ends this process first prints `line`. Only the first call's line is
/// used.
pub fn say(line: &str) {
    // The cursor may be on a line with a progress bar.
    let start = if std::io::stderr().is_terminal() { "\n" } else { "" };
    let _ = LINE.set(format!("{start}stripewise: {line}\n"));
    set_handlers(say_and_end as *const () as libc::sighandler_t);
}

/// From now on, a signal that ends this process first removes this file. Only the first call's file
/// is removed.
pub fn remove(temporary: &Path) {
    if let Ok(path) = CString::new(temporary.as_os_str().as_bytes()) {
        let _ = TEMPORARY.set(path);
        set_handlers(say_and_end as *const () as libc::sighandler_t);
    }
}

/// From now on, signals are ignored: the command is writing its output file and is about to end.
pub fn too_late() {
    set_handlers(libc::SIG_IGN);
}

/// Maximum wait for a lock that another process holds, unless [`WAIT_VARIABLE`] sets it (seconds).
const WAIT: Duration = Duration::from_secs(30);
const WAIT_VARIABLE: &str = "STRIPEWISE_LOCK_WAIT";

/// Limits every wait for another process's lock from now on. A user may hold a lock on a file of
/// their own indefinitely, and must not block the commands of others.
pub fn limit_waits() {
    let seconds = std::env::var(WAIT_VARIABLE).ok().and_then(|text| text.parse().ok());
    let limit = seconds.map_or(WAIT, Duration::from_secs);
    asking::wait_so(Patience { interrupted: asked, limit: Some(limit) });
}

static STOP_ASKED: AtomicBool = AtomicBool::new(false);

/// From now on, Ctrl-Z takes effect only in [`stop_if_asked`].
pub fn stop_when_told() {
    set_handler(libc::SIGTSTP, note_stop as *const () as libc::sighandler_t);
}

/// Stops the process if Ctrl-Z has requested it, and returns when the process is continued. Call it
/// often, and only while holding nothing that other processes wait for.
pub fn stop_if_asked() {
    if !STOP_ASKED.swap(false, Ordering::Relaxed) {
        return;
    }
    // SAFETY: The signal gets its default action, and the previous handler is restored afterwards.
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
    // SAFETY: The handlers make only async-signal-safe calls. A signal that was ignored (nohup)
    // stays ignored.
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
        // SAFETY: `line` is in a static and never freed. The default action follows below.
        unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    }
    if let Some(path) = TEMPORARY.get() {
        // SAFETY: As for `line`. A file that is not there is no matter.
        unsafe { libc::unlink(path.as_ptr()) };
    }
    // SAFETY: In a handler, the signal is blocked until it returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn note_and_pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    note(signal);
    // SAFETY: The kernel gives a handler with SA_SIGINFO a valid pointer. Signals of the kernel,
    // the terminal's among them, have a positive code.
    if unsafe { (*info).si_code } <= 0 {
        TO_PASS_ON.store(true, Ordering::SeqCst);
        pass_on();
    }
}

/// Ends the process in the foreground. SIGTERM, because some commands leave SIGINT to the program
/// that they run.
fn pass_on() {
    let child = FOREGROUND.load(Ordering::SeqCst);
    if child > 0 {
        // SAFETY: `kill` is async-signal-safe.
        unsafe { libc::kill(child, libc::SIGTERM) };
    }
}

extern "C" fn note(signal: libc::c_int) {
    ASKED_BY.store(signal, Ordering::Relaxed);
    ASKED.store(true, Ordering::Relaxed);
    set_handlers(libc::SIG_DFL);
}
