//! Files with several copies: their settings, and servers that fail, fill up, or are restored to
//! old contents.

use std::cell::Cell;
use std::fs::{File, FileTimes};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use stripewise_cluster::CacheMode;
use stripewise_extents::CopyId;
use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_policy::yielding::PROBE_BYTES;
use stripewise_sys::OFlags;
use stripewise_sys::asking::{self, Patience};

use super::setup::Setup;
use super::support::*;
use crate::{Change, Drained, Errno, LogicalFile};

fn drain(file: &LogicalFile) -> Drained {
    file.drain(&mut |_, _| ControlFlow::Continue(())).unwrap()
}

/// The objects of a target and their contents.
fn contents(stage: &Stage, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for directory in std::fs::read_dir(stage.root.path().join(target).join("stripewise")).unwrap().flatten() {
        for file in std::fs::read_dir(directory.path()).unwrap().flatten().map(|file| file.path()) {
            let number = file.extension().and_then(|number| number.to_str());
            if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
                found.push((file.clone(), std::fs::read(file).unwrap()));
            }
        }
    }
    found
}

/// Restores objects with an old modification time, as backup programs do.
fn put_back(backup: &[(PathBuf, Vec<u8>)]) {
    for (path, bytes) in backup {
        std::fs::write(path, bytes).unwrap();
        let then = SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
    }
}

/// A file written twice, with the given targets restored from a backup taken in between.
fn with_old_content(setup: &Setup, targets: &[&str], rest: bool) -> Stage {
    let stage = Stage::of(setup);
    let write = |seed| {
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        opened.file.write(&pattern(seed, 300), 0, 1).unwrap();
        if rest {
            assert_eq!(drain(&opened.file).left_bytes, 0);
        }
    };
    write(1);
    let backup: Vec<_> = targets.iter().flat_map(|target| contents(&stage, target)).collect();
    assert!(!backup.is_empty());
    write(2);
    put_back(&backup);
    stage
}

#[test]
fn a_cache_put_back_from_a_backup_is_not_believed() {
    let setup = Setup::cache(CacheMode::Nsca, 10_000);
    let stage = with_old_content(&setup, &["t2", "t3"], false);
    let opened = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
    assert_eq!(opened.file.read(300, 0, 1), Err(Errno::IO), "the newest bytes are gone");
    assert_eq!(drain(&opened.file).left_bytes, 300);
    // Bytes that are also in the original are intact.
    let stage = with_old_content(&setup, &["t2", "t3"], true);
    let opened = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
    assert_eq!(opened.file.all().unwrap(), pattern(2, 300));
    opened.file.write(&pattern(3, 100), 50, 1).unwrap();
    drop(opened);
    let opened = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
    assert_eq!(opened.file.read(100, 50, 1).unwrap(), pattern(3, 100));
}

#[test]
fn a_replica_put_back_from_a_backup_is_not_believed() {
    let mut setup = Setup::replicas();
    setup.overlay.as_mut().unwrap().copies.truncate(1);
    // Put the second copy on targets of its own.
    setup.overlay.as_mut().unwrap().copies[0].layouts =
        vec![stripewise_layout::constructors::striped(&[3, 4], 16).unwrap()];
    let stage = with_old_content(&setup, &["t3", "t4"], true);
    let opened = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
    assert_eq!(opened.file.all().unwrap(), pattern(2, 300));
    drop(opened);
    let stage = with_old_content(&setup, &["t1"], true);
    assert_eq!(
        open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).err(),
        Some(Errno::IO),
        "the original is old"
    );
}

#[test]
fn a_file_whose_times_are_set_is_not_taken_for_a_backup() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 10_000));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    drop(opened);
    let path = stage.path("f");
    let past = stripewise_sys::Timespec { tv_sec: 1_000_000, tv_nsec: 0 };
    let times = stripewise_sys::Timestamps { last_access: past, last_modification: past };
    let of = stripewise_sys::Kind::Named(None, &path);
    assert_eq!(stage.runtime().change(of, &Change::Times(times)), Ok(true));
    let opened = open(&stage.runtime(), &path, OFlags::RDWR).unwrap();
    assert_eq!(opened.file.all().unwrap(), pattern(1, 300));
}

/// A process records the times at close while another process removes the file or sets its times.
#[test]
fn times_that_are_noted_late_are_forgotten() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 10_000));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    let overlay = opened.file.overlay().unwrap();
    let times = opened.file.times_now();
    opened.file.note_times(&times);
    assert_eq!(overlay.known_times(), times);
    let path = stage.path("f");
    let past = stripewise_sys::Timespec { tv_sec: 1_000_000, tv_nsec: 0 };
    let change = stripewise_sys::Timestamps { last_access: past, last_modification: past };
    let of = stripewise_sys::Kind::Named(None, &path);
    assert_eq!(stage.runtime().change(of, &Change::Times(change)), Ok(true));
    opened.file.note_times(&times);
    assert_eq!(overlay.known_times(), Default::default(), "set meanwhile");
    stage.runtime().unlink(None, &path).unwrap();
    opened.file.note_times(&opened.file.times_now());
    assert_eq!(stage.objects(), [""; 0], "removed meanwhile");
}

#[test]
fn a_full_cache_server_costs_nothing_but_its_gain() {
    for error in [Errno::NOSPC, Errno::ROFS, Errno::IO] {
        let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 10_000));
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let process = Faulty::new(&disk, 1);
        let opened = open(&stage.runtime_on(process.clone()), &stage.path("f"), CREATE).unwrap();
        ["t2/", "t3/"].iter().for_each(|target| process.fail("pwrite", target, error, u64::MAX));
        assert_eq!(opened.file.write(&pattern(1, 300), 0, 1), Ok(300), "{error}");
        assert_eq!(opened.file.all().unwrap(), pattern(1, 300));
        assert_eq!(drain(&opened.file), Drained::default(), "nothing was in the cache");
    }
}

#[test]
fn a_write_that_a_full_cache_does_not_take_waits_until_the_original_is_made() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 10_000));
    let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
    let process = Faulty::new(&disk, 1);
    let opened = open(&stage.runtime_on(process.clone()), &stage.path("f"), CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    ["t2/", "t3/"].iter().for_each(|target| process.fail("pwrite", target, Errno::NOSPC, u64::MAX));
    let map = opened.file.overlay().unwrap().map().unwrap();
    let mut copier = map.copier().unwrap().unwrap();
    let made = copier.begin(0..300, CopyId::new(1), CopyId::ORIGINAL).unwrap().unwrap();
    std::thread::scope(|scope| {
        let begun = process.calls();
        let writer = scope.spawn(|| opened.file.write(&pattern(2, 300), 0, 1));
        while process.calls() < begun + 20 && !writer.is_finished() {
            std::thread::yield_now();
        }
        drop(made);
        assert_eq!(writer.join().unwrap(), Ok(300));
    });
    assert_eq!(opened.file.all().unwrap(), pattern(2, 300));
}

thread_local! {
    static SIGNALLED: Cell<bool> = const { Cell::new(false) };
}

/// The copier of another process may be stopped in the middle of its work.
#[test]
fn a_signal_ends_the_wait_of_a_mapping_for_a_copier() {
    asking::wait_so(Patience { interrupted: || SIGNALLED.get(), limit: None });
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 10_000));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    let map = opened.file.overlay().unwrap().map().unwrap();
    let copier = map.copier().unwrap().unwrap();
    std::thread::scope(|scope| {
        let mapping = scope.spawn(|| {
            SIGNALLED.set(true);
            opened.file.map_extents(0, 8, 8)
        });
        assert_eq!(mapping.join().unwrap(), Err(Errno::INTR));
    });
    drop(copier);
    assert_eq!(opened.file.all().unwrap(), pattern(1, 300));
}

/// The paper's stricter rule: a write that makes another copy the valid one is durable when it
/// returns.
#[test]
fn each_write_that_moves_bytes_survives_a_power_cut() {
    for seed in 0..20 {
        let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 10_000).each_write());
        {
            let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
            opened.file.write(&pattern(1, 300), 0, 1).unwrap();
            drain(&opened.file);
        }
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let process = Faulty::new(&disk, seed);
        let opened = open(&stage.runtime_on(process.clone()), &stage.path("f"), OFlags::RDWR).unwrap();
        opened.file.write(&pattern(2, 200), 50, 1).unwrap();
        process.crash_at(0);
        stage.power_cut(&disk, seed);
        let again = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
        let expected = [&pattern(1, 300)[..50], &pattern(2, 200), &pattern(1, 300)[250..]].concat();
        assert_eq!(again.file.all().unwrap(), expected);
    }
}

/// Bytes missing in the usable copies, summed over them.
fn missing(file: &LogicalFile) -> u64 {
    let copies = file.copies().unwrap().unwrap();
    file.present().map(|copy| copies.missing_bytes(copy.number()).unwrap()).sum()
}

#[test]
fn a_lazy_close_leaves_the_rest_to_others() {
    for lazy in [false, true] {
        let mut setup = Setup::replicas();
        setup.overlay.as_mut().unwrap().lazy_close = lazy;
        let stage = Stage::of(&setup);
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        opened.file.write(&pattern(1, 300), 0, 1).unwrap();
        assert!(missing(&opened.file) > 0);
        drop(opened);
        let again = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
        assert_eq!(missing(&again.file) > 0, lazy);
        assert_eq!(drain(&again.file).left_bytes, 0);
        assert_eq!(missing(&again.file), 0);
        assert_eq!(again.file.all().unwrap(), pattern(1, 300));
    }
}

const SHORT: Duration = Duration::from_millis(200);
/// On a busy machine requests are slow, and background work waits longer.
const LONG: Duration = Duration::from_secs(1800);

/// Whether background work on a file starts within this time.
fn works_within(file: &LogicalFile, time: Duration) -> bool {
    let began = Instant::now();
    while file.background_work() == 0 {
        if began.elapsed() > time {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[test]
fn background_work_keeps_to_its_limit() {
    for (limit, works) in [(None, true), (Some(1), false)] {
        let mut setup = Setup::cache(CacheMode::Nsca, 10_000);
        setup.overlay.as_mut().unwrap().background = limit;
        let stage = Stage::of(&setup);
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        opened.file.write(&pattern(1, 300), 0, 1).unwrap();
        assert!(works_within(&opened.file, LONG), "{limit:?}");
        opened.file.write(&pattern(2, 300), 0, 1).unwrap();
        // Copying 300 bytes at one byte per second takes longer than `SHORT`.
        assert_eq!(works_within(&opened.file, if works { LONG } else { SHORT }), works, "{limit:?}");
    }
}

/// The limit holds for any amount of work and any number of processes.
#[test]
fn the_limit_of_background_work_is_that_of_all_processes() {
    let stage = limited();
    let runtimes = [(); 4].map(|()| stage.runtime());
    let files = runtimes.each_ref().map(|runtime| open(runtime, &stage.path("f"), CREATE).unwrap());
    keep_to_the_limit(&files);
}

#[test]
fn the_limit_of_background_work_is_that_of_all_nodes() {
    let stage = limited().with_sessions();
    let runtimes = [stage.real_runtime(), stage.elsewhere()];
    keep_to_the_limit(&on_two_nodes(&stage, &runtimes));
}

/// The log says to which copy a node writes. If that copy does not take the bytes, the others must
/// learn that they are in the original.
#[test]
fn a_copy_that_fails_beside_other_nodes_gives_way_to_the_original() {
    for error in [Errno::NOSPC, Errno::IO, Errno::SHUTDOWN] {
        let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 10_000_000)).with_sessions();
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let process = Faulty::new(&disk, 1);
        let runtimes = [stage.runtime_on(process.clone()), stage.elsewhere()];
        let [here, there] = on_two_nodes(&stage, &runtimes);
        assert_eq!(here.file.write(&pattern(1, 300), 0, 1), Ok(300));
        ["t2/", "t3/"].iter().for_each(|target| process.fail("pwrite", target, error, u64::MAX));
        assert_eq!(here.file.write(&pattern(2, 300), 100, 1), Ok(300), "{error}");
        here.file.sync(false).unwrap();
        there.file.acquire_committed().unwrap();
        let expected = [&pattern(1, 300)[..100], &pattern(2, 300)[..]].concat();
        assert_eq!(there.file.all().unwrap(), expected, "{error}");
        // The file system has given up this node: nothing takes the bytes.
        process.fail("pwrite", "t", error, u64::MAX);
        assert_eq!(here.file.write(&pattern(3, 300), 0, 1), Err(error));
    }
}

/// Asking for the time of objects to which others write costs them what they cache.
#[test]
fn the_anchor_gets_its_time_at_fsync_or_beside_other_nodes_at_close() {
    let stage = limited().with_sessions();
    let runtimes = [stage.real_runtime(), stage.elsewhere()];
    let [here, there] = on_two_nodes(&stage, &runtimes);
    let anchor = || stage.path("f").metadata().unwrap().modified().unwrap();
    let modified = |opened: &Opener| {
        let time = opened.file.attributes().unwrap().modified;
        SystemTime::UNIX_EPOCH + Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = anchor();
    there.file.write(&pattern(1, 100), 0, 1).unwrap();
    there.file.sync(false).unwrap();
    assert_eq!(anchor(), before);
    let written = modified(&there);
    assert!(written > before);
    drop(there);
    assert_eq!(anchor(), written);
    // The node is alone again, once it has looked at the log.
    while here.file.copies().unwrap().unwrap().is_sharing() {
        here.file.background_work();
    }
    here.file.write(&pattern(2, 100), 0, 1).unwrap();
    here.file.sync(false).unwrap();
    assert!(anchor() > written);
    assert_eq!(anchor(), modified(&here));
}

/// Bytes per second.
const LIMIT: u64 = 100_000;

/// A stage of caches with a limit for background work.
fn limited() -> Stage {
    let mut setup = Setup::cache(CacheMode::Nsca, 10_000_000);
    setup.overlay.as_mut().unwrap().background = Some(LIMIT);
    Stage::of(&setup)
}

/// Each process of a file does its share of the work that `LIMIT` allows.
fn keep_to_the_limit(files: &[Opener]) {
    files[0].file.write(&pattern(1, 1_000_000), 0, 1).unwrap();
    let (mut copied, mut pieces) = (0, 0);
    // Wait: earlier requests may have been slow.
    assert!(works_within(&files[0].file, LONG));
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(500) || (pieces < 3 && began.elapsed() < LONG) {
        for opened in files {
            let bytes = opened.file.background_work();
            assert!(bytes <= LIMIT / files.len() as u64, "{bytes}");
            (copied, pieces) = (copied + bytes, pieces + u64::from(bytes > 0));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // One second more, because the pause follows the copy.
    let most = LIMIT as f64 * (began.elapsed().as_secs_f64() + 1.0);
    assert!(pieces >= 3 && copied as f64 <= most, "{copied} bytes in {pieces} pieces, {most} at most");
}

/// Eviction leaves a small cache mostly filled.
#[test]
fn some_space_is_kept_free_and_the_rest_is_used() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 1000));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    for number in 0..40 {
        opened.file.write(&pattern(number, 50), 50 * number, 1).unwrap();
    }
    drain(&opened.file);
    let overlay = opened.file.overlay().unwrap();
    let map = overlay.map().unwrap();
    let held = || (1..4).map(|copy| map.clean_bytes(CopyId::new(copy)).unwrap()).sum::<u64>();
    let before = held();
    assert!(before > 1900, "{before}");
    assert!(works_within(&opened.file, LONG), "a server of the cache is full");
    let given_up = before - held();
    assert!((31..=500).contains(&given_up), "{given_up} of {before}");
}

/// Background work on one file waits while another file on the same servers is in use.
#[test]
fn background_work_waits_until_the_servers_are_not_used() {
    let stage = Stage::of(&Setup::replicas());
    let (resting, other) = (stage.runtime(), stage.runtime());
    let resting = open(&resting, &stage.path("f"), CREATE).unwrap();
    let other = open(&other, &stage.path("g"), CREATE).unwrap();
    resting.file.write(&pattern(1, 300), 0, 1).unwrap();
    let work = || resting.file.background_work();
    let mut waited = 0;
    for round in 0..10 {
        std::thread::sleep(Duration::from_millis(10));
        let began = Instant::now();
        other.file.write(&pattern(round, 300), 0, 1).unwrap();
        let worked = work();
        // On a busy machine this thread itself may be delayed until the servers count as idle.
        waited += u64::from(worked == 0 || began.elapsed() > Duration::from_millis(20));
    }
    assert_eq!(waited, 10);
    resting.file.write(&pattern(2, 300), 0, 1).unwrap();
    assert!(works_within(&resting.file, LONG));
}

/// New dirty data will need space, so it is written back while others write. A process that only
/// reads needs no space and is not slowed down.
#[test]
fn a_cache_full_of_dirty_data_is_written_back_while_others_write() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 1000));
    let (one, other) = (stage.runtime(), stage.runtime());
    let one = open(&one, &stage.path("f"), CREATE).unwrap();
    let other = open(&other, &stage.path("f"), OFlags::RDWR).unwrap();
    // One unit of background work while the servers are in use, however slow this machine is.
    let work = || {
        other.file.overlay().unwrap().took(Duration::from_secs(5));
        assert_eq!(other.file.read(10, 0, 1).unwrap().len(), 10);
        std::thread::sleep(Duration::from_millis(5));
        one.file.background_work()
    };
    // Leave gaps, so that one unit of work is one of these ranges.
    for number in 0..18 {
        other.file.write(&pattern(number, 100), 200 * number, 1).unwrap();
    }
    assert_eq!(work(), 100, "more than half of the cache is dirty");
    assert_eq!((0..200).map(|_| work()).sum::<u64>(), 0, "nothing has come since");
    other.file.write(&pattern(2, 100), 0, 1).unwrap();
    // The work may have to pause first.
    assert_eq!((0..4000).map(|_| work()).find(|&bytes| bytes > 0), Some(100));
}

#[test]
fn a_copy_whose_first_bytes_take_long_is_put_off() {
    let stage = Stage::of(&Setup::replicas());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    let content = pattern(1, 3 * PROBE_BYTES as usize);
    opened.file.write(&content, 0, 1).unwrap();
    let copies = opened.file.copies().unwrap().unwrap();
    let (size, before) = (content.len() as u64, missing(&opened.file));
    let (to, from) = (CopyId::ORIGINAL, CopyId::new(1));
    let begin = if copies.missing_bytes(to).unwrap() > 0 { (from, to) } else { (to, from) };
    let copy = |yields: bool| {
        let mut copier = copies.map.copier().unwrap().unwrap();
        let asked = Cell::new(0);
        let yields = |_| {
            asked.set(asked.get() + 1);
            yields
        };
        let copied = copies.copy_between(&mut copier, 0..size, begin.0, begin.1, Some(&yields)).unwrap();
        assert_eq!(asked.get(), 1);
        copied
    };
    assert_eq!(copy(true), []);
    assert_eq!(missing(&opened.file), before);
    assert_eq!(copy(false), [0..size]);
    assert_eq!(missing(&opened.file), before - size);
    assert!(opened.file.compare(&mut |_, _| ControlFlow::Continue(())).unwrap().is_empty());
    assert_eq!(opened.file.all().unwrap(), content);
}
