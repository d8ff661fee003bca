//! The library's own messages where descriptor 2 is a managed file: `program 2> managed`.
//!
//! Written to the kernel's descriptor they would be lost. They go through the data path like every
//! other write to that file, after the call that logged them has ended: the data path holds no
//! locks then.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::process::kernel;

/// Upper bound of the waiting messages, bytes.
const ROOM: usize = 8192;

static WAITING: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ARE_WAITING: AtomicBool = AtomicBool::new(false);

/// Keeps a message until [`flush`]. If a thread that a fork left behind holds the lock, the message
/// is lost.
pub fn keep(line: &[u8]) {
    if let Ok(mut waiting) = WAITING.try_lock() {
        if waiting.len() + line.len() <= ROOM {
            waiting.extend_from_slice(line);
        }
        ARE_WAITING.store(true, Ordering::Release);
    }
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
    let before = kernel::errno();
    // SAFETY: this library's own `write`, from valid memory.
    unsafe { libc::write(libc::STDERR_FILENO, lines.as_ptr().cast(), lines.len()) };
    kernel::set_errno(before);
}
