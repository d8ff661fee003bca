//! The costs of the map with a million cached extents: per request, per join, per sync, and in
//! space.
//!
//! `cargo bench -p stripewise-extents --bench map [-- DIRECTORY]` prints the tables of
//! `bench/results.d/extents.md`. The journal is in DIRECTORY (default: the temporary directory),
//! the index and the shared state are in /dev/shm.

#![allow(missing_docs, reason = "a benchmark")]

use std::hint::black_box;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stripewise_random::Random;

use stripewise_extents::{CopyId, Map, MapSpec, Mask, Node};
use stripewise_sys::{Real, SysRef};

const BLOCK: u64 = 4096;
const GIB: u64 = 1 << 30;
const EXTENTS: u64 = 1_000_000;
/// Number of requests, and of measurements, of which the fastest and the median are printed.
const REQUESTS: usize = 100_000;
const TIMES: usize = 15;
const SYNCS: usize = 5;
const ORIGINAL: CopyId = CopyId::ORIGINAL;

fn cache() -> CopyId {
    CopyId::new(1)
}

fn spec(root: &Path, memory: &Path, create: bool) -> MapSpec {
    let sys: SysRef = Arc::new(Real);
    MapSpec {
        owner: None,
        run_dir: memory.join("file"),
        journal_base: root.to_owned(),
        journal_below: Default::default(),
        journal_name: "f.extents".into(),
        id: [7; 16],
        copies: 2,
        default: Mask::ORIGINAL,
        node: Node::this(&sys).expect("a node"),
        create,
        sessions: false,
    }
}

fn write(map: &Map, range: Range<u64>, to: CopyId) {
    let mut guard = map.begin_write(range.clone()).expect("a write");
    guard.prepare(range.clone(), to).expect("prepared");
    guard.wrote(range, to).expect("written");
}

fn read(map: &Map, range: Range<u64>) -> usize {
    let guard = map.begin_read(range).expect("a read");
    let valid = guard.still_valid(|span| span.mask.lowest().unwrap_or(ORIGINAL)).expect("asked");
    assert!(valid);
    guard.spans().len()
}

fn block(number: u64) -> Range<u64> {
    number * BLOCK..(number + 1) * BLOCK
}

/// Blocks of a file. Only even ones may be cached, so that no two extents are joined.
struct Blocks {
    cached: Vec<u64>,
    other: Vec<u64>,
}

impl Blocks {
    /// Chooses the cached blocks, in random order.
    fn of(file_bytes: u64, extents: u64) -> Self {
        let mut random = Random(1);
        let mut even: Vec<u64> = (0..file_bytes / BLOCK / 2).map(|half| 2 * half).collect();
        for taken in 0..extents as usize {
            let other = taken + random.below((even.len() - taken) as u64) as usize;
            even.swap(taken, other);
        }
        even.truncate(extents as usize);
        let other = (0..REQUESTS).map(|_| 2 * random.below(file_bytes / BLOCK / 2) + 1).collect();
        Self { cached: even, other }
    }
}

/// CPU time of one request in ns, from the fastest and from the median measurement.
fn each(blocks: &[u64], mut request: impl FnMut(Range<u64>)) -> [f64; 2] {
    let mut times: Vec<f64> = (0..TIMES)
        .map(|_| {
            let started = cpu_ns();
            blocks.iter().for_each(|&number| request(block(number)));
            (cpu_ns() - started) as f64 / blocks.len() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    [times[0], times[TIMES / 2]]
}

/// CPU time of this thread in ns; other processes may be running.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: an out pointer of this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn once<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = what();
    (result, started.elapsed())
}

fn requests(map: &Map, blocks: &Blocks, file_bytes: u64) {
    let hits: Vec<u64> = blocks.cached.iter().take(REQUESTS).copied().collect();
    let started = cpu_ns();
    blocks.other.iter().for_each(|&number| _ = black_box(read(map, block(number))));
    let cold = (cpu_ns() - started) as f64 / REQUESTS as f64;
    let rows = [
        ("read, miss, in segments seen for the first or second time", [cold; 2]),
        ("read, miss", each(&blocks.other, |range| _ = black_box(read(map, range)))),
        ("read, hit", each(&hits, |range| _ = black_box(read(map, range)))),
        ("write, miss, to the original", each(&blocks.other, |range| write(map, range, ORIGINAL))),
        ("write, hit", each(&hits, |range| write(map, range, cache()))),
    ];
    println!(
        "\n{} cached extents of 4 KiB in a file of {} GiB, CPU ns per request:\n",
        blocks.cached.len(),
        file_bytes / GIB
    );
    println!("| request | fastest | median |\n|---|---|---|");
    rows.iter().for_each(|(name, [fastest, median])| println!("| {name} | {fastest:.0} | {median:.0} |"));
}

/// Fills a map with the cached extents. Returns the CPU time per extent, ns.
fn fill(map: &Map, blocks: &Blocks) -> f64 {
    let started = cpu_ns();
    blocks.cached.iter().for_each(|&number| write(map, block(number), cache()));
    (cpu_ns() - started) as f64 / blocks.cached.len() as f64
}

fn space(map: &Map, when: &str) {
    let space = map.space().expect("space");
    let percent = |bytes: u64| bytes as f64 * 100.0 / (EXTENTS * BLOCK) as f64;
    println!(
        "| {when} | {} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} |",
        space.entries,
        space.index_bytes as f64 / EXTENTS as f64,
        space.journal_bytes as f64 / EXTENTS as f64,
        percent(space.index_bytes),
        percent(space.journal_bytes),
        percent(space.index_bytes + space.journal_bytes)
    );
}

fn one_file(base: &Path, file_bytes: u64, extents: u64) {
    let (disk, memory) = directories(base);
    let join = |create| Map::join(Arc::new(Real), spec(disk.path(), memory.path(), create)).expect("joined");
    let blocks = Blocks::of(file_bytes, extents);
    let map = join(true);
    let admitted = fill(&map, &blocks);
    requests(&map, &blocks, file_bytes);
    println!("| write, miss, into the cache (changes the index) | | {admitted:.0} |");
    let ((), sync) = once(|| map.sync(|| Ok(())).expect("synced"));
    if extents < EXTENTS {
        return;
    }
    println!(
        "\n| space, {EXTENTS} random extents | entries | index B/extent | journal B/extent | index % | journal % | both % |"
    );
    println!("|---|---|---|---|---|---|---|");
    space(&map, "filled in random order, synced");
    let (_, list) = once(|| map.least_recent(cache(), 1 << 20).expect("listed"));
    let (second, joined) = once(|| join(false));
    drop(second);
    let ((), left) = once(|| map.leave(|| Ok(())).expect("left"));
    let (map, rebuilt) = once(|| join(false));
    space(&map, "rebuilt from the journal");
    println!("\n| once | ms |\n|---|---|");
    let rows = [
        ("sync of all of them, without the data's", sync),
        ("looking for 1 MiB to evict, when nothing is clean", list),
        ("join, others are there", joined),
        ("leave, the last one, nothing pending", left),
        ("join, rebuilding from the journal", rebuilt),
    ];
    rows.iter().for_each(|(name, time)| println!("| {name} | {:.2} |", time.as_secs_f64() * 1e3));
    syncs(&map, &blocks);
}

/// Prints the cost of a sync by the number of changes since the last one.
fn syncs(map: &Map, blocks: &Blocks) {
    println!("\n| changes since the last sync | sync, ms | journal bytes written |\n|---|---|---|");
    let mut random = Random(9);
    for changes in [1u64, 10, 100, 1000, 10_000] {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..SYNCS {
            for _ in 0..changes {
                let number = blocks.cached[random.below(EXTENTS) as usize];
                let to = if map.begin_read(block(number)).expect("a read").spans()[0].is_dirty() {
                    ORIGINAL
                } else {
                    cache()
                };
                write(map, block(number), to);
            }
            let before = map.space().expect("space").journal_bytes;
            times.push(once(|| map.sync(|| Ok(())).expect("synced")).1.as_secs_f64() * 1e3);
            bytes = map.space().expect("space").journal_bytes.saturating_sub(before);
        }
        times.sort_by(f64::total_cmp);
        println!("| {changes} | {:.2} | {bytes} |", times[SYNCS / 2]);
    }
}

fn directories(base: &Path) -> (tempfile::TempDir, tempfile::TempDir) {
    let disk = tempfile::tempdir_in(base).expect("a directory");
    (disk, tempfile::tempdir_in("/dev/shm").expect("a directory in memory"))
}

fn main() {
    let base = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let base = base.unwrap_or_else(std::env::temp_dir);
    one_file(&base, GIB, 10_000);
    one_file(&base, 16 * GIB, EXTENTS);
    one_file(&base, 128 * GIB, EXTENTS);
}
