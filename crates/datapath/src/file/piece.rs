//! Requests in one stripe, which one system call on one object serves: most small ones of files
//! with one copy.
//!
//! Such a request takes no lock, allocates nothing and opens nothing, so a caller may make it while
//! signals arrive and other threads fork. Where anything else is to be done before, there is no
//! [`OnePiece`]. A read that is not whole is made again with [`LogicalFile::read_at`]. A write is
//! never made again: it might undo a later one of somebody who has seen the first. What is left to
//! do after it is [`LogicalFile::grow_mapped_after`].

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use stripewise_layout::MAX_OFFSET;
use stripewise_sys::{Errno, IoVec};

use super::LogicalFile;
use crate::error::Result;

/// A range of a file that lies in one stripe of one object.
pub struct OnePiece<'f> {
    file: &'f LogicalFile,
    fd: BorrowedFd<'f>,
    /// Offset in the object, bytes.
    at: u64,
    /// End of the range in the file, bytes.
    end: u64,
}

impl LogicalFile {
    /// The piece that is all of `len` bytes at `offset`, for [`OnePiece::read`]. `None` if there is
    /// none, or if the file might end before.
    #[inline]
    pub fn piece_to_read(&self, offset: u64, len: usize) -> Option<OnePiece<'_>> {
        let piece = self.one_piece(offset, len)?;
        (piece.end <= self.size_hint.load(Ordering::Relaxed)).then_some(piece)
    }

    /// As [`LogicalFile::piece_to_read`], for [`OnePiece::write`]. `None` also if this process may
    /// not write, has to finish a truncate before, or has the file mapped and the write may make it
    /// longer.
    #[inline]
    pub fn piece_to_write(&self, offset: u64, len: usize) -> Option<OnePiece<'_>> {
        if !self.parts.writable || self.interrupted.load(Ordering::Acquire) {
            return None;
        }
        self.one_piece(offset, len).filter(|piece| !self.outgrows_mapping(piece.end))
    }

    #[inline]
    fn one_piece(&self, offset: u64, len: usize) -> Option<OnePiece<'_>> {
        if self.parts.overlay.is_some() {
            return None;
        }
        let end = offset.checked_add(len as u64).filter(|&end| end <= MAX_OFFSET)?;
        let piece = self.original().layout().piece_in_stripe(offset, len as u64)?;
        let fd = self.objects().opened(piece.target)?;
        Some(OnePiece { file: self, fd, at: piece.target_offset, end })
    }
}

impl OnePiece<'_> {
    /// Whether the piece has this offset in its object, too. Then a limit of the file's size
    /// (RLIMIT_FSIZE) that the kernel applies to the object is that of the file.
    #[inline]
    pub fn is_at(&self, offset: u64) -> bool {
        self.at == offset
    }

    /// Reads the piece. Returns whether all of it was read.
    ///
    /// # Safety
    /// Same as [`LogicalFile::read_at`]; the buffer has the length of the piece.
    ///
    /// # Errors
    /// Same as pread(2).
    #[inline]
    pub unsafe fn read(&self, buffer: IoVec) -> Result<bool> {
        // SAFETY: the caller's promise.
        let done = unsafe { self.file.sys().pread(self.fd, buffer.base, buffer.len, self.at)? };
        // A short read ends at a hole, at the end of the file, or where a signal interrupted it.
        Ok(done == buffer.len)
    }

    /// Writes the piece. Returns the number of bytes written, as [`LogicalFile::write_at`] does. If
    /// another thread has made a mapping meanwhile, the file
    /// [outgrows](LogicalFile::outgrows_mapping) it.
    ///
    /// # Safety
    /// Same as [`LogicalFile::write_at`]; the buffer has the length of the piece.
    ///
    /// # Errors
    /// Same as pwrite(2).
    #[inline]
    pub unsafe fn write(&self, buffer: IoVec) -> Result<usize> {
        self.file.mark_written();
        // SAFETY: the caller's promise.
        match unsafe { self.file.sys().pwrite(self.fd, buffer.base, buffer.len, self.at)? } {
            0 => Err(Errno::NOSPC),
            done => Ok(done),
        }
    }
}
