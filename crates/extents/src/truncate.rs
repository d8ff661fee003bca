//! Cutting the file.

use std::ops::Range;

use crate::board::Pin;
use crate::hooks::reach;
use crate::index::Entry;
use crate::joined::Joined;
use crate::lmdb::Txn;
use crate::mutations::{self, Mutation};
use crate::{Map, Result};

/// Entries that one transaction changes.
const AT_ONCE: usize = 4096;

/// A truncate, until it is dropped. Copiers keep away from what lies behind the new size.
pub struct TruncateGuard<'m> {
    joined: &'m Joined,
    to: u64,
    pin: Option<Pin>,
}

impl Map {
    /// Begins cutting the file to `to` bytes, under the size lock and after the intent to do so is on the disk: waits for a copier that
    /// works behind `to`, keeps others away, and forgets the masks there. Then the components of every copy are cut and synced, then comes
    /// [`TruncateGuard::finish`]. If that does not happen, whoever finds the intent does it all again.
    ///
    /// # Errors
    /// As [`Map::begin_write`]; the components must not be cut then.
    pub fn begin_truncate(&self, to: u64) -> Result<TruncateGuard<'_>> {
        let joined = self.joined()?;
        joined.ensure_opened()?;
        let mut guard = TruncateGuard { joined, to, pin: None };
        let range = to..u64::MAX;
        if !range.is_empty() && !mutations::on(Mutation::TruncateWithoutPin) {
            reach("pin");
            guard.pin = Some(joined.pin(&range));
            joined.wait_for_copier(&range)?;
        }
        // Before the components are cut: a writer that comes after that finds no old mask, and one that began before finds that
        // it has changed.
        let default = joined.index.map.default;
        let mut at = to;
        while let Some(part) = guard.listed(at, |entry| entry.mask != default)? {
            at = part.end;
            joined.change(part, |_| Some(default))?;
        }
        Ok(guard)
    }

    /// `begin_truncate` and `finish` for components that are cut already: the end of an interrupted truncate. Also at any time with
    /// the file's size, under the size lock: what the map lists behind it is forgotten.
    ///
    /// # Errors
    /// As both.
    pub fn truncated(&self, to: u64) -> Result<()> {
        self.begin_truncate(to)?.finish()
    }
}

impl TruncateGuard<'_> {
    /// The next part from `from` on, with some of the entries that `which` names.
    fn listed(&self, from: u64, which: impl Fn(&Entry) -> bool) -> Result<Option<Range<u64>>> {
        let txn = self.joined.read()?;
        let (mut part, mut count) = (None::<Range<u64>>, 0);
        let visited = self.joined.index.map.visit(&txn, from..u64::MAX, |entry| {
            if which(&entry) {
                let start = part.as_ref().map_or(entry.start.max(from), |part| part.start);
                part = Some(start..entry.end);
                count += 1;
            }
            count < AT_ONCE
        });
        visited.map_err(self.joined.failed("read the index"))?;
        Ok(part)
    }

    /// The components are cut and synced: the journal is told.
    ///
    /// # Errors
    /// As [`Map::sync`]; the intent must stay then.
    pub fn finish(self) -> Result<()> {
        let joined = self.joined;
        let default = joined.index.map.default;
        let failed = joined.failed("change the index");
        let mut commit = joined.commit(false)?;
        // What was written there since has a mask of its own, which the journal is told when it is synced.
        let mut writer = commit.writer(false);
        let seen = {
            let txn = joined.read()?;
            let parts = joined.index.map.visit(&txn, self.to..u64::MAX, |entry| {
                if entry.mask == default {
                    writer.change(entry.start.max(self.to)..entry.end, default);
                }
                true
            });
            parts.map_err(&failed)?;
            txn.id()
        };
        commit.put(writer, false)?;
        let known = |entry: &Entry| entry.mask == default && entry.start >= self.to && entry.seq <= seen;
        let mut at = self.to;
        while let Some(part) = self.listed(at, known)? {
            at = part.end;
            let mut txn = joined.write()?;
            joined.index.forget_default(&mut txn, part, seen).map_err(&failed)?;
            txn.commit().map_err(&failed)?;
        }
        let mut txn = joined.write()?;
        joined.index.want_nothing(&mut txn, self.to..u64::MAX).map_err(&failed)?;
        txn.commit().map_err(failed)
    }
}

impl Drop for TruncateGuard<'_> {
    fn drop(&mut self) {
        if let Some(pin) = &self.pin {
            self.joined.unpin(pin);
        }
    }
}
