//! A kernel with a scheduling step before each call, and the images of the journal that a power cut
//! could leave.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use stripewise_sys::{LockKind, Mode, OFlags, Real, Result, Sys, SysRef};

use crate::hooks::{self, reach};
use crate::tests::support::real;

/// Tracks what a power cut would leave of the journal.
pub struct Images {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Content of each inode when it was last synced.
    synced: HashMap<u64, Vec<u8>>,
    /// Inode that has the journal's name after a power cut.
    named: Option<u64>,
    /// Cached result of [`Images::possible`], until the journal is changed.
    known: Option<Vec<Vec<u8>>>,
}

impl Images {
    pub fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, state: Mutex::default() })
    }

    fn touched(&self) {
        self.state.lock().unwrap().known = None;
    }

    fn synced(&self, fd: BorrowedFd<'_>) {
        let sys = real();
        let stat = sys.stat(fd).unwrap();
        let mut state = self.state.lock().unwrap();
        if stat.st_mode & 0o170_000 == 0o040_000 {
            let named = sys.stat_at(None, &self.path, false).ok();
            state.named = named.map(|stat| stat.st_ino);
        } else {
            state.synced.insert(stat.st_ino, sys.read_start(fd, usize::MAX).unwrap());
        }
        state.known = None;
    }

    /// Every content that the journal may have if power fails now.
    pub fn possible(&self) -> Vec<Vec<u8>> {
        let mut state = self.state.lock().unwrap();
        if let Some(known) = &state.known {
            return known.clone();
        }
        let synced = |inode: u64| state.synced.get(&inode).cloned().unwrap_or_default();
        let mut images: Vec<Vec<u8>> = state.named.map(synced).into_iter().collect();
        if let Ok(stat) = real().stat_at(None, &self.path, false) {
            let (now, kept) = (std::fs::read(&self.path).unwrap_or_default(), synced(stat.st_ino));
            let mut torn = now.clone();
            let whole = kept.len().min(torn.len());
            let half = whole + (torn.len() - whole) / 2;
            torn[half..].fill(0);
            images.extend([kept, now, torn]);
        }
        images.sort();
        images.dedup();
        state.known = Some(images.clone());
        images
    }
}

/// The kernel of one process.
pub struct Watched {
    images: Arc<Images>,
}

impl Watched {
    pub fn new(images: &Arc<Images>) -> SysRef {
        Arc::new(Self { images: images.clone() })
    }

    fn before(&self, call: &'static str) -> Result<()> {
        if matches!(call, "pwrite" | "ftruncate" | "rename" | "unlink" | "open") {
            self.images.touched();
        }
        // Calls that do not affect other processes, and queries that are repeated, are no steps.
        if !matches!(call, "try lock" | "allocate" | "unlock" | "pread" | "fsync" | "open") {
            reach(call);
        }
        Ok(())
    }
}

impl Sys for Watched {
    stripewise_faulty::delegate!(before, except sync);

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        reach("fsync");
        Real.sync(fd)?;
        self.images.synced(fd);
        Ok(())
    }

    fn sync_data(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.sync(fd)
    }

    fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<()> {
        while !Real.try_lock(fd, start, len, kind)? {
            assert!(hooks::blocked(), "nobody would give the lock back");
        }
        Ok(())
    }
}

/// Syncs the directory, so that the journal counts as synced from the beginning.
pub fn settle(sys: &SysRef, dir: &Path) {
    let dir = sys.open(None, dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    sys.sync(dir.as_fd()).unwrap();
}
