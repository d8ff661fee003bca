//! Copies ranges from one copy, where they are valid, to another while other processes may write
//! (the copy protocol in `docs/formats/extents.md`).

use std::ops::Range;

use stripewise_extents::{Copier, CopyId};
use stripewise_sys::IoVec;

use super::super::IoOptions;
use super::CopySet;
use super::choice::Part;
use super::request::{Ended, Request, Transfer, whole};
use crate::error::{Errno, Logged, Result};

impl CopySet<'_> {
    /// Copies the pieces of `range` (at most [`stripewise_policy::background::CHUNK_BYTES`]) that
    /// are valid in copy `from` and
    /// invalid in copy `to`. Returns the bytes that became valid; 0 if another process writes
    /// there, if there is nothing to copy, or if a piece lies past the end of the file.
    ///
    /// # Errors
    /// Same as pread(2) and pwrite(2); EIO.
    pub(super) fn copy_between(
        &self,
        copier: &mut Copier<'_>,
        range: Range<u64>,
        from: usize,
        to: usize,
    ) -> Result<u64> {
        let begun = copier.begin(range, CopyId::new(from), CopyId::new(to)).logged()?;
        let Some(guard) = begun else { return Ok(0) };
        // Get the size now: a truncate waits for the guard.
        let size = self.file.size()?;
        if guard.parts().iter().any(|part| part.end > size) {
            return Ok(0);
        }
        self.copy_parts(guard.parts(), from, to, size)?;
        let bytes = guard.parts().iter().map(|part| part.end - part.start).sum();
        let valid = guard.finish().logged()?;
        Ok(if valid { bytes } else { 0 })
    }

    /// Copies ranges, in order and all at once, from one copy to another. Every byte below `size`
    /// is copied, including zeros.
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
        // SAFETY: `memory` belongs to this frame.
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
