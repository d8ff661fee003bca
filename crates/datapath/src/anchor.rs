//! Anchors: recognizes them, reads their manifests, and opens them for applications.
//!
//! The kernel opens the application's descriptors of managed files read-only. A writable descriptor
//! would let everything that bypasses the library (raw system calls, io_uring, writes inside libc)
//! write into the manifest. The application's side stores and enforces the access mode that was
//! asked for.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Fd, FileType, Kind, Mode, OFlags, Stat, SysRef};

use crate::error::{Errno, FileError, FileResult, Result};
use crate::manifest::{HEAD_BYTES, MAGIC, Manifest, TEXT_BYTES_MAX, TEXT_BYTES_MIN, pending_text};
use crate::paths::link_of;
use crate::permissions::{is_protected, of_anchor};

/// Maximum number of 512-byte blocks of an anchor: twice the largest manifest, for file systems
/// that preallocate.
const BLOCKS_MAX: i64 = (TEXT_BYTES_MAX / 512 * 2) as i64;

/// The kernel's identity of a file: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

impl FileKey {
    /// The key from an fstat(2) result.
    pub fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// A manifest as read from an anchor or from `ID.manifest`.
#[derive(Clone, Debug)]
pub(crate) struct Anchored {
    pub manifest: Arc<Manifest>,
    /// Length of the text, bytes. In anchors of earlier versions a hole as long as the file
    /// follows.
    pub text_bytes: u64,
}

/// Whether a file may be an anchor on any file system, judging by its stat result.
pub(crate) fn is_possible(stat: &Stat) -> bool {
    plausible(stat) || dense(stat)
}

/// Whether a file may be an anchor, judging by its stat result: a regular file at least as long as
/// a manifest, with no more blocks than one. (For file systems whose block count includes holes,
/// see [`counts_holes`].)
pub(crate) fn plausible(stat: &Stat) -> bool {
    is_regular(stat) && stat.st_size >= TEXT_BYTES_MIN as i64 && stat.st_blocks <= BLOCKS_MAX
}

/// Whether a file that is not [`plausible`] may still be an anchor on a file system that counts
/// holes as blocks: it then has a block for every byte.
pub(crate) fn dense(stat: &Stat) -> bool {
    is_regular(stat) && stat.st_blocks > BLOCKS_MAX && stat.st_blocks.saturating_mul(512) >= stat.st_size
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether `st_blocks` of the file system may count holes. File systems known not to are listed.
/// Costs one statfs.
pub(crate) fn counts_holes(sys: &SysRef, fd: BorrowedFd<'_>) -> bool {
    const EXT: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683e;
    const TMPFS: u64 = 0x0102_1994;
    const NFS: u64 = 0x6969;
    const OVERLAY: u64 = 0x794c_7630;
    const LUSTRE: u64 = 0x0bd0_0bd0;
    !matches!(sys.file_system(fd), Ok(EXT | XFS | BTRFS | TMPFS | NFS | OVERLAY | LUSTRE))
}

/// Whether an open file may be an anchor and begins like one.
pub(crate) fn begins(sys: &SysRef, fd: BorrowedFd<'_>) -> Result<bool> {
    Ok(is_possible(&sys.stat(fd)?) && sys.read_start(fd, MAGIC.len())? == MAGIC)
}

/// Whether `path` still leads to the open file.
pub(crate) fn is_at(sys: &SysRef, fd: BorrowedFd<'_>, path: &Path) -> Result<bool> {
    let own = FileKey::of(&sys.stat(fd)?);
    Ok(sys.stat_at(None, path, false).is_ok_and(|named| FileKey::of(&named) == own))
}

/// Reads the manifest at the start of an open file; `None` if the file is not an anchor.
///
/// # Errors
/// The file begins like an anchor, but its manifest is damaged; or it cannot be read.
pub(crate) fn read(sys: &SysRef, fd: BorrowedFd<'_>, path: &Path) -> FileResult<Option<Anchored>> {
    let Some(head) = head(sys, fd, path)? else { return Ok(None) };
    parse(sys, fd, &head, path).map(Some)
}

/// The first [`HEAD_BYTES`] of an open file; `None` if the file is not an anchor.
pub(crate) fn head(sys: &SysRef, fd: BorrowedFd<'_>, path: &Path) -> FileResult<Option<Vec<u8>>> {
    let head = sys.read_start(fd, HEAD_BYTES).map_err(FileError::io(path, "read the manifest"))?;
    Ok(head.starts_with(MAGIC).then_some(head))
}

pub(crate) fn parse(sys: &SysRef, fd: BorrowedFd<'_>, head: &[u8], path: &Path) -> FileResult<Anchored> {
    let name = path.to_string_lossy();
    let length = Manifest::text_length(head, &name)?;
    let whole;
    let text = if length > head.len() {
        whole = sys.read_start(fd, length).map_err(FileError::io(path, "read the manifest"))?;
        &whole
    } else {
        head
    };
    let manifest = Arc::new(Manifest::parse(text, &name)?);
    Ok(Anchored { manifest, text_bytes: length as u64 })
}

/// Removes the write permission that anchors of earlier versions have and a plain chmod may set,
/// and the hole after the text. Only the owner may do this.
///
/// # Errors
/// Same as open(2) and fchmod(2); the anchor stays usable.
pub(crate) fn protect(sys: &SysRef, anchor: BorrowedFd<'_>, stat: &Stat, text_bytes: u64) -> Result<()> {
    if is_protected(stat.st_mode) {
        return Ok(());
    }
    if stat.st_size as u64 > text_bytes {
        let own = open_for_writing(sys, anchor)?;
        sys.truncate(own.as_fd(), text_bytes)?;
    }
    sys.set_mode(Kind::Open(anchor), Mode::from_raw_mode(of_anchor(stat.st_mode & 0o7777)))
}

/// Blanks the intent that an earlier version left in the anchor itself, durably.
pub(crate) fn blank_pending(sys: &SysRef, anchor: BorrowedFd<'_>) -> Result<()> {
    let own = open_for_writing(sys, anchor)?;
    let head = sys.read_start(own.as_fd(), HEAD_BYTES)?;
    let at = Manifest::pending_offset(&head).ok_or(Errno::IO)?;
    sys.write_all_at(own.as_fd(), pending_text(None).as_bytes(), at as u64)?;
    sys.sync_data(own.as_fd())
}

fn open_for_writing(sys: &SysRef, anchor: BorrowedFd<'_>) -> Result<Fd> {
    sys.open(None, &link_of(anchor.as_raw_fd()), OFlags::RDWR, Mode::empty())
}

/// Reads until the buffer is full or the file ends. Returns the bytes read.
pub(crate) fn read_full(sys: &SysRef, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match sys.read_at(fd, &mut buffer[done..], offset + done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    Ok(done)
}

pub(crate) fn writes(flags: OFlags) -> bool {
    matches!(flags & OFlags::RWMODE, OFlags::WRONLY | OFlags::RDWR)
}

/// The flags with which the kernel opens the application's descriptor of an existing managed file:
/// read-only, without creation or truncation.
pub(crate) fn public_flags(flags: OFlags) -> OFlags {
    let flags = flags - (OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC);
    if writes(flags) { (flags - OFlags::RWMODE) | OFlags::RDONLY } else { flags }
}

/// Opens an anchor whose mode denies it: adds `permission` to the mode for the duration of `open`.
///
/// # Errors
/// The errors of `open`; EPERM if this process does not belong to the owner.
pub(crate) fn with_lifted_mode<T>(
    sys: &SysRef,
    anchor: BorrowedFd<'_>,
    permission: Mode,
    open: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mode = Mode::from_raw_mode(sys.stat(anchor)?.st_mode & 0o7777);
    sys.set_mode(Kind::Open(anchor), mode | permission)?;
    let opened = open();
    sys.set_mode(Kind::Open(anchor), mode)?;
    opened
}

/// Number of entries; each file maps to one by its device and inode number. At most 0.3 MiB of
/// text, plus the parsed manifests.
const PLACES: usize = 64;

/// Cache of parsed manifests. The text is still read from the file each time and compared in full,
/// so an entry is never stale.
#[derive(Debug, Default)]
pub(crate) struct KnownManifests(Vec<Option<(Box<[u8]>, Anchored)>>);

impl KnownManifests {
    /// The manifest of file `key`, if its text, which starts `head`, is known.
    pub fn find(&self, key: FileKey, head: &[u8]) -> Option<Anchored> {
        let (text, anchored) = self.0.get(place(key))?.as_ref()?;
        // The text contains its own length, so a prefix match is a full match.
        head.starts_with(text).then(|| anchored.clone())
    }

    /// Stores the manifest of file `key` whose text starts `head`.
    pub fn note(&mut self, key: FileKey, head: &[u8], anchored: &Anchored) {
        // Texts longer than `head` are rare and not cached.
        let Some(text) = head.get(..anchored.text_bytes as usize) else { return };
        self.0.resize_with(PLACES, Default::default);
        self.0[place(key)] = Some((text.into(), anchored.clone()));
    }
}

fn place(key: FileKey) -> usize {
    (key.inode ^ key.device) as usize % PLACES
}
