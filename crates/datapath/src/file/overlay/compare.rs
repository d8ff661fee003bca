//! Verifies that copies are identical where the map says so. They differ only if a program that
//! bypasses this library has changed objects, or if a disk does not keep what was written.

use std::ops::{ControlFlow, Range};

use stripewise_extents::Span;
use stripewise_sys::IoVec;

use super::super::{IoOptions, LogicalFile};
use super::CopySet;
use super::choice::Part;
use super::drain::Tell;
use super::request::{Ended, Request, Transfer};
use crate::error::{Errno, Logged, Result};

/// Bytes of each copy compared at a time.
const CHUNK_BYTES: u64 = 4 << 20;
/// Maximum number of reported differences.
const DIFFERENCES_MAX: usize = 1000;

/// A range that should be identical in two copies but is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// From the first differing byte to the last one within the range compared.
    pub range: Range<u64>,
    /// The numbers of the two copies.
    pub copies: (usize, usize),
}

impl LogicalFile {
    /// Compares all ranges that are valid in several copies. Other processes may use the file
    /// meanwhile. `tell` gets the bytes done and the bytes to do.
    ///
    /// # Errors
    /// Same as pread(2).
    pub fn compare(&self, tell: Tell<'_>) -> Result<Vec<Difference>> {
        self.copies()?.map_or(Ok(Vec::new()), |copies| copies.compare(tell))
    }
}

impl CopySet<'_> {
    fn compare(&self, tell: Tell<'_>) -> Result<Vec<Difference>> {
        let size = self.file.size()?;
        let mut memory = Vec::new();
        let (mut differences, mut at) = (Vec::new(), 0);
        while at < size && differences.len() < DIFFERENCES_MAX {
            let end = size.min(at + CHUNK_BYTES);
            let guard = self.map.begin_read(at..end).logged()?;
            let mut found = Vec::new();
            for span in guard.spans() {
                self.compare_span(span, size, &mut memory, &mut found)?;
            }
            // Differences in ranges that were written meanwhile mean nothing.
            let mut valid = true;
            for copy in guard.spans().iter().flat_map(|span| span.mask.iter()) {
                let chosen =
                    |span: &Span| if span.mask.contains(copy) { Some(copy) } else { span.mask.lowest() };
                let still = guard.still_valid(|span| chosen(span).unwrap_or(copy));
                valid &= found.is_empty() || still.logged()?;
            }
            if valid {
                differences.extend(found);
            }
            at = end;
            if let ControlFlow::Break(()) = tell(at, size) {
                break;
            }
        }
        Ok(differences)
    }

    fn compare_span(
        &self,
        span: &Span,
        size: u64,
        memory: &mut Vec<u8>,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        let present = self.present_mask();
        let copies: Vec<usize> =
            span.mask.iter().map(|copy| copy.index()).filter(|copy| present & 1 << copy != 0).collect();
        let Some((&first, others)) = copies.split_first() else { return Ok(()) };
        if others.is_empty() {
            return Ok(());
        }
        let len = span.len() as usize;
        memory.resize(2 * len, 0);
        let (one, other) = memory.split_at_mut(len);
        self.read_copy(span, first, size, one)?;
        for &copy in others {
            self.read_copy(span, copy, size, other)?;
            let differs = |index: &usize| one[*index] != other[*index];
            if let Some(start) = (0..len).find(differs) {
                let end = (start..len).rfind(differs).unwrap_or(start) + 1;
                let range = span.start + start as u64..span.start + end as u64;
                found.push(Difference { range, copies: (first, copy) });
            }
        }
        Ok(())
    }

    /// Reads a range of one copy; `size` is the size of the file.
    fn read_copy(&self, span: &Span, copy: usize, size: u64, into: &mut [u8]) -> Result<()> {
        let buffers = [IoVec { base: into.as_mut_ptr(), len: into.len() }];
        let request =
            Request { buffers: &buffers, offset: span.start, len: span.len(), options: IoOptions::default() };
        let part = [Part { start: span.start, end: span.end, copy }];
        // SAFETY: `into` is borrowed exclusively.
        let ended = unsafe { self.transfer_unmarked(Transfer::ReadBelow(size), &request, &part) };
        match ended.first() {
            Some(Ended { done, .. }) if *done == span.len() => Ok(()),
            Some(Ended { error: Some(error), .. }) => Err(*error),
            _ => Err(Errno::IO),
        }
    }
}
