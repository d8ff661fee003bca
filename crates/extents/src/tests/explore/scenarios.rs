//! The scenarios: initial states, and the operations of each process.

use super::{Budget, Outcome, Process, Scenario, explore, wander};
use crate::Mask;

/// Maximum number of runs of a scenario with one budget in a long test. It is more than there are
/// schedules with one preemption and one kill, or with two preemptions.
const RUNS_MAX: u64 = 30_000;

fn nothing(_: &Process) {}

/// Bytes 0 to 2 are dirty in the cache copy and are written back while two processes write.
pub const WRITE_BACK: Scenario = Scenario {
    name: "two writers and a write-back",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 4,
    before: |process| process.write(0..3, 1),
    processes: &[
        ("writer 0", |process| process.write(1..3, 0)),
        ("writer 1", |process| process.write(2..4, 1)),
        ("copier", |process| process.copy(0..4, 1, 0)),
    ],
};

/// One writer's first write is acknowledged before its second one begins. A value that was seen or
/// acknowledged must not vanish.
pub const WRITES_IN_TURN: Scenario = Scenario {
    name: "writes in turn, and a reader",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 2,
    before: nothing,
    processes: &[
        ("writer 0", |process| {
            process.write(0..2, 1);
            process.write(0..1, 0);
        }),
        ("writer 1", |process| process.write(0..2, 0)),
        ("reader", |process| {
            process.read(0..2, 1);
            process.read(0..2, 0);
        }),
    ],
};

/// All copies are valid at first. Writers choose different ones, and a copier updates one.
pub const REPLICAS: Scenario = Scenario {
    name: "two writers of replicas and a synchronisation",
    copies: 3,
    sessions: false,
    default: Mask::all(3),
    size: 3,
    before: |process| process.write(1..2, 2),
    processes: &[
        ("writer 0", |process| process.write(0..2, 0)),
        ("writer 1", |process| process.write(1..3, 1)),
        ("copier", |process| process.copy(0..3, 2, 0)),
    ],
};

/// A clean cache copy is evicted while other processes read and write.
pub const EVICTION: Scenario = Scenario {
    name: "an eviction, a writer and a reader",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 3,
    before: |process| {
        process.write(0..2, 1);
        process.copy(0..2, 1, 0);
    },
    processes: &[
        ("evictor", |process| process.evict(0..3, 1)),
        ("writer", |process| process.write(1..3, 1)),
        ("reader", |process| process.read(0..3, 1)),
    ],
};

/// Clean bytes are written to both copies while a copier looks for bytes to write back.
pub const CLEAN: Scenario = Scenario {
    name: "a write-back of what is clean, and two writers",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 1,
    before: |process| {
        process.write(0..1, 1);
        process.copy(0..1, 1, 0);
    },
    processes: &[
        ("copier", |process| process.copy(0..1, 1, 0)),
        ("writer 0", |process| process.write(0..1, 0)),
        ("writer 1", |process| process.write(0..1, 1)),
    ],
};

/// The reader may read a hole from a copy that is valid before and afterwards.
pub const EVICTED_AND_FETCHED: Scenario = Scenario {
    name: "a reader of what is evicted and fetched again",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 1,
    before: |process| {
        process.write(0..1, 1);
        process.copy(0..1, 1, 0);
        process.sync();
    },
    processes: &[
        ("reader", |process| process.read(0..1, 1)),
        ("evictor", |process| {
            process.evict(0..1, 1);
            process.copy(0..1, 0, 1);
        }),
    ],
};

/// A synced range that the journal has only in the cache copy is written back and evicted while
/// another process syncs.
pub const EVICTION_AND_SYNC: Scenario = Scenario {
    name: "an eviction of what was written back, a writer and a sync",
    copies: 3,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 2,
    before: |process| {
        process.write(0..2, 1);
        process.sync();
        process.copy(0..2, 1, 0);
    },
    processes: &[
        ("evictor", |process| process.evict(0..2, 1)),
        ("writer", |process| process.write(1..2, 2)),
        ("syncer", |process| process.sync()),
    ],
};

/// The copy that a power cut would fall back on is evicted. The journal must no longer name it
/// before it is punched.
pub const EVICTION_OF_THE_FIRST: Scenario = Scenario {
    name: "an eviction of the first of two valid copies, a writer and a sync",
    copies: 3,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 2,
    before: |process| {
        process.write(0..2, 1);
        process.copy(0..2, 1, 2);
        process.sync();
    },
    processes: &[
        ("evictor", |process| process.evict(0..2, 1)),
        ("writer", |process| process.write(1..2, 0)),
        ("syncer", |process| process.sync()),
    ],
};

/// Writes are synced while another process writes and syncs.
pub const SYNCS: Scenario = Scenario {
    name: "two syncs and a writer",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 2,
    before: nothing,
    processes: &[
        ("writer", |process| {
            process.write(0..2, 1);
            process.sync();
        }),
        ("other", |process| {
            process.write(0..1, 0);
            process.sync();
        }),
    ],
};

/// A fetch and a sync run while another process writes to the source of the fetch.
pub const FETCH_AND_SYNC: Scenario = Scenario {
    name: "a fetch, a writer and a sync",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 2,
    before: nothing,
    processes: &[
        ("copier", |process| process.copy(0..2, 0, 1)),
        ("writer", |process| process.write(0..1, 0)),
        ("syncer", |process| process.sync()),
    ],
};

/// The last processes leave, and one joins again.
pub const COMING_AND_GOING: Scenario = Scenario {
    name: "two leave, one of them comes back",
    copies: 2,
    sessions: false,
    default: Mask::all(2),
    size: 2,
    before: nothing,
    processes: &[
        ("leaver", |process| {
            process.write(0..2, 1);
            process.leave();
        }),
        ("comer", |process| {
            process.leave();
            process.join();
            process.write(1..2, 0);
            process.sync();
        }),
    ],
};

/// The process that closes the journal dies around that step, and another one writes.
pub const REOPENING: Scenario = Scenario {
    name: "one closes, another comes and writes",
    copies: 2,
    sessions: false,
    default: Mask::all(2),
    size: 2,
    before: |process| process.write(0..1, 1),
    processes: &[
        ("leaver", |process| process.leave()),
        ("comer", |process| {
            process.leave();
            process.join();
            process.write(1..2, 0);
        }),
    ],
};

/// The journal is rewritten while other processes commit and join.
pub const REWRITE: Scenario = Scenario {
    name: "a new journal, a sync and one who comes",
    copies: 2,
    sessions: false,
    default: Mask::all(2),
    size: 2,
    before: |process| {
        process.write(0..1, 1);
        process.sync();
        process.write(0..1, 0);
        process.break_journal();
    },
    processes: &[
        ("rewriter", |process| process.sync()),
        ("syncer", |process| {
            process.write(1..2, 0);
            process.sync();
        }),
        ("comer", |process| {
            process.leave();
            process.join();
            process.read(0..2, 1);
        }),
    ],
};

/// A process's cached map must not outlive a change whose process died around its commit.
pub const CACHES: Scenario = Scenario {
    name: "one who knows the map, and one who changes it and dies",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 1,
    before: nothing,
    processes: &[
        ("knower", |process| {
            // The second read of a segment loads it; the third one uses the cache.
            process.read(0..1, 0);
            process.read(0..1, 0);
            process.write(0..1, 0);
            process.read(0..1, 0);
        }),
        ("changer", |process| process.write(0..1, 1)),
    ],
};

/// The file is truncated while it is copied and written.
pub const TRUNCATE: Scenario = Scenario {
    name: "a truncate, a writer and a copier",
    copies: 2,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 3,
    before: |process| process.write(0..3, 1),
    processes: &[
        ("truncater", |process| {
            process.truncate(1);
            process.forget_behind(1);
        }),
        ("writer", |process| process.write(1..3, 1)),
        ("copier", |process| process.copy(0..3, 1, 0)),
    ],
};

/// Two processes try to copy; only one may.
pub const COPIERS: Scenario = Scenario {
    name: "two copiers and a writer",
    copies: 3,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 2,
    before: nothing,
    processes: &[
        ("copier 1", |process| process.copy(0..2, 0, 1)),
        ("copier 2", |process| process.copy(0..2, 0, 2)),
        ("writer", |process| process.write(0..1, 1)),
    ],
};

/// Explores a scenario. `STRIPEWISE_EXPLORE=all,PREEMPTIONS,KILLS` goes through all schedules
/// within this budget instead, and `STRIPEWISE_EXPLORE=random,PREEMPTIONS,KILLS` through random
/// ones.
fn all(scenario: &Scenario) {
    if let Ok(which) = std::env::var("STRIPEWISE_EXPLORE") {
        return as_asked(scenario, &which);
    }
    in_budgets(scenario);
    in_budgets(&Scenario { sessions: true, ..*scenario });
}

fn in_budgets(scenario: &Scenario) {
    let long = std::env::var_os("STRIPEWISE_LONG").is_some();
    let budgets: &[(usize, usize)] = if long { &[(1, 1), (2, 0)] } else { &[(1, 0), (0, 1)] };
    for &(preemptions, kills) in budgets {
        let budget = Budget { preemptions, kills };
        report(scenario, budget, "all", explore(scenario, budget, RUNS_MAX));
    }
    let budget = Budget { preemptions: 4, kills: 2 };
    let runs = if long { 5000 } else { 60 };
    report(scenario, budget, "random", wander(scenario, budget, runs));
}

fn as_asked(scenario: &Scenario, which: &str) {
    let words: Vec<&str> = which.split(',').collect();
    let &[how, preemptions, kills] = &words[..] else { panic!("STRIPEWISE_EXPLORE={which}") };
    let budget = Budget { preemptions: preemptions.parse().unwrap(), kills: kills.parse().unwrap() };
    let outcome = match how {
        "all" => explore(scenario, budget, RUNS_MAX),
        "random" => wander(scenario, budget, RUNS_MAX),
        _ => panic!("STRIPEWISE_EXPLORE={which}"),
    };
    report(scenario, budget, how, outcome);
}

fn report(scenario: &Scenario, budget: Budget, which: &str, outcome: Outcome) {
    let Outcome { runs, steps, kills, failure, .. } = &outcome;
    let protocol = if scenario.sessions { "a session" } else { "the one-node protocol" };
    println!(
        "{protocol}, {}: {which} schedules with {budget:?}: {runs} runs, {steps} steps, {kills} kills",
        scenario.name
    );
    if outcome.is_cut_off {
        println!("    that is not all of them");
    }
    assert!(failure.is_none(), "{protocol}, {}: {}", scenario.name, failure.as_deref().unwrap_or_default());
}

macro_rules! explored {
    ($($test:ident: $scenario:ident),+ $(,)?) => {$(
        #[test]
        fn $test() {
            all(&$scenario);
        }
    )+};
}

/// Five processes at once, for which only some of the schedules are run.
pub const EVERYBODY: Scenario = Scenario {
    name: "two writers, a copier, an evictor and a sync",
    copies: 3,
    sessions: false,
    default: Mask::ORIGINAL,
    size: 4,
    before: |process| {
        process.write(0..3, 1);
        process.copy(0..2, 1, 0);
    },
    processes: &[
        ("writer 0", |process| process.write(1..3, 0)),
        ("writer 1", |process| {
            process.write(2..4, 1);
            process.read(0..4, 1);
        }),
        ("copier", |process| {
            process.copy(0..4, 1, 0);
            process.copy(0..4, 0, 2);
        }),
        ("evictor", |process| process.evict(0..4, 1)),
        ("syncer", |process| {
            process.sync();
            process.read(0..4, 0);
        }),
    ],
};

#[test]
fn two_writers_a_copier_an_evictor_and_a_sync() {
    let long = std::env::var_os("STRIPEWISE_LONG").is_some();
    let budget = Budget { preemptions: 6, kills: 2 };
    let runs = if long { 20_000 } else { 300 };
    report(&EVERYBODY, budget, "random", wander(&EVERYBODY, budget, runs));
}

explored! {
    two_writers_and_a_write_back: WRITE_BACK,
    writes_in_turn_and_a_reader: WRITES_IN_TURN,
    two_writers_of_replicas_and_a_synchronisation: REPLICAS,
    an_eviction_a_writer_and_a_reader: EVICTION,
    a_write_back_of_what_is_clean_and_two_writers: CLEAN,
    a_reader_of_what_is_evicted_and_fetched_again: EVICTED_AND_FETCHED,
    an_eviction_of_what_was_written_back_a_writer_and_a_sync: EVICTION_AND_SYNC,
    an_eviction_of_the_first_of_two_valid_copies_a_writer_and_a_sync: EVICTION_OF_THE_FIRST,
    two_syncs_and_a_writer: SYNCS,
    a_fetch_a_writer_and_a_sync: FETCH_AND_SYNC,
    two_leave_and_one_of_them_comes_back: COMING_AND_GOING,
    one_closes_another_comes_and_writes: REOPENING,
    a_new_journal_a_sync_and_one_who_comes: REWRITE,
    one_who_knows_the_map_and_one_who_changes_it_and_dies: CACHES,
    a_truncate_a_writer_and_a_copier: TRUNCATE,
    two_copiers_and_a_writer: COPIERS,
}
