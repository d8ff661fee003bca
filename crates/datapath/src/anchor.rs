//! The file at the user's path: is it an anchor, and what does its manifest say?

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Fd, FileType, Kind, Mode, OFlags, Stat, SysRef};

use crate::manifest::{HEAD_BYTES, MAGIC, Manifest, TEXT_BYTES_MAX, TEXT_BYTES_MIN, pending_text};
use crate::permissions::{is_protected, of_anchor};
use crate::runtime::link_of;
use crate::trouble::Trouble;
use crate::{Errno, Result};

/// A manifest takes at most this many 512-byte blocks: twice its largest size, for file systems that allocate ahead.
const BLOCKS_MAX: i64 = (TEXT_BYTES_MAX / 512 * 2) as i64;

/// A manifest as it stands in an anchor (or in `ID.manifest`).
#[derive(Clone, Debug)]
pub(crate) struct Anchored {
    pub manifest: Arc<Manifest>,
    /// Bytes of the text. Anchors of earlier versions go on behind it, with a hole as long as the
    /// file.
    pub text_bytes: u64,
}

/// Whether a file may be an anchor, from what stat says: a regular file, as long as a manifest, with no more blocks
/// than one. (Of file systems whose block count includes holes: [`counts_holes`].)
pub(crate) fn plausible(stat: &Stat) -> bool {
    is_regular(stat) && stat.st_size >= TEXT_BYTES_MIN as i64 && stat.st_blocks <= BLOCKS_MAX
}

/// Whether a file that is not [`plausible`] may be an anchor all the same, on a file system that counts holes as
/// blocks: such a file has a block for every byte.
pub(crate) fn dense(stat: &Stat) -> bool {
    is_regular(stat) && stat.st_blocks > BLOCKS_MAX && stat.st_blocks.saturating_mul(512) >= stat.st_size
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether the file system's `st_blocks` may count holes. Those that are known not to are listed; asking costs one
/// statfs.
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

/// Reads the manifest at the start of an open file; `None`: the file is none of ours.
///
/// # Errors
/// The file begins as an anchor, but its manifest is damaged; or it cannot be read.
pub(crate) fn read(
    sys: &SysRef,
    fd: BorrowedFd<'_>,
    path: &Path,
) -> std::result::Result<Option<Anchored>, Trouble> {
    let Some(head) = head(sys, fd, path)? else { return Ok(None) };
    parse(sys, fd, &head, path).map(Some)
}

/// The first [`HEAD_BYTES`] of an open file; `None`: the file is none of ours.
///
/// # Errors
/// It cannot be read.
pub(crate) fn head(
    sys: &SysRef,
    fd: BorrowedFd<'_>,
    path: &Path,
) -> std::result::Result<Option<Vec<u8>>, Trouble> {
    let head = sys.read_start(fd, HEAD_BYTES).map_err(Trouble::io(path, "read the manifest"))?;
    Ok(head.starts_with(MAGIC).then_some(head))
}

/// What the manifest says that begins with `head`.
///
/// # Errors
/// As [`read`].
pub(crate) fn parse(
    sys: &SysRef,
    fd: BorrowedFd<'_>,
    head: &[u8],
    path: &Path,
) -> std::result::Result<Anchored, Trouble> {
    let name = path.to_string_lossy();
    let length = Manifest::text_length(head, &name)?;
    let whole;
    let text = if length > head.len() {
        whole = sys.read_start(fd, length).map_err(Trouble::io(path, "read the manifest"))?;
        &whole
    } else {
        head
    };
    let manifest = Arc::new(Manifest::parse(text, &name)?);
    Ok(Anchored { manifest, text_bytes: length as u64 })
}

/// Takes away the permission to write, which anchors of earlier versions have and plain chmod
/// gives, and the hole behind the text. For the owner.
///
/// # Errors
/// As open(2) and fchmod(2): the anchor is as usable as before.
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
///
/// # Errors
/// As open(2) for writing.
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

/// Reads until the buffer is full or the file ends; returns the bytes read.
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
