//! The files of the campaign and their expected content.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use stripewise_random::Random;

use stripewise_extents::{Map, MapSpec, Mask, Node};
use stripewise_sys::{Real, Sys, SysRef};

use crate::writer::Note;

pub const WRITERS: usize = 3;
pub const COPIES: usize = 3;
/// Number of slots; the last ones are shared by all writers.
pub const SLOTS: usize = 48;
const SHARED: usize = 6;
/// Near the boundary of two segments.
const BASE: u64 = (1 << 20) - 100_000;
const STRIDE: u64 = 5000;

pub fn size() -> u64 {
    BASE + SLOTS as u64 * STRIDE
}

/// The byte range of a slot. Some slots are adjacent, others have a gap after them.
pub fn slot(number: usize) -> Range<u64> {
    let start = BASE + number as u64 * STRIDE;
    start..start + if number.is_multiple_of(3) { STRIDE } else { 1 + (number as u64 * 977) % STRIDE }
}

/// The writer that owns a slot; `None` if it is shared.
pub fn owner(number: usize) -> Option<usize> {
    (number < SLOTS - SHARED).then_some(number % WRITERS)
}

/// A file that shows that the processes share a session of their node.
const SESSIONS: &str = "sessions";

pub struct Stage {
    pub root: PathBuf,
    pub sys: SysRef,
}

impl Stage {
    pub fn make(root: &Path, sessions: bool) -> Self {
        let stage = Self { root: root.to_owned(), sys: Arc::new(Real) };
        std::fs::write(root.join("f.manifest"), b"").unwrap();
        if sessions {
            std::fs::write(root.join(SESSIONS), b"").unwrap();
        }
        for copy in 0..COPIES {
            File::create(stage.copy(copy)).unwrap().set_len(size()).unwrap();
        }
        std::fs::write(stage.expected(), vec![0; size() as usize]).unwrap();
        stage.join();
        stage
    }

    fn copy(&self, number: usize) -> PathBuf {
        self.root.join(format!("copy{number}"))
    }

    pub fn expected(&self) -> PathBuf {
        self.root.join("expected")
    }

    pub fn notes(&self, writer: usize) -> PathBuf {
        self.root.join(format!("notes{writer}"))
    }

    pub fn join(&self) -> Map {
        let sys = self.sys.clone();
        let node = Node::this(&sys).unwrap();
        let spec = MapSpec {
            owner: None,
            run_dir: self.root.join("run/file"),
            journal_base: self.root.clone(),
            journal_below: Default::default(),
            journal_name: "f.extents".into(),
            id: [7; 16],
            copies: COPIES,
            default: Mask::ORIGINAL,
            node,
            create: true,
            sessions: self.root.join(SESSIONS).exists(),
        };
        Map::join(sys, spec).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn open_copies(&self) -> Copies {
        let open = |number| OpenOptions::new().read(true).write(true).open(self.copy(number)).unwrap();
        Copies((0..COPIES).map(open).collect())
    }
}

/// The open files of the copies.
pub struct Copies(Vec<File>);

impl Copies {
    pub fn read(&self, copy: usize, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.0[copy].read_exact_at(&mut bytes, range.start).unwrap();
        bytes
    }

    pub fn write(&self, copy: usize, at: u64, bytes: &[u8]) {
        self.0[copy].write_all_at(bytes, at).unwrap();
    }

    pub fn punch(&self, copy: usize, range: &Range<u64>) -> stripewise_sys::Result<()> {
        Real.punch_hole(self.0[copy].as_fd(), range.start, range.end - range.start)
    }
}

/// The possible values of each byte: one, or several where a write was in flight.
pub struct Image {
    bytes: Vec<u8>,
    others: HashMap<u64, Vec<u8>>,
}

impl Image {
    pub fn read(path: &Path) -> Self {
        Self { bytes: std::fs::read(path).unwrap(), others: HashMap::new() }
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, &self.bytes).unwrap();
    }

    /// Applies a note. `shared`: other writers may have written there later.
    pub fn apply(&mut self, note: Note, shared: bool) {
        for byte in slot(note.slot) {
            if note.acknowledged && !shared {
                self.bytes[byte as usize] = note.value;
                self.others.remove(&byte);
            } else {
                self.others.entry(byte).or_default().push(note.value);
            }
        }
    }

    pub fn allows(&self, byte: u64, value: u8) -> bool {
        self.bytes[byte as usize] == value
            || self.others.get(&byte).is_some_and(|others| others.contains(&value))
    }

    pub fn at(&self, byte: u64) -> (u8, Option<&Vec<u8>>) {
        (self.bytes[byte as usize], self.others.get(&byte))
    }

    pub fn settle(&mut self, byte: u64, value: u8) {
        self.bytes[byte as usize] = value;
    }
}
