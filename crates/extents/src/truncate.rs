//! Truncating the file.
//!
//! Masks stay as they are. Once the objects are cut, all copies have the same content after the new
//! size, zeros, so every valid copy there is right. The masks are forgotten later, when no process
//! writes there.

use std::ops::Range;

use crate::exclusive::Exclusive;
use crate::hooks::reach;
use crate::joined::{Joined, Pinned};
use crate::journal::Locked;
use crate::shared::{COPIER_BYTE, Extent, SlotState};
use crate::{Copier, CopyId, Map, Mask, Result};

/// Maximum number of entries that one transaction changes.
const AT_ONCE: usize = 4096;

/// A truncate in progress. Until it is dropped, no copier works after the new size.
#[derive(Default)]
pub struct TruncateGuard<'m> {
    /// `None` if no bytes are after the new size.
    _pin: Option<Pinned<'m>>,
    /// Other nodes are kept out as well.
    _exclusive: Option<Exclusive<'m>>,
    /// The copier's lock, beside other nodes.
    _copier: Option<Locked>,
}

impl Map {
    /// Begins a truncate. The caller holds the size lock, calls this before it cuts the objects to
    /// `to` bytes, and keeps the guard until the objects of every copy are cut. This waits for a
    /// copier that works after `to`, which would extend its copy again, and keeps others away.
    ///
    /// # Errors
    /// As [`Map::begin_write`]; the objects must then not be cut.
    pub fn begin_truncate(&self, to: u64) -> Result<TruncateGuard<'_>> {
        let joined = self.joined()?;
        joined.ensure_opened()?;
        let range = to..u64::MAX;
        if range.is_empty() {
            return Ok(TruncateGuard::default());
        }
        reach("pin");
        let pin = joined.pin(&range);
        if joined.is_sharing() {
            drop(pin);
            return joined.begin_truncate_beside(&range);
        }
        joined.wait_for_copier(&range);
        Ok(TruncateGuard { _pin: Some(pin), ..TruncateGuard::default() })
    }

    /// Calls [`Copier::forget_behind`] unless another process or thread is the copier. Returns
    /// whether the masks were forgotten.
    pub fn truncated(&self, to: u64, size: impl FnOnce() -> stripewise_sys::Result<u64>) -> Result<bool> {
        match self.copier()? {
            Some(mut copier) => copier.forget_behind(to, size),
            None => Ok(false),
        }
    }
}

impl Copier<'_> {
    /// Forgets the masks and the prefetch hints after `to`, the size of the file. The caller holds
    /// the size lock. `size` determines the file's size from all objects of all copies; it must not
    /// exceed `to`, so that all copies have the same content there. Returns whether the masks were
    /// forgotten: false if a process writes there.
    ///
    /// # Errors
    /// Errors of `size` ([`crate::MapError::Caller`]), or if the index cannot be changed.
    pub fn forget_behind(
        &mut self,
        to: u64,
        size: impl FnOnce() -> stripewise_sys::Result<u64>,
    ) -> Result<bool> {
        let range = to..u64::MAX;
        let joined = self.joined;
        if joined.is_sharing() {
            // Other nodes may be extending the file.
            return Ok(false);
        }
        let all = std::slice::from_ref(&range);
        let Some(work) = self.work(&range, all, None, Extent::Everywhere) else { return Ok(false) };
        // After the slot is set: a process that extends the file from now on taints the operation.
        if size().map_err(crate::error::caller("ask for the size"))? > to {
            return Ok(false);
        }
        reach("finish");
        if !joined.shared.slot().finish() {
            return Ok(false);
        }
        joined.forget_masks(range)?;
        joined.shared.slot().set(SlotState::Idle);
        drop(work);
        Ok(true)
    }
}

impl Joined {
    fn begin_truncate_beside(&self, range: &Range<u64>) -> Result<TruncateGuard<'_>> {
        // As long as this is held, the session does not become alone.
        let copier = self.lock_board(COPIER_BYTE)?;
        if !self.is_sharing() {
            return Ok(TruncateGuard { _copier: Some(copier), ..TruncateGuard::default() });
        }
        let exclusive = Exclusive::wait(self, range)?;
        Ok(TruncateGuard { _pin: None, _exclusive: Some(exclusive), _copier: Some(copier) })
    }

    fn forget_masks(&self, range: Range<u64>) -> Result<()> {
        let default = self.index.map.default;
        let mut at = range.start;
        while let Some(part) = self.listed(at..range.end)? {
            at = part.end;
            self.change(part, |_| Some(default))?;
        }
        let mut txn = self.write()?;
        self.index.remove_hints(&mut txn, range, Mask::all(CopyId::LIMIT))?;
        txn.commit()
    }

    /// The range from the first to the last of the next [`AT_ONCE`] entries in `range` with another
    /// mask than the default one; `None` if there are none.
    fn listed(&self, range: Range<u64>) -> Result<Option<Range<u64>>> {
        let txn = self.read()?;
        let (mut part, mut count) = (None::<Range<u64>>, 0);
        self.index.map.visit(&txn, range.clone(), |entry| {
            if entry.mask != self.index.map.default {
                let start = part.as_ref().map_or(entry.start.max(range.start), |part| part.start);
                part = Some(start..entry.end.min(range.end));
                count += 1;
            }
            count < AT_ONCE
        })?;
        Ok(part)
    }
}
