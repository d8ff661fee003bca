//! For each mechanism of the protocol, a test that fails without it.
//!
//! [`crate::mutations`] disables a mechanism. Each test here does so and shows that a check of the
//! whole map then finds an error. So every mechanism listed is necessary, and is tested.
//!
//! The table in `docs/formats/extents.md` names the invariant that each mechanism keeps and the
//! error seen without it. [`the_table_is_complete`] compares the table with this file and with the
//! list of mutations.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use super::explore::{Budget, Scenario, explore, scenarios, wander};
use super::{basics, faults};
use crate::board::tests as board;
use crate::journal::tests as journal;
use crate::mutations::{Mutation, activate, active};

/// Maximum number of runs; every mutation is found in far fewer.
const RUNS_MAX: u64 = 3000;

/// Asserts that exploring a scenario finds an error.
fn found(mutation: Mutation, scenario: &Scenario, preemptions: usize, kills: usize) {
    let outcome = explore(scenario, Budget { preemptions, kills }, Some(mutation), RUNS_MAX);
    let failure =
        outcome.failure.unwrap_or_else(|| panic!("{}: nothing in {} runs", scenario.name, outcome.runs));
    println!("{mutation:?}: after {} runs: {}", outcome.runs, failure.lines().next().unwrap_or_default());
}

/// Runs random schedules of a scenario that has too many schedules with this number of preemptions.
fn wandered(scenario: &Scenario) {
    const RUNS: u64 = 20_000;
    let outcome = wander(scenario, Budget { preemptions: 5, kills: 0 }, active(), 1, RUNS);
    assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap_or_default());
}

/// Asserts that a test fails.
fn fails(mutation: Mutation, test: fn()) {
    activate(Some(mutation));
    let failed = catch_unwind(test);
    activate(None);
    assert!(failed.is_err(), "{mutation:?} makes no difference");
}

macro_rules! needed {
    ($($test:ident: $mutation:ident in $scenario:ident with $preemptions:literal, $kills:literal;)+) => {
        const BY_EXPLORING: &[(&str, Mutation)] = &[$((stringify!($test), Mutation::$mutation)),+];

        $(#[test]
        fn $test() {
            found(Mutation::$mutation, &scenarios::$scenario, $preemptions, $kills);
        })+
    };
}

macro_rules! needed_by {
    ($($test:ident: $mutation:ident in $failing:expr;)+) => {
        const BY_TESTS: &[(&str, Mutation)] = &[$((stringify!($test), Mutation::$mutation)),+];

        $(#[test]
        fn $test() {
            fails(Mutation::$mutation, $failing);
        })+
    };
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
    a_new_journal_is_announced: RenameUnannounced in REWRITE with 0, 1;
    dead_copiers_are_buried: WaitForDeadCopiers in FETCH_AND_SYNC with 0, 1;
    evictions_are_counted: EvictionsUncounted in EVICTED_AND_FETCHED with 3, 0;
}

needed_by! {
    a_copier_notes_before_its_slot: NoteOnce in || wandered(&scenarios::CLEAN);
    a_copier_compares_what_it_noted: CopyIgnoresSequence in basics::a_copy_leaves_alone_what_has_changed_without_a_pin;
    the_last_change_makes_generations_even:
        EvenWhateverElse in board::of_two_changes_the_last_one_makes_the_generation_even;
    batches_have_checksums: NoChecksum in journal::a_damaged_mask_is_not_believed;
    pins_and_slot_are_fenced: NoFences in || (0..50).for_each(|_| board::a_pin_or_a_slot_is_always_seen());
    dead_pins_do_not_count: DeadPinsCount in board::pins_of_the_living_count_and_those_of_the_dead_do_not;
    a_lost_map_is_refused: IgnoreLostMap in faults::a_lost_map_is_told_and_repaired_by_falling_back;
    another_nodes_file_is_refused:
        IgnoreOtherNode in faults::another_nodes_file_is_refused_until_it_is_taken_over;
    a_missing_journal_is_refused:
        IgnoreMissingJournal in faults::a_missing_journal_is_told_unless_the_file_is_new;
    a_journal_that_another_node_opened_is_refused:
        IgnoreChangedJournal in faults::a_journal_that_another_node_opened_meanwhile_is_not_written_to;
    a_journal_put_back_is_refused:
        IgnoreChangedJournal in faults::a_journal_put_back_while_in_use_is_not_written_to;
    a_board_without_a_name_is_refused:
        AnyBoard in faults::who_began_to_write_refuses_when_its_board_has_lost_its_name;
    failed_syncs_are_remembered: BelieveFailedSync in || simulate(SEEDS_MAX);
    the_simulator_sees_a_journal_before_its_data: JournalBeforeData in || simulate(SEEDS_MAX);
    the_simulator_sees_evictions_of_what_is_pending: EvictPending in || simulate(SEEDS_MAX);
    the_simulator_sees_a_missing_collapse: NoCollapse in || simulate(SEEDS_MAX);
    the_simulator_sees_a_rename_before_the_sync: RenameBeforeSync in || simulate(SEEDS_MAX);
}

/// Upper bound of the seeds, large enough to be independent of the order of random numbers.
const SEEDS_MAX: u64 = 400;

fn simulate(seeds: u64) {
    (1..seeds).for_each(super::power_cut::run);
}

/// The names in backquotes in a table cell.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The (test, mutation) pairs in the table of the documentation.
fn documented() -> BTreeSet<(String, String)> {
    let text = include_str!("../../../../docs/formats/extents.md");
    let mut pairs = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').collect();
        let [_, _, _, mutation, tests, _, _] = cells[..] else { continue };
        for mutation in names(mutation) {
            pairs.extend(names(tests).map(|test| (test.to_owned(), mutation.to_owned())));
        }
    }
    pairs
}

#[test]
fn the_table_is_complete() {
    let shown = BY_EXPLORING.iter().chain(BY_TESTS);
    let shown: BTreeSet<(String, String)> =
        shown.map(|(test, mutation)| ((*test).to_owned(), format!("{mutation:?}"))).collect();
    assert_eq!(documented(), shown, "the documentation's table, and the tests of this file");
    let source = include_str!("../mutations.rs");
    let variants = source.split_once("enum Mutation {").and_then(|(_, rest)| rest.split_once("\n}")).unwrap().0;
    let variants = variants.lines().map(str::trim).filter(|line| !line.starts_with("///") && !line.is_empty());
    let all: BTreeSet<String> = variants.map(|line| line.trim_end_matches(',').to_owned()).collect();
    assert_eq!(shown.into_iter().map(|(_, mutation)| mutation).collect::<BTreeSet<_>>(), all);
}
