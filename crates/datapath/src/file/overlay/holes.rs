//! SEEK_DATA and SEEK_HOLE in a file with several copies: each byte is searched in a copy that is
//! valid there.

use stripewise_extents::{CopyId, Span};

use super::super::Whence;
use super::CopySet;
use crate::error::{Logged, Result};

/// Bytes of the file for which the map is read at a time.
const WINDOW_BYTES: u64 = 1 << 30;

impl CopySet<'_> {
    /// The first data or hole at or after `offset`, searched up to the file size; a hole that is
    /// found may start past the size.
    pub(in super::super) fn first(&self, whence: Whence, offset: u64) -> Result<Option<u64>> {
        let size = self.file.size()?;
        let mut at = offset;
        while at < size {
            let end = at.saturating_add(WINDOW_BYTES).min(size);
            let found = self.first_between(whence, at, end)?;
            if found.is_some() {
                return Ok(found);
            }
            at = end;
        }
        Ok(None)
    }

    fn first_between(&self, whence: Whence, from: u64, to: u64) -> Result<Option<u64>> {
        loop {
            let guard = self.map.begin_read(from..to).logged()?;
            let mut found = None;
            for span in guard.spans() {
                found = self.first_of(span, whence)?.filter(|&found| found < span.end);
                if found.is_some() {
                    break;
                }
            }
            let from = |span: &Span| {
                let lost = span.mask.lowest().unwrap_or(CopyId::ORIGINAL);
                self.copy_of(span).map_or(lost, CopyId::new)
            };
            if guard.still_valid(from).logged()? {
                return Ok(found);
            }
        }
    }

    /// A range that only lost copies hold counts as data.
    fn first_of(&self, span: &Span, whence: Whence) -> Result<Option<u64>> {
        match self.copy_of(span).and_then(|number| self.copy(number)) {
            Some(copy) => self.file.first_in(copy, whence, span.start),
            None => Ok((whence == Whence::Data).then_some(span.start)),
        }
    }

    /// The lowest copy that is usable and valid.
    fn copy_of(&self, span: &Span) -> Option<usize> {
        let usable = span.mask.bits() & self.present_mask();
        (usable != 0).then(|| usable.trailing_zeros() as usize)
    }
}
