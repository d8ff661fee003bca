//! Determines whether a file is the anchor of a managed file, from its first bytes.
//!
//! There are three results: an anchor, certainly not an anchor, and an error. A file whose kind
//! could not be determined is never used as a plain one. A write to an anchor would destroy the
//! manifest, and removing an anchor as a plain file would leave its objects behind.
//!
//! Closing *any* descriptor of an inode drops the POSIX record locks that the process holds on it.
//! In a program that uses such locks, a file is therefore examined through the program's own
//! descriptors where that is possible.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, CWD, FileType, Mode, OFlags};
use rustix::io::retry_on_intr;
use stripewise_datapath::FileKey;
use stripewise_datapath::manifest::{MAGIC, TEXT_BYTES_MAX, TEXT_BYTES_MIN};
use stripewise_sys::{Errno, Result, Stat, raw};

use crate::descriptors::{FdPath, Found, Known, borrow_dir, seen, table};
use crate::process::{At, Closing, Scratch, borrow, errno, kernel, state};

/// Set by the first record lock of the process.
static LOCKS: AtomicBool = AtomicBool::new(false);

/// Upper bound of the blocks (of 512 bytes) of an anchor: twice those of the longest manifest, to
/// allow for the file system's own blocks. The rest of an anchor is a hole.
const BLOCKS_MAX: i64 = 2 * (TEXT_BYTES_MAX / 512) as i64;

/// Number of attempts for a name that becomes another file's while it is examined.
pub const TRIES: usize = 8;

pub fn locks_are_used() {
    LOCKS.store(true, Ordering::Relaxed);
}

pub fn are_locks_used() -> bool {
    LOCKS.load(Ordering::Relaxed)
}

/// Whether these are the attributes of a regular file. Only regular files are ever managed.
pub fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether a file with these attributes can be an anchor and is not known to be plain.
pub fn possible(stat: &Stat) -> bool {
    is_regular(stat) && stat.st_size >= TEXT_BYTES_MIN as i64 && !seen::is(stat, Found::Plain)
}

/// The kind of an open file; `flags` are its status flags, if known. The descriptor is left
/// unchanged.
/// Errors: the kind could not be determined: the caller must not take the file for a plain one.
/// EACCES if the process may not read the file.
pub fn descriptor(fd: BorrowedFd<'_>, stat: &Stat, flags: Option<OFlags>) -> Result<Found> {
    if !possible(stat) {
        return Ok(Found::Plain);
    }
    let flags = flags.map_or_else(|| fs::fcntl_getfl(fd), Ok).map_err(of_open_file)?;
    if readable(flags)
        && let Some(found) = starts_like_anchor(fd, stat, flags).map_err(of_open_file)?
    {
        return Ok(found);
    }
    if is_open(stat)? {
        return Ok(Found::Anchor);
    }
    named(None, FdPath::new(fd.as_raw_fd()).as_c_str(), true, stat, Some(fd.as_raw_fd()))
}

/// The kind of the file of this name. `stat` are its attributes; `follow` says whether a symbolic
/// link stands for its target.
pub fn name(dir: c_int, path: &CStr, follow: bool, stat: &Stat) -> Result<Found> {
    if !possible(stat) {
        Ok(Found::Plain)
    } else if is_open(stat)? {
        Ok(Found::Anchor)
    } else {
        named(borrow_dir(dir), path, follow, stat, None)
    }
}

/// As [`name`], for frequent calls that only query. A file with more blocks than a manifest counts
/// as plain without being read. (On file systems that count holes as blocks this misses an anchor
/// of an earlier version, which was as long as the file.) A file that is already known as an anchor
/// is not read again either: the data path reads it and checks for itself.
pub fn likely_name(dir: c_int, path: &CStr, follow: bool, stat: &Stat) -> Result<Found> {
    if stat.st_blocks > BLOCKS_MAX || is_of_the_system(path) {
        return Ok(Found::Plain);
    }
    if seen::is(stat, Found::Anchor) { Ok(Found::Anchor) } else { name(dir, path, follow, stat) }
}

/// What a path of the application leads to. The kernel could read the path, which must not be used
/// after the call that it came with.
pub enum Named {
    Missing(&'static CStr),
    Plain,
    Anchor(&'static CStr),
}

/// Determines what the application's path leads to.
/// Errors: that of fstatat(2) for the path, and as [`descriptor`].
pub fn look_up(at: At, follow: bool) -> Result<Named> {
    for _ in 0..TRIES {
        let stat = match retry_on_intr(|| at.stat(follow)) {
            Err(Errno::NOENT) => None,
            stat => Some(stat?),
        };
        // SAFETY: the kernel could read the path.
        let path = unsafe { at.name() };
        let Some(stat) = stat else { return Ok(Named::Missing(path)) };
        match name(at.dir, path, follow, &stat) {
            Err(error) if is_replaced(error) => {}
            Ok(Found::Anchor) => return Ok(Named::Anchor(path)),
            found => return found.map(|_| Named::Plain),
        }
    }
    Err(Errno::STALE)
}

/// The path, if it leads to the anchor of a managed file.
pub fn anchor(at: At, follow: bool) -> Result<Option<&'static CStr>> {
    Ok(match look_up(at, follow)? {
        Named::Anchor(path) => Some(path),
        _ => None,
    })
}

/// Whether examining a name failed because the name was removed or became another file's meanwhile.
pub fn is_replaced(error: Errno) -> bool {
    matches!(error, Errno::STALE | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO)
}

/// Programs look up thousands of files below these directories while they start; no plan puts files
/// there.
fn is_of_the_system(path: &CStr) -> bool {
    const PLACES: [&[u8]; 7] =
        [b"/usr/lib/", b"/usr/share/", b"/usr/include/", b"/lib", b"/etc/", b"/proc/", b"/sys/"];
    PLACES.iter().any(|place| path.to_bytes().starts_with(place))
}

/// Whether the process has this file open as a managed one.
#[inline(never)]
pub fn is_open(stat: &Stat) -> Result<bool> {
    let Some(runtime) = state::runtime_if_used() else { return Ok(false) };
    errno::guarded(|| Ok(runtime.find(FileKey::of(stat)).is_some()))
}

/// Reads the start of the file of this name. `new` is a descriptor of the file that was just
/// opened, if there is one.
#[inline(never)]
fn named(
    dir: Option<BorrowedFd<'_>>,
    path: &CStr,
    follow: bool,
    stat: &Stat,
    new: Option<c_int>,
) -> Result<Found> {
    if LOCKS.load(Ordering::Relaxed)
        && let Some(found) = through_own_descriptors(stat, new)?
    {
        return Ok(found);
    }
    let fd = match open_for_look(dir, path, follow) {
        // Some kernel attributes can only be written.
        Err(Errno::ACCESS | Errno::INVAL) if is_name_of_the_kernel(dir, path, follow)? => {
            return Ok(Found::Plain);
        }
        opened => opened?,
    };
    if !is_same(fd.as_fd(), stat).map_err(of_open_file)? {
        return Err(Errno::STALE);
    }
    // A file that no process can read cannot be an anchor.
    let looked = starts_like_anchor(fd.as_fd(), stat, OFlags::empty()).map_err(of_open_file)?;
    Ok(looked.unwrap_or(Found::Plain))
}

/// Converts the error of a call on a file that could be opened. EACCES of such a call is a server's
/// error and becomes EIO, because callers take EACCES for a file that this process may not read,
/// and some of them treat such a file as plain.
fn of_open_file(error: Errno) -> Errno {
    if error == Errno::ACCESS { Errno::IO } else { error }
}

#[inline(never)]
fn open_for_look(dir: Option<BorrowedFd<'_>>, path: &CStr, follow: bool) -> Result<Closing> {
    let reading = OFlags::NONBLOCK | OFlags::NOCTTY;
    // Only the owner may open a file with O_NOATIME.
    match open_at(dir, path, follow, reading | OFlags::NOATIME) {
        Err(Errno::PERM) => open_at(dir, path, follow, reading).map_err(|error| match error {
            Errno::PERM => Errno::ACCESS,
            error => error,
        }),
        opened => opened,
    }
}

#[inline(never)]
fn open_at(dir: Option<BorrowedFd<'_>>, path: &CStr, follow: bool, mut flags: OFlags) -> Result<Closing> {
    flags |= OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !follow);
    retry_on_intr(|| fs::openat(dir.unwrap_or(CWD), path, flags, Mode::empty())).map(Closing::new)
}

#[inline(never)]
fn is_name_of_the_kernel(dir: Option<BorrowedFd<'_>>, path: &CStr, follow: bool) -> Result<bool> {
    is_of_the_kernel(open_at(dir, path, follow, OFlags::PATH)?.as_fd())
}

// Functions with a large kernel structure on their stack are separate and not inlined, so that the
// structure occupies the stack for a moment only.
#[inline(never)]
fn is_same(fd: BorrowedFd<'_>, stat: &Stat) -> Result<bool> {
    let mut now = MaybeUninit::uninit();
    Ok(FileKey::of(kernel::stat_of(fd.as_raw_fd(), &mut now)?) == FileKey::of(stat))
}

/// The kind of the file, determined through descriptors that the process already has; `None` if
/// that is not possible.
#[inline(never)]
fn through_own_descriptors(stat: &Stat, new: Option<c_int>) -> Result<Option<Found>> {
    let mut answer = Ok(None);
    let looked = for_each_descriptor(|fd| {
        if new != Some(fd) && !matches!(answer, Ok(Some(Found::Anchor))) {
            match through_own(borrow(fd), stat) {
                // Another thread closed it a moment ago.
                Ok(None) | Err(Errno::BADF) => {}
                looked => answer = looked,
            }
        }
    });
    match looked {
        // Without /proc the file is opened as if the process held no locks on it.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => answer,
        looked => looked.and(answer).map_err(of_open_file),
    }
}

/// The kind of the file as seen through one descriptor; `None` if this descriptor does not tell.
fn through_own(fd: BorrowedFd<'_>, stat: &Stat) -> Result<Option<Found>> {
    if !is_same(fd, stat)? {
        return Ok(None);
    }
    let flags = fs::fcntl_getfl(fd)?;
    if readable(flags) {
        return starts_like_anchor(fd, stat, flags);
    }
    // For a descriptor that cannot be read, the table may know the kind.
    Ok(match table::known(fd.as_raw_fd()) {
        Known::Unknown => None,
        Known::Plain => Some(Found::Plain),
        Known::Entry(entry) => Some(if entry.file()?.is_some() { Found::Anchor } else { Found::Plain }),
    })
}

pub fn for_each_descriptor(mut look: impl FnMut(c_int)) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = Closing::new(retry_on_intr(|| fs::open(c"/proc/self/fd", flags, Mode::empty()))?);
    let mut buffer = Scratch::new()?;
    let mut entries = fs::RawDir::new(dir.as_fd(), buffer.as_uninit());
    while let Some(entry) = entries.next() {
        let number = entry?.file_name().to_str().ok().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|&number: &c_int| number != dir.as_fd().as_raw_fd()) {
            look(number);
        }
    }
    Ok(())
}

fn readable(flags: OFlags) -> bool {
    !flags.contains(OFlags::PATH) && flags & OFlags::RWMODE != OFlags::WRONLY
}

/// Compares the first bytes with the magic of a manifest. `None` if they cannot be read: the file
/// requires another alignment for O_DIRECT, or is of a kind that cannot be read.
fn starts_like_anchor(fd: BorrowedFd<'_>, stat: &Stat, flags: OFlags) -> Result<Option<Found>> {
    if stat.st_blocks == 0 && is_of_the_kernel(fd)? {
        return Ok(Some(Found::Plain));
    }
    let mut start = [0; MAGIC.len()];
    let done = if flags.contains(OFlags::DIRECT) {
        let mut page = Scratch::new()?;
        let done = read_start(fd, &mut page[..])?;
        start.copy_from_slice(&page[..MAGIC.len()]);
        done
    } else {
        read_start(fd, &mut start)?
    };
    let Some(done) = done else { return Ok(None) };
    let is_anchor = done >= MAGIC.len() && start == *MAGIC;
    let found = if is_anchor { Found::Anchor } else { Found::Plain };
    seen::note(stat, found);
    Ok(Some(found))
}

/// Returns the number of bytes, or `None` for EINVAL.
fn read_start(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Option<usize>> {
    // SAFETY: a buffer of the caller, borrowed for the call.
    match retry_on_intr(|| unsafe { raw::pread(fd, buffer.as_mut_ptr(), buffer.len(), 0) }) {
        Err(Errno::INVAL) => Ok(None),
        done => done.map(Some),
    }
}

/// Whether the file is an attribute in sysfs or configfs. Reading such an attribute may fail, or
/// trigger an action of a device.
#[inline(never)]
fn is_of_the_kernel(fd: BorrowedFd<'_>) -> Result<bool> {
    const SYSFS: i64 = 0x6265_6572;
    const CONFIGFS: i64 = 0x6265_6570;
    let system = retry_on_intr(|| fs::fstatfs(fd))?;
    Ok([SYSFS, CONFIGFS].contains(&system.f_type))
}
