//! One process, no faults.

use super::support::*;
use crate::{Journal, Mask, Select};

#[test]
fn a_cached_write_is_dirty_then_clean_then_evicted() {
    let stage = Stage::cached();
    let map = stage.join();
    assert_eq!(spans(&map, 0..100), [(0, 100, only(0))]);
    write(&map, 10..20, 1);
    assert_eq!(spans(&map, 0..100), [(0, 10, only(0)), (10, 20, only(1)), (20, 100, only(0))]);
    assert_eq!(map.list(Select::Dirty, 0..u64::MAX, 10).unwrap().len(), 1);
    assert_eq!(map.valid_bytes(copy(1)).unwrap(), 10);
    assert!(copy_over(&map, 0..100, 1, 0));
    assert_eq!(spans(&map, 10..20), [(10, 20, mask(&[0, 1]))]);
    assert_eq!(map.list(Select::CleanIn(copy(1)), 0..u64::MAX, 10).unwrap()[0].range(), 10..20);
    let mut synced = 0;
    let mut punched = Vec::new();
    let mut copier = map.copier().unwrap().unwrap();
    let evicted = copier.evict(
        0..15,
        copy(1),
        || {
            synced += 1;
            Ok(())
        },
        |parts| {
            punched = parts.to_vec();
            Ok(())
        },
    );
    assert_eq!(evicted.unwrap(), 5);
    assert_eq!((synced, punched), (1, vec![0..15]));
    drop(copier);
    assert_eq!(spans(&map, 0..100), [(0, 15, only(0)), (15, 20, mask(&[0, 1])), (20, 100, only(0))]);
    map.leave(nothing).unwrap();
    let journal = Journal::read(&real(), &stage.journal()).unwrap();
    assert_eq!(journal.opened, None);
    assert_eq!(journal.spans.len(), 1);
    assert!(!stage.spec.run_dir.exists());
}

#[test]
fn a_replicated_write_leaves_one_copy_and_a_copier_brings_the_others() {
    let stage = Stage::replicated(3);
    let map = stage.join();
    assert_eq!(spans(&map, 0..50), [(0, 50, Mask::all(3))]);
    write(&map, 10..20, 2);
    assert_eq!(spans(&map, 0..50), [(0, 10, Mask::all(3)), (10, 20, only(2)), (20, 50, Mask::all(3))]);
    assert!(copy_over(&map, 0..50, 2, 0));
    assert!(copy_over(&map, 0..50, 2, 1));
    assert_eq!(spans(&map, 0..50), [(0, 50, Mask::all(3))]);
    map.leave(nothing).unwrap();
    let journal = Journal::read(&real(), &stage.journal()).unwrap();
    assert_eq!((journal.opened, journal.spans), (None, vec![]));
}

#[test]
fn what_is_synced_is_there_after_the_index_is_gone() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 4096..8192, 1);
    map.sync(nothing).unwrap();
    write(&map, 0..4096, 1);
    drop(map);
    std::fs::remove_dir_all(&stage.spec.run_dir).unwrap();
    // Another boot: a power cut.
    let mut stage = stage;
    stage.spec.node = node("here", 2);
    let map = stage.join();
    assert_eq!(spans(&map, 0..8192), [(0, 4096, only(0)), (4096, 8192, only(1))]);
}

#[test]
fn writers_learn_of_mappings_and_are_waited_for() {
    let stage = Stage::cached();
    let (map, other) = (stage.join(), stage.join());
    assert!(!map.is_mapped().unwrap());
    let guard = other.begin_write(10..20).unwrap();
    std::thread::scope(|scope| {
        let mapper = scope.spawn(|| map.set_mapped(true).unwrap());
        while !other.is_mapped().unwrap() {
            std::thread::yield_now();
        }
        assert!(!mapper.is_finished(), "the write may go on to another copy");
        drop(guard);
        mapper.join().unwrap();
    });
    assert!(other.is_mapped().unwrap() && map.is_mapped().unwrap());
    map.set_mapped(false).unwrap();
    assert!(!other.is_mapped().unwrap());
}
