//! What a program may do through a descriptor of a managed file.
//!
//! The kernel's descriptor is open for reading only, so that nothing that goes past this library
//! can write to the anchor. The access mode that the program asked for travels with the open file
//! description where the kernel keeps it for us: as the signal of `F_SETSIG`, which dup, fork, exec
//! and SCM_RIGHTS share and which means nothing for a regular file. Processes of this library that
//! open the file or inherit it by fork know the mode without asking.
//!
//! Any process may set that signal on a descriptor it has, so the mark counts only if it was set by
//! a trusted user: `F_SETOWN` makes the kernel record which user that was. See [`inherited`].

use std::ffi::{c_char, c_int, c_long};
use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, fcntl_getfl};
use stripewise_datapath::LogicalFile;
use stripewise_datapath::manifest::MAGIC;
use stripewise_sys::{Errno, Result, Stat, raw};

use crate::paths::FdPath;
use crate::{errno, kernel, state};

/// Signals that stand for an access mode: real-time ones that no program uses for files.
const MAY_WRITE: usize = 61;
const MAY_BOTH: usize = 62;
/// The process that the signal would go to: one that always exists.
const OWNER: usize = 1;

const F_SETOWN: c_int = 8;
const F_GETOWN: c_int = 9;
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;
const F_GETOWNER_UIDS: c_int = 17;

/// Whether a descriptor opened with these flags may be written through.
pub fn writes(flags: OFlags) -> bool {
    matches!(flags & OFlags::RWMODE, OFlags::WRONLY | OFlags::RDWR)
}

/// Notes on the description of a managed file, which is open for reading, what the program asked
/// for.
///
/// # Errors
/// ENOMEM.
pub fn note(fd: c_int, flags: OFlags) -> Result<()> {
    let signal = match flags & OFlags::RWMODE {
        OFlags::WRONLY => MAY_WRITE,
        OFlags::RDWR => MAY_BOTH,
        _ => return Ok(()),
    };
    control(fd, F_SETOWN, OWNER)?;
    control(fd, F_SETSIG, signal).map(drop)
}

/// The access mode of a managed file's description that another program made: what the kernel says,
/// or what is noted on it.
///
/// A mark counts if it was set by this user, by the file's owner or by root: a user who may only
/// read a file cannot make a process of another user write to it by marking a descriptor. A program
/// with more rights than its caller (AT_SECURE) trusts no mark.
///
/// # Errors
/// It could not be found out.
pub fn inherited(fd: c_int, stat: &Stat) -> Result<OFlags> {
    // SAFETY: borrowed for the call.
    let kernel = fcntl_getfl(unsafe { BorrowedFd::borrow_raw(fd) })? & OFlags::RWMODE;
    if kernel != OFlags::RDONLY {
        // Made by an earlier version of this library, or behind its back.
        return Ok(kernel);
    }
    let noted = match control(fd, F_GETSIG, 0)? {
        MAY_WRITE => OFlags::WRONLY,
        MAY_BOTH => OFlags::RDWR,
        _ => return Ok(kernel),
    };
    match marked_by_trusted_user(fd, stat) {
        // A kernel that does not tell.
        Ok(false) | Err(Errno::INVAL) => Ok(kernel),
        trusted => trusted.map(|_| noted),
    }
}

fn marked_by_trusted_user(fd: c_int, stat: &Stat) -> Result<bool> {
    let mut users = [u32::MAX; 2];
    // SAFETY: no memory is involved.
    let elevated = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    // Without an owner the kernel says that it was root.
    if elevated || control(fd, F_GETOWN, 0)? != OWNER {
        return Ok(false);
    }
    control(fd, F_GETOWNER_UIDS, users.as_mut_ptr() as usize)?;
    let [_, effective] = users;
    Ok(effective == 0 || effective == rustix::process::geteuid().as_raw() || effective == stat.st_uid)
}

/// The kernel has just opened a managed file for writing, as the program may: exchanges the
/// descriptor for one that is open for reading. Returns its number, mostly the same: the lowest one
/// that is free.
///
/// # Errors
/// As open(2); the descriptor is closed.
pub fn exchange(fd: c_int, file: &LogicalFile, flags: OFlags) -> Result<c_int> {
    kernel::close(fd);
    let new = errno::guarded(|| state::runtime()?.open_again(file, flags))?;
    note(new, flags).inspect_err(|_| kernel::close(new))?;
    Ok(new)
}

/// As [`exchange`], in a vfork child, which has its parent's memory and only descriptors of its
/// own: whatever the file is. Returns the descriptor as it was where it is none of ours or cannot
/// be exchanged.
pub fn exchange_in_vfork_child(fd: c_int, flags: OFlags) -> c_int {
    let link = FdPath::new(fd);
    let Some(new) = open_in_vfork_child(libc::AT_FDCWD, link.as_c_str().as_ptr(), flags - OFlags::NOFOLLOW)
    else {
        return fd;
    };
    let on_exec = if flags.contains(OFlags::CLOEXEC) { libc::O_CLOEXEC } else { 0 };
    // SAFETY: both are this call's.
    let moved = unsafe { kernel::call(libc::SYS_dup3, [new as usize, fd as usize, on_exec as usize, 0, 0, 0]) };
    kernel::close(new);
    moved.map_or(fd, |moved| moved as c_int)
}

/// Opens a managed file for reading, with a note of what the program asked for, in a vfork child:
/// whether the program may have that, the process that uses the descriptor finds out. `None`: the
/// file is none of ours.
pub fn open_in_vfork_child(dir: c_int, path: *const c_char, flags: OFlags) -> Option<c_int> {
    let mut start = [0; MAGIC.len()];
    let kept = flags - (OFlags::RWMODE | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC);
    let new = kernel::open_at(dir, path, kept.bits().cast_signed(), 0).ok()?;
    // SAFETY: just opened; a buffer of our own.
    let read = unsafe { raw::pread(BorrowedFd::borrow_raw(new), start.as_mut_ptr(), start.len(), 0) };
    if read != Ok(start.len()) || start != *MAGIC || note(new, flags).is_err() {
        kernel::close(new);
        return None;
    }
    Some(new)
}

/// `fcntl` of a managed file's descriptor where the answer is ours; `None`: the kernel's will do.
/// `asked` is the signal that the program has set, if it has.
pub fn answer(
    fd: c_int,
    command: c_int,
    argument: usize,
    asked: &std::sync::atomic::AtomicU32,
) -> Option<Result<c_int>> {
    use std::sync::atomic::Ordering::Relaxed;
    // <fcntl.h>, not in the libc crate.
    const F_SETOWN_EX: c_int = 15;
    const F_GETOWN_EX: c_int = 16;
    Some(match command {
        // Regular files send no signals: what is set has no effect, and the place is taken.
        F_SETSIG if argument > 64 => Err(Errno::INVAL),
        F_SETSIG => {
            asked.store(argument as u32, Relaxed);
            Ok(0)
        }
        F_GETSIG => Ok(asked.load(Relaxed).cast_signed()),
        F_SETOWN | F_SETOWN_EX | F_GETOWN => Ok(0),
        F_GETOWN_EX => control(fd, F_GETOWN_EX, argument).map(|_| {
            // SAFETY: the kernel has just filled it: a kind and a number.
            unsafe { (argument as *mut c_int).add(1).write(0) };
            0
        }),
        // A lease on the anchor would be broken by this library itself.
        libc::F_SETLEASE => Err(Errno::INVAL),
        _ => return None,
    })
}

fn control(fd: c_int, command: c_int, argument: usize) -> Result<usize> {
    let arguments = [fd as usize, command as usize, argument, 0, 0, 0];
    // SAFETY: pointers come from the callers, for commands that fill what they point to.
    unsafe { kernel::call(libc::SYS_fcntl as c_long, arguments) }
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
        control(file.as_raw_fd(), F_SETSIG, MAY_BOTH).unwrap();
        assert_eq!(inherited(file.as_raw_fd(), &fstat(&file).unwrap()), Ok(OFlags::RDONLY));
    }

    #[test]
    fn a_description_that_can_write_needs_no_note() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(inherited(file.as_raw_fd(), &fstat(&file).unwrap()), Ok(OFlags::RDWR));
    }
}
