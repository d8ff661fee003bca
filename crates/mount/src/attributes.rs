//! The attributes of files, as `statx` gives them.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};
use libc::{statx, statx_timestamp};
use nix::NixPath;
use nix::errno::Errno;

use crate::nodes::Identity;

const MASK: u32 = libc::STATX_BASIC_STATS | libc::STATX_BTIME;

/// The attributes of what a path leads to, without following a link at its end.
///
/// # Errors
/// Those of statx(2).
pub fn named(dir: impl AsFd, path: &Path) -> Result<statx, Errno> {
    path.with_nix_path(|path| of(dir, path, libc::AT_SYMLINK_NOFOLLOW))?
}

/// The attributes of an open file.
///
/// # Errors
/// Those of statx(2).
pub fn opened(file: impl AsFd) -> Result<statx, Errno> {
    of(file, c"", libc::AT_EMPTY_PATH)
}

fn of(dir: impl AsFd, path: &CStr, flags: i32) -> Result<statx, Errno> {
    let mut out = MaybeUninit::uninit();
    // SAFETY: `out` has room for the attributes.
    let result = unsafe { libc::statx(dir.as_fd().as_raw_fd(), path.as_ptr(), flags, MASK, out.as_mut_ptr()) };
    Errno::result(result)?;
    // SAFETY: the call has filled it.
    Ok(unsafe { out.assume_init() })
}

/// Which file a descriptor is of. It may be one that only names the file (O_PATH).
///
/// # Errors
/// Those of statx(2).
pub fn identity_of(file: impl AsFd) -> Result<Identity, Errno> {
    let mut out = MaybeUninit::<statx>::uninit();
    let (fd, path, flags) = (file.as_fd().as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH);
    // The kernel is asked: a library that corrects what `statx` gives may have to open the file.
    // SAFETY: `out` has room for the attributes.
    let result = unsafe { libc::syscall(libc::SYS_statx, fd, path, flags, MASK, out.as_mut_ptr()) };
    Errno::result(result)?;
    // SAFETY: the call has filled it.
    Ok(identity(&unsafe { out.assume_init() }))
}

/// Which file these are the attributes of.
pub fn identity(found: &statx) -> Identity {
    let born = found.stx_btime;
    let is_known = found.stx_mask & libc::STATX_BTIME != 0;
    let born_ns = (born.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(u64::from(born.tv_nsec));
    Identity {
        dev: libc::makedev(found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
        born_ns: if is_known { born_ns } else { 0 },
    }
}

/// The attributes for the kernel, which knows the file by this number.
pub fn for_kernel(number: u64, found: &statx) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: found.stx_size,
        blocks: found.stx_blocks,
        atime: time(found.stx_atime),
        mtime: time(found.stx_mtime),
        ctime: time(found.stx_ctime),
        crtime: time(found.stx_btime),
        kind: kind(u32::from(found.stx_mode)),
        perm: found.stx_mode & 0o7777,
        nlink: found.stx_nlink,
        uid: found.stx_uid,
        gid: found.stx_gid,
        rdev: device(found.stx_rdev_major, found.stx_rdev_minor),
        blksize: found.stx_blksize,
        flags: 0,
    }
}

fn time(of: statx_timestamp) -> SystemTime {
    let seconds = Duration::from_secs(of.tv_sec.unsigned_abs());
    let whole = if of.tv_sec < 0 { UNIX_EPOCH - seconds } else { UNIX_EPOCH + seconds };
    whole + Duration::from_nanos(u64::from(of.tv_nsec))
}

fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFCHR => FileType::CharDevice,
        libc::S_IFBLK => FileType::BlockDevice,
        libc::S_IFSOCK => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

/// A device number in the form of the protocol: that of the kernel's `new_encode_dev`.
fn device(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970() {
        let of = |tv_sec, tv_nsec| {
            // SAFETY: consists of numbers, for which zero is a valid value.
            let mut time: statx_timestamp = unsafe { std::mem::zeroed() };
            (time.tv_sec, time.tv_nsec) = (tv_sec, tv_nsec);
            time
        };
        assert_eq!(time(of(2, 5)), UNIX_EPOCH + Duration::new(2, 5));
        assert_eq!(time(of(-2, 5)), UNIX_EPOCH - Duration::new(2, 0) + Duration::from_nanos(5));
    }

    #[test]
    fn a_device_number_is_that_of_the_kernel() {
        // By include/linux/kdev_t.h: (minor & 0xff) | (major << 8) | ((minor & ~0xff) << 12).
        assert_eq!((device(8, 1), device(259, 0x123)), (0x801, 0x0011_0323 & 0xff | 259 << 8 | 0x10_0000));
    }

    #[test]
    fn a_file_is_told_by_all_ways_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("file")).unwrap();
        let root = std::fs::File::open(dir.path()).unwrap();
        let found = named(&root, Path::new("file")).unwrap();
        assert_eq!(identity(&found), identity_of(&file).unwrap());
        assert_eq!(identity(&found), identity(&opened(&file).unwrap()));
        assert_ne!(identity(&found), identity_of(&root).unwrap());
        assert_eq!(named(&root, Path::new("none")).unwrap_err(), Errno::ENOENT);
    }
}
