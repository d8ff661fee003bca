//! Mapping a file with several copies: stores cannot be seen, so everything is in the original from then on.

use std::ops::Range;
use std::sync::atomic::Ordering;

use stripewise_extents::{Copier, CopyId, Map, Select, Span};
use stripewise_sys::asking;

use super::super::LogicalFile;
use super::Overlay;
use super::copying::CHUNK_BYTES;
use crate::{Errno, Result, trouble};

/// Ranges looked at once.
const RANGES: usize = 64;
/// How long others may stand in the way without anything being done, ns; and how long between two
/// tries.
const PATIENCE_NS: u64 = 30_000_000_000;
const PAUSE_NS: u64 = 100_000;

/// Waits while others are at work, but not for ever: one of them may be stopped. This process's own
/// background thread is not as long as this one runs, however long it takes on a busy machine.
struct Patience<'f> {
    file: &'f LogicalFile,
    overlay: &'f Overlay,
    until_ns: u64,
}

impl<'f> Patience<'f> {
    fn new(file: &'f LogicalFile, overlay: &'f Overlay) -> Self {
        Self { file, overlay, until_ns: file.sys().now_ns() + PATIENCE_NS }
    }

    /// Something was done.
    fn renew(&mut self) {
        *self = Self::new(self.file, self.overlay);
    }

    /// EAGAIN: nothing was done for too long. EINTR: a signal came.
    fn pause(&self) -> Result<()> {
        if asking::is_interrupted() {
            return Err(Errno::INTR);
        }
        let now_ns = self.file.sys().now_ns();
        if now_ns >= self.until_ns && !self.overlay.turn().is_working() {
            return Err(Errno::AGAIN);
        }
        self.file.sys().sleep_until_ns(now_ns + PAUSE_NS);
        Ok(())
    }
}

impl LogicalFile {
    /// Everything is brought to the original, and until this process leaves the file everybody writes there and nobody copies;
    /// `range` is valid in the original alone.
    ///
    /// # Errors
    /// ENODEV: this process may not write, and the original has not everything. EINTR: as the
    /// process waits. EAGAIN: a process that copies has been stopped. As pwrite(2).
    pub(in super::super) fn bring_to_original(&self, overlay: &Overlay, range: Range<u64>) -> Result<()> {
        let map = overlay.map()?;
        let map = &*map;
        if !self.is_writable() {
            return self.map_read_only(overlay, map);
        }
        if !overlay.has_mapped() || !self.dirty(map, 1)?.is_empty() {
            self.begin_mapping(overlay, map)?;
        }
        self.make_alone(map, range)
    }

    fn map_read_only(&self, overlay: &Overlay, map: &Map) -> Result<()> {
        map.set_mapped(true).map_err(|error| trouble::map_told(&error))?;
        if self.dirty(map, 1)?.is_empty() {
            overlay.mapped.store(true, Ordering::Release);
            return Ok(());
        }
        if !overlay.has_mapped() {
            map.set_mapped(false).map_err(|error| trouble::map_told(&error))?;
        }
        Err(Errno::NODEV)
    }

    fn begin_mapping(&self, overlay: &Overlay, map: &Map) -> Result<()> {
        if !overlay.has_mapped() {
            self.write_back_once(overlay, map)?;
        }
        // Whoever else begins a mapping waits for this: two would stop each other from copying.
        let patience = Patience::new(self, overlay);
        let mut copier = loop {
            match map.copier().map_err(|error| trouble::map_told(&error))? {
                Some(copier) => break copier,
                None => patience.pause()?,
            }
        };
        map.set_mapped(true).map_err(|error| trouble::map_told(&error))?;
        // Nothing new comes elsewhere from here on.
        copier.copies_for_own_mapping();
        let brought = self.bring_rest(overlay, map, &mut copier);
        match brought {
            Ok(()) => overlay.mapped.store(true, Ordering::Release),
            // Mappings that there are already need it.
            Err(_) if overlay.has_mapped() => {}
            Err(_) => map.set_mapped(false).map_err(|error| trouble::map_told(&error))?,
        }
        brought
    }

    /// The first ranges below the size that the original has not.
    fn dirty(&self, map: &Map, max: usize) -> Result<Vec<Span>> {
        let size = self.size()?;
        self.dirty_in(map, 0..size, max)
    }

    fn dirty_in(&self, map: &Map, range: Range<u64>, max: usize) -> Result<Vec<Span>> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        map.list(Select::Dirty, range, max).map_err(|error| trouble::map_told(&error))
    }

    /// Copies what the original has not, from the start of the file to its end, so that little is
    /// left while nobody else may copy. What others write meanwhile is left.
    fn write_back_once(&self, overlay: &Overlay, map: &Map) -> Result<()> {
        let (mut at, size) = (0, self.size()?);
        loop {
            let dirty = self.dirty_in(map, at..size, RANGES)?;
            let Some(last) = dirty.last() else { return Ok(()) };
            at = last.end;
            if let Some(mut copier) = map.copier().map_err(|error| trouble::map_told(&error))? {
                self.copy_dirty(overlay, &mut copier, &dirty)?;
            }
        }
    }

    /// Copies ranges to the original, where nobody writes just now. Returns bytes.
    fn copy_dirty(&self, overlay: &Overlay, copier: &mut Copier<'_>, dirty: &[Span]) -> Result<u64> {
        let mut bytes = 0;
        for span in dirty {
            let from = overlay.preferred(span.mask.bits() & self.present_mask());
            if from == 0 {
                return Err(self.say_lost(std::slice::from_ref(span), 0));
            }
            let mut at = span.start;
            while at < span.end {
                let end = span.end.min(at + CHUNK_BYTES);
                bytes += self.copy_between(copier, at..end, from.trailing_zeros() as usize, 0)?;
                at = end;
            }
        }
        Ok(bytes)
    }

    /// Brings everything to the original while everybody writes there: what is elsewhere becomes
    /// less only.
    fn bring_rest(&self, overlay: &Overlay, map: &Map, copier: &mut Copier<'_>) -> Result<()> {
        let mut patience = Patience::new(self, overlay);
        loop {
            let size = self.size()?;
            let dirty = self.dirty_in(map, 0..size, RANGES)?;
            if dirty.is_empty() {
                return self.bring_what_is_cut_off(map, size);
            }
            match self.copy_dirty(overlay, copier, &dirty)? {
                // Others write there, which brings it to the original, too.
                0 => patience.pause()?,
                _ => patience.renew(),
            }
        }
    }

    /// What a truncate has cut off is zeros in every copy, but as long as nobody has made the map
    /// forget it, it may be valid in another one alone; and nobody does while the file is mapped.
    /// When the file grows again it is below the size.
    fn bring_what_is_cut_off(&self, map: &Map, size: u64) -> Result<()> {
        loop {
            let dirty = self.dirty_in(map, size..u64::MAX, RANGES)?;
            if dirty.is_empty() {
                return Ok(());
            }
            dirty.iter().try_for_each(|span| self.make_alone(map, span.range()))?;
        }
    }

    /// Also where the original is valid beside others: what is stored there counts. Behind the size all copies are the same.
    fn make_alone(&self, map: &Map, range: Range<u64>) -> Result<()> {
        let mut guard = map.begin_write(range.clone()).map_err(|error| trouble::map_told(&error))?;
        guard.wrote(range, CopyId::ORIGINAL).map_err(|error| trouble::map_told(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::setup::Setup;
    use crate::tests::support::{CREATE, Stage, open};

    #[test]
    fn only_others_try_the_patience() {
        let stage = Stage::of(&Setup::replicas());
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        let overlay = opened.file.overlay().unwrap();
        let patience = Patience { file: &opened.file, overlay, until_ns: 0 };
        let working = overlay.turn().begin().unwrap();
        assert_eq!(patience.pause(), Ok(()), "its own thread is slow on a busy machine");
        drop(working);
        assert_eq!(patience.pause(), Err(Errno::AGAIN));
    }
}
