//! The count of the space that cache copies use.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stripewise_cluster::CacheMode;
use stripewise_extents::CopyId;
use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_sys::{OFlags, Sys, SysRef};
use stripewise_target::Target;

use super::setup::Setup;
use super::support::*;
use crate::LogicalFile;

/// Time after which a test that waits has failed.
const PATIENCE: Duration = Duration::from_secs(60);

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

const CAPACITY: u64 = 64 << 10;
const BLOCK: usize = 1 << 10;

/// A stage on whose two fast servers several nodes may cache.
fn of_several_nodes() -> Stage {
    Stage::of(&Setup::cache(CacheMode::Nsca, CAPACITY)).with_sessions()
}

fn write_blocks(opened: &Opener, blocks: Range<u64>) {
    for block in blocks {
        let written = opened.file.write(&pattern(block, BLOCK), block * BLOCK as u64, 1);
        assert_eq!(written, Ok(BLOCK));
    }
}

#[test]
fn nodes_share_the_space_of_a_server() {
    let stage = of_several_nodes();
    let f = open(&stage.real_runtime(), &stage.path("f"), CREATE).unwrap();
    let g = open(&stage.elsewhere(), &stage.path("g"), CREATE).unwrap();
    write_blocks(&f, 0..100);
    let of_f = cached(&f.file);
    assert!(of_f > CAPACITY, "{of_f}");
    // The other node gets what is left of both servers.
    write_blocks(&g, 0..400);
    let of_g = cached(&g.file);
    assert!((CAPACITY * 15 / 8..=CAPACITY * 2).contains(&(of_f + of_g)), "{of_f} {of_g}");
    // It also gets what this node frees.
    f.file.truncate(0).unwrap();
    drop(f);
    let (begun, mut blocks) = (Instant::now(), 400);
    while cached(&g.file) < of_g + of_f / 2 {
        write_blocks(&g, blocks..blocks + 1);
        blocks += 1;
        assert!(begun.elapsed() < PATIENCE, "{} after {of_g}, {of_f} are free", cached(&g.file));
    }
    assert!(cached(&g.file) <= CAPACITY * 2);
    assert_eq!(g.file.all().unwrap(), (0..blocks).flat_map(|block| pattern(block, BLOCK)).collect::<Vec<_>>());
}

/// The files in which the nodes share the space of the two fast servers.
fn ledgers(stage: &Stage) -> [PathBuf; 2] {
    ["t2", "t3"].map(|target| stage.root.path().join(target).join("stripewise").join(home()).join("space"))
}

/// The bytes that these files say.
fn handed(stage: &Stage) -> [u64; 2] {
    ledgers(stage).map(|path| u64::from_le_bytes(std::fs::read(path).unwrap()[8..16].try_into().unwrap()))
}

fn put(stage: &Stage, bytes: &[u8], at: u64) {
    for path in ledgers(stage) {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).unwrap();
    }
}

/// What a node that died had been handed comes back when no node uses the space.
#[test]
fn space_of_a_node_that_died_is_counted_anew() {
    let stage = of_several_nodes();
    let opened = open(&stage.elsewhere(), &stage.path("f"), CREATE).unwrap();
    write_blocks(&opened, 0..8);
    put(&stage, &(CAPACITY - 1).to_le_bytes(), 8);
    let other = open(&stage.real_runtime(), &stage.path("g"), CREATE).unwrap();
    write_blocks(&other, 0..8);
    assert_eq!((cached(&other.file), handed(&stage)), (0, [CAPACITY - 1; 2]), "counted although it is used");
    drop((opened, other));
    let again = open(&stage.real_runtime(), &stage.path("h"), CREATE).unwrap();
    write_blocks(&again, 0..8);
    assert_eq!(cached(&again.file), 8 * BLOCK as u64);
    assert!(handed(&stage).iter().all(|&bytes| bytes < CAPACITY / 2), "{:?}", handed(&stage));
}

#[test]
fn nothing_is_cached_while_the_shared_space_is_unknown() {
    let stage = of_several_nodes();
    let opened = open(&stage.real_runtime(), &stage.path("f"), CREATE).unwrap();
    write_blocks(&opened, 0..1);
    put(&stage, b"nonsense", 0);
    write_blocks(&opened, 1..100);
    assert!(cached(&opened.file) < 10 * BLOCK as u64, "{}", cached(&opened.file));
    let content = (0..100).flat_map(|block| pattern(block, BLOCK)).collect::<Vec<_>>();
    assert_eq!(opened.file.all().unwrap(), content);
    drop(opened);
    // The first process that uses it again counts it.
    let again = open(&stage.real_runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
    write_blocks(&again, 0..100);
    assert_eq!(again.file.all().unwrap(), content);
    assert!(cached(&again.file) > 90 * BLOCK as u64, "{}", cached(&again.file));
}

/// The targets of a pool share one file, also those that the pool gets later.
#[test]
fn a_pool_has_one_file_for_its_space() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, CAPACITY)).in_pool().with_sessions();
    let has_ledger = || {
        let targets = std::fs::read_dir(stage.root.path().join("pool")).unwrap().flatten();
        let ledgers = targets.map(|target| target.path().join("stripewise").join(home()).join("space"));
        ledgers.filter(|path| path.exists()).collect::<Vec<_>>()
    };
    let mut opened = Vec::new();
    for node in [stage.real_runtime(), stage.elsewhere(), stage.real_runtime()] {
        let file = open(&node, &stage.path(&format!("f{}", opened.len())), CREATE).unwrap();
        write_blocks(&file, 0..8);
        assert_eq!(has_ledger().len(), 1, "{:?}", has_ledger());
        opened.push(file);
        // By name, this target comes first.
        let later = stage.root.path().join("pool").join("u-16x1");
        std::fs::create_dir_all(&later).unwrap();
        Target::prepare(&(Arc::new(stripewise_sys::Real) as SysRef), &later, "u/16x1").unwrap();
    }
    assert_eq!(opened.iter().map(|file| cached(&file.file)).sum::<u64>(), 24 * BLOCK as u64);
}

/// Others go by the count all the time, so nothing is counted anew.
#[test]
fn the_space_of_a_removed_file_is_free() {
    for stage in [Stage::of(&Setup::cache(CacheMode::Nsca, CAPACITY)), of_several_nodes()] {
        let used = || stage.used_words().iter().sum::<u64>();
        let other = open(&stage.real_runtime(), &stage.path("g"), CREATE).unwrap();
        write_blocks(&other, 0..8);
        let before = used();
        assert!((8 << 10..=8 << 11).contains(&before), "{before}");
        let removed = open(&stage.real_runtime(), &stage.path("f"), CREATE).unwrap();
        write_blocks(&removed, 0..100);
        assert!(used() > CAPACITY);
        drop(removed);
        stage.real_runtime().unlink(None, &stage.path("f")).unwrap();
        assert!(used() <= before, "{} of {before}", used());
        assert_eq!(cached(&other.file), 8 << 10);
    }
}
