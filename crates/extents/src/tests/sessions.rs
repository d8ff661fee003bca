//! A file that is opened, written and closed repeatedly.

use super::support::*;
use crate::{Journal, Map};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1024;
const SESSIONS: u64 = 200;

/// One session of a 4 MiB file. It may move any block to another copy.
fn session(map: &Map, number: u64) {
    let at = |i: u64| (number * 7919 + i * 104_729) % BLOCKS * BLOCK;
    for i in 0..400 {
        write(map, at(i)..at(i) + BLOCK, (number + i) as usize % 2);
        if i % 8 == 0 {
            map.sync(nothing).unwrap();
        }
    }
}

#[test]
fn the_journal_does_not_grow_with_the_number_of_sessions() {
    let stage = Stage::cached();
    let mut largest = 0;
    for number in 0..SESSIONS {
        let map = stage.join();
        session(&map, number);
        let before = spans(&map, 0..BLOCK * BLOCKS);
        map.leave(nothing).unwrap();
        let bytes = std::fs::metadata(stage.journal()).unwrap().len();
        let journal = Journal::read(&real(), &stage.spec).unwrap();
        let limit = crate::journal::limit_bytes(journal.needed_bytes());
        // The last batch is appended after the check of the size.
        assert!(bytes <= limit + 4096, "session {number}: {bytes} bytes, limit {limit}");
        assert_eq!(spans(&stage.join(), 0..BLOCK * BLOCKS), before, "session {number}");
        largest = largest.max(bytes);
    }
    println!("largest: {largest} bytes after {SESSIONS} sessions");
}

#[test]
fn what_is_written_in_order_is_one_range_of_the_journal() {
    let stage = Stage::cached();
    let map = stage.join();
    (0..BLOCKS * 4).for_each(|block| write(&map, block * BLOCK..(block + 1) * BLOCK, 1));
    map.leave(nothing).unwrap();
    let journal = Journal::read(&real(), &stage.spec).unwrap();
    assert_eq!(journal.spans.len(), 1);
    // A header, three batches, and a node name.
    let bytes = std::fs::metadata(stage.journal()).unwrap().len();
    assert!(bytes < 250, "{bytes} bytes for one range");
}
