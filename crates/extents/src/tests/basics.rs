//! One process without faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::support::*;
use crate::hooks;
use crate::{Journal, Mask, Select};

#[test]
fn a_cached_write_is_dirty_then_clean_then_evicted() {
    let stage = Stage::cached();
    let map = stage.join();
    assert_eq!(spans(&map, 0..100), [(0, 100, only(0))]);
    write(&map, 10..20, 1);
    assert_eq!(spans(&map, 0..100), [(0, 10, only(0)), (10, 20, only(1)), (20, 100, only(0))]);
    assert_eq!(map.list(Select::NotValidIn(copy(0)), 0..u64::MAX, 10).unwrap().len(), 1);
    let joined = map.joined().unwrap();
    assert_eq!(joined.index.state(&joined.read().unwrap()).unwrap().listed[1], 10);
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
    assert_eq!(evicted.unwrap(), [10..15]);
    assert_eq!((synced, punched), (1, vec![0..15]));
    drop(copier);
    assert_eq!(spans(&map, 0..100), [(0, 15, only(0)), (15, 20, mask(&[0, 1])), (20, 100, only(0))]);
    map.leave(nothing).unwrap();
    let journal = Journal::read(&real(), &stage.spec).unwrap();
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
    let journal = Journal::read(&real(), &stage.spec).unwrap();
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
    // A new boot without the index: a power cut.
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

/// The change of a process that died around its commit may come into the map late, without a live
/// pin.
#[test]
fn a_copy_leaves_alone_what_has_changed_without_a_pin() {
    let stage = Stage::new(3, Mask::ORIGINAL);
    let map = stage.join();
    let mut copier = map.copier().unwrap().unwrap();
    let guard = copier.begin(0..10, copy(0), copy(2)).unwrap().unwrap();
    assert_eq!(guard.parts(), [0..10]);
    map.joined().unwrap().change(3..5, |_| Some(only(1))).unwrap();
    assert_eq!(guard.finish(nothing).unwrap(), [0..3, 5..10]);
    let both = mask(&[0, 2]);
    assert_eq!(spans(&map, 0..10), [(0, 3, both), (3, 5, only(1)), (5, 10, both)]);
}

#[test]
fn wishes_last_until_they_are_fulfilled() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 10..20, 1);
    map.add_hint(0..40, copy(1)).unwrap();
    let hints = |map: &crate::Map| -> Vec<_> {
        let list = map.list(Select::Hinted(copy(1)), 0..u64::MAX, 10).unwrap();
        list.iter().map(|span| span.range()).collect()
    };
    assert_eq!(hints(&map), [0..10, 20..40]);
    assert!(copy_over(&map, 0..30, 0, 1));
    assert_eq!(hints(&map), std::iter::once(30..40).collect::<Vec<_>>());
    assert!(copy_over(&map, 30..40, 0, 1));
    assert!(hints(&map).is_empty());
}

#[test]
fn what_was_used_last_is_evicted_last() {
    const SEGMENT: u64 = 1 << 20;
    let stage = Stage::cached();
    let map = stage.join();
    for segment in 0..5u64 {
        write(&map, segment * SEGMENT..segment * SEGMENT + 100, 1);
    }
    assert!(copy_over(&map, 0..5 * SEGMENT, 1, 0));
    in_order_of_use(&map);
    // With more segments than entries, the whole map is read instead.
    write(&map, 40 * SEGMENT..40 * SEGMENT + 1, 1);
    in_order_of_use(&map);
}

fn in_order_of_use(map: &crate::Map) {
    const SEGMENT: u64 = 1 << 20;
    let shared = &map.joined().unwrap().shared;
    for (segment, used) in [(0u64, 50), (1, 10), (2, 40), (3, 20), (4, 30)] {
        shared.touch(&(segment * SEGMENT..segment * SEGMENT + 1), used);
    }
    let oldest = map.least_recent(copy(1), 250).unwrap();
    let starts: Vec<u64> = oldest.iter().map(|span| span.start / SEGMENT).collect();
    assert_eq!(starts, [1, 3, 4]);
    assert!(map.least_recent(copy(1), u64::MAX).unwrap().len() == 5);
    assert!(map.least_recent(copy(0), 0).unwrap().is_empty());
}

#[test]
fn what_could_be_evicted_is_counted() {
    let stage = Stage::cached();
    let map = stage.join();
    let clean = |number| map.clean_bytes(copy(number)).unwrap();
    write(&map, 0..100, 1);
    assert_eq!((clean(0), clean(1)), (0, 0));
    assert!(copy_over(&map, 10..60, 1, 0));
    assert_eq!((clean(0), clean(1)), (50, 50));
    map.sync(nothing).unwrap();
    write(&map, 0..20, 1);
    assert_eq!(clean(1), 40);
    let mut copier = map.copier().unwrap().unwrap();
    assert_eq!(copier.evict(0..50, copy(1), nothing, |_| Ok(())).unwrap(), [20..50]);
    drop(copier);
    assert_eq!(clean(1), 10);
    map.leave(nothing).unwrap();
    assert_eq!(stage.join().clean_bytes(copy(1)).unwrap(), 10, "after a rebuild");
}

#[test]
fn lists_go_on_where_they_ended() {
    let stage = Stage::cached();
    let map = stage.join();
    (0..10u64).for_each(|number| write(&map, number * 10..number * 10 + 5, 1));
    let (mut at, mut found) = (0, Vec::new());
    loop {
        let part = map.list(Select::NotValidIn(copy(0)), at..u64::MAX, 3).unwrap();
        let Some(last) = part.last() else { break };
        at = last.end;
        found.extend(part);
    }
    assert_eq!(found.len(), 10);
    assert_eq!(map.list(Select::NotValidIn(copy(1)), 0..12, 9).unwrap()[0].range(), 5..10);
}

#[test]
fn a_sync_that_began_later_counts_for_those_who_waited() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 0..10, 1);
    let (begun, done) = (Arc::new(Begun::default()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let sync = || {
            hooks::act(Some(begun.clone()));
            let slow = || {
                while begun.0.load(Ordering::Acquire) < 9 {
                    std::thread::yield_now();
                }
                done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            map.sync(slow).unwrap();
            hooks::act(None);
        };
        (0..9).for_each(|_| drop(scope.spawn(sync)));
    });
    let done = done.into_inner();
    assert!((1..=2).contains(&done), "{done} syncs of 9 that began before the first had ended");
}

/// Counts the syncs that have begun.
#[derive(Default)]
struct Begun(AtomicUsize);

impl hooks::Actor for Begun {
    fn reach(&self, point: &'static str) {
        self.0.fetch_add(usize::from(point == "sync"), Ordering::AcqRel);
    }

    fn blocked(&self) {
        std::thread::yield_now();
    }

    fn is_dead(&self) -> bool {
        false
    }

    fn take_turn(&self) {}

    fn end_turn(&self) {}
}

#[test]
fn what_lies_behind_the_size_is_forgotten_if_nobody_writes_there() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 0..100, 1);
    map.add_hint(100..200, copy(1)).unwrap();
    drop(map.begin_truncate(50).unwrap());
    assert_eq!(spans(&map, 0..100), [(0, 100, only(1))], "a truncate alone changes no mask");
    assert!(!map.truncated(50, || Ok(51)).unwrap(), "somebody has made the file longer");
    let guard = map.begin_write(60..70).unwrap();
    assert!(!map.truncated(50, || Ok(50)).unwrap());
    drop(guard);
    assert!(map.truncated(50, || Ok(50)).unwrap());
    assert_eq!(spans(&map, 0..100), [(0, 50, only(1)), (50, 100, only(0))]);
    assert!(map.list(Select::Hinted(copy(1)), 0..u64::MAX, 10).unwrap().is_empty());
}

#[test]
fn a_forbidden_copy_is_refused() {
    let stage = Stage::cached();
    let map = stage.join();
    let mut copier = map.copier().unwrap().unwrap();
    assert!(map.copier().unwrap().is_none(), "there is one copier");
    let working = copier.begin(10..20, copy(0), copy(1)).unwrap().unwrap();
    let mut guard = map.begin_write(0..30).unwrap();
    let forbidden: Vec<_> = guard.spans().iter().map(|span| span.forbidden).collect();
    assert_eq!(forbidden, [Mask::NONE, only(1), Mask::NONE]);
    assert_eq!(guard.prepare(15..16, copy(1)).unwrap_err().errno(), stripewise_sys::Errno::BUSY);
    guard.prepare(15..16, copy(0)).unwrap();
    guard.wrote(15..16, copy(0)).unwrap();
    assert_eq!(working.finish(nothing).unwrap(), []);
}
