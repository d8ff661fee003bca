//! Copying what is valid in one copy to another, whoever writes meanwhile.

use std::ops::Range;

use stripewise_extents::{Copier, CopyId};
use stripewise_sys::IoVec;

use super::super::{IoOptions, LogicalFile};
use super::choice::Part;
use super::request::{Ended, Request, Transfer};
use crate::{Errno, Result, trouble};

/// Bytes copied at once at most: who writes there meanwhile writes elsewhere, or waits.
pub(super) const CHUNK_BYTES: u64 = 4 << 20;

impl LogicalFile {
    /// Copies the parts of `range` (at most [`CHUNK_BYTES`]) that are valid in copy `from` and not in copy `to`. Returns the bytes that are valid there
    /// now; 0 if somebody writes there, if nothing is to be copied, or behind the end of the file.
    ///
    /// # Errors
    /// As pread(2) and pwrite(2), EIO.
    pub(super) fn copy_between(
        &self,
        copier: &mut Copier<'_>,
        range: Range<u64>,
        from: usize,
        to: usize,
    ) -> Result<u64> {
        let begun = copier.begin(range, CopyId::new(from), CopyId::new(to));
        let Some(guard) = begun.map_err(|error| trouble::map_told(&error))? else { return Ok(0) };
        // Now, as a truncate waits for the guard.
        let size = self.size()?;
        let mut bytes = 0;
        for part in guard.parts() {
            if part.end > size {
                return Ok(0);
            }
            self.copy_bytes(part, from, to, size)?;
            bytes += part.end - part.start;
        }
        let valid = guard.finish().map_err(|error| trouble::map_told(&error))?;
        Ok(if valid { bytes } else { 0 })
    }

    /// Copies the bytes of a range below `size` from one copy to another: all of them, zeros, too.
    fn copy_bytes(&self, range: &Range<u64>, from: usize, to: usize, size: u64) -> Result<()> {
        let mut memory = vec![0u8; CHUNK_BYTES.min(range.end - range.start) as usize];
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(memory.len() as u64);
            let buffers = [IoVec { base: memory.as_mut_ptr(), len: len as usize }];
            let request = Request { buffers: &buffers, offset: at, len, options: IoOptions::default() };
            let part = |copy| [Part { start: at, end: at + len, copy }];
            // SAFETY: memory of this frame.
            unsafe {
                complete(&self.transfer(Transfer::ReadBelow(size), &request, &part(from)), len)?;
                complete(&self.transfer(Transfer::Write, &request, &part(to)), len)?;
            }
            at += len;
        }
        Ok(())
    }
}

fn complete(ended: &[Ended], len: u64) -> Result<()> {
    match ended.first() {
        Some(Ended { done, .. }) if *done == len => Ok(()),
        Some(Ended { error: Some(error), .. }) => Err(*error),
        _ => Err(Errno::IO),
    }
}
