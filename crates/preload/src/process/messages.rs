//! The library's own messages where descriptor 2 is a managed file: `program 2> managed`.
//!
//! Written to the kernel's descriptor they would be lost. They go through the data path like every
//! other write to that file, after the call that logged them has ended: the data path holds no
//! locks then.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::descriptors::table::{self, Known};
use crate::process::{guard, state};

const STDERR: i32 = libc::STDERR_FILENO;

/// Upper bound of the waiting messages, bytes.
const ROOM: usize = 8192;

static WAITING: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// Whether messages wait.
static ARE_WAITING: AtomicBool = AtomicBool::new(false);

/// Called when the library is loaded.
pub fn at_start() {
    stripewise_sys::raw::say_through(take);
}

fn take(line: &[u8]) -> bool {
    let plain = match table::known(STDERR) {
        Known::Plain => true,
        Known::Entry(entry) => matches!(entry.file(), Ok(None)),
        // It is examined when the program starts. Examining it now might need the data path, which
        // may be under construction.
        Known::Unknown => !state::is_runtime_used(),
    };
    if plain {
        return false;
    }
    // If a thread that a fork left behind holds the lock, the message is lost.
    if let Ok(mut waiting) = WAITING.try_lock() {
        if waiting.len() + line.len() <= ROOM {
            waiting.extend_from_slice(line);
        }
        ARE_WAITING.store(true, Ordering::Release);
    }
    if !guard::active() {
        flush();
    }
    true
}

/// Writes the waiting messages. Called at the end of a call on a managed file.
#[inline]
pub fn flush() {
    if ARE_WAITING.load(Ordering::Relaxed) {
        write_all();
    }
}

#[cold]
fn write_all() {
    if !ARE_WAITING.swap(false, Ordering::AcqRel) {
        return;
    }
    let Ok(lines) = WAITING.try_lock().map(|mut waiting| std::mem::take(&mut *waiting)) else { return };
    let before = crate::process::errno::get();
    // SAFETY: this library's own `write`, from valid memory.
    unsafe { libc::write(STDERR, lines.as_ptr().cast(), lines.len()) };
    crate::process::errno::set(before);
}
