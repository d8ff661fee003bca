//! `posix_spawn_file_actions_addopen`: libc opens the file in the child, where it cannot be interposed.

use std::ffi::{c_char, c_int};
use std::os::fd::AsRawFd;
use std::sync::Mutex;

use libc::{mode_t, posix_spawn_file_actions_t};
use stripewise_sys::fd::borrow;
use stripewise_sys::{Errno, Fd, OFlags};

use crate::open::{is_managed_name, open_any};
use crate::real::interpose;
use crate::{access, errno, kernel};

interpose! {
    posix_spawn_file_actions_addopen => add_open,
        (actions: *mut posix_spawn_file_actions_t, fd: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    posix_spawn_file_actions_destroy => destroy, (actions: *mut posix_spawn_file_actions_t) -> c_int;
}

type AddOpenFn =
    unsafe extern "C" fn(*mut posix_spawn_file_actions_t, c_int, *const c_char, c_int, mode_t) -> c_int;
type DestroyFn = unsafe extern "C" fn(*mut posix_spawn_file_actions_t) -> c_int;

/// Descriptors that wait for children, and whose actions they belong to.
static OPEN: Mutex<Vec<(usize, Fd)>> = Mutex::new(Vec::new());

/// What would change a managed file is opened at once, and the child gets that descriptor. (A
/// program that prepares actions and never spawns sees the difference, and so do two children that
/// are spawned with the same actions: they share the offset.)
unsafe fn add_open(
    real: AddOpenFn,
    actions: *mut posix_spawn_file_actions_t,
    fd: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    let call = || unsafe { real(actions, fd, path, flags, mode) };
    let changes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    let writes = access::writes(OFlags::from_bits_retain(flags.cast_unsigned()));
    let managed = if changes || writes { is_managed_name(path, flags) } else { Ok(false) };
    match managed {
        Ok(true) => {}
        // Where the path is wrong, the child says so.
        Ok(false) | Err(Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::FAULT) => return call(),
        Err(error) => return error.raw_os_error(),
    }
    let before = errno::get();
    let opened = open_any(libc::AT_FDCWD, path, flags | libc::O_CLOEXEC, mode, || {
        errno::answer(|| kernel::open_at(libc::AT_FDCWD, path, flags | libc::O_CLOEXEC, mode))
    });
    if opened < 0 {
        let failed = errno::get();
        errno::set(before);
        let fails_there_too = match failed {
            // A server's refusal that passes, or that is one of the components only: to root's child
            // the kernel would give the anchor, and empty it.
            libc::EACCES => !may_write(path),
            failed => matches!(failed, libc::EEXIST | libc::EISDIR | libc::EROFS),
        };
        // Otherwise it might succeed in the child, past the library.
        return if fails_there_too { call() } else { failed };
    }
    // SAFETY: just opened; closed by our own close.
    let kept = unsafe {
        let kept = Fd::duplicate(borrow(opened));
        libc::close(opened);
        kept
    };
    errno::set(before);
    let kept = match kept {
        Ok(kept) => kept,
        Err(error) => return error.raw_os_error(),
    };
    // SAFETY: the application's actions.
    let result = unsafe { libc::posix_spawn_file_actions_adddup2(actions, kept.as_raw_fd(), fd) };
    if result == 0 {
        OPEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((actions as usize, kept));
    }
    result
}

/// Whether the kernel would open this name for writing: an anchor for root alone.
fn may_write(path: *const c_char) -> bool {
    let (mode, flags) = (libc::W_OK as usize, libc::AT_EACCESS as usize);
    let arguments = [libc::AT_FDCWD as usize, path as usize, mode, flags, 0, 0];
    // SAFETY: only the kernel follows the path.
    unsafe { kernel::call(libc::SYS_faccessat2, arguments) }.is_ok()
}

unsafe fn destroy(real: DestroyFn, actions: *mut posix_spawn_file_actions_t) -> c_int {
    if let Ok(mut open) = OPEN.try_lock() {
        open.retain(|(of, _)| *of != actions as usize);
    }
    unsafe { real(actions) }
}
