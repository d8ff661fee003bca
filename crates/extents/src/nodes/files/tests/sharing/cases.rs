//! Particular cases of two nodes that have a file open at once.

use super::*;
use crate::nodes::{Hold, HoldKind};

/// Two nodes that have the file open.
fn two_nodes() -> (Bed, NodeOf, NodeOf) {
    let bed = replicated();
    let first = NodeOf::join(&bed, 1);
    let second = served_by(&first, || NodeOf::join(&bed, 2));
    (bed, first, second)
}

/// Does something for which another node has to look at the log.
fn served_by<T: Send>(node: &NodeOf, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let acting = scope.spawn(act);
        while !acting.is_finished() {
            node.poll();
        }
        acting.join().unwrap()
    })
}

/// Ends when a callback is called, or after a while: then its caller waits, as it must.
fn until_called(is_called: &AtomicBool) {
    for _ in 0..200 {
        if is_called.load(Ordering::SeqCst) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Lets `node` commit while it writes; the data must be written by then.
fn commits_after_its_writers(node: &NodeOf, is_committing: impl Fn() -> bool + Sync) {
    let [is_written, is_called, is_early] = [const { AtomicBool::new(false) }; 3];
    // A panic there would let other nodes wait.
    let sync_data = || {
        is_called.store(true, Ordering::SeqCst);
        is_early.fetch_or(!is_written.load(Ordering::SeqCst), Ordering::SeqCst);
        Ok(())
    };
    let mut guard = node.map.begin_write(0..BLOCK).unwrap();
    guard.prepare(0..BLOCK, copy(0)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            IS_PATIENT.set(true);
            while !is_committing() {
                node.map.poll_now(&sync_data, &nothing).unwrap();
            }
        });
        until_called(&is_called);
        is_written.store(true, Ordering::SeqCst);
        guard.wrote(0..BLOCK, copy(0)).unwrap();
        drop(guard);
    });
    assert!(!is_early.load(Ordering::SeqCst), "the data is synced before it is written");
}

#[test]
fn a_session_that_is_alone_shares_only_after_its_writers_are_done() {
    let bed = replicated();
    let first = NodeOf::join(&bed, 1);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| NodeOf::join(&bed, 2));
        commits_after_its_writers(&first, || first.map.is_sharing().unwrap());
        while !second.is_finished() {
            first.poll();
        }
        let second = second.join().unwrap();
        assert_eq!(second.map.begin_read(0..BLOCK).unwrap().spans()[0].mask, Mask::ORIGINAL);
    });
}

#[test]
fn a_hold_is_given_up_only_after_its_writers_are_done() {
    let (_bed, first, second) = two_nodes();
    let mut rng = Rng(1);
    first.write(0..BLOCK, 1, &mut rng);
    first.map.announce(0..BLOCK, copy(0), all(), &nothing).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            IS_PATIENT.set(true);
            drop(second.map.begin_truncate(0).unwrap());
            is_done.store(true, Ordering::SeqCst);
        });
        commits_after_its_writers(&first, || is_done.load(Ordering::SeqCst));
    });
}

#[test]
fn a_node_that_needs_another_copy_than_others_gets_the_whole_block() {
    let (bed, first, second) = two_nodes();
    first.map.announce(0..BLOCK, copy(1), all(), &nothing).unwrap();
    served_by(&first, || {
        IS_PATIENT.set(true);
        second.map.announce(0..BLOCK, copy(0), Mask::ORIGINAL, &nothing).unwrap();
    });
    let log = bed.log();
    let holds: Vec<_> = log.members().map(|(_, member)| member.holds.clone()).collect();
    let hold = Hold { range: 0..4096, kind: HoldKind::Write(copy(0)) };
    assert_eq!(holds, [vec![], vec![hold]]);
}

/// A hold that overlaps the request is not given up by whoever looks at the log next, but by the
/// request: the other node waits less.
#[test]
fn a_write_gives_up_first_what_another_node_asks_for() {
    let (_bed, first, second) = two_nodes();
    first.map.announce(0..BLOCK, copy(1), all(), &nothing).unwrap();
    let asks = |range| second.map.joined().unwrap().try_exclusive(&range, true).unwrap();
    assert!(!asks(0..BLOCK));
    first.map.announce(4095..4097, copy(1), all(), &nothing).unwrap();
    assert!(asks(0..BLOCK));
}

#[test]
fn nothing_is_punched_before_every_node_has_acknowledged_it() {
    let (bed, first, second) = two_nodes();
    let is_called = AtomicBool::new(false);
    let punch = |parts: &[Range<u64>]| {
        is_called.store(true, Ordering::SeqCst);
        assert_eq!(parts, [0..BLOCK]);
        let log = bed.log();
        let own = log.members().next().unwrap().0;
        assert!(crate::nodes::may_punch(&log, own, &(0..BLOCK)), "another node may read there");
        Ok(())
    };
    let evict = || {
        let mut copier = first.map.copier().unwrap().unwrap();
        copier.evict(0..BLOCK, copy(1), nothing, punch).unwrap()
    };
    let evicted = std::thread::scope(|scope| {
        let evicting = scope.spawn(evict);
        until_called(&is_called);
        while !evicting.is_finished() {
            second.poll();
        }
        evicting.join().unwrap()
    });
    assert_eq!(evicted, [0..BLOCK]);
    second.map.acquire().unwrap();
    assert_eq!(second.map.begin_read(0..BLOCK).unwrap().spans()[0].mask, Mask::ORIGINAL);
}

#[test]
fn a_read_starts_over_if_its_copy_was_evicted_and_copied_back() {
    let (_bed, first, second) = two_nodes();
    first.copies.write(&(0..BLOCK), copy(0), &[0; BLOCK as usize]);
    let guard = second.map.begin_read(0..BLOCK).unwrap();
    served_by(&second, || first.evict(0..BLOCK, 1));
    served_by(&second, || first.copy(0..BLOCK, 1));
    second.map.acquire().unwrap();
    assert_eq!(second.map.begin_read(0..BLOCK).unwrap().spans()[0].mask, all());
    assert!(!guard.still_valid(|_| copy(1)).unwrap(), "it may have read the hole");
}

/// Writes the first block to a copy, as the data path does.
fn write_to(node: &NodeOf, to: usize) {
    node.map.announce(0..BLOCK, copy(to), all(), &nothing).unwrap();
    let mut guard = node.map.begin_write(0..BLOCK).unwrap();
    guard.prepare(0..BLOCK, copy(to)).unwrap();
    guard.wrote(0..BLOCK, copy(to)).unwrap();
}

fn mask_at(node: &NodeOf) -> Mask {
    node.map.begin_read(0..BLOCK).unwrap().spans()[0].mask
}

#[test]
fn what_a_process_committed_before_it_died_is_not_committed_again() {
    let (bed, first, second) = two_nodes();
    let same_node = NodeOf::join(&bed, 1);
    write_to(&first, 0);
    let joined = first.map.joined().unwrap();
    let holds = joined.shared.holds().iter().map(|held| held.hold()).collect();
    let mut commit = joined.commit_to_sync().unwrap();
    let mut changes = commit.changes(false);
    changes.add(Span::new(0..BLOCK, Mask::ORIGINAL));
    commit.gives_up(holds);
    commit.put(changes, false, false).unwrap();
    // It dies before the index shows that this was committed.
    drop(commit);
    drop(first);
    write_to(&second, 1);
    second.map.sync(nothing).unwrap();
    same_node.map.acquire().unwrap();
    assert_eq!(mask_at(&same_node), Mask::only(copy(1)));
    same_node.map.sync(nothing).unwrap();
    second.map.acquire().unwrap();
    assert_eq!(mask_at(&second), Mask::only(copy(1)));
    // Where others write to copy 1, it is theirs.
    same_node.map.announce(0..BLOCK, copy(0), all(), &nothing).unwrap();
    assert!(same_node.map.begin_write(0..BLOCK).unwrap().may_write(&(0..BLOCK), copy(1)));
    write_to(&same_node, 1);
}

#[test]
fn a_process_that_died_while_it_ended_being_alone_is_replaced() {
    let bed = replicated();
    let (first, same_node) = (NodeOf::join(&bed, 1), NodeOf::join(&bed, 1));
    write_to(&first, 1);
    first.map.joined().unwrap().shared.set_alone(false);
    drop(first);
    let second = served_by(&same_node, || NodeOf::join(&bed, 2));
    assert_eq!(mask_at(&second), Mask::only(copy(1)), "it was committed first");
    // A writer does the same if it comes first.
    second.map.leave(nothing).unwrap();
    same_node.poll();
    assert!(!same_node.map.is_sharing().unwrap());
    same_node.map.joined().unwrap().shared.set_alone(false);
    write_to(&same_node, 0);
    assert!(same_node.map.is_sharing().unwrap());
    assert_eq!(bed.log().members().next().unwrap().1.holds.len(), 1);
}

#[test]
fn a_copy_is_synced_before_other_nodes_learn_of_it() {
    let (bed, first, _second) = two_nodes();
    write_to(&first, 0);
    first.map.sync(nothing).unwrap();
    let mut copier = first.map.copier().unwrap().unwrap();
    let guard = copier.begin(0..BLOCK, copy(0), copy(1)).unwrap().unwrap();
    let is_synced = AtomicBool::new(false);
    let sync_copy = || {
        is_synced.store(true, Ordering::SeqCst);
        assert_eq!(bed.log().spans(&(0..BLOCK))[0].mask, Mask::ORIGINAL);
        Ok(())
    };
    assert_eq!(guard.finish(sync_copy).unwrap().len(), 1);
    assert!(is_synced.load(Ordering::SeqCst));
    assert_eq!(bed.log().spans(&(0..BLOCK))[0].mask, all());
}

#[test]
fn the_hold_of_a_copier_that_has_died_is_given_up() {
    let (bed, first, second) = two_nodes();
    let same_node = NodeOf::join(&bed, 1);
    {
        let joined = first.map.joined().unwrap();
        assert!(joined.try_exclusive(&(0..BLOCK), false).unwrap());
    }
    drop(first);
    let are_writes = || bed.log().members().all(|(_, member)| member.holds.iter().all(crate::nodes::is_write));
    same_node.poll();
    assert!(are_writes());
    write_to(&second, 1);
    let joined = same_node.map.joined().unwrap();
    assert!(!joined.try_exclusive(&(0..BLOCK), false).unwrap(), "the other node writes there");
    assert!(are_writes(), "it is not asked");
}

#[test]
fn what_is_noted_leaves_what_was_committed_beside_it_alone() {
    let (_bed, first, _second) = two_nodes();
    write_to(&first, 0);
    first.map.sync(nothing).unwrap();
    let next = BLOCK..2 * BLOCK;
    let mut guard = first.map.begin_write(next.clone()).unwrap();
    guard.prepare(next.clone(), copy(0)).unwrap();
    guard.wrote(next.clone(), copy(0)).unwrap();
    let joined = first.map.joined().unwrap();
    assert!(joined.is_pending(&next).unwrap());
    assert!(!joined.is_pending(&(0..BLOCK)).unwrap(), "it would be committed again");
}

/// Looks, between the append of a commit and the end of it, whether the node lock is free.
struct BetweenAppendAndIndex {
    board: std::path::PathBuf,
    looks: Mutex<Vec<bool>>,
}

impl crate::hooks::Actor for BetweenAppendAndIndex {
    fn reach(&self, point: &'static str) {
        if point == "synced" {
            let file = File::options().read(true).write(true).open(&self.board).unwrap();
            let is_free = real().try_lock(file.as_fd(), NODE_BYTE, 1, LockKind::Exclusive).unwrap();
            self.looks.lock().unwrap().push(is_free);
        }
    }
    fn blocked(&self) {}
    fn is_dead(&self) -> bool {
        false
    }
    fn take_turn(&self) {}
    fn end_turn(&self) {}
}

#[test]
fn nobody_reads_the_log_between_an_append_and_the_index() {
    let (bed, first, _second) = two_nodes();
    write_to(&first, 0);
    let board = bed.spec(1).run_dir.join(crate::shared::LOCK);
    let actor = Arc::new(BetweenAppendAndIndex { board, looks: Mutex::default() });
    crate::hooks::act(Some(actor.clone()));
    let synced = first.map.sync(nothing);
    crate::hooks::act(None);
    synced.unwrap();
    assert_eq!(*actor.looks.lock().unwrap(), [false]);
}

#[test]
fn nodes_count_each_other_and_begin_their_background_work_at_different_places() {
    let bed = replicated();
    let first = NodeOf::join(&bed, 1);
    assert_eq!((first.map.nodes().unwrap(), first.map.part_of_node(1000).unwrap()), (1, 0));
    let second = served_by(&first, || NodeOf::join(&bed, 2));
    let parts = [&first, &second].map(|node| node.map.part_of_node(1000).unwrap());
    assert_eq!(parts, [0, 500]);
    assert_eq!([&first, &second].map(|node| node.map.nodes().unwrap()), [2, 2]);
}

#[test]
fn a_session_is_alone_until_the_log_says_that_it_is_not() {
    let bed = replicated();
    let first = NodeOf::join(&bed, 1);
    write_to(&first, 1);
    let second = FileEngine::join(&real(), &spec_of(&bed, 2)).unwrap();
    assert!(!crate::nodes::is_usable(&bed.log(), second.session()));
    first.poll();
    let log = bed.log();
    assert!(first.map.is_sharing().unwrap() && crate::nodes::is_usable(&log, second.session()));
    assert_eq!(log.spans(&(0..BLOCK))[0].mask, Mask::only(copy(1)), "it was committed first");
}
