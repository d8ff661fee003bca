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
use crate::error::FileError;
use crate::manifest::Manifest;
use crate::runtime::{Runtime, Shape, temporary_id, temporary_name};

/// Bytes of a chunk, each recorded in the journal: the maximum work lost in a kill, per stream.
const CHUNK_BYTES: u64 = 64 << 20;
/// Chunks of one file copied in parallel: enough that the servers are the limit, not their
/// latencies.
const STREAMS: usize = 4;

/// How long to wait for a program that has the file open, and the pause between polls, ns.
const OPEN_PATIENCE_NS: u64 = 1_000_000_000;
const OPEN_LOOK_NS: u64 = 5_000_000;

/// The goal of a migration.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// A managed file of this shape.
    Managed(Shape<'a>),
    /// A plain file.
    Plain,
    /// A plain file with a native layout of its file system.
    Native(&'a dyn Maker),
}

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// The file already matches the goal.
    AlreadyThere,
    /// The file was migrated; its size in bytes.
    Done(u64),
}

/// How to copy the bytes of a long file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub chunk_bytes: u64,
    /// Number of chunks copied in parallel.
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

/// Files up to this many bytes are migrated without a journal if the goal is a native layout. Each
/// costs little, so several can be migrated in parallel.
pub const SHORT_BYTES_MAX: u64 = CHUNK_BYTES;

/// Migrates the file at `path` (absolute, not a symbolic link) to `goal`. Several threads may
/// migrate different files at once.
///
/// # Errors
/// After any error the path shows the complete old file, and nothing else is left. After a kill the
/// path shows the old or the new file, and the next call resumes.
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
    let io = |what| FileError::io(path, what);
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

/// Fails if another program has the file open: it would continue with the old file, and its later
/// writes would be lost. Waits for a program that only looks at the file or is about to close it.
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

/// Completes an earlier run that was killed after the rename: removes the objects of the replaced
/// file.
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
        // On failure `fsck` finds them. The old file had the same owner as the new one.
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
        let stat = source.stat().map_err(FileError::io(path, "stat"))?;
        let version = source.version_of(&stat);
        Ok(Self { runtime, path, source, stat, version, place, pace, progress })
    }
}

impl Job<'_> {
    /// Resumes an earlier run or starts with an empty temporary. Removes the temporary after a
    /// failure.
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
            // The temporary may be plain or managed.
            let _ = self.runtime.unlink(None, &temporary);
        })
    }

    pub(super) fn io(&self, what: &'static str) -> impl Fn(Errno) -> MigrateError + use<> {
        let path = self.path.to_owned();
        move |errno| MigrateError::File(FileError::Io { path: path.clone(), what, errno })
    }

    /// The temporary and the chunk checksums of an earlier run, if it had the same source and goal.
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
        // A temporary left from a time when the file was short. If another process is using one, it
        // will notice that the file changes.
        let _ = short::clear(self.runtime.sys(), self.path);
        self.check_space()?;
        let replaced = self.source.managed().map(|file| file.manifest().format()).transpose();
        let header = Header {
            source: self.version,
            destination: temporary_name(id),
            goal: self.place.sum(),
            chunk_bytes: self.pace.chunk_bytes,
            replaced: replaced.map_err(FileError::from)?,
        };
        journal.begin(&header).map_err(self.io("write the journal of"))?;
        self.place.make(self.runtime, self.path, temporary, id)
    }

    /// Removes the remains of an earlier run that cannot be resumed. It may have died before its
    /// temporary listed its objects.
    fn discard(&self, temporary: &Path, header: &Header) {
        let _ = self.runtime.unlink(None, temporary);
        // Make the removal durable before the journal that names the temporary is overwritten: a
        // power cut must not bring it back.
        let _ = crate::file::sync_directory(self.runtime.sys(), None, temporary);
        let Place::Managed(blueprint) = &self.place else { return };
        let id = temporary_id(&header.destination);
        if let (true, Some(id)) = (header.goal == self.place.sum(), id) {
            let sys = self.runtime.sys();
            let _ = blueprint.remove(sys, Objects { id, owner: sys.user() });
        }
    }

    /// Renames the complete temporary over the file.
    pub(super) fn switch(&self, temporary: &Path) -> Result<()> {
        let sys = self.runtime.sys();
        let named = sys.stat_at(None, self.path, false).map_err(self.io("stat"))?;
        let replaced = (named.st_dev, named.st_ino) != (self.stat.st_dev, self.stat.st_ino);
        let managed = self.source.managed().is_some();
        let now = if managed { self.source.version() } else { Ok(self.source.version_of(&named)) };
        if replaced || now.map_err(self.io("stat"))? != self.version {
            return Err(MigrateError::Changed(self.path.into()));
        }
        // A program may have opened the file during the copy.
        self.refuse_if_open()?;
        // Only a managed file has objects, which are removed with it.
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
