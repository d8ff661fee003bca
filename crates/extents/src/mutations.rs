//! Mechanisms of the protocol that tests can take out, to show which test then fails (`tests::mutations`).
//!
//! Outside tests every mechanism is in, and the questions are compiled away.

/// A mechanism taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Mutation {
    /// A writer looks at the copier's slot before it pins.
    LookBeforePin,
    /// A writer that meets an active copier does not taint it.
    NoTaint,
    /// A copier does not look at pins.
    NoPinCheck,
    /// A writer does not wait for a copier that changes the map.
    NoWaitForFinishing,
    /// A writer may write to the destination of a copy that is on its way.
    DestinationNotForbidden,
    /// Other copies become invalid after the write instead of before it.
    ShrinkAfter,
    /// The copies that were valid when the write began are shrunk to, not those that are valid now.
    ShrinkBlindly,
    /// A copy becomes valid before it is written instead of after it.
    ExtendBefore,
    /// A copier copies what is not valid in the destination after it has set its slot, whatever was before.
    NoteOnce,
    /// A copier marks what it copied valid whatever has changed.
    CopyIgnoresSequence,
    /// An eviction punches before the journal is committed.
    PunchBeforeCommit,
    /// An eviction does not sync what is pending in its range.
    EvictPending,
    /// An eviction lets go of the commit lock between its transaction and its commit.
    EvictWithoutCommitLock,
    /// The journal is written before the data is synced.
    JournalBeforeData,
    /// The list of pending ranges is taken after the data was synced.
    ListAfterData,
    /// Generations change after the commit only, and by 2.
    NoOddGeneration,
    /// Whoever finishes a change makes the generation even, also when another is on its way.
    EvenWhateverElse,
    /// No write intent.
    NoIntent,
    /// A power cut leaves ranges with several valid copies as they are.
    NoCollapse,
    /// A collapse forgets what is as by default.
    CollapseListedOnly,
    /// The journal is not checked.
    NoChecksum,
    /// A read is not looked at again.
    NoSecondLookOfReads,
    /// A truncate does not keep copiers away.
    TruncateWithoutPin,
    /// A new journal is renamed before it is synced.
    RenameBeforeSync,
    /// `clean` is noted without syncing the data.
    CleanWithoutSync,
    /// A sync that was begun earlier counts as one's own.
    JoinEarlierSync,
    /// What a new journal does not carry over: that the file is open.
    RewriteForgetsIntent,
    /// While the journal is being closed, others believe that it is open.
    CloseUnannounced,
    /// A sync of the journal that succeeds makes up for one that failed.
    BelieveFailedSync,
    /// The inode of a new journal is not noted before it has the name.
    RenameUnannounced,
    /// No full fences between pins and slot.
    NoFences,
    /// A writer waits for a copier also when that is dead.
    WaitForDeadCopiers,
    /// Pins of dead processes count.
    DeadPinsCount,
    /// A read is not done again because something was evicted.
    EvictionsUncounted,
    /// A map that was lost on this boot is rebuilt from the journal as after a power cut.
    IgnoreLostMap,
    /// A file that another node writes is taken over.
    IgnoreOtherNode,
    /// A journal that is not there is made.
    IgnoreMissingJournal,
    /// A journal that another node, or somebody with a backup, has changed is appended to.
    IgnoreChangedJournal,
    /// A process that has a board without a name begins to write.
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

    /// In this thread, from now on.
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
