//! Space of cache copies that holds nothing: what killed processes and failed writes have left there.

use stripewise_extents::{CopyId, Select};

use super::super::LogicalFile;
use super::Overlay;
use crate::{Errno, Result, trouble};

/// More ranges are left alone: each costs a sync.
const RANGES_MAX: usize = 4096;

impl LogicalFile {
    /// Gives back what cache copies take for bytes that are not valid in them, and counts the space of their servers anew.
    ///
    /// # Errors
    /// EBADF: this process may not write. As fsync(2), EIO.
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
        let invalid = invalid.map_err(|error| trouble::map_told(&error))?;
        if invalid.len() <= RANGES_MAX {
            for span in invalid {
                // Nothing of it is valid there: it is only punched.
                self.evict(&map, overlay, copy, span.range())?;
            }
        }
        Ok(())
    }
}
