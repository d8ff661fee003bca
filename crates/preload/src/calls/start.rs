//! The start of the library in a process.

use stripewise_recorder::variable;
use stripewise_sys::asking::{self, Patience};
use stripewise_sys::{raw, thread};

use crate::calls::{exit, stdio};
use crate::descriptors::{Known, table};
use crate::process::{filter, guard, handler, identity, messages, state};

/// Called by the dynamic loader, possibly after the first call of the program; no call depends on
/// it.
extern "C" fn loaded() {
    identity::is_vfork_child();
    asking::wait_so(Patience { interrupted: guard::is_interrupted, limit: None });
    thread::refuse_where(handler::may_be_inside);
    // SAFETY: the functions may run at any time.
    unsafe {
        libc::pthread_atfork(
            Some(identity::before_fork),
            Some(identity::after_fork_in_parent),
            Some(identity::after_fork_in_child),
        );
    }
    raw::say_through(take_message);
    stdio::at_start();
    exit::at_start();
    if variable(c"STRIPEWISE_DENY_IO_URING") == Some(b"1") {
        filter::deny_io_uring();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

/// Takes a message of the library if descriptor 2 is a managed file: [`messages`].
fn take_message(line: &[u8]) -> bool {
    let plain = match table::known(libc::STDERR_FILENO) {
        Known::Plain => true,
        Known::Entry(entry) => entry.is_plain(),
        // It is examined when the program starts. Examining it now might need the data path, which
        // may be under construction.
        Known::Unknown => state::runtime_if_made().is_none(),
    };
    if !plain {
        messages::keep(line);
        if !guard::active() {
            messages::flush();
        }
    }
    !plain
}
