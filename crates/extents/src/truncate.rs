//! Cutting the file.
//!
//! Masks stay as they are: once the components are cut all copies are the same behind the new size, zeros, and whatever is valid there
//! is right. They are forgotten later, when nobody writes there.

use std::ops::Range;

use crate::board::{Extent, Pin, SlotState};
use crate::hooks::reach;
use crate::index::Entry;
use crate::joined::Joined;
use crate::{Copier, Map, Result};

/// Entries that one transaction changes.
const AT_ONCE: usize = 4096;

/// A truncate, until it is dropped: copiers keep away from what lies behind the new size.
pub struct TruncateGuard<'m> {
    joined: &'m Joined,
    pin: Option<Pin>,
}

impl Map {
    /// To be called under the size lock before the components are cut to `to` bytes, and held until they are, of every copy: waits for a copier that
    /// works behind `to` (it would make its copy longer again), and keeps others away.
    ///
    /// # Errors
    /// As [`Map::begin_write`]; the components must not be cut then.
    pub fn begin_truncate(&self, to: u64) -> Result<TruncateGuard<'_>> {
        let joined = self.joined()?;
        joined.ensure_opened()?;
        let mut guard = TruncateGuard { joined, pin: None };
        let range = to..u64::MAX;
        if !range.is_empty() {
            reach("pin");
            guard.pin = Some(joined.pin(&range));
            joined.wait_for_copier(&range)?;
        }
        Ok(guard)
    }

    /// [`Copier::forget_behind`] if nobody is the copier just now; whether it was done.
    ///
    /// # Errors
    /// As both.
    pub fn truncated(&self, to: u64, size: impl FnOnce() -> stripewise_sys::Result<u64>) -> Result<bool> {
        match self.copier()? {
            Some(mut copier) => copier.forget_behind(to, size),
            None => Ok(false),
        }
    }
}

impl Copier<'_> {
    /// Forgets masks and wishes behind `to`, the file's size. To be called under the size lock. `size` asks all components of all
    /// copies for the file's size, which must not be more: so all copies are the same there. Whether it was done: not if somebody
    /// writes there.
    ///
    /// # Errors
    /// Of `size` ([`crate::MapError::Caller`]), or when the index cannot be changed.
    pub fn forget_behind(
        &mut self,
        to: u64,
        size: impl FnOnce() -> stripewise_sys::Result<u64>,
    ) -> Result<bool> {
        let range = to..u64::MAX;
        let joined = self.joined();
        let all = std::slice::from_ref(&range);
        let Some(work) = self.work(&range, all, None, Extent::Everywhere) else { return Ok(false) };
        // After the slot is set: who makes the file longer from now on taints it.
        if size().map_err(crate::error::caller("ask for the size"))? > to {
            return Ok(false);
        }
        reach("finish");
        if !joined.board.slot().finish() {
            return Ok(false);
        }
        joined.forget_masks(range)?;
        joined.board.slot().set(SlotState::Idle);
        drop(work);
        Ok(true)
    }
}

impl Joined {
    fn forget_masks(&self, range: Range<u64>) -> Result<()> {
        let default = self.index.map.default;
        let failed = self.failed("change the index");
        let mut at = range.start;
        while let Some(part) = self.listed(at..range.end, |entry| entry.mask != default)? {
            at = part.end;
            self.change(part, |_| Some(default))?;
        }
        let mut txn = self.write()?;
        self.index.want_nothing(&mut txn, range).map_err(&failed)?;
        txn.commit().map_err(failed)
    }

    /// The next part of `range` with some of the entries that `which` names.
    fn listed(&self, range: Range<u64>, which: impl Fn(&Entry) -> bool) -> Result<Option<Range<u64>>> {
        let txn = self.read()?;
        let (mut part, mut count) = (None::<Range<u64>>, 0);
        let visited = self.index.map.visit(&txn, range.clone(), |entry| {
            if which(&entry) {
                let start = part.as_ref().map_or(entry.start.max(range.start), |part| part.start);
                part = Some(start..entry.end.min(range.end));
                count += 1;
            }
            count < AT_ONCE
        });
        visited.map_err(self.failed("read the index"))?;
        Ok(part)
    }
}

impl Drop for TruncateGuard<'_> {
    fn drop(&mut self) {
        if let Some(pin) = &self.pin {
            self.joined.unpin(pin);
        }
    }
}
