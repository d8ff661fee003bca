//! The size of a file with several copies: bytes that only lost copies hold count too.

use std::ops::Range;

use stripewise_extents::{CopyId, Map, Select, Span};

use super::super::{LogicalFile, OpenCopy};
use super::Overlay;
use crate::Result;
use crate::error::Logged;

/// Maximum ranges listed at a time.
const RANGES: usize = 4096;

/// A cache copy and ranges that are valid in it.
type Cached<'f> = (&'f OpenCopy, Vec<Range<u64>>);

impl LogicalFile {
    /// The end of the last range that is valid only in lost copies.
    pub(in super::super) fn end_of_lost(&self, overlay: &Overlay) -> Result<u64> {
        let (map, present) = (overlay.map()?, self.present_mask());
        let mut end = 0;
        self.each_listed(&map, 0, |span| {
            if span.mask.bits() & present == 0 {
                end = span.end;
            }
        })?;
        Ok(end)
    }

    fn each_listed(&self, map: &Map, mut from: u64, mut each: impl FnMut(&Span)) -> Result<()> {
        loop {
            let spans = map.list(Select::Listed, from..u64::MAX, RANGES);
            let spans = spans.logged()?;
            let Some(last) = spans.last() else { return Ok(()) };
            from = last.end;
            spans.iter().for_each(&mut each);
        }
    }

    /// Cuts the objects to file size `to` by calling `cut`. The caller holds the size lock. The
    /// masks past the new size may stay in the map: every copy has zeros there.
    pub(in super::super) fn cut_map(
        &self,
        overlay: &Overlay,
        to: u64,
        cut: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let map = overlay.map()?;
        let guard = map.begin_truncate(to).logged()?;
        cut()?;
        drop(guard);
        let freed = self.cached_behind(overlay, to)?;
        let forgotten = map.truncated(to, || self.largest());
        if forgotten.logged()? {
            // Ranges that were not forgotten count as used until they are evicted.
            freed.iter().for_each(|(copy, ranges)| self.give_space(overlay, copy, ranges));
        }
        Ok(())
    }

    /// The ranges past `to` that are valid in each cache copy.
    fn cached_behind(&self, overlay: &Overlay, to: u64) -> Result<Vec<Cached<'_>>> {
        let mut behind: Vec<_> =
            self.present().filter(|copy| copy.is_cache()).map(|copy| (copy, Vec::new())).collect();
        if behind.is_empty() {
            return Ok(behind);
        }
        self.each_listed(&*overlay.map()?, to, |span| {
            for (copy, ranges) in &mut behind {
                if span.mask.contains(CopyId::new(copy.number())) {
                    ranges.push(span.range());
                }
            }
        })?;
        Ok(behind)
    }
}
