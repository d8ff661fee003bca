//! The size of a file with several copies: bytes that only lost copies hold count too.

use std::ops::Range;

use stripewise_extents::{CopyId, Select};

use super::super::OpenCopy;
use super::CopySet;
use crate::error::{Logged, Result};

/// A cache copy and ranges that are valid in it.
type Cached<'f> = (&'f OpenCopy, Vec<Range<u64>>);

impl<'f> CopySet<'f> {
    /// The end of the last range that is valid only in lost copies.
    pub(in super::super) fn end_of_lost(&self) -> Result<u64> {
        let (present, mut end) = (self.present_mask(), 0);
        self.each_span(Select::Listed, 0..u64::MAX, |span| {
            if span.mask.bits() & present == 0 {
                end = span.end;
            }
        })?;
        Ok(end)
    }

    /// Cuts the objects to file size `to` by calling `cut`. The caller holds the size lock. The
    /// masks past the new size may stay in the map: every copy has zeros there.
    pub(in super::super) fn cut_map(&self, to: u64, cut: impl FnOnce() -> Result<()>) -> Result<()> {
        let guard = self.map.begin_truncate(to).logged()?;
        cut()?;
        drop(guard);
        let freed = self.cached_behind(to)?;
        if self.map.truncated(to, || self.file.largest()).logged()? {
            // Ranges that were not forgotten count as used until they are evicted.
            freed.iter().for_each(|(copy, ranges)| self.give_space(copy, ranges));
        }
        Ok(())
    }

    /// The ranges past `to` that are valid in each cache copy.
    fn cached_behind(&self, to: u64) -> Result<Vec<Cached<'f>>> {
        let mut behind: Vec<_> = self.caches().map(|copy| (copy, Vec::new())).collect();
        if behind.is_empty() {
            return Ok(behind);
        }
        self.each_span(Select::Listed, to..u64::MAX, |span| {
            for (copy, ranges) in &mut behind {
                if span.mask.contains(CopyId::new(copy.number())) {
                    ranges.push(span.range());
                }
            }
        })?;
        Ok(behind)
    }
}
