//! Joining and leaving a map. A process that joins uses the existing index and shared state, or
//! rebuilds missing ones from the journal. The last process that leaves removes them. Joining the
//! session of a node is in [`crate::session`].

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use stripewise_sys::{Fd, Stat, SysRef};

use crate::cache::Cache;
use crate::commit::Committing;
use crate::error::io;
use crate::hooks::reach;
use crate::index::Index;
use crate::joined::{Joined, NodeSession, put_all};
use crate::joining::{Joining, Start, Tuning, checked, collapsed, remove_run_dir};
use crate::journal::{Commit, Header, Journal, Locked, Place, Position, is_changed};
use crate::lmdb::Env;
use crate::session::Attached;
use crate::shared::{self, Opened, SharedState, Word};
use crate::spec::SHARED_FILE;
use crate::{MapError, MapSpec, Result};

pub(crate) fn join(sys: &SysRef, spec: &MapSpec, tuning: &Tuning) -> Result<Box<Joined>> {
    let header = checked(spec)?;
    spec.check_owner(sys)?;
    reach("join");
    let place = Arc::new(Place::new(sys, spec)?);
    let joining = Joining { sys, spec, tuning, place: &place, header };
    let joined = joining.attempt()?;
    match joined.wait_until_usable() {
        Ok(()) => Ok(joined),
        Err(error) => {
            let _ = leave(joined, || Ok(()));
            Err(error)
        }
    }
}

impl Joining<'_> {
    /// Joins. Another node may still have to end being alone.
    fn attempt(&self) -> Result<Box<Joined>> {
        let Some((locked, stat)) = self.lock_journal()? else {
            return self.claim(self.attach(None)?, self.header);
        };
        let start = Start::of_joining(self.spec, self.place, &self.header, (&locked, &stat))?;
        let attached = if self.has_sessions(&start.header)? {
            self.attach_session(&start)?
        } else {
            self.attach(Some(&locked))?
        };
        self.claim(attached, start.header)
    }

    /// Claims a block. The caller has the join lock.
    fn claim(&self, attached: Attached, header: Header) -> Result<Box<Joined>> {
        let Attached { lock, shared, env, engine, new } = attached;
        let claimed = shared.claim(self.sys, lock).map_err(io(&self.spec.run_dir, "claim a block"))?;
        let limit = self.tuning.geometry.blocks;
        let full = || MapError::Full { path: self.spec.run_dir.join(SHARED_FILE), limit };
        let block = claimed.ok_or_else(full)?;
        reach("joined");
        drop(new);
        // Dead readers would keep pages from being reused.
        env.clear_dead_readers();
        let index = Index::new(env, header.default);
        let (sys, mut spec, place) = (self.sys.clone(), self.spec.clone(), self.place.clone());
        if let Some(name) = shared.node_name() {
            spec.node.name = name;
        }
        let session = engine.map(|engine| NodeSession::new(Some(engine)));
        let cache = Cache::new();
        let since_ns = sys.now_ns();
        Ok(Box::new(Joined { sys, spec, header, place, session, block, since_ns, shared, index, cache }))
    }

    /// Takes the join lock; `None` for a file that has lost its last name, and its journal with it.
    fn lock_journal(&self) -> Result<Option<(Locked, Stat)>> {
        match self.place.lock_join(self.spec.create) {
            Err(MapError::Missing { .. }) if self.is_unlinked() => Ok(None),
            locked => locked.map(Some),
        }
    }

    fn is_unlinked(&self) -> bool {
        let shared = SharedState::open(self.sys, self.spec);
        matches!(shared, Ok(Opened::Ready(shared)) if shared.is(Word::Unlinked))
    }

    /// Opens the index and the shared state, or rebuilds them from the journal.
    fn attach(&self, locked: Option<&Locked>) -> Result<Attached> {
        let run_dir = &self.spec.run_dir;
        let lock = self.open_lock(&run_dir.join(shared::LOCK))?;
        match SharedState::open(self.sys, self.spec)? {
            Opened::Ready(shared) if self.has_index() && !self.is_stale(&shared, &lock, locked)? => {
                match Env::open(self.sys, run_dir, None) {
                    Ok(env) => return Ok(Attached { lock, shared, env, engine: None, new: None }),
                    Err(error) if self.is_used(&lock)? => return Err(error),
                    Err(_) => {}
                }
            }
            Opened::Other { version } if self.is_used(&lock)? => {
                let path = run_dir.join(SHARED_FILE);
                return Err(MapError::Version { path, found: version, known: shared::VERSION });
            }
            _ => {}
        }
        match locked {
            Some(locked) => {
                let (shared, env, new) = self.rebuild(locked.as_fd())?;
                Ok(Attached { lock, shared, env, engine: None, new })
            }
            None => Err(self.spec.lost()),
        }
    }

    /// Whether the index lacks what another node has written since the processes of this node died.
    /// While one lives, its next commit notices that.
    fn is_stale(&self, shared: &SharedState, lock: &Fd, locked: Option<&Locked>) -> Result<bool> {
        let Some(locked) = locked else { return Ok(false) };
        if self.is_used(lock)? || !is_changed(self.place, locked, shared, &self.spec.node, self.header.copies)?
        {
            return Ok(false);
        }
        // What this node wrote may be in its index only.
        let is_closed = !shared.is(Word::Opened);
        is_closed.then_some(true).ok_or_else(|| MapError::Changed { path: self.place.path.clone() })
    }

    /// Rebuilds the index and the shared state from the journal. Returns the new journal's lock as
    /// well if the journal had to be rewritten.
    fn rebuild(&self, journal: BorrowedFd<'_>) -> Result<(SharedState, Arc<Env>, Option<Locked>)> {
        let path = &self.place.path;
        let read = Journal::read_from(self.sys, journal, path)?;
        let (spans, collapsed) = match &read.opened {
            None => (read.spans.clone(), false),
            Some(node) if !node.is_same_machine(&self.spec.node) => {
                return Err(MapError::OtherNode { path: path.clone(), node: node.name.clone() });
            }
            Some(node) if node.boot == self.spec.node.boot => return Err(self.spec.lost()),
            Some(_) => (collapsed(&read), true),
        };
        let (shared, env) = self.make(&spans, read.default)?;
        let stat = self.sys.stat(journal).map_err(io(path, "stat"))?;
        Position { end: read.valid_bytes, next: read.next }.store(&shared);
        // The needed length instead of the actual one: otherwise a journal that is never rewritten
        // could double in length with every session.
        shared.set(Word::JournalBase, read.needed_bytes());
        shared.set(Word::JournalInode, stat.st_ino);
        let mut new_lock = None;
        if collapsed {
            let node = &self.spec.node;
            let mut commit = Commit::begin(self.place, &shared, read.header(), node, true)?;
            let mut writer = commit.writer(true);
            put_all(&mut writer, &spans, read.default);
            commit.put(writer, true)?;
            new_lock = commit.into_lock();
        }
        reach("ready");
        shared.set(Word::Ready, 1);
        Ok((shared, env, new_lock))
    }
}

/// [`crate::Map::leave`], apart from the prefetch hints.
pub(crate) fn leave(joined: Box<Joined>, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
    reach("leave");
    if joined.is_over() {
        // Without the join lock: another node may wait, with that lock, until this process no
        // longer holds what it holds after a failed append.
        return Err(joined.spec.over());
    }
    let _join = match joined.lock_join() {
        // The file or its journal was removed.
        Err(MapError::Missing { .. }) => None,
        lock => Some(lock?),
    };
    if joined.living() > 1 {
        return Ok(());
    }
    // Held until the end: if the journal is rewritten, `commit` also holds the new journal's locks,
    // so that no process joins before everything is removed.
    reach("commit lock");
    let mut commit = joined.commit(true)?;
    let pending = {
        let txn = joined.read()?;
        let segments = joined.index.pending_segments(&txn)?;
        !segments.is_empty()
    };
    let is_closed = !joined.shared.is(Word::Opened) && !pending && !commit.is_broken();
    if !is_closed && !joined.shared.is(Word::Unlinked) {
        joined.sync_with(&mut commit, sync_data, true)?;
    } else if let Committing::Session(_) = commit {
        let nothing = commit.changes(false);
        commit.put(nothing, false, true)?;
        commit.settle();
    }
    reach("clean");
    joined.shared.set(Word::Ready, 0);
    remove_run_dir(&joined.sys, &joined.spec.run_dir);
    Ok(())
}
