//! Calls of libc that take paths of descriptors, and the numbers of the kernel's protocol.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::UNIX_EPOCH;

use fuser::TimeOrNow;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, mknodat};
use nix::sys::uio::{pread, pwrite};

/// The longest value of an extended attribute, and the longest list of their names (xattr(7)).
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// What was read for the kernel last. It is filled anew for each read.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Creates or opens a file.
///
/// # Errors
/// Those of open(2).
pub fn create(dir: impl AsFd, name: &OsStr, flags: OFlag, mode: u32) -> Result<File, Errno> {
    Ok(openat(dir, name, flags, Mode::from_bits_truncate(mode))?.into())
}

/// Makes a file that is no directory and no link. A regular one is created by an open, as programs
/// do it.
///
/// # Errors
/// Those of mknod(2).
pub fn make_node(dir: impl AsFd, name: &OsStr, mode: u32, device: u32) -> Result<(), Errno> {
    let kind = SFlag::from_bits_truncate(mode & libc::S_IFMT);
    if kind == SFlag::S_IFREG {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        return create(dir, name, flags, mode & !libc::S_IFMT).map(drop);
    }
    // The kernel's `new_decode_dev`.
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    mknodat(dir, name, kind, Mode::from_bits_truncate(mode), libc::makedev(major, minor))
}

/// Renames, with flags of renameat2(2).
///
/// # Errors
/// Those of renameat2(2).
pub fn rename(
    (from_dir, from): (impl AsFd, &OsStr),
    (to_dir, to): (impl AsFd, &OsStr),
    flags: u32,
) -> Result<(), Errno> {
    let (from, to) = (text(from)?, text(to)?);
    let (from_dir, to_dir) = (from_dir.as_fd().as_raw_fd(), to_dir.as_fd().as_raw_fd());
    // SAFETY: both are terminated.
    let result = unsafe { libc::renameat2(from_dir, from.as_ptr(), to_dir, to.as_ptr(), flags) };
    Errno::result(result).map(drop)
}

/// Reads `size` bytes, or those up to the end of the file, and passes them on.
pub fn read(file: impl AsFd, offset: u64, size: usize, answer: impl FnOnce(Result<&[u8], Errno>)) {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        let mut done = 0;
        while done < size {
            match pread(&file, &mut buffer[done..size], (offset + done as u64) as i64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(Errno::EINTR) => {}
                Err(_) if done > 0 => break,
                Err(error) => return answer(Err(error)),
            }
        }
        answer(Ok(&buffer[..done]));
    });
}

/// Writes all bytes, or as many as can be. Returns how many.
///
/// # Errors
/// Those of pwrite(2), if no byte was written.
pub fn write(file: impl AsFd, data: &[u8], offset: u64) -> Result<usize, Errno> {
    let mut done = 0;
    while done < data.len() {
        match pwrite(&file, &data[done..], (offset + done as u64) as i64) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(Errno::EINTR) => {}
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Makes what was written durable.
///
/// # Errors
/// Those of fsync(2).
pub fn sync(file: impl AsFd, data_only: bool) -> Result<(), Errno> {
    if data_only { nix::unistd::fdatasync(file) } else { nix::unistd::fsync(file) }
}

/// Allocates space, with the mode of fallocate(2).
///
/// # Errors
/// Those of fallocate(2).
pub fn allocate(file: impl AsFd, mode: i32, offset: u64, len: u64) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::fallocate(file.as_fd().as_raw_fd(), mode, offset as i64, len as i64) };
    Errno::result(result).map(drop)
}

/// The offset of the next data or hole.
///
/// # Errors
/// Those of lseek(2).
pub fn seek(file: impl AsFd, offset: i64, whence: i32) -> Result<i64, Errno> {
    // SAFETY: takes numbers only. Nothing else uses the descriptor's offset.
    Errno::result(unsafe { libc::lseek(file.as_fd().as_raw_fd(), offset, whence) })
}

/// Sets the size of an open file.
///
/// # Errors
/// Those of ftruncate(2).
pub fn truncate(file: impl AsFd, size: u64) -> Result<(), Errno> {
    nix::unistd::ftruncate(file, size as i64)
}

/// Sets the size of the file of this path.
///
/// # Errors
/// Those of truncate(2).
pub fn truncate_named(path: &CStr, size: u64) -> Result<(), Errno> {
    nix::unistd::truncate(path, size as i64)
}

/// Changes the permissions.
///
/// # Errors
/// Those of chmod(2).
pub fn change_mode(path: &CStr, mode: u32) -> Result<(), Errno> {
    // SAFETY: the path is terminated.
    Errno::result(unsafe { libc::chmod(path.as_ptr(), mode & 0o7777) }).map(drop)
}

/// Changes user and group; `None` stays as it is.
///
/// # Errors
/// Those of chown(2).
pub fn change_owner(path: &CStr, (user, group): (Option<u32>, Option<u32>)) -> Result<(), Errno> {
    let (user, group) = (user.unwrap_or(u32::MAX), group.unwrap_or(u32::MAX));
    // SAFETY: the path is terminated.
    Errno::result(unsafe { libc::chown(path.as_ptr(), user, group) }).map(drop)
}

/// Changes the times of the last access and modification; `None` stays as it is.
///
/// # Errors
/// Those of utimensat(2).
pub fn change_times(
    path: &CStr,
    (access, change): (Option<TimeOrNow>, Option<TimeOrNow>),
) -> Result<(), Errno> {
    let times = [to_timespec(access), to_timespec(change)];
    // SAFETY: the path is terminated, and there are two times.
    Errno::result(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0) }).map(drop)
}

/// Whether the user may access the file so, in the bits of access(2).
///
/// # Errors
/// Those of access(2).
pub fn may_access(path: &CStr, mask: i32) -> Result<(), Errno> {
    // SAFETY: the path is terminated.
    Errno::result(unsafe { libc::access(path.as_ptr(), mask) }).map(drop)
}

/// Sets an extended attribute.
///
/// # Errors
/// Those of setxattr(2).
pub fn set_attribute(path: &CStr, name: &OsStr, value: &[u8], flags: i32) -> Result<(), Errno> {
    let (name, address) = (text(name)?, value.as_ptr().cast());
    // SAFETY: the texts are terminated, and the value has this length.
    Errno::result(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), address, value.len(), flags) })
        .map(drop)
}

/// The value of an extended attribute.
///
/// # Errors
/// Those of getxattr(2).
pub fn attribute(path: &CStr, name: &OsStr) -> Result<Vec<u8>, Errno> {
    let name = text(name)?;
    // SAFETY: the texts are terminated, and the buffer has this length.
    filled(|buffer| unsafe {
        libc::getxattr(path.as_ptr(), name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
    })
}

/// The names of all extended attributes, each terminated.
///
/// # Errors
/// Those of listxattr(2).
pub fn attribute_names(path: &CStr) -> Result<Vec<u8>, Errno> {
    // SAFETY: the path is terminated, and the buffer has this length.
    filled(|buffer| unsafe { libc::listxattr(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) })
}

fn filled(fill: impl FnOnce(&mut [u8]) -> isize) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; ATTRIBUTE_BYTES_MAX];
    let len = Errno::result(fill(&mut buffer))?;
    buffer.truncate(len as usize);
    Ok(buffer)
}

/// Removes an extended attribute.
///
/// # Errors
/// Those of removexattr(2).
pub fn remove_attribute(path: &CStr, name: &OsStr) -> Result<(), Errno> {
    let name = text(name)?;
    // SAFETY: both are terminated.
    Errno::result(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
}

fn text(name: &OsStr) -> Result<CString, Errno> {
    CString::new(name.as_bytes()).map_err(|_| Errno::EINVAL)
}

/// A time of the protocol for utimensat(2).
fn to_timespec(time: Option<TimeOrNow>) -> libc::timespec {
    let special = |tv_nsec| libc::timespec { tv_sec: 0, tv_nsec };
    let time = match time {
        None => return special(libc::UTIME_OMIT),
        Some(TimeOrNow::Now) => return special(libc::UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => time,
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => libc::timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() },
        // `fuser` 0.18 takes the nanoseconds of a time before 1970 as if they counted backwards
        // (`system_time_from_time` in its time.rs); in the protocol they never do.
        Err(before) => {
            let before = before.duration();
            libc::timespec { tv_sec: -(before.as_secs() as i64), tv_nsec: before.subsec_nanos().into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_before_1970_are_those_of_the_protocol() {
        let of = |time| {
            let spec = to_timespec(Some(TimeOrNow::SpecificTime(time)));
            (spec.tv_sec, spec.tv_nsec)
        };
        assert_eq!(of(UNIX_EPOCH + Duration::new(3, 7)), (3, 7));
        assert_eq!(of(UNIX_EPOCH - Duration::new(3, 0)), (-3, 0));
        assert_eq!(of(UNIX_EPOCH - Duration::new(3, 7)), (-3, 7), "as fuser gives -3 s and 7 ns");
        assert_eq!(to_timespec(None).tv_nsec, libc::UTIME_OMIT);
        assert_eq!(to_timespec(Some(TimeOrNow::Now)).tv_nsec, libc::UTIME_NOW);
    }

    #[test]
    fn a_read_ends_with_the_file() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(write(&file, b"0123456789", 0), Ok(10));
        let at = |offset, size| {
            let mut found = Vec::new();
            read(&file, offset, size, |read| found = read.unwrap().to_vec());
            found
        };
        assert_eq!((at(0, 4), at(8, 4), at(10, 4)), (b"0123".to_vec(), b"89".to_vec(), Vec::new()));
    }
}
