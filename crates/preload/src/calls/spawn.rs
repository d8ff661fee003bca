//! `posix_spawn_file_actions_addopen`: libc opens the file in the child, where the library cannot
//! intercept the open.

use std::ffi::{c_char, c_int};
use std::os::fd::AsRawFd;
use std::sync::Mutex;

use libc::{mode_t, posix_spawn_file_actions_t};
use stripewise_sys::fd::borrow;
use stripewise_sys::{Errno, Fd, OFlags};

use crate::calls::open::{is_managed_name, open_any};
use crate::descriptors::access;
use crate::process::{At, errno, kernel};

/// Descriptors that wait for children, each with the address of its file actions.
static OPEN: Mutex<Vec<(usize, Fd)>> = Mutex::new(Vec::new());

interpose!(
    // Opens the file at once if the child's open would change a managed file, and has the child
    // duplicate that descriptor. Two differences are visible: the file is opened even if the
    // program never spawns, and two children with the same actions share the offset.
    posix_spawn_file_actions_addopen = |real,
                                        actions: *mut posix_spawn_file_actions_t,
                                        fd: c_int,
                                        path: *const c_char,
                                        flags: c_int,
                                        mode: mode_t|
     -> c_int {
        let changes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
        let writes = access::writes(OFlags::from_bits_retain(flags.cast_unsigned()));
        let managed = if changes || writes { is_managed_name(path, flags) } else { Ok(false) };
        match managed {
            Ok(true) => {}
            // An invalid path fails in the child.
            Ok(false) | Err(Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::FAULT) => return real(),
            Err(error) => return error.raw_os_error(),
        }
        let before = errno::get();
        let (at, flags) = (At::cwd(path), flags | libc::O_CLOEXEC);
        let opened = open_any(at, flags, mode, || errno::answer(|| at.open(flags, mode)));
        if opened < 0 {
            let failed = errno::get();
            errno::set(before);
            let fails_there_too = match failed {
                // EACCES may be a temporary error of a server, or concern an object only. The
                // kernel would then open the anchor for a child of root, and truncate it.
                libc::EACCES => !may_write(path),
                failed => matches!(failed, libc::EEXIST | libc::EISDIR | libc::EROFS),
            };
            // Otherwise the open might succeed in the child, bypassing the library.
            return if fails_there_too { real() } else { failed };
        }
        // SAFETY: just opened; closed by the library's own `close`.
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
    },
    posix_spawn_file_actions_destroy = |real, actions: *mut posix_spawn_file_actions_t| -> c_int {
        if let Ok(mut open) = OPEN.try_lock() {
            open.retain(|(of, _)| *of != actions as usize);
        }
        real()
    },
);

/// Whether the kernel would open this name for writing. For an anchor it does so only for root.
fn may_write(path: *const c_char) -> bool {
    let (mode, flags) = (libc::W_OK as usize, libc::AT_EACCESS as usize);
    let arguments = [libc::AT_FDCWD as usize, path as usize, mode, flags];
    // SAFETY: only the kernel reads the path.
    unsafe { kernel::call(libc::SYS_faccessat2, arguments) }.is_ok()
}
