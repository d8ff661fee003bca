//! The start of the library in a process, and the end of the process or of its program (`exec`).
//!
//! At an end the library acts as if the process closed all its files: replicas are brought in sync,
//! anchors get their files' times for programs without the library, and statistics are written.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

use stripewise_datapath::LogicalFile;
use stripewise_recorder::variable;
use stripewise_sys::asking::{self, Patience};
use stripewise_sys::{raw, thread};

use crate::calls::stdio;
use crate::descriptors::{Known, entry, table};
use crate::process::{Real, SignalForkGuard, errno, filter, guard, handler, identity, kernel};
use crate::process::{messages, state, statistics};

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
    // `quick_exit` runs these functions in reverse order of registration, and no destructors.
    // SAFETY: the library is never unloaded.
    unsafe { at_quick_exit(end_all) };
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

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(code: c_int) -> ! {
    end(code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(code: c_int) -> ! {
    end(code)
}

extern "C" fn end_all() {
    if has_files() {
        // A kill during background work would be harmless, but leave recovery to the next process.
        state::stop_background();
        settle_all();
    }
}

/// Does for all files the part of their last close that is possible while they stay open.
pub fn settle_all() {
    if !has_files() || state::runtime_if_used().is_none() {
        return;
    }
    entry::for_each(|entry| {
        if let Ok(Some(file)) = entry.file() {
            let _guard = SignalForkGuard::new();
            errno::quietly(|| settle(file));
        }
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
    state::runtime_if_made().is_some() && !identity::is_vfork_child() && !identity::is_idle_child()
}

fn end(code: c_int) -> ! {
    end_all();
    loop {
        // SAFETY: no memory is involved.
        let _ = unsafe { kernel::call(libc::SYS_exit_group, [code as usize]) };
    }
}

type Strings = *const *const c_char;

interpose!(
    execve | execvpe = |real, path: *const c_char, argv: Strings, environment: Strings| -> c_int {
        settle_all();
        real()
    },
    execv | execvp = |real, path: *const c_char, argv: Strings| -> c_int {
        settle_all();
        real()
    },
    fexecve = |real, fd: c_int, argv: Strings, environment: Strings| -> c_int {
        settle_all();
        real()
    },
    execveat =
        |real, dir: c_int, path: *const c_char, argv: Strings, environment: Strings, flags: c_int| -> c_int {
            settle_all();
            real()
        },
);

/// Defines a function with a variable number of arguments, which Rust cannot do. `$target` returns
/// the address of the real function, which then finds registers and stack as the caller left them.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($name:ident, $target:ident, $text:literal) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 0x38",
                ".cfi_adjust_cfa_offset 0x38",
                "mov [rsp], rdi",
                "mov [rsp + 0x8], rsi",
                "mov [rsp + 0x10], rdx",
                "mov [rsp + 0x18], rcx",
                "mov [rsp + 0x20], r8",
                "mov [rsp + 0x28], r9",
                "call {target}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 0x8]",
                "mov rdx, [rsp + 0x10]",
                "mov rcx, [rsp + 0x18]",
                "mov r8, [rsp + 0x20]",
                "mov r9, [rsp + 0x28]",
                "add rsp, 0x38",
                ".cfi_adjust_cfa_offset -0x38",
                "mov r11, rax",
                // All arguments are pointers, so no vector registers are used.
                "xor eax, eax",
                "jmp r11",
                ".cfi_endproc",
                target = sym $target,
            )
        }

        extern "C" fn $target() -> unsafe extern "C" fn() -> c_int {
            // SAFETY: called with the caller's arguments, unchanged.
            static REAL: Real<unsafe extern "C" fn() -> c_int> = unsafe { Real::new($text) };
            settle_all();
            REAL.get()
        }
    };
}

#[cfg(target_arch = "x86_64")]
const _: () = {
    variadic!(execl, real_execl, c"execl");
    variadic!(execlp, real_execlp, c"execlp");
    variadic!(execle, real_execle, c"execle");
};
