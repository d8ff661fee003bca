//! Record locks of managed files.
//!
//! The kernel grants a write lock only through a descriptor that is open for writing, and no anchor
//! has such a descriptor. So record locks are taken on the first object. POSIX locks belong to
//! process and inode: they are taken through the private descriptor of that object, which every
//! process with the file open has, and released when the program closes one of its own descriptors.
//! OFD locks belong to an open file description: a private one stands in for the program's, from
//! the first such lock on.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use libc::flock;
use stripewise_datapath::LogicalFile;
use stripewise_sys::{Errno, Mode, OFlags, Result};

use crate::descriptors::{FdPath, Managed, to_path};
use crate::process::{answer, errno, guarded, kernel, state};

pub fn is_about(command: c_int) -> bool {
    matches!(command, libc::F_SETLK | libc::F_SETLKW | libc::F_GETLK) || is_of_description(command)
}

fn is_of_description(command: c_int) -> bool {
    matches!(command, libc::F_OFD_SETLK | libc::F_OFD_SETLKW | libc::F_OFD_GETLK)
}

/// `fcntl` with such a command; `argument` is the address of the program's `struct flock`.
pub fn control(managed: &Managed, command: c_int, argument: usize) -> c_int {
    answer(|| {
        let mut lock = MaybeUninit::<flock>::uninit();
        kernel::copy_from(argument, &mut lock)?;
        // SAFETY: consists of numbers, all of which were read.
        let mut lock = unsafe { lock.assume_init() };
        make(managed, command, &mut lock)?;
        if matches!(command, libc::F_GETLK | libc::F_OFD_GETLK) {
            kernel::copy_to(argument, &lock)?;
        }
        Ok(0)
    })
}

pub fn lockf(managed: &Managed, command: c_int, len: libc::off_t) -> c_int {
    answer(|| {
        let (kind, command) = match command {
            libc::F_LOCK => (libc::F_WRLCK, libc::F_SETLKW),
            libc::F_TLOCK => (libc::F_WRLCK, libc::F_SETLK),
            libc::F_ULOCK => (libc::F_UNLCK, libc::F_SETLK),
            libc::F_TEST => (libc::F_RDLCK, libc::F_GETLK),
            _ => return Err(Errno::INVAL),
        };
        // SAFETY: consists of numbers, for which zero is a valid value.
        let mut lock: flock = unsafe { std::mem::zeroed() };
        (lock.l_type, lock.l_whence, lock.l_len) = (kind as i16, libc::SEEK_CUR as i16, len);
        make(managed, command, &mut lock)?;
        // F_GETLK overwrites the lock with a conflicting one.
        let free = lock.l_type == libc::F_UNLCK as i16 || lock.l_pid == std::process::id().cast_signed();
        if command == libc::F_GETLK && !free { Err(Errno::ACCESS) } else { Ok(0) }
    })
}

/// flock(2), which the kernel does on the anchor. What programs on other nodes wrote under the lock
/// is seen once this one has it.
pub fn whole(managed: &Managed, operation: c_int, flock: impl FnOnce() -> c_int) -> c_int {
    let kind = operation & !libc::LOCK_NB;
    if kind != libc::LOCK_EX
        && let Err(error) = exchange(managed)
    {
        return errno::fail(error);
    }
    // Sets errno itself if it fails.
    let locked = flock();
    match kind {
        libc::LOCK_SH | libc::LOCK_EX if locked == 0 => answer(|| exchange(managed).map(|()| 0)),
        _ => locked,
    }
}

/// Commits, and acquires what others have committed.
fn exchange(managed: &Managed) -> Result<()> {
    guarded(|| managed.file()?.exchange())
}

fn make(managed: &Managed, command: c_int, lock: &mut flock) -> Result<()> {
    let access = managed.flags()? & OFlags::RWMODE;
    let asks = !matches!(command, libc::F_GETLK | libc::F_OFD_GETLK);
    match c_int::from(lock.l_type) {
        libc::F_RDLCK if asks && access == OFlags::WRONLY => return Err(Errno::BADF),
        libc::F_WRLCK if asks && access == OFlags::RDONLY => return Err(Errno::BADF),
        _ => {}
    }
    place(managed, lock)?;
    // Programs on other nodes see what was written under a lock once they have it.
    let gives_up = asks && c_int::from(lock.l_type) != libc::F_WRLCK;
    if gives_up {
        exchange(managed)?;
    }
    // Signals are not blocked, because the wait may be long.
    kernel::fcntl(holder(managed, command)?, command, std::ptr::from_mut(lock) as usize)?;
    if asks && c_int::from(lock.l_type) != libc::F_UNLCK { exchange(managed) } else { Ok(()) }
}

/// Converts the lock's start to an absolute offset: the private descriptor has another offset, and
/// the first object another size.
fn place(managed: &Managed, lock: &mut flock) -> Result<()> {
    let base = match c_int::from(lock.l_whence) {
        libc::SEEK_CUR => managed.offset()?,
        libc::SEEK_END => guarded(|| managed.file()?.size())?,
        _ => return Ok(()),
    };
    lock.l_start = lock.l_start.checked_add_unsigned(base).ok_or(Errno::OVERFLOW)?;
    lock.l_whence = libc::SEEK_SET as i16;
    Ok(())
}

fn holder(managed: &Managed, command: c_int) -> Result<c_int> {
    let file = managed.file()?;
    let first = first_object(file)?;
    if !is_of_description(command) {
        return Ok(first);
    }
    let flags = if file.is_writable() { OFlags::RDWR } else { OFlags::RDONLY };
    let open = || {
        let link = FdPath::new(first);
        state::runtime()?.sys().open(None, to_path(link.as_c_str().to_bytes()), flags, Mode::empty())
    };
    guarded(|| managed.entry().locks(open))
}

fn first_object(file: &LogicalFile) -> Result<c_int> {
    Ok(file.objects().fd(0).map_err(|error| error.errno())?.as_raw_fd())
}

/// Releases the process's POSIX locks on the file, as close(2) does for its inode. Called before a
/// descriptor of the file is closed.
pub fn closing(file: &LogicalFile) {
    // SAFETY: consists of numbers, for which zero is a valid value: the whole file.
    let mut lock: flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_UNLCK as i16;
    // Close has no errors for it.
    let _ = file.exchange();
    if let Ok(first) = first_object(file) {
        let _ = kernel::fcntl(first, libc::F_SETLK, &raw const lock as usize);
    }
}
