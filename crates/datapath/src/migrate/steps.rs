//! The steps of a migration.

use std::path::{Path, PathBuf};

use stripewise_sys::{FileType, Stat};
use stripewise_target::{FileId, Objects};

use super::contents::{Contents, Version};
use super::error::MigrateError;
use super::journal::{self, Header, Journal};
use super::maker::Maker;
use super::place::Place;
use super::{Progress, short};
use crate::Errno;
use crate::manifest::Manifest;
use crate::runtime::{Runtime, Shape, temporary_id, temporary_name};
use crate::trouble::Trouble;

/// Bytes between two lines of the journal: what a kill costs at most, per stream.
const CHUNK_BYTES: u64 = 64 << 20;
/// Chunks of one file that are copied at once: enough that servers, not their latencies, are the limit.
const STREAMS: usize = 4;

/// How long a program that has the file open is waited for, ns, and how often it is looked.
const OPEN_PATIENCE_NS: u64 = 1_000_000_000;
const OPEN_LOOK_NS: u64 = 5_000_000;

/// What a file is to become.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// Managed, made of this.
    Managed(Shape<'a>),
    /// A plain file.
    Plain,
    /// A plain file with a layout of its file system's own.
    Native(&'a dyn Maker),
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// It was what it is to be.
    AlreadyThere,
    /// It was moved: so many bytes.
    Done(u64),
}

/// How the bytes of a long file are moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub chunk_bytes: u64,
    /// Chunks at once.
    pub streams: usize,
}

type Result<T> = std::result::Result<T, MigrateError>;

/// One run of [`migrate`].
pub(super) struct Job<'a> {
    pub runtime: &'a Runtime,
    pub path: &'a Path,
    pub source: Contents,
    pub stat: Stat,
    pub version: Version,
    pub place: Place<'a>,
    pub pace: Pace,
    pub progress: &'a mut dyn FnMut(Progress),
}

/// Whether a file up to this long is migrated without a journal where its goal is a native layout, and so costs little to do
/// beside others; bytes.
pub const SHORT_BYTES_MAX: u64 = CHUNK_BYTES;

/// Makes the file at `path` (absolute, no symbolic link) what `goal` says. Several threads may migrate different files at once.
///
/// # Errors
/// Whatever the error, the path shows the old file, whole, and nothing else is left. After a kill the path shows the old
/// or the new one; the next call goes on.
pub fn migrate(
    runtime: &Runtime,
    path: &Path,
    goal: Goal<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Migration> {
    migrate_in_chunks(runtime, path, goal, Pace { chunk_bytes: CHUNK_BYTES, streams: STREAMS }, progress)
}

pub(crate) fn migrate_in_chunks(
    runtime: &Runtime,
    path: &Path,
    goal: Goal<'_>,
    pace: Pace,
    progress: &mut dyn FnMut(Progress),
) -> Result<Migration> {
    let io = |what| Trouble::io(path, what);
    let stat = runtime.sys().stat_at(None, path, false).map_err(io("migrate"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(MigrateError::NotRegular(path.into()));
    }
    if stat.st_nlink > 1 {
        return Err(MigrateError::Linked { path: path.into(), names: stat.st_nlink });
    }
    let place = Place::of(runtime, goal)?;
    if !journal::exists(runtime.sys(), path) {
        let source = Contents::open(runtime, path)?;
        if is_there(runtime, path, &source, goal)? {
            return Ok(Migration::AlreadyThere);
        }
        let native = matches!(goal, Goal::Native(_)) && source.managed().is_none();
        if native && stat.st_size as u64 <= pace.chunk_bytes {
            let mut job = Job::new(runtime, path, source, place, pace, progress)?;
            return short::run(&mut job).map(|()| Migration::Done(job.version.size));
        }
    }
    let journal = Journal::open(runtime.sys(), path).map_err(io("open the journal of"))?;
    let mut journal = journal.ok_or_else(|| MigrateError::Busy(path.into()))?;
    let opened = Contents::open(runtime, path).map_err(MigrateError::from);
    let looked = opened.and_then(|source| {
        let there = is_there(runtime, path, &source, goal)?;
        if !there {
            refuse_if_open(runtime, path, &source)?;
        }
        Ok((there, source))
    });
    let (there, source) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            journal.remove_if_new();
            return Err(error);
        }
    };
    if there {
        finish_earlier(runtime, path, &source, &journal);
        journal.remove().map_err(io("remove the journal of"))?;
        return Ok(Migration::AlreadyThere);
    }
    let mut job = Job::new(runtime, path, source, place, pace, progress)?;
    let done = job.run(&mut journal);
    journal.remove().map_err(io("remove the journal of"))?;
    done.map(|()| Migration::Done(job.version.size))
}

fn is_there(runtime: &Runtime, path: &Path, source: &Contents, goal: Goal<'_>) -> Result<bool> {
    match (source.managed(), goal) {
        (None, Goal::Plain) => Ok(true),
        (Some(file), Goal::Managed(shape)) => Ok(runtime.is_placed(file.manifest(), shape)),
        (None, Goal::Native(maker)) => maker
            .is_made(path, source.named_file())
            .map_err(|reason| MigrateError::Native { path: path.into(), reason }),
        _ => Ok(false),
    }
}

/// A program that has the old file open would go on with it: what it writes from then on would be
/// lost. One that only looks, or is just ending, is waited for.
fn refuse_if_open(runtime: &Runtime, path: &Path, source: &Contents) -> Result<()> {
    let sys = runtime.sys();
    let until_ns = sys.now_ns() + OPEN_PATIENCE_NS;
    while source.is_open_elsewhere() {
        let now_ns = sys.now_ns();
        if now_ns >= until_ns {
            return Err(MigrateError::InUse(path.into()));
        }
        sys.sleep_until_ns(now_ns + OPEN_LOOK_NS);
    }
    Ok(())
}

/// An earlier run was killed after the rename: what the file was before may still have its components.
fn finish_earlier(runtime: &Runtime, path: &Path, now: &Contents, journal: &Journal) {
    let Some((header, sums)) = &journal.found else { return };
    let Some(replaced) = &header.replaced else { return };
    let temporary = path.with_file_name(&header.destination);
    let all_copied = sums.len() as u64 == chunk_count(&header.source, header.chunk_bytes)
        && sums.iter().all(Option::is_some);
    let renamed = runtime.sys().stat_at(None, &temporary, false).err() == Some(Errno::NOENT);
    let is_it = now.managed().is_none_or(|file| header.destination == temporary_name(file.manifest().id));
    if let (true, true, true, Ok(old)) =
        (all_copied, renamed, is_it, Manifest::parse(replaced.as_bytes(), "journal"))
    {
        // Left to fsck otherwise. It had the owner that the file has now.
        let owner = runtime.sys().stat_at(None, path, false).map(|stat| stat.st_uid);
        let _ = owner.map(|owner| runtime.remove_components(&old, owner));
    }
}

pub(super) fn chunk_count(version: &Version, chunk_bytes: u64) -> u64 {
    version.size.div_ceil(chunk_bytes)
}

impl<'a> Job<'a> {
    fn new(
        runtime: &'a Runtime,
        path: &'a Path,
        source: Contents,
        place: Place<'a>,
        pace: Pace,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let stat = source.stat().map_err(Trouble::io(path, "stat"))?;
        let version = source.version_of(&stat);
        Ok(Self { runtime, path, source, stat, version, place, pace, progress })
    }
}

impl Job<'_> {
    /// Goes on with what an earlier run left, or starts with an empty temporary. After a failure neither is left.
    fn run(&mut self, journal: &mut Journal) -> Result<()> {
        let (temporary, done) = match self.resume(journal) {
            Some((temporary, destination, sums)) => {
                let done = self.fill(journal, &destination, sums).and_then(|()| self.switch(&temporary));
                (temporary, done)
            }
            None => {
                let id = FileId::random(&**self.runtime.sys()).map_err(self.io("make an id for"))?;
                let temporary = self.path.with_file_name(temporary_name(id));
                let started = self.start(journal, &temporary, id);
                let done = started.and_then(|new| self.fill(journal, &new, Vec::new()));
                (temporary.clone(), done.and_then(|()| self.switch(&temporary)))
            }
        };
        done.inspect_err(|_| {
            // Whatever it was, a plain or a managed one.
            let _ = self.runtime.unlink(None, &temporary);
        })
    }

    pub(super) fn io(&self, what: &'static str) -> impl Fn(Errno) -> MigrateError + use<> {
        let path = self.path.to_owned();
        move |errno| MigrateError::Trouble(Trouble::Io { path: path.clone(), what, errno })
    }

    /// The temporary of an earlier run, and the checksums of its chunks, if it was on its way from and to the same.
    fn resume(&self, journal: &mut Journal) -> Option<(PathBuf, Contents, Vec<Option<u32>>)> {
        let (header, sums) = journal.found.take()?;
        let temporary = self.path.with_file_name(&header.destination);
        let same = header.source == self.version
            && header.goal == self.place.sum()
            && header.chunk_bytes == self.pace.chunk_bytes;
        if let Some(destination) = same.then(|| self.place.open(self.runtime, &temporary)).flatten() {
            return Some((temporary, destination, sums));
        }
        self.discard(&temporary, &header);
        None
    }

    fn start(&self, journal: &mut Journal, temporary: &Path, id: FileId) -> Result<Contents> {
        // Left when the file was shorter; another process's will notice that the file changes.
        let _ = short::clear(self.runtime.sys(), self.path);
        self.check_space()?;
        let replaced = self.source.managed().map(|file| file.manifest().format()).transpose();
        let header = Header {
            source: self.version,
            destination: temporary_name(id),
            goal: self.place.sum(),
            chunk_bytes: self.pace.chunk_bytes,
            replaced: replaced.map_err(Trouble::from)?,
        };
        journal.begin(&header).map_err(self.io("write the journal of"))?;
        self.place.make(self.runtime, self.path, temporary, id)
    }

    /// Removes what an earlier run left that is of no use. It may have died before its temporary said what belongs to it.
    fn discard(&self, temporary: &Path, header: &Header) {
        let _ = self.runtime.unlink(None, temporary);
        // Before the journal that names it is written over: a power cut must not bring it back.
        let _ = crate::file::sync_directory(self.runtime.sys(), None, temporary);
        let Place::Managed(blueprint) = &self.place else { return };
        let id = temporary_id(&header.destination);
        if let (true, Some(id)) = (header.goal == self.place.sum(), id) {
            let sys = self.runtime.sys();
            let _ = blueprint.remove(sys, Objects { id, owner: sys.user() });
        }
    }

    /// The complete temporary takes the file's place.
    pub(super) fn switch(&self, temporary: &Path) -> Result<()> {
        let sys = self.runtime.sys();
        let named = sys.stat_at(None, self.path, false).map_err(self.io("stat"))?;
        let replaced = (named.st_dev, named.st_ino) != (self.stat.st_dev, self.stat.st_ino);
        let managed = self.source.managed().is_some();
        let now = if managed { self.source.version() } else { Ok(self.source.version_of(&named)) };
        if replaced || now.map_err(self.io("stat"))? != self.version {
            return Err(MigrateError::Changed(self.path.into()));
        }
        // One that came while the bytes were copied.
        self.refuse_if_open()?;
        // Only what is managed has components, which go with it.
        let renamed = match managed {
            true => self.runtime.rename(None, temporary, None, self.path, 0),
            false => sys.rename(None, temporary, None, self.path),
        };
        renamed.map_err(self.io("replace"))?;
        crate::file::sync_directory(sys, None, self.path).map_err(self.io("sync the directory of"))
    }

    pub(super) fn refuse_if_open(&self) -> Result<()> {
        refuse_if_open(self.runtime, self.path, &self.source)
    }

    pub(super) fn check_space(&self) -> Result<()> {
        let data = (self.stat.st_blocks as u64).saturating_mul(512);
        self.place.check_space(self.runtime, self.path, self.version.size, data)
    }
}
