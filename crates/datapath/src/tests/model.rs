//! Any sequence of calls on a managed file has the same results as on a plain file.
//!
//! Fault model: two processes (three openings) use one file in turn. Reads and writes of objects
//! may be short, and in the second test any call may fail with any errno.

use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use stripewise_cluster::CacheMode;
use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_layout::constructors::{on_one, striped, two_part};
use stripewise_layout::{Layout, Region, Stripe};
use stripewise_sys::{OFlags, Real, SysRef};

use super::setup::Setup;
use super::support::*;
use crate::Errno;

#[derive(Clone, Debug)]
enum Op {
    Write {
        at: u64,
        len: usize,
        parts: usize,
    },
    Append {
        len: usize,
    },
    Read {
        at: u64,
        len: usize,
        parts: usize,
    },
    Truncate {
        size: u64,
    },
    Allocate {
        at: u64,
        len: u64,
    },
    Size,
    Sync,
    /// Background work.
    Work,
    Drain,
    Reopen {
        truncate: bool,
    },
}

fn ops() -> impl Strategy<Value = Vec<(usize, Op)>> {
    let place = || 0..400u64;
    let op = prop_oneof![
        5 => (place(), 0..120usize, 1..5usize).prop_map(|(at, len, parts)| Op::Write { at, len, parts }),
        2 => (0..60usize).prop_map(|len| Op::Append { len }),
        5 => (place(), 0..300usize, 1..5usize).prop_map(|(at, len, parts)| Op::Read { at, len, parts }),
        2 => place().prop_map(|size| Op::Truncate { size }),
        1 => (place(), 1..100u64).prop_map(|(at, len)| Op::Allocate { at, len }),
        2 => Just(Op::Size),
        1 => Just(Op::Sync),
        4 => Just(Op::Work),
        1 => Just(Op::Drain),
        1 => any::<bool>().prop_map(|truncate| Op::Reopen { truncate }),
    ];
    vec((0..3usize, op), 1..60)
}

fn layouts() -> impl Strategy<Value = Layout> {
    prop_oneof![
        Just(small()),
        Just(on_one(0).unwrap()),
        Just(striped(&[0, 1, 2], 1).unwrap()),
        Just(striped(&[1, 0], 64).unwrap()),
        Just(two_part(&[(0, 16), (1, 8)], 72, &[(0, 32)]).unwrap()),
        Just(several_regions()),
    ]
}

fn setups() -> impl Strategy<Value = Setup> {
    prop_oneof![
        3 => layouts().prop_map(Setup::single),
        2 => Just(Setup::replicas()),
        1 => Just(Setup::replicas().each_write()),
        3 => (0..4usize, prop_oneof![Just(60u64), Just(1000)])
            .prop_map(|(mode, capacity)| Setup::cache(CacheMode::ALL[mode], capacity)),
        1 => Just(Setup::cache(CacheMode::Nsca, 200).each_write()),
    ]
}

/// A layout in which the set of targets differs between regions.
fn several_regions() -> Layout {
    let region = |start, end, cycle: &[(u32, u64)]| Region {
        start,
        end,
        cycle: cycle.iter().map(|&(target, width)| Stripe { target, width }).collect(),
    };
    let first = region(0, Some(50), &[(2, 11), (0, 3)]);
    let second = region(50, Some(51), &[(1, 1)]);
    let third = region(51, Some(300), &[(0, 20), (2, 5), (0, 2)]);
    Layout::new(vec![first, second, third, region(300, None, &[(3, 100), (1, 7)])]).unwrap()
}

/// A byte of the file: its value and, after a failed call, another possible value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell(u8, Option<u8>);

struct Model {
    cells: Vec<Cell>,
    seed: u64,
}

impl Model {
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        self.seed += 1;
        pattern(self.seed * 1_000_003, len)
    }

    fn resize(&mut self, size: usize) {
        self.cells.resize(size, Cell(0, None));
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.resize(self.cells.len().max(at + bytes.len()));
        }
        for (cell, &byte) in self.cells.iter_mut().skip(at).zip(bytes) {
            *cell = Cell(byte, None);
        }
    }

    /// Records bytes that may or may not have been written.
    fn maybe(&mut self, at: usize, bytes: &[u8]) {
        for (cell, &byte) in self.cells.iter_mut().skip(at).zip(bytes) {
            *cell = Cell(cell.0, Some(byte));
        }
    }

    /// Checks that `all` is possible and makes it the only possible state.
    fn settle(&mut self, all: &[u8]) -> Result<(), TestCaseError> {
        self.check(0, all)?;
        self.cells = all.iter().map(|&byte| Cell(byte, None)).collect();
        Ok(())
    }

    fn check(&self, at: usize, got: &[u8]) -> Result<(), TestCaseError> {
        for (place, &byte) in (at..).zip(got) {
            let cell = self.cells.get(place).copied();
            let fits = cell.is_some_and(|cell| cell.0 == byte || cell.1 == Some(byte));
            prop_assert!(fits, "byte {} is {} and must be {:?}", place, byte, cell);
        }
        Ok(())
    }
}

struct World {
    // Dropped first, because closing needs the files.
    openings: Vec<Opener>,
    processes: Vec<Arc<Faulty>>,
    stage: Stage,
}

impl World {
    fn new(setup: &Setup, short: u64) -> Self {
        let stage = Stage::of(setup);
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let processes = vec![Faulty::new(&disk, 1), Faulty::new(&disk, 2)];
        let runtimes: Vec<_> = processes.iter().map(|sys| stage.runtime_on(sys.clone())).collect();
        let path = stage.path("f");
        let openings = [0, 1, 0].map(|process| open(&runtimes[process], &path, CREATE).unwrap());
        processes.iter().for_each(|process| process.shorten(short));
        Self { openings: openings.into(), processes, stage }
    }

    /// The size as seen by a process that does not have the file open.
    fn size_by_name(&self, which: usize) -> i64 {
        let (runtime, path) = (self.stage.runtime_on(self.processes[which % 2].clone()), self.stage.path("f"));
        let mut stat = runtime.sys().stat_at(None, &path, true).unwrap();
        assert!(runtime.correct_stat(None, &path, true, &mut stat).unwrap());
        stat.st_size
    }

    fn reopen(&mut self, which: usize, truncate: bool) -> Result<(), Errno> {
        let sys = self.processes[which % 2].clone();
        let mut flags = OFlags::RDWR;
        flags.set(OFlags::TRUNC, truncate);
        self.openings[which] = open(&self.stage.runtime_on(sys), &self.stage.path("f"), flags)?;
        Ok(())
    }
}

fn exact(world: &mut World, model: &mut Model, which: usize, op: &Op) -> Result<(), TestCaseError> {
    let file = world.openings[which].file.clone();
    match *op {
        Op::Write { at, len, parts } => {
            let bytes = model.bytes(len);
            prop_assert_eq!(file.write(&bytes, at, parts), Ok(len));
            model.put(at as usize, &bytes);
        }
        Op::Append { len } => {
            let (bytes, end) = (model.bytes(len), model.cells.len());
            prop_assert_eq!(file.append_bytes(&bytes), Ok((end as u64, len)));
            model.put(end, &bytes);
        }
        Op::Read { at, len, parts } => {
            let got = file.read(len, at, parts).unwrap();
            prop_assert_eq!(got.len(), len.min(model.cells.len().saturating_sub(at as usize)));
            model.check(at as usize, &got)?;
        }
        Op::Truncate { size } => {
            prop_assert_eq!(file.truncate(size), Ok(()));
            model.resize(size as usize);
        }
        Op::Allocate { at, len } => {
            prop_assert_eq!(file.allocate(at, len, false), Ok(()));
            model.resize(model.cells.len().max((at + len) as usize));
        }
        Op::Size => {
            prop_assert_eq!(file.size(), Ok(model.cells.len() as u64));
            prop_assert_eq!(world.size_by_name(which), model.cells.len() as i64);
        }
        Op::Sync => prop_assert_eq!(file.sync(false), Ok(())),
        Op::Work => prop_assert!(file.work_a_little().is_ok()),
        Op::Drain => {
            prop_assert_eq!(
                file.drain(&mut |_, _| ControlFlow::Continue(())).map(|drained| drained.left_bytes),
                Ok(0)
            );
            prop_assert_eq!(original(world, model.cells.len()), bytes_of(model));
        }
        Op::Reopen { truncate } => {
            drop(file);
            prop_assert_eq!(world.reopen(which, truncate), Ok(()));
            if truncate {
                model.resize(0);
            }
        }
    }
    Ok(())
}

/// Same as [`exact`], but any call may fail and may then have been partly done.
fn failing(world: &mut World, model: &mut Model, which: usize, op: &Op) -> Result<(), TestCaseError> {
    let file = world.openings[which].file.clone();
    let before = model.cells.len();
    let grown = |to: usize| before..=before.max(to);
    match *op {
        Op::Write { at, len, parts } => {
            let bytes = model.bytes(len);
            let done = file.write(&bytes, at, parts).unwrap_or(0);
            let all = found(world, grown(at as usize + len))?;
            model.resize(all.len());
            model.maybe(at as usize, &bytes);
            model.put(at as usize, &bytes[..done]);
            model.settle(&all)
        }
        Op::Append { len } => {
            let bytes = model.bytes(len);
            let done = file.append_bytes(&bytes).map_or(0, |(_, done)| done);
            let all = found(world, grown(before + len))?;
            model.resize(all.len());
            model.maybe(before, &bytes);
            model.put(before, &bytes[..done]);
            model.settle(&all)
        }
        Op::Read { at, len, parts } => model.check(at as usize, &file.read(len, at, parts).unwrap_or_default()),
        Op::Truncate { size } => {
            let size = size as usize;
            let done = file.truncate(size as u64);
            let all = found(world, 0..=before.max(size))?;
            prop_assert!(all.len() == size || (all.len() == before && done.is_err()), "{} bytes", all.len());
            model.resize(all.len());
            model.settle(&all)
        }
        Op::Allocate { at, len } => {
            let _ = file.allocate(at, len, false);
            let all = found(world, grown((at + len) as usize))?;
            model.resize(all.len());
            model.settle(&all)
        }
        Op::Size => {
            prop_assert_eq!(file.size().unwrap_or(before as u64), before as u64);
            Ok(())
        }
        Op::Sync => {
            let _ = file.sync(false);
            Ok(())
        }
        Op::Work | Op::Drain => {
            let _ = file.work_a_little();
            model.settle(&found(world, before..=before)?)
        }
        Op::Reopen { .. } => {
            drop(file);
            let _ = world.reopen(which, false);
            Ok(())
        }
    }
}

/// The contents of the original's objects, with zeros after their ends.
fn original(world: &World, size: usize) -> Vec<u8> {
    let file = &world.openings[0].file;
    let mut bytes = vec![0; size];
    for piece in file.manifest().layout.pieces(0, size as u64) {
        let fd = file.objects().fd(piece.target as usize).unwrap();
        let (from, to) = (piece.file_offset as usize, (piece.file_offset + piece.len) as usize);
        let sys: SysRef = Arc::new(Real);
        sys.read_at(fd, &mut bytes[from..to], piece.target_offset).unwrap();
    }
    bytes
}

fn bytes_of(model: &Model) -> Vec<u8> {
    model.cells.iter().map(|cell| cell.0).collect()
}

/// The contents as read by a process that newly opens the file.
fn found(world: &World, sizes: std::ops::RangeInclusive<usize>) -> Result<Vec<u8>, TestCaseError> {
    let opened = open(&world.stage.runtime(), &world.stage.path("f"), OFlags::RDWR).unwrap();
    let all = opened.file.all().unwrap();
    prop_assert!(sizes.contains(&all.len()), "{} is not in {:?}", all.len(), sizes);
    prop_assert_eq!(opened.file.size(), Ok(all.len() as u64));
    Ok(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn as_a_plain_file(setup in setups(), short in prop_oneof![Just(0u64), Just(400)], ops in ops()) {
        let mut world = World::new(&setup, short);
        let mut model = Model { cells: Vec::new(), seed: 0 };
        for (which, op) in &ops {
            exact(&mut world, &mut model, *which, op)?;
        }
        let last = open(&world.stage.runtime(), &world.stage.path("f"), OFlags::RDONLY).unwrap();
        let all = last.file.all().unwrap();
        prop_assert_eq!(all.len(), model.cells.len());
        model.check(0, &all)?;
    }

    #[test]
    fn as_a_plain_file_on_failing_disks(
        setup in setups(),
        ops in vec((ops(), 0..40u64, 0..5usize), 1..4),
    ) {
        let mut world = World::new(&setup, 200);
        let mut model = Model { cells: Vec::new(), seed: 0 };
        for (ops, _, call) in &ops {
            for (number, (which, op)) in ops.iter().enumerate() {
                if number % 3 == 2 {
                    let call = ["pwrite", "pread", "ftruncate", "fsync", "fallocate"][(call + number) % 5];
                    let path = ["stripewise/", "files/f", "t1"][number % 2];
                    world.processes.iter().for_each(|process| process.fail(call, path, Errno::IO, 1));
                }
                failing(&mut world, &mut model, *which, op)?;
            }
        }
        let last = open(&world.stage.runtime(), &world.stage.path("f"), OFlags::RDONLY).unwrap();
        let all = last.file.all().unwrap();
        prop_assert_eq!(all.len(), model.cells.len());
        model.check(0, &all)?;
    }
}
