//! Maps that are used by sessions: one node at a time, and what happens when it dies.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use stripewise_sys::{Errno, Fd, Mode, OFlags, Real, Sys, SysRef};

use super::support::*;
use super::versions::of_one_node;
use crate::journal::Journal;
use crate::lmdb;
use crate::nodes::{Engine, FileEngine, Member, Session};
use crate::shared::Word;
use crate::tests::support::{SMALL, copy, copy_over, mask, nothing, only, real, spans, write};
use crate::{Map, MapError, MapSpec, Span, repair};

type Spans = Vec<(u64, u64, crate::Mask)>;

fn map_on(sys: &SysRef, bed: &Bed, number: u8) -> crate::Result<Map> {
    Map::join_tuned(sys.clone(), MapSpec { sessions: true, ..bed.spec(number) }, SMALL)
}

fn map(bed: &Bed, number: u8) -> Map {
    map_on(&real(), bed, number).unwrap()
}

/// The spans that the node finds that opens the file now, and closes it again.
fn seen(bed: &Bed, number: u8) -> Spans {
    let map = map(bed, number);
    let found = spans(&map, 0..100);
    map.leave(nothing).unwrap();
    found
}

fn opened_by(bed: &Bed) -> Option<String> {
    Journal::read(&real(), &bed.spec(9)).unwrap().opened.map(|node| node.name)
}

fn members(bed: &Bed) -> Vec<(Session, Member)> {
    bed.log().members().map(|(session, member)| (session, member.clone())).collect()
}

fn refused(bed: &Bed, number: u8) -> MapError {
    let state = || (bed.log().listed(), members(bed));
    let before = state();
    let error = map_on(&real(), bed, number).unwrap_err();
    assert_eq!(state(), before, "{error}");
    error
}

#[test]
fn the_next_node_sees_what_the_last_one_closed() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    write(&one, 0..10, 1);
    let error = refused(&bed, 2);
    assert!(matches!(&error, MapError::InUse { node, .. } if node == "node1"), "{error}");
    assert_eq!(error.errno(), Errno::BUSY);
    one.leave(nothing).unwrap();
    assert_eq!(opened_by(&bed), None);
    assert!(!bed.spec(1).has_shared_state(&real()).unwrap());
    assert_eq!(seen(&bed, 2), [(0, 10, only(1)), (10, 100, only(0))]);
}

#[test]
fn a_reader_has_a_session_and_syncs_nothing() {
    let bed = Bed::new();
    let reader = map(&bed, 1);
    assert_eq!(opened_by(&bed).as_deref(), Some("node1"));
    spans(&reader, 0..10);
    assert!(matches!(refused(&bed, 2), MapError::InUse { .. }));
    reader.leave(|| panic!("nothing was written")).unwrap();
    assert_eq!(opened_by(&bed), None);
}

#[test]
fn the_processes_of_a_node_share_its_session() {
    let bed = Bed::new();
    let (one, two) = (map(&bed, 1), map(&bed, 1));
    assert_eq!(bed.log().last_session(), Session(1));
    write(&one, 0..10, 1);
    assert_eq!(spans(&two, 0..10), [(0, 10, only(1))], "before any sync");
    one.leave(|| panic!("another process has it open")).unwrap();
    assert!(matches!(refused(&bed, 2), MapError::InUse { .. }));
    write(&two, 20..30, 1);
    two.sync(nothing).unwrap();
    assert_eq!(bed.log().listed().len(), 2);
    two.leave(nothing).unwrap();
    assert_eq!(seen(&bed, 2).len(), 4);
}

#[test]
fn a_node_goes_on_after_its_processes_were_killed() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    write(&one, 0..10, 1);
    drop(one);
    let again = map(&bed, 1);
    assert_eq!(spans(&again, 0..10), [(0, 10, only(1))], "it was acknowledged");
    assert_eq!(bed.log().last_session(), Session(1));
    again.leave(nothing).unwrap();
    assert_eq!(seen(&bed, 2)[0], (0, 10, only(1)));
}

#[test]
fn another_node_recovers_what_was_committed() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    write(&one, 0..10, 1);
    one.sync(nothing).unwrap();
    assert!(copy_over(&one, 0..5, 1, 0));
    one.sync(nothing).unwrap();
    write(&one, 50..60, 1);
    drop(one);
    // The copies may differ in 0..5 by writes that were not committed.
    let expected = [(0, 5, only(0)), (5, 10, only(1)), (10, 100, only(0))];
    let two = map(&bed, 2);
    assert_eq!(spans(&two, 0..100), expected);
    assert_eq!(bed.log().members().map(|(session, _)| session).collect::<Vec<_>>(), [Session(2)]);
    write(&two, 70..80, 1);
    // The first node comes back: its old index counts no more.
    assert!(matches!(refused(&bed, 1), MapError::InUse { .. }));
    two.leave(nothing).unwrap();
    assert_eq!(seen(&bed, 1)[3], (70, 80, only(1)));
}

#[test]
fn a_process_whose_session_was_recovered_gets_errors_until_all_have_closed() {
    let bed = Bed::new();
    let (one, second) = (map(&bed, 1), map(&bed, 1));
    write(&one, 0..10, 1);
    // As if the file system had freed the locks of the node.
    let own = Session(1);
    let mut other = FileEngine::join(&real(), &bed.spec(2)).unwrap();
    let author = other.session();
    other.append(&mut |log| crate::nodes::Batch::by(author, crate::nodes::recover(log, own))).unwrap();
    assert!(
        matches!(map_on(&real(), &bed, 1).unwrap_err(), MapError::Over { .. }),
        "others still use the index"
    );
    one.sync(nothing).unwrap();
    assert_eq!(bed.log().listed(), [], "what a dead session appends does nothing");
    drop((one, second, other));
    assert_eq!(seen(&bed, 1), [(0, 100, only(0))]);
}

#[test]
fn the_processes_of_a_node_use_one_mount() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    let device = one.joined().unwrap().shared.word(Word::JournalInode);
    device.fetch_add(1, Ordering::SeqCst);
    let error = refused(&bed, 1);
    assert!(matches!(&error, MapError::OtherMount { .. }), "{error}");
    device.fetch_sub(1, Ordering::SeqCst);
    map(&bed, 1).leave(nothing).unwrap();
    one.leave(nothing).unwrap();
}

/// Notes which files in the journal's directory are opened and how many bytes are read at once.
#[derive(Default)]
struct Notes {
    opened: Mutex<Vec<PathBuf>>,
    read: Mutex<Vec<usize>>,
}

impl Sys for Notes {
    fn open_beneath(
        &self,
        dir: BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> stripewise_sys::Result<Fd> {
        self.opened.lock().unwrap().push(path.to_owned());
        Real.open_beneath(dir, path, flags, mode)
    }

    unsafe fn pread(
        &self,
        fd: BorrowedFd<'_>,
        buffer: *mut u8,
        len: usize,
        offset: u64,
    ) -> stripewise_sys::Result<usize> {
        self.read.lock().unwrap().push(len);
        // SAFETY: as the caller promises.
        unsafe { Real.pread(fd, buffer, len, offset) }
    }
}

#[test]
fn a_reader_opens_and_reads_each_file_once() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    write(&one, 0..10, 1);
    one.leave(nothing).unwrap();
    let (notes, before) = (Arc::new(Notes::default()), bed.bytes().len());
    let sys: SysRef = notes.clone();
    map_on(&sys, &bed, 2).unwrap().leave(nothing).unwrap();
    let opened = ["f.extents", "f.manifest", "f.extents.wanted"].map(PathBuf::from);
    assert_eq!(*notes.opened.lock().unwrap(), opened);
    assert_eq!(*notes.read.lock().unwrap(), [before]);
}

#[test]
fn a_session_whose_shared_state_cannot_be_made_has_left() {
    let bed = Bed::new();
    let in_the_way = bed.spec(1).run_dir.join(lmdb::DATA);
    std::fs::create_dir_all(&in_the_way).unwrap();
    for _ in 0..2 {
        let error = refused(&bed, 1);
        assert_eq!(error.errno(), Errno::ISDIR, "{error}");
        assert_eq!(bed.log().members().count(), 0);
        map(&bed, 2).leave(nothing).unwrap();
    }
    std::fs::remove_dir(&in_the_way).unwrap();
    map(&bed, 1).leave(nothing).unwrap();
}

/// A kernel where some calls fail from some time on.
struct Fails {
    calls: &'static [&'static str],
    errno: Errno,
    on: AtomicBool,
}

impl Fails {
    fn new(calls: &'static [&'static str], errno: Errno) -> Arc<Self> {
        Arc::new(Self { calls, errno, on: AtomicBool::new(false) })
    }

    fn turn(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }

    fn before(&self, call: &'static str) -> stripewise_sys::Result<()> {
        let fails = self.calls.contains(&call) && self.on.load(Ordering::SeqCst);
        if fails { Err(self.errno) } else { Ok(()) }
    }
}

impl Sys for Fails {
    stripewise_faulty::delegate!(before);
}

#[test]
fn a_session_whose_append_fails_is_over_for_all_processes_of_the_node() {
    let bed = Bed::new();
    let cut = Fails::new(&["pwrite", "fsync", "rename"], Errno::IO);
    let sys: SysRef = cut.clone();
    let (one, two) = (map_on(&sys, &bed, 1).unwrap(), map(&bed, 1));
    write(&one, 0..10, 1);
    one.sync(nothing).unwrap();
    write(&one, 10..20, 1);
    cut.turn(true);
    assert_eq!(one.sync(nothing).unwrap_err().errno(), Errno::IO);
    for map in [&one, &two] {
        let error = map.begin_write(0..1).err().unwrap();
        assert!(matches!(error, MapError::Over { .. }), "{error}");
        assert!(matches!(map.sync(nothing).unwrap_err(), MapError::Over { .. }));
    }
    assert!(matches!(map_on(&real(), &bed, 1).unwrap_err(), MapError::Over { .. }), "two has it open");
    assert!(matches!(one.leave(nothing).unwrap_err(), MapError::Over { .. }));
    assert!(matches!(two.leave(nothing).unwrap_err(), MapError::Over { .. }));
    let inode = bed.inode();
    let again = map(&bed, 1);
    assert_ne!(bed.inode(), inode, "the end of the journal may not be on disk");
    assert_eq!(spans(&again, 0..20), [(0, 10, only(1)), (10, 20, only(0))]);
    again.leave(nothing).unwrap();
    assert_eq!(opened_by(&bed), None);
}

#[test]
fn a_session_outlives_a_full_file_system() {
    let bed = Bed::new();
    let full = Fails::new(&["pwrite", "allocate"], Errno::NOSPC);
    let sys: SysRef = full.clone();
    let one = map_on(&sys, &bed, 1).unwrap();
    write(&one, 0..10, 1);
    full.turn(true);
    for _ in 0..2 {
        assert_eq!(one.sync(nothing).unwrap_err().errno(), Errno::NOSPC);
    }
    full.turn(false);
    write(&one, 20..30, 1);
    one.sync(nothing).unwrap();
    drop(one);
    assert_eq!(seen(&bed, 2).len(), 4, "both are committed");
}

#[test]
fn if_the_end_of_a_session_cannot_be_synced_the_next_one_writes_the_journal_anew() {
    let bed = Bed::new();
    // What is written is read by all, and not on disk.
    let unsynced = Fails::new(&["fsync", "rename"], Errno::IO);
    let sys: SysRef = unsynced.clone();
    let one = map_on(&sys, &bed, 1).unwrap();
    unsynced.turn(true);
    assert_eq!(one.leave(nothing).unwrap_err().errno(), Errno::IO);
    assert_eq!(opened_by(&bed), None, "its end is read, and may not be on disk");
    let inode = bed.inode();
    assert_eq!(seen(&bed, 1), [(0, 100, only(0))]);
    assert_ne!(bed.inode(), inode);
}

#[test]
fn after_an_append_whose_process_died_the_journal_is_written_anew() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    let appending = one.joined().unwrap().shared.word(Word::Appending);
    for start in [0, 20] {
        let inode = bed.inode();
        appending.store(1, Ordering::SeqCst);
        write(&one, start..start + 10, 1);
        one.sync(nothing).unwrap();
        assert_ne!(bed.inode(), inode, "its sync may have failed");
        assert_eq!(appending.load(Ordering::SeqCst), 0);
    }
    let inode = bed.inode();
    write(&one, 40..50, 1);
    one.sync(nothing).unwrap();
    assert_eq!(bed.inode(), inode);
    // Also if all processes have died.
    appending.store(1, Ordering::SeqCst);
    drop(one);
    assert_eq!(seen(&bed, 1).len(), 6);
    assert_ne!(bed.inode(), inode);
}

#[test]
fn a_journal_of_one_node_is_shared_once_it_is_closed() {
    let (bed, listed) = of_one_node();
    let old = Map::join_tuned(real(), bed.spec(1), SMALL).unwrap();
    let same = map(&bed, 1);
    assert!(Journal::read(&real(), &bed.spec(1)).unwrap().nodes.is_none(), "its processes use one protocol");
    drop((old, same));
    map(&bed, 1).leave(nothing).unwrap();
    let map = map(&bed, 1);
    assert_eq!(bed.log().listed(), listed);
    map.leave(nothing).unwrap();
}

#[test]
fn a_new_file_has_a_journal_of_several_nodes() {
    let bed = Bed::new();
    std::fs::remove_file(bed.path()).unwrap();
    let spec = MapSpec { sessions: true, create: true, ..bed.spec(1) };
    let map = Map::join_tuned(real(), spec, SMALL).unwrap();
    write(&map, 0..10, 1);
    map.leave(nothing).unwrap();
    assert_eq!((bed.log().listed().len(), bed.log().last_session()), (1, Session(1)));
    // It stays one, whatever is known of its file system.
    let without = Map::join_tuned(real(), bed.spec(2), SMALL).unwrap();
    assert!(matches!(refused(&bed, 1), MapError::InUse { .. }));
    without.leave(nothing).unwrap();
}

#[test]
fn the_map_of_a_file_that_another_node_has_open_is_not_removed() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    let before = bed.bytes();
    for refuse in [repair::check_removable, repair::remove] {
        let error = refuse(&real(), &bed.spec(2)).unwrap_err();
        assert!(matches!(&error, MapError::InUse { node, .. } if node == "node1"), "{error}");
    }
    assert_eq!(bed.bytes(), before);
    repair::check_removable(&real(), &bed.spec(1)).unwrap();
    // The own node removes it: its processes go on without a journal.
    write(&one, 0..10, 1);
    repair::remove(&real(), &bed.spec(1)).unwrap();
    write(&one, 20..30, 1);
    one.sync(nothing).unwrap();
    let second = map(&bed, 1);
    assert_eq!(spans(&second, 0..30).len(), 3);
    second.leave(nothing).unwrap();
    one.leave(nothing).unwrap();
    assert!(!bed.path().exists());
    assert!(!bed.spec(1).has_shared_state(&real()).unwrap());
}

/// Another user than the owner of the files: root, say.
struct OtherUser;

impl Sys for OtherUser {
    fn user(&self) -> u32 {
        real().user() + 1
    }
}

#[test]
fn another_user_removes_what_only_the_own_node_has_open() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    let other: SysRef = Arc::new(OtherUser);
    let spec = |number| MapSpec { owner: Some(real().user()), ..bed.spec(number) };
    let error = repair::check_removable(&other, &spec(2)).unwrap_err();
    assert!(matches!(error, MapError::InUse { .. }), "{error}");
    repair::check_removable(&other, &spec(1)).unwrap();
    repair::remove(&other, &spec(1)).unwrap();
    assert!(!bed.path().exists());
    drop(one);
}

/// A mount that shows bytes that other nodes have changed since.
struct KeepsPages;

impl Sys for KeepsPages {
    fn keeps_pages(&self, _fd: BorrowedFd<'_>) -> stripewise_sys::Result<Option<bool>> {
        Ok(Some(true))
    }
}

#[test]
fn a_log_that_may_be_stale_is_not_read() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    write(&one, 0..10, 1);
    let before = bed.bytes();
    let other: SysRef = Arc::new(KeepsPages);
    for number in [1, 2] {
        let error = Map::join(other.clone(), bed.spec(number)).unwrap_err();
        assert!(error.to_string().contains("fuse_disable_pagecache"), "{error}");
    }
    assert_eq!(bed.bytes(), before);
    one.leave(nothing).unwrap();
}

#[test]
fn a_file_whose_last_node_has_died_is_removed() {
    let bed = Bed::new();
    drop(map(&bed, 1));
    repair::check_removable(&real(), &bed.spec(2)).unwrap();
    repair::remove(&real(), &bed.spec(2)).unwrap();
    assert!(!bed.path().exists());
}

#[test]
fn a_repair_keeps_what_this_node_can_go_on_with() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    write(&one, 0..10, 1);
    assert_eq!(repair::collapse(&real(), &bed.spec(1)).unwrap_err().errno(), Errno::BUSY);
    drop(one);
    assert!(!repair::collapse(&real(), &bed.spec(1)).unwrap().repaired);
    assert!(repair::collapse(&real(), &bed.spec(2)).unwrap().repaired, "another node recovers it");
    assert_eq!(seen(&bed, 1), [(0, 100, only(0))]);
}

#[test]
fn an_eviction_is_in_the_log_before_a_hole_is_punched() {
    let bed = Bed::new();
    let one = map(&bed, 1);
    write(&one, 0..10, 1);
    assert!(copy_over(&one, 0..10, 1, 0));
    let mut copier = one.copier().unwrap().unwrap();
    let punch = |_: &[std::ops::Range<u64>]| {
        assert_eq!(bed.log().listed(), [], "in the log");
        Ok(())
    };
    assert_eq!(copier.evict(0..10, copy(1), nothing, punch).unwrap(), [0..10]);
    drop(copier);
    one.leave(nothing).unwrap();
    assert_eq!(seen(&bed, 2), [(0, 100, only(0))]);
}

#[test]
fn the_log_of_many_sessions_stays_short() {
    let bed = Bed::new();
    for number in 0..100 {
        let map = map(&bed, 1 + number % 3);
        write(&map, 0..u64::from(number), 1);
        map.leave(nothing).unwrap();
    }
    assert!(bed.bytes().len() < 4096, "{} bytes", bed.bytes().len());
    assert_eq!(bed.log().listed(), [Span::new(0..99, mask(&[1]))]);
}
