//! Tests of the shared state alone.

use tempfile::TempDir;

use super::*;
use crate::CopyId;
use crate::index::SEGMENT;
use crate::tests::support::{Stage, node, real};

const GEOMETRY: Geometry = Geometry { seqlocks: 8, blocks: 4 };

fn spec_in(dir: &TempDir) -> MapSpec {
    MapSpec { run_dir: dir.path().to_owned(), ..Stage::cached().spec }
}

fn made() -> (TempDir, SharedState) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let shared = SharedState::create(&real(), &spec_in(&dir), GEOMETRY).unwrap();
    shared.set(Word::Ready, 1);
    (dir, shared)
}

fn lock(dir: &TempDir) -> Fd {
    let flags = OFlags::RDWR | OFlags::CREATE;
    real().open(None, &dir.path().join(LOCK), flags, Mode::RUSR | Mode::WUSR).unwrap()
}

#[test]
fn shared_state_is_only_opened_for_its_own_file() {
    let (dir, shared) = made();
    let spec = || spec_in(&dir);
    let open = |spec| SharedState::open(&real(), &spec).unwrap();
    assert!(matches!(open(spec()), Opened::Ready(_)));
    assert!(matches!(open(MapSpec { node: node("here", 9), ..spec() }), Opened::None));
    assert!(matches!(open(MapSpec { id: [1; 16], ..spec() }), Opened::Other { version: VERSION }));
    shared.set(Word::Version, 77);
    assert!(matches!(open(spec()), Opened::Other { version: 77 }));
    shared.set(Word::Version, VERSION);
    shared.set(Word::Seqlocks, u64::MAX);
    assert!(matches!(open(spec()), Opened::None));
    shared.set(Word::Seqlocks, 8);
    shared.set(Word::Ready, 0);
    assert!(matches!(open(spec()), Opened::None));
    std::fs::write(dir.path().join(SHARED_FILE), b"short").unwrap();
    assert!(matches!(open(spec()), Opened::None));
}

#[test]
fn pins_of_the_living_count_and_those_of_the_dead_do_not() {
    let (dir, shared) = made();
    let claim = || shared.claim(&real(), lock(&dir)).unwrap().unwrap();
    let (mine, theirs) = (claim(), claim());
    let pinned = |range| shared.is_pinned(&mine, std::slice::from_ref(&range), false);
    let pin = shared.pin(&theirs, &(10..20)).unwrap();
    assert!(pinned(19..30) && pinned(0..11) && !pinned(20..30) && !pinned(0..10));
    shared.unpin(&theirs, &pin);
    assert!(!pinned(0..100));
    shared.pin_everything(&theirs, true);
    assert!(pinned(1 << 50..1 << 51));
    assert_eq!(shared.living(&mine), 2);
    drop(theirs);
    assert!(!pinned(0..u64::MAX));
    assert_eq!(shared.living(&mine), 1);
    let own = shared.pin(&mine, &(10..20)).unwrap();
    assert!(pinned(0..100));
    shared.unpin(&mine, &own);
}

#[test]
fn a_process_has_63_pins_and_the_board_so_many_blocks() {
    let (dir, shared) = made();
    let claim = |_| shared.claim(&real(), lock(&dir)).unwrap();
    let block = claim(0).unwrap();
    let pins: Vec<Pin> = (0..63).map(|number| shared.pin(&block, &(number..number + 1)).unwrap()).collect();
    assert!(shared.pin(&block, &(0..1)).is_none());
    shared.unpin(&block, &pins[30]);
    assert!(shared.pin(&block, &(0..1)).is_some());
    let blocks: Vec<Option<Block>> = (1..5).map(claim).collect();
    assert!(blocks[..3].iter().all(Option::is_some) && blocks[3].is_none());
}

#[test]
fn seqlocks_tell_changes_of_their_segment_only() {
    let (_dir, shared) = made();
    let (one, other) = (0..10, SEGMENT..SEGMENT + 10);
    let before = (shared.stamp(&one), shared.stamp(&other));
    let marks = shared.mark(std::slice::from_ref(&one));
    assert!(!shared.stamp(&one).is_certain());
    assert!(!shared.stamp(&(0..SEGMENT * 2)).is_certain());
    shared.settle(marks);
    assert!(shared.stamp(&one).is_certain() && !shared.stamp(&one).equals(before.0));
    assert!(shared.stamp(&other).equals(before.1));
    // A change of many segments marks the global seqlock.
    let marks = shared.mark(&[0..SEGMENT * 1000]);
    shared.settle(marks);
    assert!(!shared.stamp(&other).equals(before.1));
}

#[test]
fn of_two_changes_the_last_one_makes_the_seqlock_even() {
    let (_dir, shared) = made();
    let range = 0..10;
    let first = shared.mark(std::slice::from_ref(&range));
    let second = shared.mark(std::slice::from_ref(&range));
    shared.settle(first);
    assert!(!shared.stamp(&range).is_certain());
    shared.settle(second);
    assert!(shared.stamp(&range).is_certain());
    // A change whose process died is healed, and its late end does no harm.
    let dead = shared.mark(std::slice::from_ref(&range));
    shared.heal(&range);
    let healed = shared.stamp(&range);
    assert!(healed.is_certain());
    shared.settle(dead);
    assert!(shared.stamp(&range).equals(healed));
}

#[test]
fn writers_taint_what_they_meet_and_wait_for_what_finishes() {
    let (_dir, shared) = made();
    let slot = shared.slot();
    let to = CopyId::new(3);
    assert_eq!(slot.meet(&(0..10)), Met::Nobody);
    slot.begin(&(5..15), Some(to), Extent::Everywhere);
    assert_eq!(slot.meet(&(15..20)), Met::Nobody);
    assert!(slot.finish());
    assert_eq!(slot.meet(&(0..10)), Met::Finishing);
    assert_eq!(slot.meet(&(0..5)), Met::Nobody);
    slot.set(SlotState::Idle);
    slot.begin(&(5..15), Some(to), Extent::Everywhere);
    let met = slot.meet(&(0..10));
    let working = Working { copy: Some(to), part: 5..10, work: 2, extent: Extent::Everywhere };
    assert_eq!(met, Met::Destination(working.clone()));
    assert!(slot.is_at(2) && !slot.is_at(1));
    assert!(!slot.finish());
    slot.bury(2, SlotState::Active);
    assert!(slot.is_at(2), "it is tainted");
    slot.bury(2, SlotState::Tainted);
    assert!(!slot.is_at(2));
    slot.begin(&(5..15), Some(to), Extent::WhereInvalid);
    let working = Working { work: 3, extent: Extent::WhereInvalid, ..working };
    assert_eq!(slot.meet(&(0..10)), Met::Destination(working));
    assert!(slot.taint(3) && slot.taint(3) && !slot.taint(2) && !slot.finish());
    slot.begin(&(5..15), Some(to), Extent::WhereInvalid);
    assert!(slot.finish() && !slot.taint(4));
}

/// A point where two threads wait for each other, so that both continue at the same moment.
#[derive(Default)]
struct Meeting(AtomicU64);

impl Meeting {
    fn wait(&self) {
        const SPINS: u32 = 300;
        let turn = self.0.fetch_add(1, Ordering::SeqCst) / 2;
        let mut spins = 0;
        while self.0.load(Ordering::SeqCst) / 2 == turn {
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// Runs two functions in two threads, each on a processor of its own and, if permitted (to root),
/// with real-time priority. Otherwise the two rarely run at the same moment on a busy machine.
fn at_once<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    let processors = processors();
    let (first, last) = (processors[0], processors[processors.len() - 1]);
    std::thread::scope(|scope| {
        let one = scope.spawn(move || {
            run_first_on(first);
            one()
        });
        let other = scope.spawn(move || {
            run_first_on(last);
            other()
        });
        (one.join().unwrap(), other.join().unwrap())
    })
}

/// The processors that this thread may run on.
fn processors() -> Vec<usize> {
    // SAFETY: a zeroed set is empty, and the call fills it in.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|&processor| libc::CPU_ISSET(processor, &set)).collect()
    }
}

/// Binds the calling thread to a processor, with real-time priority if permitted.
fn run_first_on(processor: usize) {
    // SAFETY: a set with one processor, and a valid priority.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0);
        let lowest = libc::sched_param { sched_priority: 1 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest);
    }
}

/// Of a writer and a copier that overlap, at least one sees the other. Without the fences this
/// fails if the threads run on different processors.
#[test]
fn a_pin_or_a_slot_is_always_seen() {
    let (dir, shared) = made();
    let claim = || shared.claim(&real(), lock(&dir)).unwrap().unwrap();
    let (writer, copier) = (claim(), claim());
    let rounds = if std::env::var_os("STRIPEWISE_LONG").is_some() { 1_000_000 } else { 20_000 };
    let (meeting, range) = (Meeting::default(), 10..20);
    let write = || {
        meeting.wait();
        let pin = shared.pin(&writer, &range).unwrap();
        let met = shared.slot().meet(&range) != Met::Nobody;
        meeting.wait();
        shared.unpin(&writer, &pin);
        met
    };
    let copy = || {
        meeting.wait();
        shared.slot().begin(&range, Some(CopyId::ORIGINAL), Extent::Everywhere);
        let met = shared.is_pinned(&copier, std::slice::from_ref(&range), false);
        meeting.wait();
        shared.slot().set(SlotState::Idle);
        met
    };
    let all = |round: &dyn Fn() -> bool| -> Vec<bool> { (0..rounds).map(|_| round()).collect() };
    let (writes, copies) = at_once(|| all(&write), || all(&copy));
    let both_blind = writes.iter().zip(copies).filter(|(writer, copier)| !**writer && !copier).count();
    assert_eq!(both_blind, 0, "of {rounds} rounds");
}

#[test]
fn counters_are_summed_over_processes_also_dead_ones() {
    let (dir, shared) = made();
    let claim = || shared.claim(&real(), lock(&dir)).unwrap().unwrap();
    let (first, second) = (claim(), claim());
    shared.count(&first, Counter::Requests, 3);
    shared.count(&second, Counter::Requests, 4);
    shared.count(&second, Counter::Written(CopyId::new(7)), 5);
    drop(second);
    assert_eq!(shared.living(&first), 1);
    assert_eq!(shared.counted(Counter::Requests), 7);
    assert_eq!(shared.counted(Counter::Written(CopyId::new(7))), 5);
    assert_eq!(shared.counted(Counter::Copied(CopyId::new(7))), 0);
    // The process that gets the dead one's block counts from 0.
    let third = claim();
    shared.count(&third, Counter::Requests, 2);
    assert_eq!(shared.counted_by(&third, Counter::Requests), 2);
    assert_eq!(shared.counted_by(&third, Counter::Written(CopyId::new(7))), 0);
    assert_eq!(shared.counted(Counter::Requests), 9);
}
