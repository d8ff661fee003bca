//! Caches and replicas with copies in a pool, over whose servers the file system stripes.

use std::ops::ControlFlow;

use stripewise_cluster::CacheMode;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_sys::OFlags;

use super::setup::Setup;
use super::support::*;

const KIB: usize = 1024;

/// Files `f...` are cached on one server at a time, `g...` on both of two servers with 1 MiB of
/// cache each. Everything is admitted.
fn stage() -> Stage {
    let setup = Setup::cache(CacheMode::Nsca, 1 << 20);
    let mut stage = Stage::of(&setup);
    let rule = stage.plan.rules.remove(0);
    let wide = striped(&[2, 3], 512).unwrap();
    for (name, groups, layouts) in
        [("f", 1, vec![on_one(2).unwrap(), on_one(3).unwrap()]), ("g", 1, vec![wide])]
    {
        let mut rule = rule.clone();
        rule.pattern = rule.pattern.replace("**", &format!("{name}**"));
        let copies = &mut rule.overlay.as_mut().unwrap().copies;
        copies.truncate(1);
        (copies[0].layouts, copies[0].groups) = (layouts, groups);
        stage.plan.rules.push(rule);
    }
    stage
}

fn sorted(mut words: Vec<u64>) -> Vec<u64> {
    words.sort_unstable();
    words
}

/// `stripewise_sim` has a test with the same writes.
#[test]
fn a_pool_is_filled_up_to_all_that_its_servers_may_hold() {
    // First with accounts per server, then with one account for the pool.
    for (stage, expected) in [(stage(), vec![300, 1000]), (stage().in_pool(), vec![1800])] {
        let [f, g] = ["f", "g"].map(|name| open(&stage.runtime(), &stage.path(name), CREATE).unwrap());
        let mut contents = [Vec::new(), Vec::new()];
        for (which, kib) in [(0, 700), (1, 600), (0, 300), (0, 500), (1, 200)] {
            let more = pattern(kib as u64, kib * KIB);
            let content: &mut Vec<u8> = &mut contents[which];
            let file = &[&f, &g][which].file;
            assert_eq!(file.write(&more, content.len() as u64, 1), Ok(more.len()));
            content.extend(&more);
        }
        assert_eq!(sorted(stage.used_words()), expected.iter().map(|kib| kib * KIB as u64).collect::<Vec<_>>());
        for (opened, content) in [&f, &g].into_iter().zip(&contents) {
            assert!(opened.file.all().unwrap() == *content);
        }
    }
}

/// The first process to use the pool counts all directories of the pool, including those of other
/// files.
#[test]
fn what_a_pool_holds_is_counted_in_all_its_directories() {
    let stage = stage().in_pool();
    let write = |name: &str, kib: usize| {
        let opened = open(&stage.runtime(), &stage.path(name), CREATE).unwrap();
        opened.file.write(&pattern(1, kib * KIB), 0, 1).unwrap();
    };
    write("f", 700);
    write("g", 600);
    assert_eq!(stage.used_words(), [1300 * KIB as u64]);
    // After a reboot the count is unknown.
    stage.reboot();
    write("f2", 8);
    assert_eq!(stage.used_words(), [1308 * KIB as u64]);
    // A killed process may leave any count.
    let word = std::fs::read_dir(stage.memory().join("space")).unwrap().next().unwrap().unwrap();
    let word = std::fs::OpenOptions::new().write(true).open(word.path()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&word, &u64::MAX.to_ne_bytes(), 8).unwrap();
    write("g2", 4);
    assert_eq!(stage.used_words(), [1312 * KIB as u64]);
    stage.runtime().unlink(None, &stage.path("f")).unwrap();
    write("g3", 4);
    assert_eq!(stage.used_words(), [616 * KIB as u64]);
}

/// The manifest contains everything a process must know; this one has no plan.
#[test]
fn a_manifest_says_how_many_servers_a_pool_has() {
    let stage = stage().in_pool();
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    let copies = opened.file.manifest().copies.as_deref().unwrap();
    assert_eq!((copies.servers, copies.list[0].servers), (2, 2), "of the originals, and of the caches");
    assert_eq!((copies.list[0].targets.len(), &copies.list[0].pool_servers[..]), (1, &[2][..]));
    let content = pattern(1, 1500 * KIB);
    opened.file.write(&content, 0, 1).unwrap();
    drop(opened);
    let without_plan =
        crate::Runtime::with_settings(std::sync::Arc::new(stripewise_sys::Real), None, stage.settings());
    let again = open(&without_plan, &stage.path("f"), OFlags::RDWR).unwrap();
    let copies = again.file.copies().unwrap().unwrap();
    let copy = again.file.present().find(|copy| copy.is_cache()).unwrap();
    assert_eq!((copies.used_space(copy), copies.servers_of_space(copy)), (Some(750 * KIB as u64), 2));
    assert!(again.file.all().unwrap() == content);
}

#[test]
fn replicas_in_a_pool_are_brought_in_sync() {
    let stage = Stage::of(&Setup { slow: 1, ..Setup::replicas() }).in_pool();
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    let names: Vec<_> = opened.file.manifest().targets.iter().map(|target| target.name.clone()).collect();
    assert!(names.iter().any(|name| name.contains('x')), "{names:?}");
    let content = pattern(1, 5000);
    opened.file.write(&content, 0, 1).unwrap();
    opened.file.drain(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(opened.file.all().unwrap() == content);
}
