//! `posix_spawn_file_actions_addopen`: libc opens the file in the child, where it cannot be interposed.

use std::ffi::{c_char, c_int};

use libc::{mode_t, posix_spawn_file_actions_t};
use stripewise_sys::Errno;

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
    let managed = if flags & changes == 0 { Ok(false) } else { is_managed_name(path, flags) };
    match managed {
        Ok(true) => {}
        // Where the path is wrong, the child says so.
        Ok(false) | Err(Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::FAULT) => {
            return unsafe { real(actions, fd, path, flags, mode) };
        }
        Err(error) => return error.raw_os_error(),
    }
    let before = errno::get();
    let opened = open_any(libc::AT_FDCWD, path, flags | libc::O_CLOEXEC, mode, || {
        errno::answer(|| kernel::open(path, flags | libc::O_CLOEXEC, mode))
    });
    if opened >= 0 {
        // SAFETY: our own close, of the descriptor just opened.
        unsafe { libc::close(opened) };
    }
    let failed = errno::get();
    errno::set(before);
    let flags = if opened >= 0 { flags & !(changes | libc::O_EXCL) } else { flags };
    let fails_there_too = matches!(failed, libc::EEXIST | libc::EACCES | libc::EISDIR | libc::EROFS);
    if opened < 0 && !fails_there_too {
        // In the child it might succeed, past the library.
        return failed;
    }
    unsafe { real(actions, fd, path, flags, mode) }
}
