//! The notes of a writer: one line before and one after each operation, each written with one
//! write(2).

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// An operation of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates the own file, which does not exist.
    Create,
    /// Removes the own file.
    Remove,
    /// Opens the own file with O_TRUNC.
    Empty,
    /// Writes the bytes of `seed` at `offset` of the own file.
    Write { offset: usize, len: usize, seed: u64 },
    /// Appends the bytes of `seed` to the own file.
    Append { len: usize, seed: u64 },
    /// Truncates the own file.
    Truncate { size: usize },
    /// Syncs the own file with fsync.
    Sync,
    /// Writes a slot of the shared file.
    Slot { slot: usize, seed: u64 },
    /// Appends a record to the shared log.
    Log { seed: u64 },
}

/// The notes file of a writer, open for writing.
pub struct Notes(File);

impl Notes {
    pub fn create(path: &Path) -> Self {
        Self(File::create(path).unwrap())
    }

    /// Does an operation and writes a note before and after it.
    pub fn around(&mut self, operation: Operation, act: impl FnOnce()) {
        self.line(&format!("begin {}", words(operation)));
        act();
        self.line("end");
    }

    fn line(&mut self, text: &str) {
        self.0.write_all(format!("{text}\n").as_bytes()).unwrap();
    }
}

/// The acknowledged operations, and the one in flight, if any.
pub fn read(path: &Path) -> (Vec<Operation>, Option<Operation>) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let (mut done, mut flying) = (Vec::new(), None);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        match line.strip_prefix("begin ") {
            Some(begun) => flying = Some(parse(begun)),
            None => done.extend(flying.take()),
        }
    }
    (done, flying)
}

fn words(operation: Operation) -> String {
    match operation {
        Operation::Create => "create".into(),
        Operation::Remove => "remove".into(),
        Operation::Empty => "empty".into(),
        Operation::Write { offset, len, seed } => format!("write {offset} {len} {seed}"),
        Operation::Append { len, seed } => format!("append {len} {seed}"),
        Operation::Truncate { size } => format!("truncate {size}"),
        Operation::Sync => "sync".into(),
        Operation::Slot { slot, seed } => format!("slot {slot} {seed}"),
        Operation::Log { seed } => format!("log {seed}"),
    }
}

fn parse(text: &str) -> Operation {
    let words: Vec<&str> = text.split(' ').collect();
    let number = |index: usize| words[index].parse::<usize>().unwrap();
    match words[0] {
        "create" => Operation::Create,
        "remove" => Operation::Remove,
        "empty" => Operation::Empty,
        "write" => Operation::Write { offset: number(1), len: number(2), seed: number(3) as u64 },
        "append" => Operation::Append { len: number(1), seed: number(2) as u64 },
        "truncate" => Operation::Truncate { size: number(1) },
        "sync" => Operation::Sync,
        "slot" => Operation::Slot { slot: number(1), seed: number(2) as u64 },
        "log" => Operation::Log { seed: number(1) as u64 },
        other => panic!("{other}"),
    }
}

/// `len` bytes, none of which is 0.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let byte = |index: u64| {
        ((index + seed.wrapping_mul(0x2545_f491_4f6c_dd1d)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1
    };
    (0..len as u64).map(byte).collect()
}

/// Bytes of a slot of the shared file; a slot overlaps up to three stripes.
pub const SLOT_BYTES: usize = 7000;

/// A record of the shared log: a text with its seed, repeated to the full length.
pub fn record(seed: u64) -> Vec<u8> {
    let text = format!("<{seed:016x}>");
    text.bytes().cycle().take(RECORD_BYTES).collect()
}

pub const RECORD_BYTES: usize = 900;
