//! `posix_spawn_file_actions_addopen`: libc opens the file in the child, where it cannot be interposed.

use std::ffi::{c_char, c_int};

use libc::{mode_t, posix_spawn_file_actions_t};

use crate::open::{is_managed_name, open_any};
use crate::real::interpose;
use crate::{errno, kernel};

interpose! {
    posix_spawn_file_actions_addopen => add_open,
        (actions: *mut posix_spawn_file_actions_t, fd: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
}

type AddOpenFn =
    unsafe extern "C" fn(*mut posix_spawn_file_actions_t, c_int, *const c_char, c_int, mode_t) -> c_int;

/// What would create or empty a managed file is done at once, and the child only opens it. (A program that prepares
/// actions and never spawns sees the difference.)
unsafe fn add_open(
    real: AddOpenFn,
    actions: *mut posix_spawn_file_actions_t,
    fd: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    let changes = libc::O_CREAT | libc::O_TRUNC;
    if flags & changes == 0 || !is_managed_name(path, flags) {
        return unsafe { real(actions, fd, path, flags, mode) };
    }
    let before = errno::get();
    let opened = open_any(libc::AT_FDCWD, path, flags | libc::O_CLOEXEC, mode, || {
        errno::answer(|| kernel::open(path, flags | libc::O_CLOEXEC, mode))
    });
    let mut flags = flags;
    if opened >= 0 {
        // SAFETY: our own close, of the descriptor just opened.
        unsafe { libc::close(opened) };
        flags &= !(changes | libc::O_EXCL);
    }
    // Where it failed, it fails in the child for the same reason.
    errno::set(before);
    unsafe { real(actions, fd, path, flags, mode) }
}
