//! Reading and writing.

use std::sync::atomic::Ordering;

use stripewise_layout::MAX_OFFSET;
use stripewise_sys::{Action, IoVec, raw};
use stripewise_target::{Outcome, Piece};

use super::LogicalFile;
use super::copy::IoOptions;
use super::overlay::Request;
use super::split::{leading, lens, split, total};
use crate::error::{Errno, LogOnce, Result};

impl LogicalFile {
    /// preadv(2). A short count means the end of the file, or an error after that many bytes. Bytes
    /// that were never written read as zeros.
    ///
    /// # Safety
    /// Same as [`stripewise_sys::Sys::preadv`]: invalid memory gives EFAULT, but the buffers must
    /// not be referenced elsewhere.
    ///
    /// # Errors
    /// Same as preadv(2); EIO if a target is missing.
    pub unsafe fn read_at(&self, buffers: &[IoVec], offset: u64, options: IoOptions) -> Result<usize> {
        let mut len = total(buffers);
        if offset > MAX_OFFSET {
            return Err(Errno::INVAL);
        }
        // The request may reach past the end: get the size and cut the request, so that no server
        // is asked for bytes that do not exist.
        if offset.saturating_add(len) > self.size_hint.load(Ordering::Relaxed) {
            len = len.min(self.size()?.saturating_sub(offset));
        }
        if len == 0 {
            return Ok(0);
        }
        if let Some(copies) = self.copies()? {
            let request = Request { buffers, offset, len, options };
            // SAFETY: the caller's promise.
            return unsafe { copies.read(&request) };
        }
        let pieces = split(self.original().layout(), offset, len, buffers);
        let set = self.original().set_for(self.sys(), &pieces, options);
        // SAFETY: the caller's promise.
        let mut outcomes = unsafe { self.context.fan_out.transfer(Action::Read, set, &pieces) };
        let (done, end) = leading(lens(&pieces), &outcomes);
        match end {
            None => Ok(done),
            Some((_, Outcome { error: Some(error), .. })) => result(done, error),
            // SAFETY: the caller's promise.
            Some(_) => unsafe { self.fill_gaps(&pieces, &mut outcomes, offset) },
        }
    }

    /// Completes a read in which an object ended early. The gap is a hole, the end of the file, or
    /// data that another process is writing right now.
    ///
    /// # Safety
    /// Same as [`LogicalFile::read_at`].
    unsafe fn fill_gaps(&self, pieces: &[Piece], outcomes: &mut [Outcome], offset: u64) -> Result<usize> {
        // The lock keeps out appends and truncates, so the size and the objects are consistent.
        let _lock = self.lock_size_shared()?;
        let size = self.size()?;
        let mut start = offset;
        for (piece, outcome) in pieces.iter().zip(outcomes.iter_mut()) {
            let below = size.saturating_sub(start).min(piece.len as u64) as usize;
            outcome.done = outcome.done.min(below);
            if outcome.done < below && outcome.error.is_none() {
                // SAFETY: the caller's promise.
                *outcome = unsafe { self.read_again(piece, outcome.done, below) };
            }
            if outcome.done < piece.len {
                break;
            }
            start += piece.len as u64;
        }
        match leading(lens(pieces), outcomes) {
            (done, Some((_, Outcome { error: Some(error), .. }))) => result(done, error),
            (done, _) => Ok(done),
        }
    }

    /// Reads bytes `from..to` of a piece, with zeros where the object has ended.
    ///
    /// # Safety
    /// Same as [`LogicalFile::read_at`].
    unsafe fn read_again(&self, piece: &Piece, from: usize, to: usize) -> Outcome {
        let mut done = from;
        let failed = |done, error| Outcome { done, error: Some(error) };
        let fd = match self.objects().fd(piece.object as usize) {
            Ok(fd) => fd,
            Err(error) => return failed(done, error.log_once()),
        };
        while done < to {
            let (base, at) = (piece.base.wrapping_add(done), piece.offset + done as u64);
            // SAFETY: the caller's promise.
            match unsafe { self.sys().pread(fd, base, to - done, at) } {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) => return failed(done, error),
            }
        }
        // SAFETY: the caller's promise.
        match unsafe { raw::zero(piece.base.wrapping_add(done), to - done) } {
            Ok(()) => Outcome { done: to, error: None },
            Err(error) => failed(done, error),
        }
    }

    /// pwritev(2). Returns the length of the leading part that was written on every target. After a
    /// failure, bytes past it may have been written too. A caller that must be synchronous (O_SYNC,
    /// RWF_DSYNC) calls [`LogicalFile::sync`] afterwards.
    ///
    /// # Safety
    /// Same as [`LogicalFile::read_at`], but shared references to the buffers are allowed.
    ///
    /// # Errors
    /// Same as pwritev(2), if nothing was written; EFBIG past offset 2^63-1.
    pub unsafe fn write_at(&self, buffers: &[IoVec], offset: u64, options: IoOptions) -> Result<usize> {
        self.finish_interrupted()?;
        // SAFETY: the caller's promise.
        let done = unsafe { self.write_there(buffers, offset, options)? };
        // The write succeeded even if growing the mapping fails.
        let _ = self.grow_mapped_after(offset + done as u64);
        Ok(done)
    }

    /// # Safety
    /// Same as [`LogicalFile::write_at`].
    unsafe fn write_there(&self, buffers: &[IoVec], offset: u64, options: IoOptions) -> Result<usize> {
        if offset > MAX_OFFSET {
            return Err(Errno::INVAL);
        }
        if !self.parts.writable {
            return Err(Errno::BADF);
        }
        let len = total(buffers).min(MAX_OFFSET - offset);
        if len == 0 {
            return if total(buffers) == 0 { Ok(0) } else { Err(Errno::FBIG) };
        }
        self.mark_written();
        if let Some(copies) = self.copies()? {
            let request = Request { buffers, offset, len, options };
            // SAFETY: the caller's promise.
            return unsafe { copies.write(&request) };
        }
        let pieces = split(self.original().layout(), offset, len, buffers);
        let set = self.original().set_for(self.sys(), &pieces, options);
        // SAFETY: the caller's promise.
        let outcomes = unsafe { self.context.fan_out.transfer(Action::Write, set, &pieces) };
        match leading(lens(&pieces), &outcomes) {
            (done, None) => Ok(done),
            (done, Some((_, end))) => result(done, end.error.unwrap_or(Errno::NOSPC)),
        }
    }

    /// Writes at the end of the file. Appends of all processes of the node are atomic with respect
    /// to each other. Returns (offset of the write, bytes written).
    ///
    /// # Safety
    /// Same as [`LogicalFile::write_at`].
    ///
    /// # Errors
    /// Same as [`LogicalFile::write_at`].
    pub unsafe fn append(&self, buffers: &[IoVec], options: IoOptions) -> Result<(u64, usize)> {
        if !self.parts.writable {
            return Err(Errno::BADF);
        }
        let _lock = self.lock_size()?;
        let offset = self.size()?;
        // SAFETY: the caller's promise.
        let done = unsafe { self.write_there(buffers, offset, options)? };
        let _ = self.grow_mapped();
        Ok((offset, done))
    }
}

fn result(done: usize, error: Errno) -> Result<usize> {
    if done > 0 { Ok(done) } else { Err(error) }
}
