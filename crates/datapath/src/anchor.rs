//! The file at the user's path: is it an anchor, and what does its manifest say?

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{FileType, Stat, SysRef};

use crate::Result;
use crate::manifest::{
    HEAD_BYTES, MAGIC, Manifest, PENDING_BYTES, TEXT_BYTES_MAX, TEXT_BYTES_MIN, parse_pending, pending_text,
};
use crate::trouble::Trouble;

/// A manifest takes at most this many 512-byte blocks: twice its largest size, for file systems that allocate ahead.
const BLOCKS_MAX: i64 = (TEXT_BYTES_MAX / 512 * 2) as i64;

/// A manifest as it stands in an anchor (or in `ID.manifest`).
#[derive(Clone, Debug)]
pub(crate) struct Anchored {
    pub manifest: Arc<Manifest>,
    /// Bytes of the text: the anchor is never shorter.
    pub text_bytes: u64,
    /// Offset of the `pending_truncate` value.
    pub pending_at: u64,
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
    let pending_at = Manifest::pending_offset(text).unwrap_or_default() as u64;
    Ok(Anchored { manifest, text_bytes: length as u64, pending_at })
}

/// Whether an open file begins as anchors do.
pub(crate) fn begins_as_one(sys: &SysRef, fd: BorrowedFd<'_>) -> Result<bool> {
    let mut magic = [0; MAGIC.len()];
    let got = read_full(sys, fd, &mut magic, 0)?;
    Ok(magic[..got] == *MAGIC)
}

/// The `pending_truncate` value now; a value that cannot be read counts as none (a damaged anchor is noticed when it is
/// opened).
pub(crate) fn pending(sys: &SysRef, fd: BorrowedFd<'_>, pending_at: u64) -> Result<Option<u64>> {
    let mut value = [0; PENDING_BYTES];
    let got = read_full(sys, fd, &mut value, pending_at)?;
    let text = std::str::from_utf8(&value[..got]).unwrap_or_default();
    Ok(parse_pending(text).unwrap_or(None))
}

/// Sets the `pending_truncate` value.
pub(crate) fn set_pending(
    sys: &SysRef,
    fd: BorrowedFd<'_>,
    pending_at: u64,
    pending: Option<u64>,
) -> Result<()> {
    let blank = pending_text(None);
    let mut now = [0; PENDING_BYTES];
    read_full(sys, fd, &mut now, pending_at)?;
    if pending.is_some() && now != *blank.as_bytes() {
        // The rest of an interrupted value and a part of this one might look whole.
        sys.write_all_at(fd, blank.as_bytes(), pending_at)?;
    }
    sys.write_all_at(fd, pending_text(pending).as_bytes(), pending_at)
}

/// Reads until the buffer is full or the file ends; returns the bytes read.
fn read_full(sys: &SysRef, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match sys.read_at(fd, &mut buffer[done..], offset + done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    Ok(done)
}
