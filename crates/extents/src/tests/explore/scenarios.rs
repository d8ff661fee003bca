//! Who does what.

use super::{Budget, Process, Scenario, explore};
use crate::Mask;

fn nothing(_: &Process) {}

/// Bytes 0 to 2 are dirty in the cache copy; they are written back while two others write.
pub const WRITE_BACK: Scenario = Scenario {
    name: "two writers and a write-back",
    copies: 2,
    default: Mask::ORIGINAL,
    size: 4,
    before: |process| process.write(0..3, 1),
    processes: &[
        ("writer 0", |process| process.write(1..3, 0)),
        ("writer 1", |process| process.write(2..4, 1)),
        ("copier", |process| process.copy(0..4, 1, 0)),
    ],
};

/// The same with a write that is acknowledged before another: what was seen or acknowledged may not vanish.
pub const WRITES_IN_TURN: Scenario = Scenario {
    name: "writes in turn, and a reader",
    copies: 2,
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

/// All copies are the same at first; writers choose different ones, and one is brought up to date.
pub const REPLICAS: Scenario = Scenario {
    name: "two writers of replicas and a synchronisation",
    copies: 3,
    default: Mask::all(3),
    size: 3,
    before: |process| process.write(1..2, 2),
    processes: &[
        ("writer 0", |process| process.write(0..2, 0)),
        ("writer 1", |process| process.write(1..3, 1)),
        ("copier", |process| process.copy(0..3, 2, 0)),
    ],
};

/// A clean cache copy is evicted while others read and write.
pub const EVICTION: Scenario = Scenario {
    name: "an eviction, a writer and a reader",
    copies: 2,
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

/// A range that the journal only knows in the cache copy, synced; written back, and evicted, while another syncs.
pub const EVICTION_AND_SYNC: Scenario = Scenario {
    name: "an eviction of what was written back, a writer and a sync",
    copies: 3,
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

/// Writes that become durable while others go on.
pub const SYNCS: Scenario = Scenario {
    name: "two syncs and a writer",
    copies: 2,
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

/// A fetch and a sync, and a write to where the fetched bytes came from.
pub const FETCH_AND_SYNC: Scenario = Scenario {
    name: "a fetch, a writer and a sync",
    copies: 2,
    default: Mask::ORIGINAL,
    size: 2,
    before: nothing,
    processes: &[
        ("copier", |process| process.copy(0..2, 0, 1)),
        ("writer", |process| process.write(0..1, 0)),
        ("syncer", |process| process.sync()),
    ],
};

/// The last ones leave, another comes.
pub const COMING_AND_GOING: Scenario = Scenario {
    name: "two leave, one of them comes back",
    copies: 2,
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

/// The file is cut while it is copied and written.
pub const TRUNCATE: Scenario = Scenario {
    name: "a truncate, a writer and a copier",
    copies: 2,
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

/// Two that copy: only one may.
pub const COPIERS: Scenario = Scenario {
    name: "two copiers and a writer",
    copies: 3,
    default: Mask::ORIGINAL,
    size: 2,
    before: nothing,
    processes: &[
        ("copier 1", |process| process.copy(0..2, 0, 1)),
        ("copier 2", |process| process.copy(0..2, 0, 2)),
        ("writer", |process| process.write(0..1, 1)),
    ],
};

fn all(scenario: &Scenario) {
    let long = std::env::var_os("STRIPEWISE_LONG").is_some();
    // All schedules take minutes; the short version goes through the first ones of each kind.
    let runs = if long { u64::MAX } else { 300 };
    let budgets: &[(usize, usize)] = if long { &[(3, 0), (2, 1), (1, 2)] } else { &[(1, 0), (1, 1)] };
    for &(preemptions, kills) in budgets {
        let started = std::time::Instant::now();
        let outcome = explore(scenario, Budget { preemptions, kills }, None, runs);
        println!(
            "{}: {} runs, {} steps, {} kills, with {preemptions} preemptions and {kills} kills at most, in {:?}",
            scenario.name,
            outcome.runs,
            outcome.steps,
            outcome.kills,
            started.elapsed()
        );
        assert!(outcome.failure.is_none(), "{}: {}", scenario.name, outcome.failure.unwrap_or_default());
    }
}

macro_rules! explored {
    ($($test:ident: $scenario:ident),+ $(,)?) => {$(
        #[test]
        fn $test() {
            all(&$scenario);
        }
    )+};
}

explored! {
    two_writers_and_a_write_back: WRITE_BACK,
    writes_in_turn_and_a_reader: WRITES_IN_TURN,
    two_writers_of_replicas_and_a_synchronisation: REPLICAS,
    an_eviction_a_writer_and_a_reader: EVICTION,
    an_eviction_of_what_was_written_back_a_writer_and_a_sync: EVICTION_AND_SYNC,
    two_syncs_and_a_writer: SYNCS,
    a_fetch_a_writer_and_a_sync: FETCH_AND_SYNC,
    two_leave_and_one_of_them_comes_back: COMING_AND_GOING,
    a_truncate_a_writer_and_a_copier: TRUNCATE,
    two_copiers_and_a_writer: COPIERS,
}
