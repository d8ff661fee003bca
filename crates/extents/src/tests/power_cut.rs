//! Power cuts on the faulty disk of `sys`: after random work, any part of what was not synced may
//! be lost.
//!
//! Fault model: that of [`stripewise_faulty`]. The journal and the copies are files on the
//! faulty disk. The run directory is in memory and lost with a cut. A cut comes between any two
//! system calls of a sync or another operation, or within one. In addition, processes die at any
//! system call, also in the middle of an append, and writes and syncs of the journal fail. Syncs of
//! the copies do not fail, because nothing can be guaranteed after that.
//!
//! A seed reproduces its run: `STRIPEWISE_SEED=n`. 10,000 seeds with STRIPEWISE_LONG=1.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use stripewise_faulty::{Disk, Faulty, Journal as Names};
use stripewise_sys::{Errno, Fd, Mode, OFlags, SysRef};
use tempfile::TempDir;

use super::support::{ID, SMALL, copy, node, real};
use crate::shared::{Opened, SharedState, Word};
use crate::{CopyId, Map, MapError, MapSpec, Mask};

/// Bytes of a block. Four blocks share a page, which a power cut keeps or loses as a whole.
const BLOCK: u64 = 1024;
const BLOCKS: u64 = 12;
const COPIES: usize = 3;
const SIZE: u64 = BLOCK * BLOCKS;
const WORK_OF_A_BOOT: u64 = 40;
const BOOTS: u8 = 3;

struct Random(stripewise_random::Random);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn blocks(&mut self) -> Range<u64> {
        let start = self.below(BLOCKS);
        let end = start + 1 + self.below(4);
        start * BLOCK..end.min(BLOCKS) * BLOCK
    }

    fn copy(&mut self) -> usize {
        self.below(COPIES as u64) as usize
    }
}

/// The values that a block may have.
#[derive(Clone, Debug)]
struct Byte {
    /// Now: the last acknowledged value, and values of writes begun since by processes that died.
    now: BTreeSet<u8>,
    /// After a power cut: the values at the begin of the last sync, and all written since.
    durable: BTreeSet<u8>,
}

struct World {
    dir: TempDir,
    memory: TempDir,
    disk: Arc<Disk>,
    random: Random,
    blocks: Vec<Byte>,
    value: u8,
    boot: u8,
    default: Mask,
    sessions: bool,
}

struct Process {
    faulty: Arc<Faulty>,
    sys: SysRef,
    copies: Vec<Fd>,
    map: Map,
}

/// An error means that the process died, or that it found the journal broken.
type Done<T> = std::result::Result<T, MapError>;

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(stripewise_random::Random(seed));
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        for number in 0..COPIES {
            std::fs::write(dir.path().join(format!("copy{number}")), vec![0; SIZE as usize]).unwrap();
        }
        let names = if random.one_in(2) { Names::Posix } else { Names::Ordered };
        std::fs::write(dir.path().join("f.manifest"), b"").unwrap();
        let disk = Disk::new(dir.path(), names).unwrap();
        let default = if random.one_in(2) { Mask::ORIGINAL } else { Mask::all(COPIES) };
        let block = Byte { now: BTreeSet::from([0]), durable: BTreeSet::from([0]) };
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let (blocks, sessions) = (vec![block; BLOCKS as usize], seed.is_multiple_of(2));
        Self { dir, memory, disk, random, blocks, value: 0, boot: 1, default, sessions }
    }

    fn spec(&self) -> MapSpec {
        MapSpec {
            owner: None,
            run_dir: self.memory.path().join("file"),
            journal_base: self.dir.path().to_owned(),
            journal_below: Default::default(),
            journal_name: "f.extents".into(),
            id: ID,
            copies: COPIES,
            default: self.default,
            node: node("here", self.boot),
            create: self.boot == 1,
            sessions: self.sessions,
        }
    }

    fn path(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("copy{number}"))
    }

    fn start(&mut self) -> Process {
        let falls_back = self.is_over();
        let process = self.join();
        if falls_back {
            self.check(&process.map, read_plain(self), true);
            self.rebase(&process.map, false);
        }
        process
    }

    /// Whether the session of the node is over. The next one goes on with what was committed.
    fn is_over(&self) -> bool {
        matches!(SharedState::open(&real(), &self.spec()), Ok(Opened::Ready(shared)) if shared.is(Word::Over))
    }

    /// The values found now must persist; with `durable`, also in a power cut.
    fn rebase(&mut self, map: &Map, durable: bool) {
        let read = read_plain(self);
        for span in map.begin_read(0..SIZE).unwrap().spans() {
            for block in Self::of(&span.range()) {
                let value = read(span.mask.lowest().unwrap(), block as u64 * BLOCK);
                if durable {
                    self.blocks[block].durable = value.clone();
                }
                self.blocks[block].now = value;
            }
        }
    }

    fn join(&mut self) -> Process {
        let faulty = Faulty::new(&self.disk, self.random.below(u64::MAX));
        let sys: SysRef = faulty.clone();
        let open = |number| sys.open(None, &self.path(number), OFlags::RDWR, Mode::empty()).unwrap();
        let copies = (0..COPIES).map(open).collect();
        let map = Map::join_tuned(sys.clone(), self.spec(), SMALL).unwrap();
        Process { faulty, sys, copies, map }
    }

    fn of(range: &Range<u64>) -> Range<usize> {
        (range.start / BLOCK) as usize..(range.end / BLOCK) as usize
    }

    /// Records a write that has begun; part of it may be visible from now on.
    fn begun(&mut self, range: &Range<u64>, value: u8) {
        for block in &mut self.blocks[Self::of(range)] {
            block.now.insert(value);
            block.durable.insert(value);
        }
    }

    /// Records a successful sync; `now` are the values when it began.
    fn is_durable(&mut self, now: Vec<BTreeSet<u8>>) {
        for (block, now) in self.blocks.iter_mut().zip(now) {
            block.durable = now;
        }
    }

    fn check(&self, map: &Map, read: impl Fn(CopyId, u64) -> BTreeSet<u8>, after_cut: bool) {
        let guard = map.begin_read(0..SIZE).unwrap();
        for span in guard.spans() {
            for block in Self::of(&span.range()) {
                let allowed = if after_cut { &self.blocks[block].durable } else { &self.blocks[block].now };
                let values: Vec<BTreeSet<u8>> =
                    span.mask.iter().map(|copy| read(copy, block as u64 * BLOCK)).collect();
                assert!(
                    values.iter().all(|values| values.is_subset(allowed)),
                    "block {block}: {values:?}, not {allowed:?}"
                );
                assert!(
                    values.iter().all(|same| *same == values[0]),
                    "block {block}: {values:?} in {:?}",
                    span.mask
                );
            }
        }
    }
}

impl Process {
    fn read(&self, copy: CopyId, at: u64, len: u64) -> stripewise_sys::Result<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        self.sys.read_at(self.copies[copy.index()].as_fd(), &mut bytes, at)?;
        Ok(bytes)
    }

    fn put(&self, copy: CopyId, at: u64, bytes: &[u8]) -> stripewise_sys::Result<()> {
        self.sys.write_all_at(self.copies[copy.index()].as_fd(), bytes, at)
    }

    fn sync_data(&self) -> stripewise_sys::Result<()> {
        self.copies.iter().try_for_each(|file| self.sys.sync_data(file.as_fd()))
    }
}

fn data(errno: Errno) -> MapError {
    MapError::Caller { what: "data", errno }
}

fn write(world: &mut World, process: &Process) -> Done<()> {
    let range = world.random.blocks();
    world.value = world.value % 250 + 1;
    let (value, prefer) = (world.value, world.random.copy());
    world.begun(&range, value);
    let mut guard = process.map.begin_write(range.clone())?;
    for span in guard.spans().to_vec() {
        guard.prepare(span.range(), copy(prefer))?;
        process.put(copy(prefer), span.start, &vec![value; span.len() as usize]).map_err(data)?;
        guard.wrote(span.range(), copy(prefer))?;
        World::of(&span.range()).for_each(|block| world.blocks[block].now = BTreeSet::from([value]));
    }
    Ok(())
}

fn sync(world: &World, process: &Process) -> Done<Vec<BTreeSet<u8>>> {
    let now = world.blocks.iter().map(|block| block.now.clone()).collect();
    process.map.sync(|| process.sync_data())?;
    Ok(now)
}

fn copy_over(world: &mut World, process: &Process) -> Done<()> {
    let (range, from, to) = (world.random.blocks(), world.random.copy(), world.random.copy());
    let Some(mut copier) = process.map.copier()? else { return Ok(()) };
    let Some(guard) = copier.begin(range, copy(from), copy(to))? else { return Ok(()) };
    for part in guard.parts() {
        let bytes = process.read(copy(from), part.start, part.end - part.start).map_err(data)?;
        process.put(copy(to), part.start, &bytes).map_err(data)?;
    }
    guard.finish(|| Ok(())).map(drop)
}

fn evict(world: &mut World, process: &Process) -> Done<()> {
    let (range, from) = (world.random.blocks(), world.random.copy());
    let punch = |parts: &[Range<u64>]| {
        let file = process.copies[from].as_fd();
        parts.iter().try_for_each(|part| process.sys.punch_hole(file, part.start, part.end - part.start))
    };
    let Some(mut copier) = process.map.copier()? else { return Ok(()) };
    copier.evict(range, copy(from), || process.sync_data(), punch).map(drop)
}

/// Performs a random operation and records what was acknowledged.
fn work(world: &mut World, process: &Process) -> Done<()> {
    match world.random.below(10) {
        0..=3 => write(world, process),
        4..=5 => copy_over(world, process),
        6..=7 => evict(world, process),
        _ => {
            let now = sync(world, process)?;
            world.is_durable(now);
            Ok(())
        }
    }
}

/// Reads the copies directly.
fn read_plain(world: &World) -> impl Fn(CopyId, u64) -> BTreeSet<u8> + use<> {
    let all: Vec<Vec<u8>> = (0..COPIES).map(|number| std::fs::read(world.path(number)).unwrap()).collect();
    move |copy, at| all[copy.index()][at as usize..(at + BLOCK) as usize].iter().copied().collect()
}

fn one_boot(world: &mut World) {
    let mut processes = vec![world.start(), world.start()];
    for _ in 0..world.random.below(WORK_OF_A_BOOT) {
        let which = world.random.below(2) as usize;
        if world.random.one_in(8) {
            let dies = processes[which].faulty.calls() + world.random.below(20);
            processes[which].faulty.crash_at(dies);
        }
        if world.random.one_in(10) {
            let call = ["fsync", "pwrite", "ftruncate", "rename"][world.random.below(4) as usize];
            processes[which].faulty.fail(call, "f.extents", Errno::IO, 1);
        }
        let _ = work(world, &processes[which]);
        if world.is_over() {
            processes.clear();
            processes.extend([world.start(), world.start()]);
            continue;
        }
        if world.random.one_in(25) {
            processes[which].map.joined().unwrap().shared.set(crate::shared::Word::JournalBase, 0);
        }
        if processes[which].faulty.is_dead() {
            processes.remove(which);
            processes.insert(which, world.start());
        } else if world.random.one_in(15) {
            leave_and_come_back(world, &mut processes, which);
        }
        if world.random.one_in(4) {
            let observer = world.start();
            world.check(&observer.map, read_plain(world), false);
        }
    }
    interrupted(world, &processes[0]);
}

/// Power fails during an operation, mostly a sync: between any two of its system calls, or in one.
fn interrupted(world: &mut World, process: &Process) {
    let faulty = &process.faulty;
    faulty.crash_at(faulty.calls() + world.random.below(30));
    let now = if world.random.one_in(4) {
        work(world, process).map(|()| None)
    } else {
        sync(world, process).map(Some)
    };
    if let Ok(Some(now)) = now {
        world.is_durable(now);
    }
}

fn leave_and_come_back(world: &mut World, processes: &mut Vec<Process>, which: usize) {
    // Possibly as the last process, which closes the journal.
    let alone = world.random.one_in(2).then(|| processes.remove(1 - which.min(1)));
    drop(alone);
    let Process { faulty, sys, copies, map } = processes.remove(which.min(processes.len() - 1));
    if world.random.one_in(3) {
        faulty.crash_at(faulty.calls() + world.random.below(40));
    }
    let _ = map.leave(|| copies.iter().try_for_each(|file| sys.sync_data(file.as_fd())));
    if world.is_over() {
        processes.clear();
    }
    while processes.len() < 2 {
        let new = world.start();
        processes.push(new);
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for boot in 1..=BOOTS {
        world.boot = boot;
        one_boot(&mut world);
        let cut = world.random.below(u64::MAX);
        world.disk.power_cut(cut).unwrap();
        let _ = std::fs::remove_dir_all(world.memory.path().join("file"));
        world.boot = boot + 1;
        let process = world.start();
        world.check(&process.map, read_plain(&world), true);
        world.rebase(&process.map, true);
    }
}

#[test]
fn nothing_that_was_synced_is_lost_in_a_power_cut() {
    let long = std::env::var_os("STRIPEWISE_LONG").is_some();
    if let Ok(seed) = std::env::var("STRIPEWISE_SEED") {
        return run(seed.parse().unwrap());
    }
    let seeds = if long { 10_000 } else { 200 };
    for seed in 1..=seeds {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}: STRIPEWISE_SEED={seed} runs it alone");
            std::panic::resume_unwind(panic);
        }
    }
    println!("{seeds} seeds, {BOOTS} power cuts each");
}
