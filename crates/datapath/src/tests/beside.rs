//! A node that has a file open beside others: what neither of them waits for.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stripewise_cluster::CacheMode;
use stripewise_extents::CopyId;
use stripewise_sys::Real;

use super::setup::Setup;
use super::support::*;
use crate::{Runtime, Settings};

/// Time after which a test that waits has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that each of two servers may cache.
const CAPACITY: u64 = 64 << 10;
const BLOCK: u64 = 1 << 10;
/// Blocks of the file: more than the servers may cache.
const BLOCKS: u64 = 200;

fn stage() -> Stage {
    Stage::of(&Setup::cache(CacheMode::Nsca, CAPACITY)).with_sessions()
}

fn until(is_done: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_done() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    is_done()
}

/// An eviction waits until all nodes have looked at the log: background work does it.
#[test]
fn a_write_to_a_full_cache_evicts_nothing() {
    let stage = stage();
    let runtimes = [stage.real_runtime(), stage.elsewhere()];
    let [here, there] = on_two_nodes(&stage, &runtimes);
    let write = |block| here.file.write(&pattern(block, BLOCK as usize), block * BLOCK, 1);
    (0..BLOCKS).for_each(|block| assert_eq!(write(block), Ok(BLOCK as usize)));
    here.file.drain(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let copies = here.file.copies().unwrap().unwrap();
    let clean = || [1, 2].map(|copy| copies.map.clean_bytes(CopyId::new(copy)).unwrap());
    let before = clean();
    assert_ne!(before, [0, 0]);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| write(BLOCKS));
        while !writing.is_finished() {
            there.file.background_work();
        }
        assert_eq!(writing.join().unwrap(), Ok(BLOCK as usize));
    });
    assert_eq!(clean(), before);
    let expected: Vec<_> = (0..=BLOCKS).flat_map(|block| pattern(block, BLOCK as usize)).collect();
    assert_eq!(here.file.all().unwrap(), expected);
}

/// A copy may take seconds. Another node that opens the file needs an answer meanwhile.
#[test]
fn other_nodes_are_served_while_a_copy_takes_its_time() {
    let stage = stage();
    let settings = Settings { background: Some(|unit| unit()), ..stage.settings() };
    let runtime = Runtime::with_settings(Arc::new(Real), Some(&stage.plan), settings);
    let here = open(&runtime, &stage.path("f"), CREATE).unwrap();
    let overlay = here.file.overlay().unwrap();
    assert!(until(|| overlay.is_served.load(Ordering::Relaxed)));
    let [is_copying, has_copied] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let copy = {
        let (is_copying, has_copied) = (is_copying.clone(), has_copied.clone());
        move || {
            is_copying.store(true, Ordering::Relaxed);
            until(|| has_copied.load(Ordering::Relaxed));
            None
        }
    };
    overlay.context.background.as_ref().unwrap().copying.add(Arc::new(copy));
    assert!(until(|| is_copying.load(Ordering::Relaxed)));
    let there = stage.elsewhere();
    let is_open = std::thread::scope(|scope| {
        let opening = scope.spawn(|| open(&there, &stage.path("f"), CREATE).map(drop));
        let is_open = until(|| opening.is_finished());
        has_copied.store(true, Ordering::Relaxed);
        is_open && opening.join().unwrap().is_ok()
    });
    assert!(is_open, "the other node waited for the copy");
}
