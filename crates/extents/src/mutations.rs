//! Mechanisms of the protocol that tests can disable, to show which test then fails
//! (`tests::mutations`).
//!
//! Outside tests every mechanism is enabled, and the checks compile to nothing.

/// A disabled mechanism, described by what happens without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Mutation {
    /// A writer looks at the copier slot before it pins its range.
    LookBeforePin,
    /// A writer that meets an active copier operation does not taint it.
    NoTaint,
    /// A copier does not check pins.
    NoPinCheck,
    /// A writer does not wait while a copier changes the map.
    NoWaitForFinishing,
    /// A writer may write to the destination of a copy operation in progress.
    DestinationNotForbidden,
    /// Other copies become invalid after the write instead of before it.
    ShrinkAfter,
    /// Shrinking uses the masks from when the write began instead of the current ones.
    ShrinkBlindly,
    /// A copy becomes valid before it is written instead of after it.
    ExtendBefore,
    /// A copier copies everything that is not valid in the destination after it has set its slot,
    /// whether or not it was due before.
    NoteOnce,
    /// A copier marks the copied ranges valid even if they have changed.
    CopyIgnoresSequence,
    /// An eviction punches holes before the journal is committed.
    PunchBeforeCommit,
    /// An eviction does not sync pending changes in its range.
    EvictPending,
    /// An eviction releases the commit lock between its transaction and its journal commit.
    EvictWithoutCommitLock,
    /// The journal is written before the data is synced.
    JournalBeforeData,
    /// The list of pending ranges is taken after the data was synced.
    ListAfterData,
    /// Seqlocks change only after the commit, by 2.
    NoOddGeneration,
    /// The end of a change makes the seqlock even although another change is in progress.
    EvenWhateverElse,
    /// No write intent is recorded.
    NoIntent,
    /// After a power cut, ranges with several valid copies are left as they are.
    NoCollapse,
    /// After a power cut, ranges that have several valid copies by default are left as they are.
    CollapseListedOnly,
    /// Checksums of the journal are not verified.
    NoChecksum,
    /// A read does not check the map again after reading the data.
    NoSecondLookOfReads,
    /// A truncate does not keep copiers away.
    TruncateWithoutPin,
    /// A new journal is renamed before it is synced.
    RenameBeforeSync,
    /// `clean` is recorded without syncing the data.
    CleanWithoutSync,
    /// A sync that began before the call satisfies it.
    JoinEarlierSync,
    /// A new journal does not record that the file is open.
    RewriteForgetsIntent,
    /// While the journal is being closed, other processes see it as open.
    CloseUnannounced,
    /// A successful sync of the journal makes up for an earlier failed one.
    BelieveFailedSync,
    /// The inode of a new journal is not recorded before the rename.
    RenameUnannounced,
    /// There are no full fences between pins and slot.
    NoFences,
    /// A writer waits for a copier even if the copier is dead.
    WaitForDeadCopiers,
    /// Pins of dead processes count.
    DeadPinsCount,
    /// An eviction does not make reads start over.
    EvictionsUncounted,
    /// A map that was lost during this boot is rebuilt from the journal as after a power cut.
    IgnoreLostMap,
    /// A file that another node is writing is taken over.
    IgnoreOtherNode,
    /// A missing journal is created.
    IgnoreMissingJournal,
    /// A journal that another node or a restored backup has changed is appended to.
    IgnoreChangedJournal,
    /// A process whose shared state has lost its name begins to write.
    AnyBoard,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn on(_: Mutation) -> bool {
    false
}

#[cfg(test)]
mod active {
    use std::cell::Cell;

    use super::Mutation;

    thread_local! {
        static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    /// Sets the disabled mechanism of the calling thread.
    pub(crate) fn activate(mutation: Option<Mutation>) {
        ACTIVE.set(mutation);
    }

    pub(crate) fn active() -> Option<Mutation> {
        ACTIVE.get()
    }

    pub(crate) fn on(mutation: Mutation) -> bool {
        ACTIVE.get() == Some(mutation)
    }
}

#[cfg(test)]
pub(crate) use active::{activate, active, on};
