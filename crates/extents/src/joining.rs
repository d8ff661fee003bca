//! What joining a map finds and makes: the journal's header, the run directory, the index and the
//! shared state.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Errno, Fd, LockKind, Mode, OFlags, Stat, SysRef};

use crate::error::io;
use crate::index::Index;
use crate::journal::{HEADER_BYTES, Header, Journal, Kept, Locked, Place};
use crate::lmdb::{self, Env, Limits, Space};
use crate::shared::{self, Geometry, SharedState, Word};
use crate::spec::{SHARED_FILE, is_private};
use crate::{CopyId, MapError, MapSpec, Mask, Result, Span};

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
    pub tuning: &'a Tuning,
    pub place: &'a Arc<Place>,
    /// The header of a new journal.
    pub header: Header,
}

/// The header of a new journal of the file.
pub(crate) fn checked(spec: &MapSpec) -> Result<Header> {
    let all = u16::from(spec.default.bits()) >> spec.copies.min(CopyId::LIMIT) == 0;
    if !(1..=CopyId::LIMIT).contains(&spec.copies) || spec.default.is_empty() || !all {
        let path = spec.journal();
        return Err(MapError::Foreign { path, problem: format!("{} copies", spec.copies) });
    }
    let last_session = spec.sessions.then_some(0);
    Ok(Header { id: spec.id, copies: spec.copies as u8, default: spec.default, last_session })
}

/// The beginning of an open journal. A short journal is read whole with it.
pub(crate) struct Start {
    pub file: Arc<Kept>,
    /// Device and inode.
    pub identity: (u64, u64),
    /// Length of the journal, bytes.
    pub len: u64,
    pub header: Header,
    /// What follows the header, as far as it was read.
    pub batches: Vec<u8>,
}

/// Number of bytes of a journal that are read with its header, at once. The journal of a small map
/// is shorter.
const START_BYTES: u64 = 64 << 10;

impl Start {
    /// Reads the beginning of a journal that has this stat result.
    pub fn read(place: &Place, file: Arc<Kept>, stat: &Stat) -> Result<Self> {
        let bytes = Self::bytes(place, file.as_fd(), stat)?;
        let header = Header::decode(&bytes, &place.path)?;
        Ok(Self::new(file, stat, header, &bytes))
    }

    /// As [`Start::read`], for the process that has locked the journal to join the map. Checks that
    /// the journal is the one of the file. Writes the header `new` if the journal is being created.
    pub fn of_joining(
        spec: &MapSpec,
        place: &Place,
        new: &Header,
        (journal, stat): (&Locked, &Stat),
    ) -> Result<Self> {
        let bytes = Self::bytes(place, journal.as_fd(), stat)?;
        let header = header_of(spec, place, new, journal.as_fd(), &bytes)?;
        Ok(Self::new(journal.kept().clone(), stat, header, &bytes))
    }

    /// Reads nothing behind the end, for which a parallel file system would look up the length once
    /// more. The header is read even if the length is less: where the attributes of files are
    /// cached, it may be that of an earlier time.
    fn bytes(place: &Place, file: BorrowedFd<'_>, stat: &Stat) -> Result<Vec<u8>> {
        let max = (stat.st_size as u64).clamp(HEADER_BYTES as u64, START_BYTES) as usize;
        place.sys.read_start(file, max).map_err(io(&place.path, "read"))
    }

    fn new(file: Arc<Kept>, stat: &Stat, header: Header, bytes: &[u8]) -> Self {
        let batches = bytes.get(HEADER_BYTES..).unwrap_or_default().to_vec();
        let len = (stat.st_size as u64).max(HEADER_BYTES as u64);
        Self { file, identity: (stat.st_dev, stat.st_ino), len, header, batches }
    }
}

/// Checks the journal's header, with which `bytes` begin. Writes `new` if the journal is being
/// created.
fn header_of(
    spec: &MapSpec,
    place: &Place,
    new: &Header,
    file: BorrowedFd<'_>,
    bytes: &[u8],
) -> Result<Header> {
    let (sys, path) = (&place.sys, &place.path);
    match Header::decode(bytes, path) {
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

/// Removes the index and the shared state. Errors are ignored: files that remain are useless
/// without the others.
pub(crate) fn remove_run_dir(sys: &SysRef, run_dir: &Path) {
    for name in [SHARED_FILE, lmdb::DATA, lmdb::LOCK, shared::LOCK] {
        let _ = sys.unlink(None, &run_dir.join(name));
    }
    let _ = sys.rmdir(None, run_dir);
}

/// Whether `path` exists.
fn exists(sys: &SysRef, path: &Path) -> bool {
    sys.stat_at(None, path, false).is_ok()
}
