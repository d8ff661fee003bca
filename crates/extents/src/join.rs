//! Joining and leaving a map. A process that joins uses the existing index and shared state, or
//! rebuilds missing ones from the journal. The last process that leaves removes them. Joining the
//! session of a node is in [`crate::session`].

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Errno, Fd, LockKind, Mode, OFlags, Stat, SysRef};

use crate::cache::Cache;
use crate::commit::Committing;
use crate::commit::NodeSession;
use crate::error::io;
use crate::hooks::reach;
use crate::index::Index;
use crate::joined::{Joined, exists, put_all};
use crate::journal::{Commit, HEADER_BYTES, Header, JOIN_BYTE, Journal, Locked, Place, Position, is_changed};
use crate::lmdb::{self, Env, Limits, Space};
use crate::nodes::{FileEngine, Session};
use crate::session::Patience;
use crate::shared::{self, Geometry, Opened, SharedState, Word};
use crate::spec::{SHARED_FILE, is_private};
use crate::{CopyId, MapError, MapSpec, Mask, Node, Result, Span};

/// Sizes of a new index and shared state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub geometry: Geometry,
    pub limits: Limits,
}

impl Default for Tuning {
    /// 8192 seqlocks and last-use times take 128 KiB; up to 8 GiB no two segments share one. 4 GiB
    /// of address space hold an index of 100 million extents.
    fn default() -> Self {
        Self {
            geometry: Geometry { seqlocks: 8192, blocks: 1024 },
            limits: Limits { map_bytes: 4 << 30, readers: 4096 },
        }
    }
}

/// The index is not created with less address space than this, bytes.
const SMALLEST_MAP: usize = 4 << 20;
const PRIVATE_DIR: Mode = Mode::RWXU;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The parameters of a join.
pub(crate) struct Joining<'a> {
    pub sys: &'a SysRef,
    pub spec: &'a MapSpec,
    tuning: &'a Tuning,
    pub place: &'a Arc<Place>,
    header: Header,
}

/// What a process has of a map before it claims a block of the shared state.
pub(crate) struct Attached {
    /// `board.lock`.
    pub lock: Fd,
    pub shared: SharedState,
    pub env: Arc<Env>,
    pub engine: Option<FileEngine>,
    /// A new journal, which stays locked until the block is claimed.
    pub new: Option<Locked>,
}

pub(crate) fn join(sys: &SysRef, spec: &MapSpec, tuning: &Tuning) -> Result<Box<Joined>> {
    let header = checked(spec)?;
    spec.check_owner(sys)?;
    reach("join");
    let place = Arc::new(Place::new(sys, spec)?);
    let joining = Joining { sys, spec, tuning, place: &place, header };
    let mut patience = Patience::new(sys);
    loop {
        match joining.attempt()? {
            Ok(joined) => return Ok(joined),
            Err(node) if patience.is_over() => {
                return Err(MapError::InUse { path: place.path.clone(), node: node.name });
            }
            Err(_) => patience.pause().map_err(io(&place.path, "wait for another node with"))?,
        }
    }
}

/// The header of a new journal of the file.
pub(crate) fn checked(spec: &MapSpec) -> Result<Header> {
    let all = u16::from(spec.default.bits()) >> spec.copies.min(CopyId::LIMIT) == 0;
    if !(1..=CopyId::LIMIT).contains(&spec.copies) || spec.default.is_empty() || !all {
        let path = spec.journal();
        return Err(MapError::Foreign { path, problem: format!("{} copies", spec.copies) });
    }
    let last_session = spec.sessions.then_some(Session::NONE.0);
    Ok(Header { id: spec.id, copies: spec.copies as u8, default: spec.default, last_session })
}

/// Reads and checks the journal's header. Writes `new` if the journal is being created.
pub(crate) fn header_of(
    sys: &SysRef,
    spec: &MapSpec,
    place: &Place,
    new: &Header,
    file: BorrowedFd<'_>,
) -> Result<Header> {
    let path = &place.path;
    let bytes = sys.read_start(file, HEADER_BYTES).map_err(io(path, "read"))?;
    match Header::decode(&bytes, path) {
        Ok(found) if found.id != new.id => {
            Err(MapError::Foreign { path: path.clone(), problem: "another id".to_owned() })
        }
        Ok(found) if found.copies != new.copies => {
            let problem = format!("{} copies instead of {}", found.copies, new.copies);
            Err(MapError::Foreign { path: path.clone(), problem })
        }
        Ok(found) => Ok(found),
        // The creation of the journal never completed, so nothing was ever written to the file.
        Err(_) if spec.create && bytes.len() <= HEADER_BYTES => {
            let made = (|| {
                sys.write_all_at(file, &new.encode(), 0)?;
                sys.sync(file)
            })();
            made.map_err(io(path, "create"))?;
            place.sync_dir()?;
            Ok(*new)
        }
        Err(bad) => Err(bad),
    }
}

impl Joining<'_> {
    /// Joins, unless a session of another node is alive: `Err` names the node.
    fn attempt(&self) -> Result<std::result::Result<Box<Joined>, Node>> {
        let locked = self.lock_journal()?;
        let header = match &locked {
            Some(locked) => header_of(self.sys, self.spec, self.place, &self.header, locked.as_fd())?,
            None => self.header,
        };
        let attached = match &locked {
            Some(_) if self.has_sessions(&header)? => match self.attach_session(&header)? {
                Ok(attached) => attached,
                Err(alive) => return Ok(Err(alive)),
            },
            locked => self.attach(locked.as_ref())?,
        };
        self.claim(attached, header).map(Ok)
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
        Ok(Box::new(Joined { sys, spec, header, place, session, block, shared, index, cache }))
    }

    /// Takes the join lock; `None` for a file that has lost its last name, and its journal with it.
    fn lock_journal(&self) -> Result<Option<Locked>> {
        match self.place.lock(JOIN_BYTE, self.spec.create) {
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

    /// Opens `board.lock`. Creates it and the run directory if they are missing.
    pub fn open_lock(&self, path: &Path) -> Result<Fd> {
        self.make_run_dir()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
        self.sys.open(None, path, flags, PRIVATE_FILE).map_err(io(path, "open"))
    }

    pub fn has_index(&self) -> bool {
        [lmdb::DATA, lmdb::LOCK].iter().all(|name| exists(self.sys, &self.spec.run_dir.join(name)))
    }

    /// Whether a live process owns a block.
    pub fn is_used(&self, lock: &Fd) -> Result<bool> {
        is_used(self.sys, lock.as_fd()).map_err(io(&self.spec.run_dir, "lock"))
    }

    /// Creates the run directory and its parents, and checks that no other user can write to it.
    fn make_run_dir(&self) -> Result<()> {
        let run_dir = &self.spec.run_dir;
        let missing: Vec<&Path> = run_dir.ancestors().take_while(|path| !exists(self.sys, path)).collect();
        for path in missing.into_iter().rev() {
            match self.sys.mkdir(None, path, PRIVATE_DIR) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(io(path, "make")(errno)),
            }
        }
        let stat = self.sys.stat_at(None, run_dir, false).map_err(io(run_dir, "stat"))?;
        let user = self.sys.user();
        // A user who can create names in the parent directory could replace the files.
        let above = run_dir.parent().map(|base| self.sys.stat_at(None, base, false));
        let above = above.transpose().map_err(io(run_dir, "stat"))?;
        let exchangeable = |above: &Stat| above.st_mode & 0o022 != 0 && above.st_mode & 0o1000 == 0;
        if !is_private(&stat, user) || above.is_some_and(|above| exchangeable(&above)) {
            return Err(io(run_dir, "use, as other users have made it or may write to it,")(Errno::PERM));
        }
        Ok(())
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

    /// Makes a shared state, not yet ready, and an index that lists `spans`.
    pub fn make(&self, spans: &[Span], default: Mask) -> Result<(SharedState, Arc<Env>)> {
        self.wipe()?;
        let shared = SharedState::create(self.sys, self.spec, self.tuning.geometry)?;
        let env = self.make_index(&shared, spans, default)?;
        Ok((shared, env))
    }

    /// Removes what an earlier boot, another version or an incomplete rebuild has left. No process
    /// uses these files.
    fn wipe(&self) -> Result<()> {
        for name in [SHARED_FILE, lmdb::DATA, lmdb::LOCK] {
            let path = self.spec.run_dir.join(name);
            match self.sys.unlink(None, &path) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(io(&path, "remove")(errno)),
            }
        }
        Ok(())
    }

    fn make_index(&self, shared: &SharedState, spans: &[Span], default: Mask) -> Result<Arc<Env>> {
        let run_dir = &self.spec.run_dir;
        let mut limits = self.tuning.limits;
        if let Some(limit) = stripewise_sys::raw::file_size_limit() {
            limits.map_bytes = limits.map_bytes.min(limit as usize & !0xffff);
            if limits.map_bytes < SMALLEST_MAP {
                return Err(io(run_dir, "make the index, within RLIMIT_FSIZE,")(Errno::FBIG));
            }
        }
        let env = Env::open(self.sys, run_dir, Some(limits))?;
        let space = Space { sys: self.sys, allocated: shared.word(Word::Allocated) };
        let mut txn = env.write(space, "make the index")?;
        let index = Index::new(env.clone(), default);
        index.fill(&mut txn, spans)?;
        shared.set_clean(&index.state(&txn)?.clean);
        txn.commit()?;
        Ok(env)
    }
}

/// Whether a live process owns a block, as the locks of this `board.lock` show.
pub(crate) fn is_used(sys: &SysRef, lock: BorrowedFd<'_>) -> stripewise_sys::Result<bool> {
    let free = sys.try_lock(lock, shared::FIRST_BLOCK_BYTE, 0, LockKind::Exclusive)?;
    if free {
        sys.unlock(lock, shared::FIRST_BLOCK_BYTE, 0)?;
    }
    Ok(!free)
}

/// The map after a power cut. Valid copies may differ by writes that were never synced, so one of
/// them, the lowest, is kept.
pub(crate) fn collapsed(journal: &Journal) -> Vec<Span> {
    let mut spans = Vec::new();
    for span in &journal.parts() {
        let span = span.in_lowest();
        if span.mask != journal.default {
            span.add_to(&mut spans);
        }
    }
    spans
}

/// [`crate::Map::leave`], apart from the prefetch hints.
pub(crate) fn leave(joined: Box<Joined>, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
    reach("leave");
    if joined.is_over() {
        // Without the join lock: another node may wait, with that lock, until this process no
        // longer holds what it holds after a failed append.
        return Err(joined.spec.over());
    }
    let _join = match joined.place.lock(JOIN_BYTE, false) {
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
    }
    reach("clean");
    joined.shared.set(Word::Ready, 0);
    remove_run_dir(&joined.sys, &joined.spec.run_dir);
    Ok(())
}

/// Removes the index and the shared state. Errors are ignored: files that remain are useless
/// without the others.
pub(crate) fn remove_run_dir(sys: &SysRef, run_dir: &Path) {
    for name in [SHARED_FILE, lmdb::DATA, lmdb::LOCK, shared::LOCK] {
        let _ = sys.unlink(None, &run_dir.join(name));
    }
    let _ = sys.rmdir(None, run_dir);
}
