//! The end of the process: the anchors of files that it still has open get their sizes, for `ls -l` without the library.
//! (Inside the library nobody looks at them.)

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{entry, errno, kernel, process, state};

/// Set when the library's destructor has run: libc flushes its streams only after that.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the process ends: nobody else will call [`stripewise_datapath::LogicalFile::closing`].
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Called by `exit`, before libc flushes its streams.
extern "C" fn unloaded() {
    ENDING.store(true, Ordering::Relaxed);
    settle_anchors();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOADED: extern "C" fn() = unloaded;

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(code: c_int) -> ! {
    settle_anchors();
    end(code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(code: c_int) -> ! {
    settle_anchors();
    end(code)
}

fn settle_anchors() {
    // Nothing was ever managed here; or the files are the parent's.
    if state::runtime_if_used().is_none() || process::is_vfork_child() {
        return;
    }
    let before = errno::get();
    entry::for_each(|entry| {
        let _ = errno::guarded(|| {
            if let Ok(Some(file)) = entry.file() {
                file.closing();
            }
            Ok(())
        });
    });
    errno::set(before);
}

fn end(code: c_int) -> ! {
    loop {
        // SAFETY: no memory is involved.
        let _ = unsafe { kernel::call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}
