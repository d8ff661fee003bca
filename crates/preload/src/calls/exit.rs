//! The end of the process or of its program (`exec`): acts as if the process closed all its files.
//! Replicas are brought in sync, anchors get their files' times for programs without the
//! library, and statistics are written.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use stripewise_datapath::LogicalFile;

use crate::descriptors::entry;
use crate::process::{background, errno, identity, kernel, state, statistics};

/// Set when the library's destructor has run. libc flushes its streams after that.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the process is ending. After a later write the caller has to call [`settle`], because
/// the library does not do so again.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Called by `exit`, before libc flushes its streams.
extern "C" fn unloaded() {
    ENDING.store(true, Ordering::Relaxed);
    end_all();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOADED: extern "C" fn() = unloaded;

unsafe extern "C" {
    fn at_quick_exit(run: extern "C" fn()) -> c_int;
}

/// Called when the library is loaded. `quick_exit` runs the functions in reverse order of
/// registration, and no destructors.
pub fn at_start() {
    // SAFETY: the library is never unloaded.
    unsafe { at_quick_exit(end_all) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(code: c_int) -> ! {
    end_all();
    end(code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(code: c_int) -> ! {
    end_all();
    end(code)
}

extern "C" fn end_all() {
    if has_files() {
        // A kill during background work would be harmless, but leave recovery to the next process.
        background::stop();
        settle_all();
    }
}

/// Does for all files the part of their last close that is possible while they stay open.
pub fn settle_all() {
    if !has_files() || state::runtime_if_used().is_none() {
        return;
    }
    entry::for_each(|entry| {
        let _ = errno::guarded(|| {
            if let Ok(Some(file)) = entry.file() {
                settle(file);
            }
            Ok(())
        });
    });
}

/// As [`settle_all`], for one file, by a caller inside a call on a managed file.
pub fn settle(file: &LogicalFile) {
    file.ending();
    statistics::tell(file);
}

/// Whether this process has used the data path. If not, the files are its parent's, or there are
/// none.
fn has_files() -> bool {
    state::is_runtime_used() && !identity::is_vfork_child() && !identity::is_idle_child()
}

fn end(code: c_int) -> ! {
    loop {
        // SAFETY: no memory is involved.
        let _ = unsafe { kernel::call(libc::SYS_exit_group, [code as usize]) };
    }
}
