//! The count of the space that cache copies use.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use stripewise_cluster::CacheMode;
use stripewise_extents::CopyId;
use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_sys::{OFlags, Sys};

use super::setup::Setup;
use super::support::*;
use crate::LogicalFile;

/// A killed process leaves space reserved: the next process that is alone counts the used space
/// again.
#[test]
fn the_used_space_is_counted_anew_when_nobody_goes_by_it() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 1 << 20));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    let in_cache = || stage.used_words().iter().sum::<u64>();
    assert_eq!(in_cache(), 300);
    let words: Vec<_> = std::fs::read_dir(stage.memory().join("space")).unwrap().flatten().collect();
    let overwrite = |used: u64| {
        for word in &words {
            let file = std::fs::OpenOptions::new().write(true).open(word.path()).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &used.to_ne_bytes(), 8).unwrap();
        }
    };
    overwrite(1 << 20);
    let other = open(&stage.runtime(), &stage.path("g"), CREATE).unwrap();
    other.file.write(&pattern(2, 300), 0, 1).unwrap();
    assert_eq!(in_cache(), 2 << 20, "it is full as long as it is used");
    drop((opened, other));
    let again = open(&stage.runtime(), &stage.path("g"), OFlags::RDWR).unwrap();
    again.file.write(&pattern(3, 300), 1000, 1).unwrap();
    assert!((300..1 << 20).contains(&in_cache()), "{:?}", stage.used_words());
    assert_eq!(again.file.read(300, 1000, 1).unwrap(), pattern(3, 300));
}

/// On a file system that counts holes as allocated, such as CephFS, large holes in an object must
/// not make a cache full.
#[test]
fn what_was_noted_of_the_used_space_counts_where_holes_do() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 1 << 20));
    let without_holes = || {
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        stage.runtime_on(Faulty::new(&disk, 0))
    };
    let in_cache = || stage.used_words().iter().sum::<u64>();
    let first = open(&without_holes(), &stage.path("f"), CREATE).unwrap();
    first.file.write(&pattern(1, 300), 1 << 20, 1).unwrap();
    assert_eq!(in_cache(), 300);
    drop(first);
    let again = open(&without_holes(), &stage.path("f"), OFlags::RDWR).unwrap();
    again.file.write(&pattern(2, 300), 2 << 20, 1).unwrap();
    assert_eq!(in_cache(), 600);
    drop(again);
    // The cache is not full for ever: the space of a removed object becomes free.
    without_holes().unlink(None, &stage.path("f")).unwrap();
    let next = open(&without_holes(), &stage.path("g"), CREATE).unwrap();
    next.file.write(&pattern(3, 100), 0, 1).unwrap();
    assert_eq!(in_cache(), 100);
}

/// The bytes that are valid in a copy.
fn valid(file: &LogicalFile, copy: CopyId) -> u64 {
    file.size().unwrap() - file.copies().unwrap().unwrap().missing_bytes(copy).unwrap()
}

/// The bytes that are valid in the cache copies.
fn cached(file: &LogicalFile) -> u64 {
    file.present().filter(|copy| copy.is_cache()).map(|copy| valid(file, copy.number())).sum()
}

#[test]
fn what_comes_in_while_a_range_is_fetched_is_counted_once() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 1 << 20));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    let (file, cache) = (&opened.file, CopyId::new(2));
    file.write(&pattern(1, 300), 0, 1).unwrap();
    file.drain(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let copies = file.copies().unwrap().unwrap();
    file.present().filter(|copy| copy.is_cache()).for_each(|copy| {
        copies.evict(copy, 0..300).unwrap();
    });
    assert_eq!((stage.used_words().iter().sum::<u64>(), cached(file)), (0, 0));
    let fetched = copies.fetch(cache, &(0..300), |copies, range, from, to| {
        let copy = |range| {
            let mut copier = copies.map.copier().unwrap().unwrap();
            copies.copy_between(&mut copier, range, from, to, None)
        };
        // Another process has fetched the middle, with space of its own.
        assert!(copies.take_space(copies.copy(to).unwrap(), &(100..150)));
        assert_eq!(copy(100..150).unwrap(), [100..150]);
        copy(range)
    });
    assert_eq!(fetched.unwrap(), 250);
    assert_eq!((stage.used_words().iter().sum::<u64>(), cached(file)), (300, 300));
}

/// A system interface that does something before the next sync.
#[derive(Default)]
struct BeforeSync(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl BeforeSync {
    fn before(&self, call: &str) -> stripewise_sys::Result<()> {
        let act = if call == "fsync" { self.0.lock().unwrap().take() } else { None };
        act.into_iter().for_each(|act| act());
        Ok(())
    }
}

impl Sys for BeforeSync {
    stripewise_faulty::delegate!(before);
}

#[test]
fn what_is_written_anew_while_its_range_is_evicted_stays_counted() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 1 << 20));
    let other = open(&stage.real_runtime(), &stage.path("f"), CREATE).unwrap();
    other.file.write(&pattern(1, 300), 0, 1).unwrap();
    other.file.drain(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(other.file.write(&pattern(2, 50), 0, 1), Ok(50));
    let sys = Arc::new(BeforeSync::default());
    let opened = open(&stage.runtime_on(sys.clone()), &stage.path("f"), OFlags::RDWR).unwrap();
    let overwrite = move || assert_eq!(other.file.write(&pattern(3, 100), 100, 1), Ok(100));
    *sys.0.lock().unwrap() = Some(Box::new(overwrite));
    let copies = opened.file.copies().unwrap().unwrap();
    let cache = opened
        .file
        .present()
        .find(|copy| copy.is_cache() && valid(&opened.file, copy.number()) == 300)
        .unwrap();
    assert_eq!(copies.evict(cache, 0..300), Ok(150));
    assert!(sys.0.lock().unwrap().is_none(), "nothing was written");
    assert_eq!((stage.used_words().iter().sum::<u64>(), cached(&opened.file)), (150, 150));
}
