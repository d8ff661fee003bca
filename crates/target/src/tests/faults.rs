//! Targets and objects when the system fails: processes that die at every call, power cuts, and
//! file systems that lack a feature.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_sys::{Errno, Mode, SysRef};

use crate::tests::of;
use crate::{Access, Engine, FanOut, FileId, Found, ObjectSet, Target, TargetError};

const MODE: Mode = Mode::from_raw_mode(0o640);
const ID: FileId = FileId([7; 16]);

/// A watched disk with the directories of two targets.
struct Place {
    dir: tempfile::TempDir,
    disk: Arc<Disk>,
}

impl Place {
    fn new(journal: Journal) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for target in ["t0", "t1"] {
            std::fs::create_dir(dir.path().join(target)).unwrap();
        }
        let disk = Disk::new(dir.path(), journal).unwrap();
        Self { dir, disk }
    }

    fn path(&self, target: usize) -> PathBuf {
        self.dir.path().join(format!("t{target}"))
    }

    fn process(&self, seed: u64) -> (Arc<Faulty>, SysRef) {
        let process = Faulty::new(&self.disk, seed);
        (process.clone(), process)
    }

    fn prepare(&self, sys: &SysRef) -> Result<Vec<Arc<Target>>, TargetError> {
        (0..2)
            .map(|index| Target::prepare(sys, &self.path(index), &format!("t/{index}")).map(Arc::new))
            .collect()
    }
}

/// Creates, grows, syncs and removes a file.
fn create_and_remove(place: &Place, sys: &SysRef) -> Result<(), TargetError> {
    let targets = place.prepare(sys)?;
    let set = ObjectSet::create(sys, targets.clone(), of(sys, ID), &Access::of_mode(MODE))?;
    set.create_manifest(b"text", &Access::of_mode(MODE))?;
    set.grow(1, 100)?;
    set.sync(&FanOut::new(sys.clone(), Engine::Auto), false)?;
    set.sync_names()?;
    ObjectSet::remove(&targets, of(sys, ID))
}

#[test]
fn a_process_may_die_at_every_call() {
    let calls = {
        let place = Place::new(Journal::Posix);
        let (process, sys) = place.process(1);
        create_and_remove(&place, &sys).unwrap();
        process.calls()
    };
    assert!(calls > 40, "{calls}");
    for call in 0..calls {
        let place = Place::new(Journal::Posix);
        let (process, sys) = place.process(1);
        process.crash_at(call);
        assert!(create_and_remove(&place, &sys).is_err() || !process.is_dead());
        // After any crash the targets work, fsck finds the objects, and they can be removed.
        let (_, sys) = place.process(2);
        let targets = place.prepare(&sys).unwrap_or_else(|error| panic!("{call}: {error}"));
        for target in &targets {
            let found: Vec<Found> = target.list_objects().unwrap();
            assert!(found.iter().all(|found| found.id == ID), "{call}: {found:?}");
        }
        ObjectSet::remove(&targets, of(&sys, ID)).unwrap();
        create_and_remove(&place, &sys).unwrap_or_else(|error| panic!("{call}: {error}"));
    }
}

#[test]
fn a_prepared_target_keeps_its_id() {
    for seed in 0..10 {
        let place = Place::new(Journal::Posix);
        let (_, sys) = place.process(1);
        let ids =
            |targets: &[Arc<Target>]| targets.iter().map(|target| target.id().to_owned()).collect::<Vec<_>>();
        let before = ids(&place.prepare(&sys).unwrap());
        place.disk.power_cut(seed).unwrap();
        let (_, sys) = place.process(2);
        assert_eq!(ids(&place.prepare(&sys).unwrap()), before, "files may know it already");
    }
}

#[test]
fn what_was_synced_survives_every_power_cut() {
    for (seed, journal) in (0..20).zip([Journal::Posix, Journal::Ordered].into_iter().cycle()) {
        let place = Place::new(journal);
        let (_, sys) = place.process(1);
        let targets = place.prepare(&sys).unwrap();
        let ids: Vec<String> = targets.iter().map(|target| target.id().to_owned()).collect();
        let set = ObjectSet::create(&sys, targets, of(&sys, ID), &Access::of_mode(MODE)).unwrap();
        set.create_manifest(b"text", &Access::of_mode(MODE)).unwrap();
        for index in 0..2 {
            sys.write_all_at(set.fd(index).unwrap(), &[index as u8 + 1; 9000], 0).unwrap();
        }
        set.sync(&FanOut::new(sys.clone(), Engine::Auto), true).unwrap();
        set.sync_names().unwrap();
        sys.write_all_at(set.fd(0).unwrap(), b"unsynced", 20_000).unwrap();
        drop((set, sys));
        place.disk.power_cut(seed).unwrap();

        let (_, sys) = place.process(2);
        let targets = place.prepare(&sys).unwrap();
        assert!(targets.iter().map(|target| target.id()).eq(&ids), "the markers were synced");
        let opening = crate::Opening { read_only: true, flags: stripewise_sys::OFlags::empty() };
        let set = ObjectSet::open(&sys, targets, of(&sys, ID), opening).unwrap();
        for index in 0..2 {
            let content = sys.read_start(set.fd(index).unwrap(), 9000).unwrap();
            assert_eq!(content, [index as u8 + 1; 9000], "seed {seed}");
        }
        let copy = set.open_manifest(stripewise_sys::OFlags::RDONLY).unwrap();
        assert_eq!(sys.read_start(copy.as_fd(), 100).unwrap(), b"text");
    }
}

#[test]
fn directories_that_are_known_to_last_are_not_relied_on_after_they_went() {
    // The second file of a directory, and a file of a directory that was removed after its sync.
    for (seed, removed) in (0..20).zip([false, true].into_iter().cycle()) {
        let place = Place::new(Journal::Posix);
        let (_, sys) = place.process(1);
        let targets = place.prepare(&sys).unwrap();
        let make = |id| {
            let set = ObjectSet::create(&sys, targets.clone(), of(&sys, id), &Access::of_mode(MODE)).unwrap();
            sys.write_all_at(set.fd(1).unwrap(), b"bytes", 0).unwrap();
            set.sync(&FanOut::new(sys.clone(), Engine::Auto), false).unwrap();
            set.sync_names().unwrap();
        };
        make(ID);
        if removed {
            ObjectSet::remove(&targets, of(&sys, ID)).unwrap();
            for target in &targets {
                sys.rmdir(Some(target.dir()), &crate::paths::home(sys.user())).unwrap();
            }
        }
        let second = FileId([vec![7; 15], vec![8]].concat().try_into().unwrap());
        make(second);
        drop((targets, sys));
        place.disk.power_cut(seed).unwrap();
        let (_, sys) = place.process(2);
        let opening = crate::Opening { read_only: true, flags: stripewise_sys::OFlags::empty() };
        let targets = place.prepare(&sys).unwrap();
        let set = ObjectSet::open(&sys, targets, of(&sys, second), opening)
            .unwrap_or_else(|error| panic!("seed {seed}, removed {removed}: {error}"));
        assert_eq!(sys.read_start(set.fd(1).unwrap(), 9).unwrap(), b"bytes");
    }
}

#[test]
fn every_single_failure_is_reported_and_leaves_no_object() {
    for call in ["open", "chmod", "pwrite"] {
        for target in 0..2 {
            let place = Place::new(Journal::Posix);
            let (process, sys) = place.process(1);
            let targets = place.prepare(&sys).unwrap();
            // The manifest copy is the only file that is written.
            let file = if call == "pwrite" { "manifest".to_owned() } else { format!("{ID}.{target}") };
            process.fail(call, &file, Errno::NOSPC, 1);
            let made = ObjectSet::create(&sys, targets.clone(), of(&sys, ID), &Access::of_mode(MODE));
            let result = made.and_then(|set| set.create_manifest(b"text", &Access::of_mode(MODE)));
            assert_eq!(result.unwrap_err().errno(), Errno::NOSPC, "{call}");
            let left = targets.iter().map(|target| target.list_objects().unwrap().len()).sum::<usize>();
            assert_eq!(left, if call == "pwrite" { 2 } else { 0 }, "{call}: only what was complete");
        }
    }
}

#[test]
fn a_failed_sync_of_one_object_is_reported() {
    let place = Place::new(Journal::Posix);
    let (process, sys) = place.process(1);
    let set =
        ObjectSet::create(&sys, place.prepare(&sys).unwrap(), of(&sys, ID), &Access::of_mode(MODE)).unwrap();
    process.fail("fsync", ".1", Errno::IO, 1);
    let fan_out = FanOut::new(sys.clone(), Engine::Auto);
    let error = set.sync(&fan_out, false).unwrap_err();
    assert!(error.to_string().contains(&format!("{ID}.1: fsync")), "{error}");
    set.sync(&fan_out, false).unwrap();
}
