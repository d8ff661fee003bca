//! The access mode of managed files' descriptors.
//!
//! The kernel's descriptor of a managed file is open for reading only, so that no call that
//! bypasses the library can write to the anchor. The access mode that the program asked for is kept
//! with the open file description as the signal of `F_SETSIG`. dup, fork, exec and SCM_RIGHTS share
//! that signal, and it has no effect on a regular file. Processes with this library that open the
//! file, or inherit the descriptor by fork, know the mode without this mark.
//!
//! Any process may set that signal on a descriptor it has, so a mark counts only if a trusted user
//! set it: `F_SETOWN` makes the kernel record that user. See [`inherited`].

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use stripewise_datapath::LogicalFile;
use stripewise_datapath::manifest::MAGIC;
use stripewise_sys::{Errno, Result, Stat, raw};

use crate::descriptors::FdPath;
use crate::process::kernel::fcntl;
use crate::process::{At, borrow, errno, kernel, state};

/// Signals that encode an access mode: real-time signals that no program uses for files.
const MAY_WRITE: usize = 61;
const MAY_BOTH: usize = 62;
/// The process that the signal would go to: init, which always exists.
const OWNER: usize = 1;

// From <fcntl.h>; the libc crate lacks them.
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;
const F_SETOWN_EX: c_int = 15;
const F_GETOWN_EX: c_int = 16;
const F_GETOWNER_UIDS: c_int = 17;

pub fn writes(flags: OFlags) -> bool {
    matches!(flags & OFlags::RWMODE, OFlags::WRONLY | OFlags::RDWR)
}

/// Marks the open file description of a managed file, which is open for reading, with the access
/// mode that the program asked for.
pub fn note(fd: c_int, flags: OFlags) -> Result<()> {
    let signal = match flags & OFlags::RWMODE {
        OFlags::WRONLY => MAY_WRITE,
        OFlags::RDWR => MAY_BOTH,
        _ => return Ok(()),
    };
    fcntl(fd, libc::F_SETOWN, OWNER)?;
    fcntl(fd, F_SETSIG, signal).map(drop)
}

/// The access mode of a managed file's open file description that another program made: the
/// kernel's, or that of the mark.
///
/// A mark counts if this user, the file's owner or root set it. So a user who may only read a file
/// cannot make another user's process write to it by marking a descriptor. A program with more
/// rights than its caller (AT_SECURE) trusts no mark.
pub fn inherited(fd: c_int, stat: &Stat) -> Result<OFlags> {
    let kernel = fcntl_getfl(borrow(fd))? & OFlags::RWMODE;
    if kernel != OFlags::RDONLY {
        // An earlier version of this library opened it, or a call that bypassed the library.
        return Ok(kernel);
    }
    let noted = match fcntl(fd, F_GETSIG, 0)? {
        MAY_WRITE => OFlags::WRONLY,
        MAY_BOTH => OFlags::RDWR,
        _ => return Ok(kernel),
    };
    match marked_by_trusted_user(fd, stat) {
        // EINVAL: this kernel has no F_GETOWNER_UIDS.
        Ok(false) | Err(Errno::INVAL) => Ok(kernel),
        trusted => trusted.map(|_| noted),
    }
}

fn marked_by_trusted_user(fd: c_int, stat: &Stat) -> Result<bool> {
    let mut users = [u32::MAX; 2];
    // SAFETY: no memory is involved.
    let elevated = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    // A description without an owner reports root as the user who set it.
    if elevated || fcntl(fd, libc::F_GETOWN, 0)? != OWNER {
        return Ok(false);
    }
    fcntl(fd, F_GETOWNER_UIDS, users.as_mut_ptr() as usize)?;
    let [_, effective] = users;
    Ok(effective == 0 || effective == rustix::process::geteuid().as_raw() || effective == stat.st_uid)
}

/// Exchanges a descriptor of a managed file, which the kernel has just opened for writing, for one
/// that is open for reading only. Returns the number of the new descriptor: the lowest free one, so
/// usually the same.
pub fn exchange(fd: c_int, file: &LogicalFile, flags: OFlags) -> Result<c_int> {
    kernel::close(fd);
    let new = errno::guarded(|| state::runtime()?.open_again(file, flags))?;
    note(new, flags).inspect_err(|_| kernel::close(new))?;
    Ok(new)
}

/// As [`exchange`], in a vfork child, which has descriptors of its own and its parent's memory. The
/// file need not be managed. Returns the original descriptor if the file is not managed or the
/// exchange fails.
pub fn exchange_in_vfork_child(fd: c_int, flags: OFlags) -> c_int {
    let link = FdPath::new(fd);
    let Some(new) = open_in_vfork_child(At::cwd(link.as_c_str().as_ptr()), flags - OFlags::NOFOLLOW) else {
        return fd;
    };
    let on_exec = if flags.contains(OFlags::CLOEXEC) { libc::O_CLOEXEC } else { 0 };
    // SAFETY: both are this call's.
    let moved = unsafe { kernel::call(libc::SYS_dup3, [new as usize, fd as usize, on_exec as usize]) };
    kernel::close(new);
    moved.map_or(fd, |moved| moved as c_int)
}

/// Opens a managed file for reading in a vfork child, and marks the description with the access
/// mode that the program asked for. The process that uses the descriptor checks whether the program
/// may have that mode. `None` if the file is not managed.
pub fn open_in_vfork_child(at: At, flags: OFlags) -> Option<c_int> {
    let mut start = [0; MAGIC.len()];
    let kept = flags - (OFlags::RWMODE | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC);
    let new = at.open(kept.bits().cast_signed(), 0).ok()?;
    // SAFETY: a buffer of this function.
    let read = unsafe { raw::pread(borrow(new), start.as_mut_ptr(), start.len(), 0) };
    if read != Ok(start.len()) || start != *MAGIC || note(new, flags).is_err() {
        kernel::close(new);
        return None;
    }
    Some(new)
}

/// The library's answer to `fcntl` on a managed file's descriptor. `None` if the kernel's answer is
/// right. `asked` is the signal that the program has set, or 0.
pub fn answer(fd: c_int, command: c_int, argument: usize, asked: &AtomicU32) -> Option<Result<c_int>> {
    Some(match command {
        // Regular files send no signals, so the setting has no effect; the kernel's setting holds
        // the mark.
        F_SETSIG if argument > 64 => Err(Errno::INVAL),
        F_SETSIG => {
            asked.store(argument as u32, Ordering::Relaxed);
            Ok(0)
        }
        F_GETSIG => Ok(asked.load(Ordering::Relaxed).cast_signed()),
        libc::F_SETOWN | F_SETOWN_EX | libc::F_GETOWN => Ok(0),
        F_GETOWN_EX => fcntl(fd, F_GETOWN_EX, argument).map(|_| {
            // SAFETY: the kernel has just filled the structure: a kind and a process id.
            unsafe { (argument as *mut c_int).add(1).write(0) };
            0
        }),
        // This library's own opens would break a lease on the anchor.
        libc::F_SETLEASE => Err(Errno::INVAL),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::fs::fstat;

    use super::*;

    fn noted(flags: OFlags) -> (std::fs::File, OFlags) {
        let named = tempfile::NamedTempFile::new().unwrap();
        let file = std::fs::File::open(named.path()).unwrap();
        note(file.as_raw_fd(), flags).unwrap();
        let duplicate = file.try_clone().unwrap();
        let mode = inherited(duplicate.as_raw_fd(), &fstat(&duplicate).unwrap()).unwrap();
        (file, mode)
    }

    #[test]
    fn what_was_asked_for_is_noted_on_the_description() {
        for flags in [OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR] {
            assert_eq!(noted(flags | OFlags::APPEND).1, flags);
        }
    }

    #[test]
    fn a_signal_alone_is_no_note() {
        let (file, _) = noted(OFlags::RDONLY);
        fcntl(file.as_raw_fd(), F_SETSIG, MAY_BOTH).unwrap();
        assert_eq!(inherited(file.as_raw_fd(), &fstat(&file).unwrap()), Ok(OFlags::RDONLY));
    }

    #[test]
    fn a_description_that_can_write_needs_no_note() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(inherited(file.as_raw_fd(), &fstat(&file).unwrap()), Ok(OFlags::RDWR));
    }
}
