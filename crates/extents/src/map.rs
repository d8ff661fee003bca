//! The map of one file, as a process has it.

use std::ops::Range;

use stripewise_sys::SysRef;

use crate::{CopyId, MapSpec, Result, Span};

/// The extent map of a file, joined by this process. One per file and process is enough, for all threads; two of the
/// same file share what they can.
///
/// Dropping it is what a kill is: nothing is synced, the next process goes on with it. See [`Map::leave`].
#[allow(dead_code)]
pub struct Map {
    sys: SysRef,
    spec: MapSpec,
}

/// Which ranges a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// Where this copy is not valid (default ranges, too).
    NotValidIn(CopyId),
    /// Where copy 0 is not valid.
    Dirty,
    /// Where this copy and another are valid: what could be evicted from it.
    CleanIn(CopyId),
    /// Where this copy is wanted, and not yet valid.
    Wanted(CopyId),
    /// Everything that is not as by default.
    Listed,
}

#[allow(unused_variables, missing_docs)]
impl Map {
    /// Joins the map: makes or rebuilds index and board where they are not there.
    ///
    /// # Errors
    /// Every [`MapError`](crate::MapError); nothing is left changed but files in the run directory.
    pub fn join(sys: SysRef, spec: MapSpec) -> Result<Self> {
        unimplemented!()
    }

    /// In a forked child, before anything else is done with the map, by its only thread: gives up what belongs to the parent. Cheap, and
    /// all that a child needs that never uses the file; the next call joins anew.
    pub fn after_fork_child(&self) {
        unimplemented!()
    }

    /// The process has closed the file. The last one of the node syncs what is pending (`sync_data` as in
    /// [`Map::sync`]), notes in the journal that the file is closed, and removes index and board.
    ///
    /// # Errors
    /// When the sync fails: then everything stays, for the next process to join.
    pub fn leave(self, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
        unimplemented!()
    }

    /// Begins a write of `range`. Until the guard is dropped no copier works there.
    ///
    /// # Errors
    /// EIO, EBUSY, ENOSPC where the journal cannot take the write intent, or the index is gone.
    pub fn begin_write(&self, range: Range<u64>) -> Result<WriteGuard<'_>> {
        unimplemented!()
    }

    /// Begins a read of `range`.
    ///
    /// # Errors
    /// When the index is gone.
    pub fn begin_read(&self, range: Range<u64>) -> Result<ReadGuard<'_>> {
        unimplemented!()
    }

    /// Begins cutting the file to `to` bytes, under the size lock: waits for a copier that works behind `to`, and keeps others away. Then the
    /// components of every copy are cut (and synced), then [`TruncateGuard::finish`].
    pub fn begin_truncate(&self, to: u64) -> Result<TruncateGuard<'_>> {
        unimplemented!()
    }

    /// `begin_truncate` and `finish` for components that are cut already: the end of an interrupted truncate; also
    /// at any time with the file's size, under the size lock: what lies behind it is forgotten.
    pub fn truncated(&self, to: u64) -> Result<()> {
        unimplemented!()
    }

    /// Becomes the one copier of the file on this node; `None`: somebody else is. It is given back on drop and dies with the process.
    pub fn copier(&self) -> Result<Option<Copier<'_>>> {
        unimplemented!()
    }

    /// Everything written before, by any process, survives a power cut. `sync_data` syncs the components of all copies; it is
    /// not called if a sync of another process, begun later than this call, did it.
    pub fn sync(&self, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
        unimplemented!()
    }

    /// Notes that `range` is wanted in `copy` (the paper's C_flag) until it is valid there.
    pub fn want(&self, range: Range<u64>, copy: CopyId) -> Result<()> {
        unimplemented!()
    }

    /// The first ranges from byte `from` on, in order, at most `max`, cut to `to`. To go on: from the end of the last.
    pub fn list(&self, select: Select, range: Range<u64>, max: usize) -> Result<Vec<Span>> {
        unimplemented!()
    }

    /// Ranges that could be evicted from `copy`, least recently used segments first, of together at least `bytes` if there are so many.
    pub fn least_recent(&self, copy: CopyId, bytes: u64) -> Result<Vec<Span>> {
        unimplemented!()
    }

    /// How many bytes `copy` is valid for, of those that the map lists.
    pub fn valid_bytes(&self, copy: CopyId) -> Result<u64> {
        unimplemented!()
    }

    /// Number of processes that have joined and live.
    pub fn processes(&self) -> usize {
        unimplemented!()
    }

    /// This process has shared, writable mappings of the file from now on, or no longer: meanwhile nobody copies or evicts.
    pub fn set_mapped(&self, mapped: bool) -> Result<()> {
        unimplemented!()
    }
}

#[allow(unused_variables, missing_docs, dead_code)]
mod guards {
    use super::*;


    /// A write; dropping it ends it.
    pub struct WriteGuard<'m> {
        map: &'m Map,
    }
    impl WriteGuard<'_> {
        /// The range in parts, in order, without gaps, as known when the guard was made or last prepared.
        pub fn spans(&self) -> &[Span] {
            unimplemented!()
        }
        /// Before `part` is written to `copy`: other copies that are valid there become invalid first.
        pub fn prepare(&mut self, part: Range<u64>, copy: CopyId) -> Result<()> {
            unimplemented!()
        }
        /// After `part` was written to `copy`: that becomes the valid one. Only what was written, after a short write.
        pub fn wrote(&mut self, part: Range<u64>, copy: CopyId) -> Result<()> {
            unimplemented!()
        }
        /// Whether the map was changed: with `durability = "each-write"` it is then to be synced.
        pub fn changed_map(&self) -> bool {
            unimplemented!()
        }
    }
    /// A read.
    pub struct ReadGuard<'m> {
        map: &'m Map,
    }
    impl ReadGuard<'_> {
        /// The range in parts, in order, without gaps.
        pub fn spans(&self) -> &[Span] {
            unimplemented!()
        }
        /// After the data was read: whether what `chosen` says each span was read from was still valid in it to the end. If not,
        /// everything is read again from the start, with a new guard.
        pub fn still_valid(&self, chosen: impl Fn(&Span) -> CopyId) -> Result<bool> {
            unimplemented!()
        }
    }
    /// A truncate.
    pub struct TruncateGuard<'m> {
        map: &'m Map,
    }
    impl TruncateGuard<'_> {
        /// The components are cut and synced.
        pub fn finish(self) -> Result<()> {
            unimplemented!()
        }
    }
    /// The right to copy.
    pub struct Copier<'m> {
        map: &'m Map,
    }
    impl Copier<'_> {
        /// Begins to copy `range` from one copy to another. `None`: somebody writes there, or there is nothing to copy.
        pub fn begin(&mut self, range: Range<u64>, from: CopyId, to: CopyId) -> Result<Option<CopyGuard<'_>>> {
            unimplemented!()
        }
        /// Takes `range` out of `copy`, where another copy is valid. `sync_data` as in [`Map::sync`], called if something of
        /// the range is not yet in the journal; `punch` gives the space of the parts back. Returns the bytes; 0 if somebody writes there.
        pub fn evict(
            &mut self,
            range: Range<u64>,
            copy: CopyId,
            sync_data: impl FnOnce() -> stripewise_sys::Result<()>,
            punch: impl FnOnce(&[Range<u64>]) -> stripewise_sys::Result<()>,
        ) -> Result<u64> {
            unimplemented!()
        }
    }
    /// A copy on its way; dropping it gives it up.
    pub struct CopyGuard<'c> {
        map: &'c Map,
    }
    impl CopyGuard<'_> {
        /// What is to be copied.
        pub fn parts(&self) -> &[Range<u64>] {
            unimplemented!()
        }
        /// The parts were copied. Whether they are valid in the destination now: not if somebody wrote there meanwhile.
        pub fn finish(self) -> Result<bool> {
            unimplemented!()
        }
    }
}
pub use guards::*;
