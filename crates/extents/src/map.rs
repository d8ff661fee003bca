//! The map of one file, as a process has it.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use stripewise_sys::SysRef;

use crate::board::{Counter, Extent, Met, SlotState, Word};
use crate::fork::PidLock;
use crate::hooks::reach;
use crate::join::{self, Tuning};
use crate::joined::Joined;
use crate::wait::Wait;
use crate::{CopyId, MapSpec, Result, wishes};

/// The extent map of a file, joined by this process. One per file and process is enough, for all threads; two of the
/// same file share what they can.
///
/// Dropping it is what a kill is: nothing is synced, and the next process goes on with it. See [`Map::leave`].
///
/// Ranges are of bytes of the file; the last byte that there can be is `u64::MAX - 1`.
pub struct Map {
    sys: SysRef,
    spec: Arc<MapSpec>,
    tuning: Tuning,
    /// Null in a forked child that has not joined yet.
    joined: AtomicPtr<Joined>,
    joining: PidLock<()>,
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Map {
    /// Joins the map: makes or rebuilds index and board where they are not there.
    ///
    /// # Errors
    /// Every [`MapError`](crate::MapError). Nothing that was there is changed then, but for files of the run directory.
    pub fn join(sys: SysRef, spec: MapSpec) -> Result<Self> {
        Self::join_tuned(sys, spec, Tuning::default())
    }

    pub(crate) fn join_tuned(sys: SysRef, spec: MapSpec, tuning: Tuning) -> Result<Self> {
        let spec = Arc::new(spec);
        let joined = join::join(&sys, &spec, &tuning)?;
        if joined.living() <= 1 {
            wishes::recall(&joined);
        }
        let spec = Arc::new(MapSpec { create: false, ..(*spec).clone() });
        let joined = AtomicPtr::new(Box::into_raw(joined));
        Ok(Self { sys, spec, tuning, joined, joining: PidLock::new(()) })
    }

    /// In a forked child, before anything else is done with the map, by its only thread: closes what belongs to the
    /// parent. Cheap, and all that a child needs that never uses the file; the next call joins anew. A child that goes on using shared
    /// mappings calls [`Map::set_mapped`] again.
    pub fn after_fork_child(&self) {
        let joined = self.joined.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `join`, and leaked from here on: its memory, mappings and environment are the parent's.
        if let Some(joined) = unsafe { joined.as_ref() } {
            joined.abandon();
        }
    }

    pub(crate) fn joined(&self) -> Result<&Joined> {
        // SAFETY: made by `join`; given up only by `leave` and drop, which own the map, or leaked.
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
        // SAFETY: as above.
        Ok(unsafe { &*joined })
    }

    /// The process has closed the file. The last one of the node syncs what is pending (`sync_data` as in
    /// [`Map::sync`]), notes in the journal that the file is closed, and removes index and board.
    ///
    /// # Errors
    /// When the sync fails: then index and board stay, for the next process to join.
    pub fn leave(self, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
        match self.take() {
            Some(joined) => {
                if joined.living() <= 1 {
                    wishes::keep(&joined);
                }
                crate::leave::leave(joined, sync_data)
            }
            None => Ok(()),
        }
    }

    fn take(&self) -> Option<Box<Joined>> {
        let joined = self.joined.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `join`; whoever calls this owns the map, so nobody has a reference.
        (!joined.is_null()).then(|| unsafe { Box::from_raw(joined) })
    }

    /// What the map was joined by.
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// Number of processes that have joined and live: the measured concurrency. A system call for each of them.
    ///
    /// # Errors
    /// Only in a forked child that cannot join.
    pub fn processes(&self) -> Result<usize> {
        let joined = self.joined()?;
        Ok(joined.living())
    }

    /// This process has shared, writable mappings of the file from now on, or no longer: meanwhile nobody copies, evicts or fetches.
    /// Returns when a copier that was at work, and the writes that were, are done. The mapped ranges must be valid in the mapped copy
    /// alone: see [`crate::WriteGuard::prepare`]; and every write asks [`Map::is_mapped`].
    ///
    /// # Errors
    /// As [`Map::begin_write`].
    pub fn set_mapped(&self, mapped: bool) -> Result<()> {
        let joined = self.joined()?;
        if mapped {
            joined.ensure_opened()?;
        }
        if !mapped {
            joined.board.pin_everything(&joined.block, false);
            return Ok(());
        }
        joined.board.set(Word::Mapped, 1);
        joined.board.pin_everything(&joined.block, true);
        joined.wait_for_copier(&(0..u64::MAX))?;
        joined.wait_for_pins();
        Ok(())
    }

    /// Whether a process has called [`Map::set_mapped`]: then what is written must go to the mapped copy. To be asked while a
    /// [`crate::WriteGuard`] lives.
    ///
    /// # Errors
    /// Only in a forked child that cannot join.
    pub fn is_mapped(&self) -> Result<bool> {
        let joined = self.joined()?;
        Ok(joined.is_mapped())
    }

    /// Adds to a counter of this process.
    pub fn count(&self, counter: Counter, by: u64) {
        if let Ok(joined) = self.joined() {
            joined.board.count(&joined.block, counter, by);
        }
    }

    /// A counter's sum over all processes since index and board were made.
    ///
    /// # Errors
    /// Only in a forked child that cannot join.
    pub fn counted(&self, counter: Counter) -> Result<u64> {
        Ok(self.joined()?.board.counted(counter))
    }

    /// What this process has counted since it joined: 0 in a forked child that has not used the map.
    pub fn counted_here(&self, counter: Counter) -> u64 {
        // SAFETY: as in `joined`.
        let joined = unsafe { self.joined.load(Ordering::Acquire).as_ref() };
        joined.map_or(0, |joined| joined.board.counted_by(&joined.block, counter))
    }

    /// All counters by name; those of a copy end in its number: `read_bytes.1`.
    ///
    /// # Errors
    /// As [`Map::counted`].
    pub fn statistics(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.joined()?.board.all_counted(self.spec.copies))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A copier at work.
#[derive(Clone, Debug)]
pub(crate) struct Working {
    /// The copy that it writes to; `None`: every one is to be left alone.
    pub copy: Option<CopyId>,
    pub part: Range<u64>,
    /// Number of the work.
    pub work: u64,
    pub extent: Extent,
}

impl Joined {
    pub fn living(&self) -> usize {
        use std::os::fd::AsFd;
        self.board.living(&self.sys, self.lock.as_fd(), &self.block)
    }

    fn is_mapped(&self) -> bool {
        use std::os::fd::AsFd;
        self.board.is_everything_pinned(&self.sys, self.lock.as_fd(), &self.block)
    }

    /// Waits until whoever has pinned something now has done its work.
    fn wait_for_pins(&self) {
        use std::os::fd::AsFd;
        let mut wait = Wait::new(&self.sys);
        for pin in self.board.pins() {
            while self.board.is_still_set(&self.sys, self.lock.as_fd(), &self.block, &pin) {
                wait.pause();
            }
        }
    }

    /// For who has pinned `range`: which copy must not be written to where. Waits while a copier changes the map there.
    pub fn meet_copier(&self, range: &Range<u64>) -> Result<Option<Working>> {
        let mut wait = Wait::new(&self.sys);
        reach("look at slot");
        loop {
            match self.board.slot().meet(range) {
                Met::Nobody => return Ok(None),
                Met::Destination { copy, part, work, extent } => {
                    return Ok(Some(Working { copy, part, work, extent }));
                }
                Met::Finishing => {
                    if wait.pause() {
                        self.bury_copier(SlotState::Finishing);
                    }
                }
            }
        }
    }

    /// For who has pinned `range`: waits until no copier works there.
    pub fn wait_for_copier(&self, range: &Range<u64>) -> Result<()> {
        let mut wait = Wait::new(&self.sys);
        while let Some(Working { work, .. }) = self.meet_copier(range)? {
            // It changes the map no more then, and can be buried in any case.
            if !self.board.slot().taint(work) {
                continue;
            }
            while self.board.slot().is_at(work) {
                if wait.pause() {
                    self.bury_copier(SlotState::Tainted);
                }
            }
        }
        Ok(())
    }

    /// Sets the slot idle if it is in `state` and its owner is dead.
    fn bury_copier(&self, state: SlotState) {
        use std::os::fd::AsFd;
        let slot = self.board.slot();
        let Some(work) = slot.work_in(state) else { return };
        let byte = crate::board::COPIER_BYTE;
        let kind = stripewise_sys::LockKind::Exclusive;
        if let Ok(true) = self.sys.try_lock(self.lock.as_fd(), byte, 1, kind) {
            slot.bury(work, state);
            let _ = self.sys.unlock(self.lock.as_fd(), byte, 1);
        }
    }
}
