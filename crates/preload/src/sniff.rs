//! Is this file the anchor of a managed one? Its first bytes tell.
//!
//! Care is taken that looking leaves no trace: closing *any* descriptor of an inode drops the POSIX record locks that the
//! process holds on it, so a program that locks files gets its own descriptors looked through instead.

use std::ffi::{CStr, c_int};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, CWD, FileType, Mode, OFlags};
use stripewise_datapath::FileKey;
use stripewise_datapath::manifest::{MAGIC, TEXT_BYTES_MAX, TEXT_BYTES_MIN};
use stripewise_sys::{Result, Stat, raw};

use crate::paths::FdPath;
use crate::seen::Found;
use crate::{closing, errno, seen, state};

/// Set by the first record lock of the process.
static LOCKS: AtomicBool = AtomicBool::new(false);

/// Blocks that a manifest may occupy, with room for a file system's own; the rest of an anchor is a hole.
const BLOCKS_MAX: i64 = 2 * (TEXT_BYTES_MAX / 512) as i64;

/// Says that the process uses POSIX record locks from now on.
pub fn locks_are_used() {
    LOCKS.store(true, Ordering::Relaxed);
}

/// Whether the process may hold POSIX record locks.
pub fn are_locks_used() -> bool {
    LOCKS.load(Ordering::Relaxed)
}

/// Whether a file with these attributes can be an anchor at all, and was not found to be none.
pub fn possible(stat: &Stat) -> bool {
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    regular && stat.st_size >= TEXT_BYTES_MIN as i64 && !seen::is(stat, Found::Plain)
}

/// Whether the open file is an anchor; `flags` are its status flags, where they are known. Nothing about the descriptor
/// changes.
pub fn descriptor(fd: BorrowedFd<'_>, stat: &Stat, flags: Option<OFlags>) -> bool {
    if !possible(stat) {
        return false;
    }
    let Some(flags) = flags.or_else(|| fs::fcntl_getfl(fd).ok()) else { return false };
    if readable(flags) {
        return starts_like_anchor(fd, stat, flags);
    }
    is_open(stat) || named(None, FdPath::new(fd.as_raw_fd()).as_c_str(), true, stat, Some(fd.as_raw_fd()))
}

/// Whether the file of this name is an anchor; `stat` is what the kernel says of it, `follow` whether a symbolic link
/// stands for what it points to.
pub fn name(dir: c_int, path: &CStr, follow: bool, stat: &Stat) -> bool {
    if !possible(stat) {
        return false;
    }
    // SAFETY: borrowed for the call; a bad one is EBADF.
    let dir = if dir == libc::AT_FDCWD { None } else { Some(unsafe { BorrowedFd::borrow_raw(dir) }) };
    is_open(stat) || named(dir, path, follow, stat, None)
}

/// As [`name`] for calls that only ask and are frequent: files with more blocks than a manifest are not looked into. An
/// anchor on a file system that counts holes as blocks is missed; its own size is the right one after every
/// sync and close. One that was found to be an anchor before is not looked into again: the data path does that, and takes its own
/// view.
pub fn likely_name(dir: c_int, path: &CStr, follow: bool, stat: &Stat) -> bool {
    stat.st_blocks <= BLOCKS_MAX
        && !is_of_the_system(path)
        && (seen::is(stat, Found::Anchor) || name(dir, path, follow, stat))
}

/// Programs ask for thousands of files below these while they start; no plan puts files there.
fn is_of_the_system(path: &CStr) -> bool {
    const PLACES: [&[u8]; 7] =
        [b"/usr/lib/", b"/usr/share/", b"/usr/include/", b"/lib", b"/etc/", b"/proc/", b"/sys/"];
    PLACES.iter().any(|place| path.to_bytes().starts_with(place))
}

/// Whether the process has this managed file open.
pub fn is_open(stat: &Stat) -> bool {
    let Some(runtime) = state::runtime_if_used() else { return false };
    errno::guarded(|| Ok(runtime.find(FileKey::of(stat)).is_some())).unwrap_or(false)
}

/// Looks into the file of this name; `new` is a descriptor of it that was just opened, if there is one.
fn named(dir: Option<BorrowedFd<'_>>, path: &CStr, follow: bool, stat: &Stat, new: Option<c_int>) -> bool {
    if LOCKS.load(Ordering::Relaxed)
        && let Some(answer) = through_own_descriptors(stat, new)
    {
        return answer;
    }
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, !follow);
    let open = |flags| fs::openat(dir.unwrap_or(CWD), path, flags, Mode::empty());
    // Only the owner may ask for it.
    let Ok(fd) = open(flags | OFlags::NOATIME).or_else(|_| open(flags)) else { return false };
    let fd = closing::Closing::new(fd);
    starts_like_anchor(fd.as_fd(), stat, flags)
}

/// The answer, if the process has the file open and may hold locks on it.
fn through_own_descriptors(stat: &Stat, new: Option<c_int>) -> Option<bool> {
    let mut answer = None;
    let _ = for_each_descriptor(|fd| {
        let same = fs::fstat(fd).is_ok_and(|own| (own.st_dev, own.st_ino) == (stat.st_dev, stat.st_ino));
        if same && answer != Some(true) && new != Some(fd.as_raw_fd()) {
            let flags = fs::fcntl_getfl(fd).unwrap_or(OFlags::PATH);
            // One that cannot be read says nothing; a managed file would be known.
            answer = Some(readable(flags) && starts_like_anchor(fd, stat, flags));
        }
    });
    answer
}

/// Calls `look` for every open descriptor of the process.
pub fn for_each_descriptor(mut look: impl FnMut(BorrowedFd<'_>)) -> Result<()> {
    let dir = fs::open("/proc/self/fd", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let dir = closing::Closing::new(dir);
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut entries = fs::RawDir::new(dir.as_fd(), &mut buffer);
    while let Some(entry) = entries.next() {
        let number = entry?.file_name().to_str().ok().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|&number: &c_int| number != dir.as_fd().as_raw_fd()) {
            // SAFETY: open a moment ago; if not any more, the calls on it say so.
            look(unsafe { BorrowedFd::borrow_raw(number) });
        }
    }
    Ok(())
}

fn readable(flags: OFlags) -> bool {
    !flags.contains(OFlags::PATH) && flags & OFlags::RWMODE != OFlags::WRONLY
}

fn starts_like_anchor(fd: BorrowedFd<'_>, stat: &Stat, flags: OFlags) -> bool {
    /// Files of sysfs are attributes of devices: reading one may do something.
    const SYSFS_MAGIC: i64 = 0x6265_6572;
    /// For descriptors with O_DIRECT.
    const PAGE: usize = 4096;
    if stat.st_blocks == 0 && fs::fstatfs(fd).is_ok_and(|system| system.f_type == SYSFS_MAGIC) {
        return false;
    }
    // Aligned by hand: of a variable with `repr(align(4096))` LLVM 22 made a function that pops registers which it never pushed
    // (when its prologue is moved past an early return).
    let mut buffer = [0; 2 * PAGE];
    let start = buffer.as_ptr().align_offset(PAGE);
    let page = &mut buffer[start..start + PAGE];
    let len = if flags.contains(OFlags::DIRECT) { page.len() } else { MAGIC.len() };
    // SAFETY: a buffer of our own.
    let Ok(done) = (unsafe { raw::pread(fd, page.as_mut_ptr(), len, 0) }) else { return false };
    let is_anchor = done >= MAGIC.len() && page.starts_with(MAGIC);
    seen::note(stat, if is_anchor { Found::Anchor } else { Found::Plain });
    is_anchor
}
