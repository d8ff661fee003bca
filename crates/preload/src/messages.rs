//! The library's own messages where descriptor 2 is a managed file: `program 2> managed`.
//!
//! Written to the kernel's descriptor they would be lost. They go through the data path like
//! everything else that is written there, once the call is over in which they were said: nothing of
//! the data path is locked then.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::table::{self, Known};
use crate::{inside, state};

const STDERR: i32 = libc::STDERR_FILENO;

/// Bytes that wait at most.
const ROOM: usize = 8192;

static WAITING: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// Whether any do.
static ARE_WAITING: AtomicBool = AtomicBool::new(false);

/// To be called when the library is loaded.
pub fn at_start() {
    stripewise_sys::raw::say_through(take);
}

fn take(line: &[u8]) -> bool {
    let plain = match table::known(STDERR) {
        Known::Plain => true,
        Known::Entry(entry) => matches!(entry.file(), Ok(None)),
        // It was looked at when the program started; to look now may need what is just being made.
        Known::Unknown => !state::is_runtime_used(),
    };
    if plain {
        return false;
    }
    // Held by a thread that a fork left behind: the line is lost.
    if let Ok(mut waiting) = WAITING.try_lock() {
        if waiting.len() + line.len() <= ROOM {
            waiting.extend_from_slice(line);
        }
        ARE_WAITING.store(true, Ordering::Release);
    }
    if !inside::active() {
        flush();
    }
    true
}

/// Writes what waits. To be called when a call on a managed file is over.
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
    let before = crate::errno::get();
    // SAFETY: our own `write`, of memory that is there.
    unsafe { libc::write(STDERR, lines.as_ptr().cast(), lines.len()) };
    crate::errno::set(before);
}
