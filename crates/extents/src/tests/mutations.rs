//! Each mechanism of the protocol, and the test that fails without it.
//!
//! The mechanisms can be taken out, in tests, by [`crate::mutations`]. Each test here does so and shows that what checks the whole map then finds
//! something wrong. What is listed is therefore needed, and is looked at.
//!
//! | mechanism | taken out by | the test that fails then |
//! |---|---|---|
//! | a writer pins before it looks at the slot | `LookBeforePin` | `scenarios::two_writers_and_a_write_back` (2 preemptions) |
//! | the full fences between the two | (remove them) | `board::tests::a_pin_or_a_slot_is_always_seen` |
//! | a writer taints the copier it meets | `NoTaint` | `scenarios::two_writers_and_a_write_back` |
//! | a copier goes away when it sees a pin | `NoPinCheck` | `scenarios::two_writers_and_a_write_back` |
//! | a writer waits while a copier changes the map | `NoWaitForFinishing` | `scenarios::a_fetch_a_writer_and_a_sync` |
//! | nobody writes to the destination of a copy | `DestinationNotForbidden` | `scenarios::an_eviction_a_writer_and_a_reader` |
//! | other copies become invalid before the write | `ShrinkAfter` | `scenarios::two_writers_of_replicas_and_a_synchronisation` |
//! | shrinking looks at the masks of its transaction | `ShrinkBlindly` | `scenarios::two_leave_and_one_of_them_comes_back` |
//! | a copy becomes valid after the write | `ExtendBefore` | `scenarios::two_writers_and_a_write_back` |
//! | a copier compares mask and number | `CopyIgnoresSequence` | `basics::a_copy_leaves_alone_what_has_changed_without_a_pin` |
//! | generations are odd beside a commit | `NoOddGeneration` | `scenarios::one_who_knows_the_map_and_one_who_changes_it_and_dies` (1 and 1) |
//! | of two changes the last makes them even | `EvenWhateverElse` | `board::tests::of_two_changes_the_last_one_makes_the_generation_even` |
//! | a read is looked at again | `NoSecondLookOfReads` | `scenarios::an_eviction_a_writer_and_a_reader` |
//! | an eviction commits before it punches | `PunchBeforeCommit` | `scenarios::an_eviction_of_the_first_of_two_valid_copies_a_writer_and_a_sync` |
//! | an eviction syncs what is pending | `EvictPending` | `scenarios::an_eviction_of_what_was_written_back_a_writer_and_a_sync` |
//! | an eviction keeps the commit lock | `EvictWithoutCommitLock` | `scenarios::an_eviction_of_what_was_written_back_a_writer_and_a_sync` |
//! | data is synced before the journal | `JournalBeforeData` | `scenarios::two_syncs_and_a_writer` |
//! | ranges are listed before the data is synced | `ListAfterData` | `scenarios::two_syncs_and_a_writer` |
//! | a sync counts for others only if it began after they did | `JoinEarlierSync` | `scenarios::an_eviction_of_what_was_written_back_a_writer_and_a_sync` |
//! | the write intent | `NoIntent` | `scenarios::two_leave_and_one_of_them_comes_back` |
//! | after a power cut one of several copies counts | `NoCollapse` | `scenarios::two_leave_and_one_of_them_comes_back` |
//! | also of those by default | `CollapseListedOnly` | `scenarios::two_leave_and_one_of_them_comes_back` |
//! | closing syncs the data first | `CleanWithoutSync` | `scenarios::two_leave_and_one_of_them_comes_back` |
//! | closing is announced on the board | `CloseUnannounced` | `scenarios::one_closes_another_comes_and_writes` (1 and 1) |
//! | a failed sync of the journal is remembered | `BelieveFailedSync` | `power_cut::nothing_that_was_synced_is_lost_in_a_power_cut` |
//! | batches have checksums | `NoChecksum` | `journal::tests::a_damaged_mask_is_not_believed` |
//! | a new journal is synced before it is renamed | `RenameBeforeSync` | `scenarios::a_new_journal_a_sync_and_one_who_comes` |
//! | a new journal says that the file is open | `RewriteForgetsIntent` | `scenarios::a_new_journal_a_sync_and_one_who_comes` |
//! | a truncate keeps copiers away | `TruncateWithoutPin` | `scenarios::a_truncate_a_writer_and_a_copier` |

use std::panic::catch_unwind;

use super::explore::{Budget, Scenario, explore, scenarios};
use crate::mutations::{Mutation, activate};

/// The mutation is found in far fewer.
const RUNS_MAX: u64 = 3000;

/// A scenario finds that something is wrong.
fn found(mutation: Mutation, scenario: &Scenario, preemptions: usize, kills: usize) {
    let outcome = explore(scenario, Budget { preemptions, kills }, Some(mutation), RUNS_MAX);
    let failure =
        outcome.failure.unwrap_or_else(|| panic!("{}: nothing in {} runs", scenario.name, outcome.runs));
    println!("{mutation:?}: after {} runs: {}", outcome.runs, failure.lines().next().unwrap_or_default());
}

/// A test fails.
fn fails(mutation: Mutation, test: fn()) {
    activate(Some(mutation));
    let failed = catch_unwind(test);
    activate(None);
    assert!(failed.is_err(), "{mutation:?} makes no difference");
}

macro_rules! needed {
    ($($test:ident: $mutation:ident in $scenario:ident with $preemptions:literal, $kills:literal;)+) => {$(
        #[test]
        fn $test() {
            found(Mutation::$mutation, &scenarios::$scenario, $preemptions, $kills);
        }
    )+};
}

needed! {
    a_writer_pins_before_it_looks: LookBeforePin in WRITE_BACK with 2, 0;
    a_writer_taints: NoTaint in WRITE_BACK with 1, 0;
    a_copier_looks_at_pins: NoPinCheck in WRITE_BACK with 1, 0;
    a_writer_waits_for_finishing: NoWaitForFinishing in FETCH_AND_SYNC with 1, 0;
    the_destination_is_forbidden: DestinationNotForbidden in EVICTION with 1, 0;
    shrinking_comes_first: ShrinkAfter in REPLICAS with 0, 0;
    shrinking_looks_again: ShrinkBlindly in COMING_AND_GOING with 1, 0;
    extending_comes_last: ExtendBefore in WRITE_BACK with 0, 0;
    generations_are_odd: NoOddGeneration in CACHES with 1, 1;
    reads_look_again: NoSecondLookOfReads in EVICTION with 1, 0;
    eviction_commits_before_it_punches: PunchBeforeCommit in EVICTION_OF_THE_FIRST with 0, 0;
    eviction_syncs_what_is_pending: EvictPending in EVICTION_AND_SYNC with 0, 0;
    eviction_keeps_the_commit_lock: EvictWithoutCommitLock in EVICTION_AND_SYNC with 1, 0;
    data_comes_before_the_journal: JournalBeforeData in SYNCS with 0, 0;
    the_list_comes_before_the_data: ListAfterData in SYNCS with 1, 0;
    an_earlier_sync_is_not_ones_own: JoinEarlierSync in EVICTION_AND_SYNC with 0, 0;
    the_intent: NoIntent in COMING_AND_GOING with 0, 0;
    the_collapse: NoCollapse in COMING_AND_GOING with 0, 0;
    the_collapse_of_what_is_not_listed: CollapseListedOnly in COMING_AND_GOING with 0, 0;
    closing_syncs: CleanWithoutSync in COMING_AND_GOING with 0, 0;
    closing_is_announced: CloseUnannounced in REOPENING with 1, 1;
    a_new_journal_is_synced: RenameBeforeSync in REWRITE with 0, 0;
    a_new_journal_keeps_the_intent: RewriteForgetsIntent in REWRITE with 1, 0;
    a_truncate_waits_for_copiers: TruncateWithoutPin in TRUNCATE with 1, 0;
}

#[test]
fn a_copier_compares_what_it_noted() {
    fails(Mutation::CopyIgnoresSequence, super::basics::a_copy_leaves_alone_what_has_changed_without_a_pin);
}

#[test]
fn the_last_change_makes_generations_even() {
    fails(
        Mutation::EvenWhateverElse,
        crate::board::tests::of_two_changes_the_last_one_makes_the_generation_even,
    );
}

#[test]
fn batches_have_checksums() {
    fails(Mutation::NoChecksum, crate::journal::tests::a_damaged_mask_is_not_believed);
}

// What the simulator of power cuts finds by itself.

/// Seeds are many, so that another order of its random numbers does not matter.
const SEEDS_MAX: u64 = 400;

fn simulated(mutation: Mutation) {
    fails(mutation, || (1..SEEDS_MAX).for_each(super::power_cut::run));
}

#[test]
fn the_simulator_sees_a_journal_before_its_data() {
    simulated(Mutation::JournalBeforeData);
}

#[test]
fn the_simulator_sees_evictions_of_what_is_pending() {
    simulated(Mutation::EvictPending);
}

#[test]
fn the_simulator_sees_a_missing_collapse() {
    simulated(Mutation::NoCollapse);
}

#[test]
fn the_simulator_sees_a_rename_before_the_sync() {
    simulated(Mutation::RenameBeforeSync);
}

#[test]
fn the_simulator_sees_failed_syncs_that_are_forgotten() {
    simulated(Mutation::BelieveFailedSync);
}
