//! Frees space of cache copies that holds no valid data, left by killed processes and failed
//! writes.

use stripewise_extents::{CopyId, Select};

use super::super::LogicalFile;
use super::Overlay;
use crate::error::Logged;
use crate::{Errno, Result};

/// With more invalid ranges than this a copy is skipped: each range costs a sync.
const RANGES_MAX: usize = 4096;

impl LogicalFile {
    /// Frees the space of bytes that are not valid in the cache copies that hold them, and counts
    /// the used space of their servers again.
    ///
    /// # Errors
    /// EBADF: this process may not write. Otherwise the errors of fsync(2); EIO.
    pub fn tidy(&self) -> Result<()> {
        let Some(overlay) = self.overlay().filter(|overlay| overlay.copies.is_cache()) else { return Ok(()) };
        if !self.is_writable() {
            return Err(Errno::BADF);
        }
        for copy in self.present().filter(|copy| copy.is_cache()) {
            self.tidy_copy(overlay, copy)?;
            for target in copy.components().targets() {
                overlay.surroundings.spaces.recount(overlay.base(), target)?;
            }
        }
        Ok(())
    }

    fn tidy_copy(&self, overlay: &Overlay, copy: &super::OpenCopy) -> Result<()> {
        let (map, size) = (overlay.map()?, self.size()?);
        if size == 0 {
            return Ok(());
        }
        let invalid = map.list(Select::NotValidIn(CopyId::new(copy.number())), 0..size, RANGES_MAX + 1);
        let invalid = invalid.logged()?;
        if invalid.len() <= RANGES_MAX {
            for span in invalid {
                // Nothing in the range is valid, so the eviction only punches it out.
                self.evict(&map, overlay, copy, span.range())?;
            }
        }
        Ok(())
    }
}
