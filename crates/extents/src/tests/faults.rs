//! Joining maps that are damaged, lost, or in use elsewhere, and repairing them.

use stripewise_sys::Errno;

use super::support::*;
use crate::journal::Journal;
use crate::shared::Word;
use crate::{Map, MapError, MapSpec, Mask, Node, Span, repair};

fn refused(stage: &Stage) -> MapError {
    stage.try_join().unwrap_err()
}

fn journal(stage: &Stage) -> Journal {
    Journal::read(&real(), &stage.spec).unwrap()
}

/// A file with a dirty range that was synced and one that was not; all of its processes have died.
fn left_open() -> Stage {
    let mut stage = Stage::replicated(2);
    let map = stage.join();
    write(&map, 0..10, 1);
    map.sync(nothing).unwrap();
    write(&map, 20..30, 1);
    stage.spec.create = false;
    stage
}

#[test]
fn a_missing_journal_is_told_unless_the_file_is_new() {
    let mut stage = Stage::cached();
    stage.spec.create = false;
    let error = refused(&stage);
    assert!(matches!(error, MapError::Missing { .. }));
    assert_eq!(error.errno(), Errno::IO);
    assert!(!stage.journal().exists());
    let report = repair::reset(&real(), &stage.spec, nothing).unwrap();
    assert!(report.repaired);
    assert_eq!(spans(&stage.join(), 0..10), [(0, 10, only(0))]);
}

#[test]
fn a_damaged_journal_is_told_and_reset_to_the_original() {
    let mut stage = Stage::replicated(2);
    stage.join().leave(nothing).unwrap();
    stage.spec.create = false;
    let mut bytes = std::fs::read(stage.journal()).unwrap();
    bytes[20] ^= 1;
    std::fs::write(stage.journal(), bytes).unwrap();
    assert!(refused(&stage).to_string().contains("fsck --repair"));
    repair::reset(&real(), &stage.spec, nothing).unwrap();
    assert_eq!(spans(&stage.join(), 0..10), [(0, 10, only(0))]);
}

#[test]
fn a_damaged_journal_is_made_anew_from_the_index_that_is_left() {
    let stage = left_open();
    std::fs::remove_file(stage.journal()).unwrap();
    let mut synced = false;
    let sync = || {
        synced = true;
        Ok(())
    };
    let report = repair::reset(&real(), &stage.spec, sync).unwrap();
    assert!(synced);
    assert_eq!(report.dirty.len(), 2);
    let (one, all) = (only(1), Mask::all(2));
    assert_eq!(spans(&stage.join(), 0..40), [(0, 10, one), (10, 20, all), (20, 30, one), (30, 40, all)]);
}

#[test]
fn killed_processes_leave_their_map_to_the_next() {
    let stage = left_open();
    let (one, all) = (only(1), Mask::all(2));
    assert_eq!(spans(&stage.join(), 0..40), [(0, 10, one), (10, 20, all), (20, 30, one), (30, 40, all)]);
}

#[test]
fn a_lost_map_is_told_and_repaired_by_falling_back() {
    let stage = left_open();
    std::fs::remove_dir_all(&stage.spec.run_dir).unwrap();
    let error = refused(&stage);
    assert!(matches!(error, MapError::Lost { .. }), "{error}");
    assert_eq!(error.errno(), Errno::IO);
    let report = repair::collapse(&real(), &stage.spec).unwrap();
    assert_eq!(report.dirty.iter().map(|span| span.range()).collect::<Vec<_>>(), [0..10]);
    assert_eq!(report.fell_back[0].range(), 10..u64::MAX);
    assert_eq!(spans(&stage.join(), 0..40), [(0, 10, only(1)), (10, 40, only(0))]);
    assert!(!repair::collapse(&real(), &stage.spec).unwrap().repaired);
}

#[test]
fn a_damaged_index_is_a_lost_map() {
    let stage = left_open();
    std::fs::write(stage.spec.run_dir.join("data.mdb"), [0x55; 32768]).unwrap();
    assert!(matches!(refused(&stage), MapError::Lost { .. }));
    assert!(repair::collapse(&real(), &stage.spec).unwrap().repaired);
    assert_eq!(spans(&stage.join(), 0..40), [(0, 10, only(1)), (10, 40, only(0))]);
}

#[test]
fn another_nodes_file_is_refused_until_it_is_taken_over() {
    let mut stage = left_open();
    std::fs::remove_dir_all(&stage.spec.run_dir).unwrap();
    stage.spec.node = node("there", 1);
    let error = refused(&stage);
    assert_eq!(error.errno(), Errno::BUSY);
    assert!(error.to_string().contains("in use by node here"), "{error}");
    assert!(!repair::collapse(&real(), &stage.spec).unwrap().repaired, "that is for one's own");
    assert!(repair::take_over(&real(), &stage.spec).unwrap().repaired);
    assert_eq!(spans(&stage.join(), 0..10), [(0, 10, only(1))]);
}

#[test]
fn machines_made_from_one_image_are_told_apart() {
    let mut stage = Stage::cached();
    let joins = |stage: &mut Stage, wrote: &str, looks: &str| {
        let _ = std::fs::remove_dir_all(&stage.spec.run_dir);
        let _ = std::fs::remove_file(stage.journal());
        stage.spec.node = node(wrote, 1);
        write(&stage.join(), 0..10, 1);
        // Another boot, without the shared state of this one.
        std::fs::remove_dir_all(&stage.spec.run_dir).unwrap();
        stage.spec.node = node(looks, 2);
        match stage.try_join() {
            Ok(_) => true,
            Err(MapError::OtherNode { .. }) => false,
            Err(error) => panic!("{wrote}, {looks}: {error}"),
        }
    };
    assert!(joins(&mut stage, "id/host/02fc01", "id/host/02fc01"), "after a reboot");
    assert!(joins(&mut stage, "id/host/02fc01", "id/host/02fc00+02fc01"), "with one more device");
    assert!(joins(&mut stage, "id", "id/host/02fc01"), "written by an earlier version");
    assert!(!joins(&mut stage, "id/host/02fc01", "id/host/02fc02"), "other hardware");
    assert!(!joins(&mut stage, "id/host/02fc01", "id/other/02fc01"), "another host name");
    assert!(!joins(&mut stage, "id/host/", "id/host/"), "nothing that tells them apart");
    assert!(!joins(&mut stage, "id", "di/host/02fc01"), "another machine id");
    let this = Node::this(&real()).unwrap();
    assert!(this.name.split('/').count() == 3 && this.is_same_machine(&this), "{this:?}");
}

#[test]
fn processes_of_one_boot_that_see_other_names_are_one_node() {
    let mut stage = Stage::cached();
    stage.spec.node = node("id/host/02fc01", 1);
    let map = stage.join();
    // In namespaces of its own: no network devices, and another host name.
    stage.spec.node = node("id/inner/", 1);
    let inner = stage.join();
    write(&inner, 0..10, 1);
    write(&map, 10..20, 1);
    inner.sync(nothing).unwrap();
    map.sync(nothing).unwrap();
    assert_eq!(journal(&stage).opened, Some(node("id/host/02fc01", 1)));
}

#[test]
fn nothing_is_repaired_under_running_processes() {
    let stage = left_open();
    let _map = stage.join();
    assert_eq!(repair::collapse(&real(), &stage.spec).unwrap_err().errno(), Errno::BUSY);
    assert_eq!(repair::reset(&real(), &stage.spec, nothing).unwrap_err().errno(), Errno::BUSY);
}

#[test]
fn another_file_or_plan_is_refused() {
    let mut stage = Stage::cached();
    drop(stage.join());
    let mut other = stage.spec.clone();
    other.id = [1; 16];
    let error = Map::join_tuned(real(), other, SMALL).unwrap_err();
    assert!(matches!(error, MapError::Foreign { .. }), "{error}");
    stage.spec.copies = 3;
    assert!(refused(&stage).to_string().contains("2 copies instead of 3"));
}

#[test]
fn another_version_is_refused_while_it_runs_and_replaced_when_it_is_gone() {
    let stage = Stage::cached();
    let map = stage.join();
    map.joined().unwrap().shared.set(Word::Version, 99);
    assert!(matches!(refused(&stage), MapError::Version { found: 99, .. }));
    drop(map);
    stage.join();
}

#[test]
fn a_journal_that_another_node_opened_meanwhile_is_not_written_to() {
    let stage = Stage::cached();
    let map = stage.join();
    let other = Map::join_tuned(real(), elsewhere(&stage), SMALL).unwrap();
    write(&other, 0..10, 1);
    let error = map.begin_write(0..10).err().unwrap();
    assert!(matches!(error, MapError::Changed { .. }), "{error}");
}

/// The same file on another node.
fn elsewhere(stage: &Stage) -> MapSpec {
    let run_dir = stage.spec.run_dir.with_extension("there");
    MapSpec { node: node("there", 7), run_dir, ..stage.spec.clone() }
}

#[test]
fn an_index_that_readers_left_is_rebuilt_if_another_node_has_written_since() {
    let stage = Stage::cached();
    for range in [0..10, 20..30] {
        // The second time, the other node rewrites the journal as well.
        let map = stage.join();
        assert_eq!(spans(&map, range.clone()), [(range.start, range.end, only(0))]);
        drop(map);
        let other = Map::join_tuned(real(), elsewhere(&stage), SMALL).unwrap();
        write(&other, range.clone(), 1);
        other.leave(nothing).unwrap();
        if range.start > 0 {
            std::fs::copy(stage.journal(), stage.journal().with_extension("new")).unwrap();
            std::fs::rename(stage.journal().with_extension("new"), stage.journal()).unwrap();
        }
        assert_eq!(spans(&stage.join(), range.clone()), [(range.start, range.end, only(1))]);
    }
}

#[test]
fn an_index_that_writers_left_is_refused_after_another_node_has_taken_over() {
    let stage = left_open();
    let there = elsewhere(&stage);
    repair::take_over(&real(), &there).unwrap();
    let other = Map::join_tuned(real(), there, SMALL).unwrap();
    write(&other, 40..50, 1);
    other.leave(nothing).unwrap();
    assert!(matches!(refused(&stage), MapError::Changed { .. }));
    assert!(repair::collapse(&real(), &stage.spec).unwrap().repaired);
    assert_eq!(spans(&stage.join(), 40..50), [(40, 50, only(1))]);
    assert!(!repair::collapse(&real(), &stage.spec).unwrap().repaired);
}

#[test]
fn a_journal_put_back_while_in_use_is_not_written_to() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 0..10, 1);
    let backup = stage.journal().with_extension("backup");
    std::fs::copy(stage.journal(), &backup).unwrap();
    std::fs::rename(&backup, stage.journal()).unwrap();
    assert_eq!(map.sync(nothing).unwrap_err().errno(), Errno::IO);
}

#[test]
fn a_journal_removed_while_in_use_is_made_anew_by_the_next_sync() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 0..10, 1);
    std::fs::remove_file(stage.journal()).unwrap();
    map.sync(nothing).unwrap();
    let journal = journal(&stage);
    assert_eq!((journal.spans.len(), journal.opened), (1, Some(stage.spec.node.clone())));
}

#[test]
fn writes_are_refused_when_the_shared_state_has_lost_its_name() {
    let stage = Stage::cached();
    let map = stage.join();
    std::fs::remove_dir_all(&stage.spec.run_dir).unwrap();
    assert!(matches!(map.begin_write(0..1).err().unwrap(), MapError::Lost { .. }));
}

#[test]
fn an_unlinked_file_goes_on_without_a_journal() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 0..10, 1);
    repair::remove(&real(), &stage.spec).unwrap();
    assert!(!stage.journal().exists());
    write(&map, 10..20, 1);
    map.sync(nothing).unwrap();
    assert_eq!(spans(&map, 0..20), [(0, 20, only(1))]);
    // A forked child joins it as well.
    let mut spec = stage.spec.clone();
    spec.create = false;
    let child = Map::join_tuned(real(), spec, SMALL).unwrap();
    assert_eq!(spans(&child, 0..20), [(0, 20, only(1))]);
    drop(child);
    map.leave(nothing).unwrap();
    assert!(!stage.journal().exists() && !stage.spec.run_dir.exists());
}

#[test]
fn removing_a_file_that_nobody_has_open_removes_everything() {
    let stage = left_open();
    repair::remove(&real(), &stage.spec).unwrap();
    assert!(!stage.journal().exists() && !stage.spec.run_dir.exists());
    repair::remove(&real(), &stage.spec).unwrap();
}

#[test]
fn full_memory_is_an_error_of_the_write() {
    let stage = Stage::cached();
    let map = Map::join_tuned(real(), stage.spec.clone(), SMALL).unwrap();
    map.joined().unwrap().shared.set(Word::Allocated, 0);
    let full = Map::join_tuned(Failing::new("allocate", Errno::NOSPC), stage.spec.clone(), SMALL);
    assert_eq!(full.unwrap_err().errno(), Errno::NOSPC);
}

#[test]
fn a_data_sync_that_fails_leaves_everything_pending() {
    let stage = Stage::cached();
    let map = stage.join();
    write(&map, 0..10, 1);
    assert_eq!(map.sync(|| Err(Errno::IO)).unwrap_err().errno(), Errno::IO);
    assert!(journal(&stage).spans.is_empty());
    map.sync(nothing).unwrap();
    assert_eq!(journal(&stage).spans.len(), 1);
    assert_eq!(map.leave(|| Err(Errno::NOSPC)).unwrap_err().errno(), Errno::NOSPC);
    assert!(stage.spec.run_dir.exists());
    stage.join().leave(nothing).unwrap();
    assert!(!stage.spec.run_dir.exists());
}

#[test]
fn a_journal_is_written_anew_when_it_has_grown() {
    let stage = Stage::in_memory(2, Mask::ORIGINAL);
    let map = stage.join();
    for number in 0..4000u64 {
        write(&map, number % 7 * 10..number % 7 * 10 + 5, (number % 2) as usize);
        map.sync(nothing).unwrap();
    }
    assert!(std::fs::metadata(stage.journal()).unwrap().len() < 80 << 10);
    let listed = map.list(crate::Select::Listed, 0..u64::MAX, 100).unwrap();
    assert_eq!(journal(&stage).spans, listed);
}

#[test]
fn a_lost_copy_is_forgotten_and_what_only_it_had_not_without_being_asked() {
    let mut stage = Stage::replicated(3);
    let map = stage.join();
    write(&map, 0..10, 1);
    write(&map, 20..30, 2);
    assert!(copy_over(&map, 0..5, 1, 2));
    let forget = |spec: &MapSpec, drop_dirty: bool| repair::forget(&real(), spec, copy(2), 100, drop_dirty);
    assert_eq!(forget(&stage.spec, true).unwrap_err().errno(), Errno::BUSY);
    map.leave(nothing).unwrap();
    stage.spec.create = false;
    let before = journal(&stage);
    let refused = forget(&stage.spec, false).unwrap();
    assert_eq!((refused.repaired, refused.dirty), (false, vec![Span::new(20..30, only(2))]));
    assert_eq!(journal(&stage), before);
    let done = forget(&stage.spec, true).unwrap();
    assert_eq!((done.repaired, done.fell_back), (true, vec![Span::new(20..30, only(2))]));
    let others = mask(&[0, 1]);
    let expected = [(0, 10, only(1)), (10, 20, others), (20, 30, only(0)), (30, 100, others)];
    let map = stage.join();
    assert_eq!(spans(&map, 0..110), [&expected[..], &[(100, 110, Mask::all(3))]].concat());
    map.leave(nothing).unwrap();
    assert!(!forget(&stage.spec, true).unwrap().repaired, "there is nothing left of it");
}

#[test]
fn a_torn_batch_is_cut_off() {
    let stage = Stage::replicated(2);
    let map = stage.join();
    write(&map, 0..10, 1);
    map.leave(nothing).unwrap();
    let whole = journal(&stage);
    let mut bytes = std::fs::read(stage.journal()).unwrap();
    bytes.extend(b"swb\x01 a batch that was never finished");
    std::fs::write(stage.journal(), bytes).unwrap();
    assert!(journal(&stage).cut_bytes > 0);
    assert!(repair::trim(&real(), &stage.spec).unwrap().repaired);
    assert_eq!((journal(&stage).spans, journal(&stage).cut_bytes), (whole.spans, 0));
    assert!(!repair::trim(&real(), &stage.spec).unwrap().repaired);
}
