//! A file with several copies on a directory that several nodes see.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stripewise_sys::SysRef;
use tempfile::TempDir;

use crate::journal::{Header, Journal};
use crate::nodes::tests::format::COPIES;
use crate::nodes::{Batch, Engine, FileEngine, Hold, HoldKind, Log, Record, Session};
use crate::tests::support::{ID, node, real};
use crate::{CopyId, MapSpec, Mask, Span};

pub const HEADER: Header =
    Header { id: ID, copies: COPIES, default: Mask::ORIGINAL, last_session: Some(Session::NONE.0) };

pub struct Bed {
    pub dir: TempDir,
}

impl Bed {
    /// A file without changes, whose journal has version 2.
    pub fn new() -> Self {
        Self::holding(&HEADER.encode())
    }

    pub fn holding(journal: &[u8]) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::write(dir.path().join("f.manifest"), b"").unwrap();
        std::fs::write(dir.path().join("f.extents"), journal).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("f.extents")
    }

    pub fn inode(&self) -> u64 {
        std::fs::metadata(self.path()).unwrap().ino()
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    /// Leaves `bytes` after the journal, as a node does that dies in an append.
    pub fn leave_behind(&self, bytes: &[u8]) {
        std::fs::write(self.path(), [self.bytes(), bytes.to_vec()].concat()).unwrap();
    }

    /// The file as node `number` sees it.
    pub fn spec(&self, number: u8) -> MapSpec {
        spec_in(self.dir.path(), number)
    }

    pub fn join(&self, number: u8) -> FileEngine {
        self.join_on(&real(), number)
    }

    pub fn join_on(&self, sys: &SysRef, number: u8) -> FileEngine {
        FileEngine::join(sys, &self.spec(number)).unwrap()
    }

    /// The state that a node finds that opens the file now.
    pub fn log(&self) -> Log {
        let journal = Journal::read(&real(), &self.spec(99)).unwrap();
        journal.nodes.unwrap()
    }
}

pub fn spec_in(dir: &Path, number: u8) -> MapSpec {
    MapSpec {
        owner: None,
        run_dir: dir.join(format!("run{number}/file")),
        journal_base: dir.to_owned(),
        journal_below: Default::default(),
        journal_name: "f.extents".into(),
        id: ID,
        copies: COPIES.into(),
        default: Mask::ORIGINAL,
        node: node(&format!("node{number}"), number),
        create: false,
        sessions: false,
    }
}

pub fn changes(start: u64, end: u64, mask: u8) -> Record {
    Record::Changes(vec![Span::new(start..end, Mask::from_bits(mask))])
}

pub fn writes(session: Session, start: u64, end: u64) -> Record {
    let hold = Hold { range: start..end, kind: HoldKind::Write(CopyId::new(1)) };
    Record::Holds(session, vec![hold])
}

/// Appends records of the engine's session.
pub fn append(engine: &mut FileEngine, records: &[Record]) -> crate::Result<()> {
    let session = engine.session();
    engine.append(&mut |_| Batch::by(session, records.to_vec()))
}

/// The log after it was written anew.
pub fn rewritten(log: &Log) -> Log {
    let mut new = Log::new(log.default_mask(), log.last_session());
    log.restated().iter().for_each(|batch| new.apply(batch));
    new
}
