//! Directories for a map in tests, and operations on the map without data.

use std::path::PathBuf;
use std::sync::Arc;

use stripewise_sys::{Errno, Real, Sys, SysRef};
use tempfile::TempDir;

use crate::joining::Tuning;
use crate::lmdb::Limits;
use crate::shared::Geometry;
use crate::{CopyId, Map, MapSpec, Mask, Node};

type Result<T> = stripewise_sys::Result<T>;

pub const ID: [u8; 16] = *b"0123456789abcdef";

/// Small sizes, so that a map is created quickly.
pub const SMALL: Tuning = Tuning {
    geometry: Geometry { seqlocks: 16, blocks: 8 },
    limits: Limits { map_bytes: 64 << 20, readers: 64 },
};

pub fn copy(number: usize) -> CopyId {
    CopyId::new(number)
}

pub fn only(number: usize) -> Mask {
    Mask::only(copy(number))
}

pub fn mask(copies: &[usize]) -> Mask {
    copies.iter().fold(Mask::NONE, |mask, &number| mask.with(copy(number)))
}

/// The directories of a map: the journal's on disk, the index's in memory.
pub struct Stage {
    pub disk: TempDir,
    _memory: Option<TempDir>,
    pub spec: MapSpec,
}

impl Stage {
    pub fn new(copies: usize, default: Mask) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        Self::at(tempfile::tempdir().unwrap(), Some(memory), copies, default)
    }

    /// Puts the journal in memory as well.
    pub fn in_memory(copies: usize, default: Mask) -> Self {
        Self::at(tempfile::tempdir_in("/dev/shm").unwrap(), None, copies, default)
    }

    fn at(disk: TempDir, memory: Option<TempDir>, copies: usize, default: Mask) -> Self {
        std::fs::write(disk.path().join("f.manifest"), b"").unwrap();
        let spec = MapSpec {
            owner: None,
            run_dir: memory.as_ref().unwrap_or(&disk).path().join("user/file"),
            journal_base: disk.path().to_owned(),
            journal_below: Default::default(),
            journal_name: "f.extents".into(),
            id: ID,
            copies,
            default,
            node: node("here", 1),
            create: true,
            sessions: false,
        };
        Self { disk, _memory: memory, spec }
    }

    /// A file with one cache copy.
    pub fn cached() -> Self {
        Self::new(2, Mask::ORIGINAL)
    }

    pub fn replicated(copies: usize) -> Self {
        Self::new(copies, Mask::all(copies))
    }

    pub fn journal(&self) -> PathBuf {
        self.disk.path().join("f.extents")
    }

    pub fn try_join(&self) -> crate::Result<Map> {
        Map::join_tuned(real(), self.spec.clone(), SMALL)
    }

    pub fn join(&self) -> Map {
        self.try_join().unwrap()
    }
}

pub fn real() -> SysRef {
    Arc::new(Real)
}

pub fn node(name: &str, boot: u8) -> Node {
    Node { name: name.to_owned(), boot: [boot; 16] }
}

pub fn nothing() -> Result<()> {
    Ok(())
}

/// Writes as the data path does, without data.
pub fn write(map: &Map, range: std::ops::Range<u64>, to: usize) {
    let mut guard = map.begin_write(range.clone()).unwrap();
    guard.prepare(range.clone(), copy(to)).unwrap();
    guard.wrote(range, copy(to)).unwrap();
}

/// Copies as the background work does, without data. Returns whether a range is now valid.
pub fn copy_over(map: &Map, range: std::ops::Range<u64>, from: usize, to: usize) -> bool {
    let mut copier = map.copier().unwrap().unwrap();
    let guard = copier.begin(range, copy(from), copy(to)).unwrap();
    guard.is_some_and(|guard| !guard.finish(nothing).unwrap().is_empty())
}

/// The (start, end, mask) of the spans of a read.
pub fn spans(map: &Map, range: std::ops::Range<u64>) -> Vec<(u64, u64, Mask)> {
    let guard = map.begin_read(range).unwrap();
    guard.spans().iter().map(|span| (span.start, span.end, span.mask)).collect()
}

/// A kernel where one kind of call fails.
pub struct Failing {
    call: &'static str,
    errno: Errno,
}

impl Failing {
    pub fn new(call: &'static str, errno: Errno) -> SysRef {
        Arc::new(Self { call, errno })
    }

    fn before(&self, call: &'static str) -> Result<()> {
        if call == self.call { Err(self.errno) } else { Ok(()) }
    }
}

impl Sys for Failing {
    stripewise_faulty::delegate!(before);
}
