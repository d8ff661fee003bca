//! [`Map`]: one process's view of the extent map of one file.

use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stripewise_sys::{ForkLock, LockKind, SysRef};

use crate::hooks::reach;
use crate::join;
use crate::joined::Joined;
use crate::joining::Tuning;
use crate::nodes::Engine;
use crate::shared::{COPIER_BYTE, Counter, Met, SlotState, Word, Working};
use crate::wait::Wait;
use crate::{MapError, MapSpec, Result, prefetch};

/// The extent map of a file, joined by this process. All threads of a process can share one map;
/// two maps of the same file in a process share the index environment.
///
/// Dropping the map has the effect of a kill: nothing is synced, and the next process continues
/// with the index and the shared state as they are. [`Map::leave`] closes the map properly.
///
/// Every call fails if the index is gone, and in a forked child that cannot join.
///
/// Ranges are byte ranges of the file; the largest possible byte offset is `u64::MAX - 1`.
pub struct Map {
    sys: SysRef,
    spec: MapSpec,
    tuning: Tuning,
    /// Null in a forked child that has not joined yet.
    joined: AtomicPtr<Joined>,
    joining: ForkLock<()>,
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Map {
    /// Joins the map. Creates the index and the shared state, or rebuilds them from the journal,
    /// where they do not exist.
    ///
    /// # Errors
    /// Any [`MapError`](crate::MapError). After an error, existing files outside the run directory
    /// are unchanged.
    pub fn join(sys: SysRef, spec: MapSpec) -> Result<Self> {
        Self::join_tuned(sys, spec, Tuning::default())
    }

    pub(crate) fn join_tuned(sys: SysRef, spec: MapSpec, tuning: Tuning) -> Result<Self> {
        let joined = join::join(&sys, &spec, &tuning)?;
        if joined.living() <= 1 {
            prefetch::recall(&joined);
        }
        let spec = MapSpec { create: false, ..spec };
        let joined = AtomicPtr::new(Box::into_raw(joined));
        Ok(Self { sys, spec, tuning, joined, joining: ForkLock::new(()) })
    }

    /// Closes what belongs to the parent. A forked child's only thread calls this before anything
    /// else is done with the map. The call is cheap, and sufficient for a child that never uses the
    /// file; the next use of the map joins anew. A child that keeps using shared mappings calls
    /// [`Map::set_mapped`] again.
    pub fn after_fork_child(&self) {
        let joined = self.joined.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `join`, and leaked from here on: its memory, mappings and environment
        // belong to the parent.
        if let Some(joined) = unsafe { joined.as_ref() } {
            joined.abandon();
        }
    }

    pub(crate) fn joined(&self) -> Result<&Joined> {
        // SAFETY: made by `join`; freed only by `leave` and drop, which own the map, or leaked.
        match unsafe { self.joined.load(Ordering::Acquire).as_ref() } {
            Some(joined) => Ok(joined),
            None => self.join_again(),
        }
    }

    #[cold]
    fn join_again(&self) -> Result<&Joined> {
        let _joining = self.joining.lock();
        let mut joined = self.joined.load(Ordering::Acquire);
        if joined.is_null() {
            joined = Box::into_raw(join::join(&self.sys, &self.spec, &self.tuning)?);
            self.joined.store(joined, Ordering::Release);
        }
        // SAFETY: as in `joined`.
        Ok(unsafe { &*joined })
    }

    /// Leaves the map, because the process has closed the file. The last process of the node syncs
    /// what is pending (`sync_data` as in [`Map::sync`]), records in the journal that the file is
    /// closed, and removes the index and the shared state.
    ///
    /// # Errors
    /// If the sync fails. The index and the shared state then stay for the next process to join.
    pub fn leave(self, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
        match self.take() {
            Some(joined) => {
                if joined.living() <= 1 {
                    prefetch::keep(&joined);
                }
                join::leave(joined, sync_data)
            }
            None => Ok(()),
        }
    }

    fn take(&self) -> Option<Box<Joined>> {
        let joined = self.joined.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `join`; the caller owns the map, so no reference to it exists.
        (!joined.is_null()).then(|| unsafe { Box::from_raw(joined) })
    }

    /// Makes what other nodes have committed visible here. Other ways to acquire are joining and
    /// [`Map::sync`].
    ///
    /// # Errors
    /// If the log cannot be read, or the index cannot grow; EIO if the session of this node is
    /// over.
    pub fn acquire(&self) -> Result<()> {
        self.joined()?.acquire()
    }

    /// Whether other nodes have the file open: writes then need [`WriteGuard::may_write`].
    ///
    /// [`WriteGuard::may_write`]: crate::WriteGuard::may_write
    pub fn is_sharing(&self) -> Result<bool> {
        Ok(self.joined()?.is_sharing())
    }

    /// Where this node begins to look for background work in a file of `size` bytes: nodes that
    /// have it open begin at different places, and find done what another one has done.
    ///
    /// # Errors
    /// EIO if the session is over.
    pub fn part_of_node(&self, size: u64) -> Result<u64> {
        let joined = self.joined()?;
        if !joined.is_sharing() {
            return Ok(0);
        }
        joined.with_engine(|engine| {
            let (log, own) = (engine.log(), engine.session());
            let before = log.members().filter(|&(session, _)| session < own).count() as u64;
            Ok(size / (log.members().count() as u64).max(1) * before)
        })
    }

    /// Number of nodes that have the file open, as far as this one knows.
    ///
    /// # Errors
    /// EIO if the session is over.
    pub fn nodes(&self) -> Result<usize> {
        let joined = self.joined()?;
        if !joined.is_sharing() {
            return Ok(1);
        }
        joined.with_engine(|engine| Ok(engine.log().members().count().max(1)))
    }

    /// Whether other nodes may have the file open at the same time.
    pub fn has_session(&self) -> bool {
        self.joined().is_ok_and(|joined| joined.session.is_some())
    }

    /// The parameters that the map was joined with.
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// Number of live processes of this node that have joined the map: the measured concurrency.
    /// Costs one system call per process.
    pub fn processes(&self) -> Result<usize> {
        Ok(self.joined()?.living())
    }

    /// Declares that this process has shared, writable mappings of the file from now on, or has
    /// none any more. While any process has mappings, no data is copied, evicted or fetched. With
    /// `mapped`, the call returns when the copier operation and the writes that were in progress
    /// have finished. The mapped ranges must be valid in the mapped copy alone (see
    /// [`crate::WriteGuard::prepare`]), and every write must check [`Map::is_mapped`].
    ///
    /// # Errors
    /// As [`Map::begin_write`]; EBUSY while other nodes have the file open, to which stores through
    /// a mapping would not be visible.
    pub fn set_mapped(&self, mapped: bool) -> Result<()> {
        let joined = self.joined()?;
        if !mapped {
            joined.shared.pin_everything(&joined.block, false);
            return Ok(());
        }
        joined.ensure_opened()?;
        joined.shared.set(Word::Mapped, 1);
        joined.shared.pin_everything(&joined.block, true);
        if joined.is_sharing() {
            joined.shared.pin_everything(&joined.block, false);
            return Err(MapError::Shared { path: joined.place.path.clone() });
        }
        joined.wait_for_copier(&(0..u64::MAX));
        joined.wait_for_pins(|_| true);
        Ok(())
    }

    /// Whether a live process has mappings ([`Map::set_mapped`]); writes must then go to the mapped
    /// copy. The caller must hold a [`crate::WriteGuard`] from before this call until the write is
    /// done.
    pub fn is_mapped(&self) -> Result<bool> {
        let joined = self.joined()?;
        Ok(joined.shared.is_everything_pinned(&joined.block))
    }

    /// Adds `by` to a counter of this process.
    pub fn count(&self, counter: Counter, by: u64) {
        if let Ok(joined) = self.joined() {
            joined.shared.count(&joined.block, counter, by);
        }
    }

    /// The sum of a counter over all processes since the shared state was created.
    pub fn counted(&self, counter: Counter) -> Result<u64> {
        Ok(self.totals()?(counter))
    }

    /// The sums of all counters over all processes since the shared state was created.
    pub fn totals(&self) -> Result<impl Fn(Counter) -> u64> {
        let joined = self.joined()?;
        Ok(|counter| joined.shared.counted(counter))
    }

    /// The value that this process has added to a counter since it joined; 0 in a forked child that
    /// has not used the map.
    pub fn counted_here(&self, counter: Counter) -> u64 {
        // SAFETY: as in `joined`.
        let joined = unsafe { self.joined.load(Ordering::Acquire).as_ref() };
        joined.map_or(0, |joined| joined.shared.counted_by(&joined.block, counter))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl Joined {
    pub fn living(&self) -> usize {
        self.shared.living(&self.block)
    }

    /// Returns the copier operation that overlaps `range`, if any: its copy must not be written to
    /// there. The caller holds a pin on `range`. Waits while the copier changes the map there.
    pub fn meet_copier(&self, range: &Range<u64>) -> Option<Working> {
        let mut wait = Wait::new(&self.sys);
        reach("look at slot");
        loop {
            match self.shared.slot().meet(range) {
                Met::Nobody => return None,
                Met::Destination(working) => return Some(working),
                Met::Finishing => {
                    if wait.pause() {
                        self.bury_copier(SlotState::Finishing);
                    }
                }
            }
        }
    }

    /// Waits until no copier operation overlaps `range`. The caller holds a pin on `range`.
    pub fn wait_for_copier(&self, range: &Range<u64>) {
        let mut wait = Wait::new(&self.sys);
        while let Some(Working { work, .. }) = self.meet_copier(range) {
            // A tainted operation does not change the map any more, so the slot can be reset
            // whenever its owner turns out to be dead.
            if !self.shared.slot().taint(work) {
                continue;
            }
            while self.shared.slot().is_at(work) {
                if wait.pause() {
                    self.bury_copier(SlotState::Tainted);
                }
            }
        }
    }

    /// Sets the slot to idle if it is in `state` and its owner is dead.
    fn bury_copier(&self, state: SlotState) {
        let slot = self.shared.slot();
        let Some(work) = slot.work_in(state) else { return };
        let lock = self.block.lock.as_fd();
        if let Ok(true) = self.sys.try_lock(lock, COPIER_BYTE, 1, LockKind::Exclusive) {
            slot.bury(work, state);
            let _ = self.sys.unlock(lock, COPIER_BYTE, 1);
        }
    }
}
