//! Copying what is valid in one copy to another, whoever writes meanwhile.

use std::ops::Range;

use stripewise_extents::{Copier, CopyId};
use stripewise_sys::IoVec;

use super::super::{IoOptions, LogicalFile};
use super::choice::Part;
use super::request::{Ended, Request, Transfer, whole};
use crate::{Errno, Result, trouble};

/// Bytes copied at once at most: who writes there meanwhile writes elsewhere, or waits.
pub(super) const CHUNK_BYTES: u64 = 4 << 20;
/// Ranges copied at once at most, while others use the file: each may be a request of its own to a server.
pub(super) const PIECES_MAX: usize = 16;
/// The same while nobody does.
pub(super) const PIECES_MAX_IDLE: usize = 4096;

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
        if guard.parts().iter().any(|part| part.end > size) {
            return Ok(0);
        }
        self.copy_parts(guard.parts(), from, to, size)?;
        let bytes = guard.parts().iter().map(|part| part.end - part.start).sum();
        let valid = guard.finish().map_err(|error| trouble::map_told(&error))?;
        Ok(if valid { bytes } else { 0 })
    }

    /// Copies the bytes of ranges below `size`, in order, from one copy to another: all of them, zeros, too. All ranges at once.
    fn copy_parts(&self, ranges: &[Range<u64>], from: usize, to: usize, size: u64) -> Result<()> {
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(()) };
        let (offset, len) = (first.start, last.end - first.start);
        let mut memory = vec![0u8; len as usize];
        let buffers = [IoVec { base: memory.as_mut_ptr(), len: len as usize }];
        let request = Request { buffers: &buffers, offset, len, options: IoOptions::default() };
        let parts = |copy| -> Vec<Part> {
            ranges.iter().map(|range| Part { start: range.start, end: range.end, copy }).collect()
        };
        let (from, to) = (parts(from), parts(to));
        // SAFETY: memory of this frame.
        unsafe {
            complete(&from, &self.transfer_unmarked(Transfer::ReadBelow(size), &request, &from))?;
            complete(&to, &self.transfer_unmarked(Transfer::Write, &request, &to))
        }
    }
}

fn complete(parts: &[Part], ended: &[Ended]) -> Result<()> {
    match whole(parts, ended) {
        (_, None) => Ok(()),
        (_, Some(index)) => Err(ended[index].error.unwrap_or(Errno::IO)),
    }
}
