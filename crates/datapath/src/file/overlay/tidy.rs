//! Frees space of cache copies that holds no valid data, left by killed processes and failed
//! writes.

use stripewise_extents::{CopyId, Select};

use super::super::{LogicalFile, OpenCopy};
use super::CopySet;
use crate::error::{Logged, Result};
use crate::manifest::Copies;

/// With more invalid ranges than this a copy is skipped: each range costs a sync.
const RANGES_MAX: usize = 4096;

impl LogicalFile {
    /// Frees the space of bytes that are not valid in the cache copies that hold them, and counts
    /// the used space of their servers again.
    ///
    /// # Errors
    /// EBADF: this process may not write. Otherwise the errors of fsync(2); EIO.
    pub fn tidy(&self) -> Result<()> {
        self.copies_to_change(Copies::is_cache)?.map_or(Ok(()), |copies| copies.tidy())
    }
}

impl CopySet<'_> {
    fn tidy(&self) -> Result<()> {
        for copy in self.caches() {
            self.tidy_copy(copy)?;
            for target in copy.components().targets() {
                self.overlay.context.spaces.recount(self.overlay.base(), target)?;
            }
        }
        Ok(())
    }

    fn tidy_copy(&self, copy: &OpenCopy) -> Result<()> {
        let size = self.file.size()?;
        if size == 0 {
            return Ok(());
        }
        let invalid = Select::NotValidIn(CopyId::new(copy.number()));
        let invalid = self.map.list(invalid, 0..size, RANGES_MAX + 1).logged()?;
        if invalid.len() <= RANGES_MAX {
            for span in invalid {
                // Nothing in the range is valid, so the eviction only punches it out.
                self.evict(copy, span.range())?;
            }
        }
        Ok(())
    }
}
