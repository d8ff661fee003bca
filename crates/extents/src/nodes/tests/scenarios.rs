//! Files, nodes and limits of the explorations.

use super::explore::{explore, wander, wander_on_files};
use crate::Mask;

/// How often each kind of step may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    pub writes: u8,
    pub copies: u8,
    pub evictions: u8,
    pub truncates: u8,
    pub crashes: u8,
    /// A node is cut off and returns.
    pub cuts: u8,
    /// A process dies in a write, and its node goes on.
    pub aborts: u8,
    pub leaves: u8,
    pub rewrites: u8,
    pub reads: u8,
}

pub const NONE: Budget = Budget {
    writes: 0,
    copies: 0,
    evictions: 0,
    truncates: 0,
    crashes: 0,
    cuts: 0,
    aborts: 0,
    leaves: 0,
    rewrites: 0,
    reads: 0,
};

pub struct Scenario {
    pub name: &'static str,
    pub nodes: usize,
    pub blocks: usize,
    pub copies: usize,
    pub default: Mask,
    pub budget: Budget,
    /// Whether a session may become alone again.
    pub is_alone_again: bool,
    /// Whether writes go to whole files as well as to blocks.
    pub has_long_writes: bool,
}

fn is_long() -> bool {
    std::env::var_os("STRIPEWISE_LONG").is_some()
}

fn report(scenario: &Scenario, how: &str, outcome: super::explore::Outcome) {
    let super::explore::Outcome { states, steps, is_cut_off, failure } = outcome;
    let limited = if is_cut_off { " (not all)" } else { "" };
    println!("{}: {states} {how}{limited}, {steps} steps", scenario.name);
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
}

/// Explores a scenario: the first `states` states, in a long run up to `long`; and random
/// schedules, after which everything settles.
fn all(scenario: &'static Scenario, states: u64, long: u64) {
    report(scenario, "states", explore(scenario, if is_long() { long } else { states }));
    let (schedules, length) = if is_long() { (5000, 200) } else { (300, 100) };
    report(scenario, "schedules", wander(scenario, schedules, length));
}

const SMALL: Scenario = Scenario {
    name: "",
    nodes: 2,
    blocks: 1,
    copies: 2,
    default: Mask::ORIGINAL,
    budget: NONE,
    is_alone_again: false,
    has_long_writes: false,
};

const WRITERS: Scenario =
    Scenario { name: "two writers", budget: Budget { writes: 2, crashes: 1, aborts: 1, ..NONE }, ..SMALL };

const REPLICAS: Scenario = Scenario {
    name: "two writers and a copier of replicas",
    default: Mask::all(2),
    budget: Budget { writes: 2, copies: 1, crashes: 1, ..NONE },
    ..SMALL
};

const EVICTION: Scenario = Scenario {
    name: "an eviction, a copier, a writer and a reader",
    default: Mask::all(2),
    budget: Budget { writes: 1, copies: 1, evictions: 2, reads: 1, ..NONE },
    ..SMALL
};

const EVICTION_AND_CRASH: Scenario = Scenario {
    name: "an eviction, a writer, a reader and a crash",
    default: Mask::all(2),
    budget: Budget { writes: 1, evictions: 1, reads: 1, crashes: 1, ..NONE },
    ..SMALL
};

const TRUNCATE: Scenario = Scenario {
    name: "a truncate, two writers and a copier",
    blocks: 2,
    budget: Budget { writes: 2, copies: 1, truncates: 1, ..NONE },
    ..SMALL
};

const TRUNCATE_AND_CRASH: Scenario = Scenario {
    name: "a truncate, a writer and a crash",
    default: Mask::all(2),
    budget: Budget { writes: 2, copies: 1, truncates: 1, crashes: 1, ..NONE },
    ..SMALL
};

const CUT_OFF: Scenario = Scenario {
    name: "a node that is cut off and returns",
    budget: Budget { writes: 2, copies: 1, cuts: 1, ..NONE },
    ..SMALL
};

const REWRITE: Scenario = Scenario {
    name: "a rewrite of the log",
    default: Mask::all(2),
    budget: Budget { writes: 1, copies: 1, evictions: 1, reads: 1, rewrites: 1, ..NONE },
    ..SMALL
};

const COMING_AND_GOING: Scenario = Scenario {
    name: "nodes come, go and are alone",
    budget: Budget { writes: 2, copies: 1, evictions: 1, leaves: 2, ..NONE },
    is_alone_again: true,
    ..SMALL
};

const LONG_WRITES: Scenario = Scenario {
    name: "writes of blocks and of the file",
    blocks: 2,
    default: Mask::all(2),
    budget: Budget { writes: 2, copies: 1, aborts: 1, ..NONE },
    has_long_writes: true,
    ..SMALL
};

const THREE_NODES: Scenario = Scenario {
    name: "three nodes",
    nodes: 3,
    default: Mask::all(2),
    budget: Budget { writes: 1, evictions: 1, reads: 1, crashes: 1, ..NONE },
    ..SMALL
};

const THREE_COPIES: Scenario = Scenario {
    name: "three copies",
    copies: 3,
    default: Mask::all(3),
    budget: Budget { writes: 2, copies: 2, evictions: 1, ..NONE },
    ..SMALL
};

const FEW_WRITES: Scenario =
    Scenario { name: "a write and a crash", budget: Budget { writes: 1, crashes: 1, ..NONE }, ..SMALL };

const FEW_COPIES: Scenario =
    Scenario { name: "a write and a copy", budget: Budget { writes: 1, copies: 1, ..NONE }, ..SMALL };

const FEW_EVICTIONS: Scenario = Scenario {
    name: "an eviction and two readers",
    nodes: 3,
    default: Mask::all(2),
    budget: Budget { evictions: 1, reads: 2, ..NONE },
    ..SMALL
};

const FEW_TRUNCATES: Scenario = Scenario {
    name: "a write and a truncate",
    default: Mask::all(2),
    budget: Budget { writes: 1, truncates: 1, ..NONE },
    ..SMALL
};

/// Too many states to go through: for random schedules.
const EVERYTHING: Scenario = Scenario {
    name: "three nodes do everything",
    nodes: 3,
    blocks: 3,
    copies: 3,
    default: Mask::ORIGINAL,
    budget: Budget {
        writes: 8,
        copies: 8,
        evictions: 6,
        truncates: 2,
        crashes: 3,
        cuts: 3,
        aborts: 2,
        leaves: 3,
        rewrites: 2,
        reads: 6,
    },
    is_alone_again: true,
    has_long_writes: true,
};

#[test]
fn three_nodes_do_everything() {
    let (schedules, length) = if is_long() { (20_000, 400) } else { (2000, 200) };
    report(&EVERYTHING, "schedules", wander(&EVERYTHING, schedules, length));
}

#[test]
fn three_nodes_do_everything_on_files() {
    let (schedules, length) = if is_long() { (5000, 400) } else { (200, 200) };
    report(&EVERYTHING, "schedules on files", wander_on_files(&EVERYTHING, schedules, length));
}

macro_rules! explored {
    ($($test:ident: $scenario:ident, $states:expr, $long:expr);+ $(;)?) => {$(
        #[test]
        fn $test() {
            all(&$scenario, $states, $long);
        }
    )+};
}

explored! {
    a_write_and_a_crash: FEW_WRITES, 50_000, 1_200_000;
    a_write_and_a_copy: FEW_COPIES, 50_000, 1_200_000;
    an_eviction_and_two_readers: FEW_EVICTIONS, 20_000, 1_200_000;
    a_write_and_a_truncate: FEW_TRUNCATES, 50_000, 1_200_000;
    two_writers_and_a_crash: WRITERS, 20_000, 1_200_000;
    two_writers_a_copier_and_a_crash: REPLICAS, 20_000, 1_200_000;
    an_eviction_a_copier_a_writer_and_a_reader: EVICTION, 20_000, 1_200_000;
    an_eviction_a_writer_a_reader_and_a_crash: EVICTION_AND_CRASH, 20_000, 1_200_000;
    a_truncate_two_writers_and_a_copier: TRUNCATE, 20_000, 1_200_000;
    a_truncate_a_writer_and_a_crash: TRUNCATE_AND_CRASH, 20_000, 1_200_000;
    a_node_is_cut_off_and_returns: CUT_OFF, 20_000, 1_200_000;
    a_rewrite_of_the_log: REWRITE, 20_000, 1_200_000;
    nodes_come_and_go_and_are_alone: COMING_AND_GOING, 20_000, 1_200_000;
    writes_of_blocks_and_of_the_file: LONG_WRITES, 20_000, 1_200_000;
    three_nodes: THREE_NODES, 20_000, 1_200_000;
    three_copies: THREE_COPIES, 20_000, 1_200_000;
}
