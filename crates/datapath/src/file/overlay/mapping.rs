//! Mapping a file with several copies: stores cannot be seen, so everything is in the original from then on.

use std::ops::Range;
use std::sync::atomic::Ordering;

use stripewise_extents::{CopyId, Map, Select, Span};
use stripewise_sys::asking;

use super::super::LogicalFile;
use super::Overlay;
use super::copying::CHUNK_BYTES;
use crate::{Errno, Result, trouble};

/// How often others may write elsewhere while the file is being brought to the original.
const TRIES: usize = 1000;
/// Ranges looked at once.
const RANGES: usize = 64;
/// Between looks whether the copier of another process is done.
const LOOK_NS: u64 = 100_000;

impl LogicalFile {
    /// Everything is brought to the original, and until this process leaves the file everybody writes there and nobody copies;
    /// `range` is valid in the original alone.
    ///
    /// # Errors
    /// ENODEV: this process may not write, and the original has not everything. EINTR: as the process waits. EAGAIN: others go on writing elsewhere. As pwrite(2).
    pub(in super::super) fn bring_to_original(&self, overlay: &Overlay, range: Range<u64>) -> Result<()> {
        let map = overlay.map()?;
        let map = &*map;
        for _ in 0..TRIES {
            if self.is_writable() && !overlay.mapped.load(Ordering::Acquire) {
                self.write_everything_back(overlay, map)?;
            }
            map.set_mapped(true).map_err(|error| trouble::map_told(&error))?;
            // Nothing new comes elsewhere from here on.
            if self.dirty(map, 1)?.is_empty() {
                overlay.mapped.store(true, Ordering::Release);
                return if self.is_writable() { self.make_alone(map, range) } else { Ok(()) };
            }
            map.set_mapped(false).map_err(|error| trouble::map_told(&error))?;
            if !self.is_writable() {
                return Err(Errno::NODEV);
            }
        }
        Err(Errno::AGAIN)
    }

    /// The first ranges below the size that the original has not.
    fn dirty(&self, map: &Map, max: usize) -> Result<Vec<Span>> {
        let size = self.size()?;
        if size == 0 {
            return Ok(Vec::new());
        }
        map.list(Select::Dirty, 0..size, max).map_err(|error| trouble::map_told(&error))
    }

    fn write_everything_back(&self, overlay: &Overlay, map: &Map) -> Result<()> {
        loop {
            let dirty = self.dirty(map, RANGES)?;
            if dirty.is_empty() {
                return Ok(());
            }
            let mut bytes = 0;
            if let Some(mut copier) = map.copier().map_err(|error| trouble::map_told(&error))? {
                for span in &dirty {
                    let from = overlay.preferred(span.mask.bits() & self.present_mask());
                    if from == 0 {
                        return Err(self.say_lost(std::slice::from_ref(span), 0));
                    }
                    let end = span.end.min(span.start + CHUNK_BYTES);
                    bytes +=
                        self.copy_between(&mut copier, span.start..end, from.trailing_zeros() as usize, 0)?;
                }
            }
            if bytes == 0 {
                // Another process copies, which may be stopped, or everything is being written to.
                if asking::is_interrupted() {
                    return Err(Errno::INTR);
                }
                self.sys().sleep_until_ns(self.sys().now_ns() + LOOK_NS);
            }
        }
    }

    /// Also where the original is valid beside others: what is stored there counts. Behind the size all copies are the same.
    fn make_alone(&self, map: &Map, range: Range<u64>) -> Result<()> {
        let mut guard = map.begin_write(range.clone()).map_err(|error| trouble::map_told(&error))?;
        guard.wrote(range, CopyId::ORIGINAL).map_err(|error| trouble::map_told(&error))
    }
}
