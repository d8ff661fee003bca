//! Verifies the files against the notes.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use stripewise_datapath::migrate::Contents;
use stripewise_datapath::{LogicalFile, Runtime};
use stripewise_sys::{Real, SysRef};

use crate::Stage;
use crate::notes::{self, Operation, RECORD_BYTES, SLOT_BYTES, bytes, record};

/// Checks all files. Returns the number of acknowledged operations.
pub fn all(stage: &Stage, writers: usize, round: u64) -> usize {
    let runtime = stage.runtime();
    let notes: Vec<_> = (0..writers).map(|writer| notes::read(&stage.notes(writer))).collect();
    for (writer, (done, flying)) in notes.iter().enumerate() {
        own(
            &runtime,
            &stage.file(&format!("own{writer}")),
            done,
            *flying,
            &format!("round {round}, writer {writer}"),
        );
    }
    let done: Vec<Operation> = notes.iter().flat_map(|(done, _)| done.clone()).collect();
    let flying: Vec<Operation> = notes.iter().filter_map(|(_, flying)| *flying).collect();
    if let Some(shared) = read(&runtime, &stage.file("shared")) {
        slots(&shared, &done, &flying, round);
    }
    if let Some(appended) = read(&runtime, &stage.file("log")) {
        log(&appended, &done, &flying, round);
    }
    done.len()
}

/// Drains all files, then checks that the original is complete and that all copies agree.
pub fn drained(stage: &Stage, writers: usize, round: u64) {
    let runtime = stage.runtime();
    let names = (0..writers).map(|writer| format!("own{writer}")).chain(["shared".into(), "log".into()]);
    for path in names.map(|name| stage.file(&name)).filter(|path| path.exists()) {
        let contents = Contents::open(&runtime, &path).unwrap();
        let file = contents.managed().unwrap();
        let drained = file.drain(&mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(drained.left_bytes, 0, "round {round}: {}", path.display());
        assert_eq!(file.compare(&mut |_, _| ControlFlow::Continue(())), Ok(Vec::new()), "round {round}");
        let mut all = vec![0; file.size().unwrap() as usize];
        assert_eq!(contents.read(&mut all, 0), Ok(all.len()));
        assert!(original(file, all.len()) == all, "round {round}: {} is not complete", path.display());
    }
}

/// The contents of the original's objects, with zeros after their ends.
fn original(file: &LogicalFile, size: usize) -> Vec<u8> {
    let (mut bytes, sys): (_, SysRef) = (vec![0; size], Arc::new(Real));
    for piece in file.manifest().layout.pieces(0, size as u64) {
        let (from, to) = (piece.file_offset as usize, (piece.file_offset + piece.len) as usize);
        let fd = file.objects().fd(piece.target as usize).unwrap();
        sys.read_at(fd, &mut bytes[from..to], piece.target_offset).unwrap();
    }
    bytes
}

fn read(runtime: &Runtime, path: &Path) -> Option<Vec<u8>> {
    if !path.exists() {
        return None;
    }
    let file = Contents::open(runtime, path).unwrap();
    assert!(file.managed().is_some(), "{} is managed", path.display());
    let mut all = vec![0; file.stat().unwrap().st_size as usize];
    assert_eq!(file.read(&mut all, 0), Ok(all.len()));
    Some(all)
}

/// Applies an operation to the expected contents of the own file; `None` means that it does not
/// exist.
fn apply(file: &mut Option<Vec<u8>>, operation: Operation) {
    match operation {
        Operation::Create | Operation::Empty => *file = Some(Vec::new()),
        Operation::Remove => *file = None,
        Operation::Truncate { size } => file.as_mut().unwrap().resize(size, 0),
        Operation::Write { offset, len, seed } => put(file.as_mut().unwrap(), offset, &bytes(seed, len)),
        Operation::Append { len, seed } => {
            let end = file.as_ref().unwrap().len();
            put(file.as_mut().unwrap(), end, &bytes(seed, len));
        }
        Operation::Sync | Operation::Slot { .. } | Operation::Log { .. } => {}
    }
}

fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    file.resize(file.len().max(offset + bytes.len()), 0);
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}

fn own(runtime: &Runtime, path: &Path, done: &[Operation], flying: Option<Operation>, told: &str) {
    let mut before = None;
    done.iter().for_each(|&operation| apply(&mut before, operation));
    let mut after = before.clone();
    flying.iter().for_each(|&operation| apply(&mut after, operation));
    let found = read(runtime, path);
    let partly = matches!(flying, Some(Operation::Write { .. } | Operation::Append { .. }));
    if found == before || found == after {
        return;
    }
    // Only a write may be present in part.
    assert!(partly, "{told}: after {flying:?} the file is neither what it was nor what it was to be");
    let (before, after, found) = (before.unwrap(), after.unwrap(), found.unwrap());
    assert!((before.len()..=after.len()).contains(&found.len()), "{told}: {} bytes", found.len());
    for (place, &byte) in found.iter().enumerate() {
        let was = before.get(place).copied().unwrap_or(0);
        assert!(byte == was || byte == after[place], "{told}: byte {place} after {flying:?}");
    }
}

fn slots(shared: &[u8], done: &[Operation], flying: &[Operation], round: u64) {
    // A slot has one writer, so the last write in its notes is the last one made.
    let mut last = HashMap::new();
    for operation in done {
        if let Operation::Slot { slot, seed } = *operation {
            last.insert(slot, seed);
        }
    }
    let in_flight = |slot: usize| {
        flying.iter().find_map(|operation| match *operation {
            Operation::Slot { slot: flying, seed } if flying == slot => Some(seed),
            _ => None,
        })
    };
    for slot in 0..shared.len().div_ceil(SLOT_BYTES) {
        let found = &shared[slot * SLOT_BYTES..shared.len().min((slot + 1) * SLOT_BYTES)];
        let was = last.get(&slot).map_or(vec![0; SLOT_BYTES], |&seed| bytes(seed, SLOT_BYTES));
        let coming = in_flight(slot).map_or(was.clone(), |seed| bytes(seed, SLOT_BYTES));
        assert!(found.len() == SLOT_BYTES || in_flight(slot).is_some(), "round {round}: slot {slot} is short");
        let right = found
            .iter()
            .zip(was.iter().zip(&coming))
            .all(|(byte, (was, coming))| byte == was || byte == coming);
        assert!(right, "round {round}: slot {slot}");
    }
    let highest = last.keys().max().map_or(0, |slot| (slot + 1) * SLOT_BYTES);
    assert!(shared.len() >= highest, "round {round}: the shared file has {} of {highest} bytes", shared.len());
}

/// Every acknowledged record is in the log, complete. Records in flight may leave gaps.
fn log(appended: &[u8], done: &[Operation], flying: &[Operation], round: u64) {
    let seeds = |operations: &[Operation]| -> Vec<u64> {
        let seed = |operation: &Operation| match operation {
            Operation::Log { seed } => Some(*seed),
            _ => None,
        };
        operations.iter().filter_map(seed).collect()
    };
    let (acknowledged, flying) = (seeds(done), seeds(flying).len());
    let mut found = Vec::new();
    let (mut at, mut gap) = (0, 0);
    while at < appended.len() {
        let seed = std::str::from_utf8(appended.get(at + 1..at + 17).unwrap_or_default());
        let seed = seed.ok().and_then(|seed| u64::from_str_radix(seed, 16).ok());
        match seed.filter(|&seed| appended[at..].starts_with(&record(seed))) {
            Some(seed) => {
                found.push(seed);
                at += RECORD_BYTES;
            }
            None => {
                gap += 1;
                at += 1;
            }
        }
    }
    assert!(gap <= flying * RECORD_BYTES, "round {round}: {gap} bytes of the log are nobody's");
    for seed in acknowledged {
        let times = found.iter().filter(|&&there| there == seed).count();
        assert_eq!(times, 1, "round {round}: record {seed:x} is in the log {times} times");
    }
}
