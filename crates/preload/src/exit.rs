//! The end of the process, or of what it runs (`exec`): as if it closed all files. Replicas are brought in sync, anchors get their
//! sizes for `ls -l` without the library (inside it nobody looks at them), and statistics are told.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use stripewise_datapath::LogicalFile;

use crate::{background, entry, errno, kernel, process, state, statistics};

/// Set when the library's destructor has run: libc flushes its streams only after that.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the process ends: nobody else will call [`settle`].
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

/// To be called when the library is loaded. `quick_exit` calls what was registered first last, and no destructors.
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
        // A kill in the middle of its work would do no harm, but leave the next process something to tidy up.
        background::stop();
        settle_all();
    }
}

/// What the last close of a file does, as far as it can be done while the file stays open: for all files.
pub fn settle_all() {
    if !has_files() || state::runtime_if_used().is_none() {
        return;
    }
    let before = errno::get();
    entry::for_each(|entry| {
        let _ = errno::guarded(|| {
            if let Ok(Some(file)) = entry.file() {
                settle(file);
            }
            Ok(())
        });
    });
    errno::set(before);
}

/// The same for one, inside.
pub fn settle(file: &LogicalFile) {
    file.ending();
    statistics::tell(file);
}

/// Whether anything was ever managed here; if not, the files are the parent's, or there are none.
fn has_files() -> bool {
    state::is_runtime_used() && !process::is_vfork_child() && !process::is_idle_child()
}

fn end(code: c_int) -> ! {
    loop {
        // SAFETY: no memory is involved.
        let _ = unsafe { kernel::call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}
