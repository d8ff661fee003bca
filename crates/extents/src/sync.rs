//! Making the map durable.

use crate::commit::{Changes, Committing};
use crate::error::{caller, io};
use crate::hooks::reach;
use crate::index::SEGMENTS_AT_ONCE;
use crate::joined::Joined;
use crate::shared::Word;
use crate::{Map, Result};

/// A list of pending changes: the number of the last transaction that it includes, the segments
/// that it was taken from, and the changes.
struct List {
    synced: u64,
    segments: Vec<u64>,
    changes: Changes,
}

impl Map {
    /// After this returns, everything that any process wrote before the call survives a power cut.
    /// `sync_data` syncs the objects of all copies; it must not take a lock that a thread may hold
    /// while it calls the map. `sync_data` is not called if another sync that began after this call
    /// has already succeeded. Where other nodes use the file, what they have committed is seen from
    /// now on.
    ///
    /// # Errors
    /// Errors of `sync_data` ([`crate::MapError::Caller`]), or as fsync(2) of the journal. Pending
    /// changes then stay pending.
    pub fn sync(&self, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
        let joined = self.joined()?;
        let begun = joined.shared.get(Word::SyncsStarted);
        reach("sync");
        let mut commit = joined.commit_to_sync()?;
        let done = joined.shared.get(Word::SyncsDone);
        if done <= begun {
            joined.sync_with(&mut commit, sync_data, false)?;
        }
        if commit.has_acquired() {
            return Ok(());
        }
        drop(commit);
        joined.acquire()
    }
}

impl Joined {
    /// Performs a sync. With `closing`, no other process of this
    /// node has the file open, and the journal records that the file is closed.
    pub fn sync_with(
        &self,
        commit: &mut Committing<'_>,
        sync_data: impl FnOnce() -> stripewise_sys::Result<()>,
        closing: bool,
    ) -> Result<()> {
        let number = self.shared.get(Word::SyncsStarted) + 1;
        self.shared.set(Word::SyncsStarted, number);
        let whole = commit.is_due() && commit.may_rewrite()?;
        if commit.is_broken() && !whole {
            return Err(io(&self.place.path, "write anew, after an error,")(stripewise_sys::Errno::IO));
        }
        let sync_data = || {
            reach("sync data");
            sync_data().map_err(caller("sync the data"))
        };
        let list = self.list(commit, whole)?;
        sync_data()?;
        commit.put(list.changes, whole, closing)?;
        reach("synced");
        self.forget_pending(list.synced, &list.segments)?;
        commit.settle();
        self.shared.set(Word::SyncsDone, number);
        Ok(())
    }

    fn list(&self, commit: &Committing<'_>, whole: bool) -> Result<List> {
        reach("list pending");
        let txn = self.read()?;
        let state = self.index.state(&txn)?;
        let segments = self.index.pending_segments(&txn)?;
        let mut changes = commit.changes(whole);
        if whole {
            let default = self.index.map.default;
            self.index.map.visit(&txn, 0..u64::MAX, |entry| {
                if entry.mask != default {
                    changes.add(entry.span());
                }
                true
            })?;
        } else {
            for &segment in &segments {
                self.index.pending_in(&txn, segment, state.committed, |entry| changes.add(entry.span()))?;
            }
        }
        Ok(List { synced: txn.id(), segments, changes })
    }

    /// Marks the changes in `segments` up to transaction `synced` as no longer pending.
    fn forget_pending(&self, synced: u64, segments: &[u64]) -> Result<()> {
        for segments in segments.chunks(SEGMENTS_AT_ONCE) {
            let mut txn = self.write()?;
            self.index.committed(&mut txn, synced, segments)?;
            self.tell_clean(&txn)?;
            txn.commit()?;
        }
        Ok(())
    }
}
