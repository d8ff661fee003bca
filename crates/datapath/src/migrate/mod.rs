//! Migration: moves a file's bytes into a managed layout, into another one, into a native layout of
//! the file system, or back into a plain file. Also copies files.
//!
//! A migration copies to a temporary in the file's directory, verifies the copy, and renames it
//! over the path: at any moment the path shows the complete old or the complete new file. A
//! migration that is killed can be resumed. Where the file system can change the layout of an
//! existing file, it does so instead, and the contents are compared (`in_place`). No program may
//! write to the file meanwhile; a change of its size or times is detected, when it is copied
//! before the rename.

mod contents;
mod copy;
mod error;
mod extended;
mod in_place;
mod job;
mod journal;
mod long;
mod place;
mod short;

use std::path::{Path, PathBuf};

use stripewise_sys::FileType;
use stripewise_target::{FileId, Objects};

use crate::error::{Errno, FileError};
use crate::file::sync_directory;
use crate::manifest::Manifest;
use crate::runtime::{Runtime, temporary_id, temporary_name};
pub use contents::Contents;
pub use copy::copy_file;
pub use error::MigrateError;
use error::Result;
use job::Job;
pub(crate) use job::Pace;
pub use job::{Phase, Progress};
use journal::{Header, Journal};
use place::Place;
pub use place::{Goal, Maker};

/// Bytes of a chunk, each recorded in the journal: the maximum work lost in a kill, per stream.
const CHUNK_BYTES: u64 = 64 << 20;
/// Chunks of one file copied in parallel: enough that the servers are the limit, not their
/// latencies.
const STREAMS: usize = 4;

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// The file already matches the goal.
    AlreadyThere,
    /// The file was migrated; its size in bytes.
    Done(u64),
}

/// Files up to this many bytes are migrated without a journal if the goal is a native layout. Each
/// costs little, so several can be migrated in parallel.
pub const SHORT_BYTES_MAX: u64 = CHUNK_BYTES;

/// Migrates the file at `path` (absolute, not a symbolic link) to `goal`. Several threads may
/// migrate different files at once.
///
/// # Errors
/// After any error but [`MigrateError::Altered`] the path shows the old contents, complete, and
/// nothing else is left. A file whose layout was changed in place may have the new layout. After a
/// kill the path shows the old or the new file, and the next call resumes.
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
        if let (Goal::Native(maker), true) = (goal, native)
            && in_place::run(runtime, path, &source, maker, progress)?
        {
            return Ok(Migration::Done(stat.st_size as u64));
        }
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
            source.refuse_if_open(path)?;
        }
        Ok((there, source))
    });
    let (there, source) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            if journal.found.is_none() {
                let _ = journal.remove();
            }
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

/// Completes an earlier run that was killed after the rename: removes the objects of the replaced
/// file.
fn finish_earlier(runtime: &Runtime, path: &Path, now: &Contents, journal: &Journal) {
    let Some((header, sums)) = &journal.found else { return };
    let Some(replaced) = &header.replaced else { return };
    let temporary = path.with_file_name(&header.destination);
    let all_copied =
        sums.len() as u64 == header.source.chunk_count(header.chunk_bytes) && sums.iter().all(Option::is_some);
    let renamed = runtime.sys().stat_at(None, &temporary, false).err() == Some(Errno::NOENT);
    let is_it = now.managed().is_none_or(|file| header.destination == temporary_name(file.manifest().id));
    if let (true, true, true, Ok(old)) =
        (all_copied, renamed, is_it, Manifest::parse(replaced.as_bytes(), "journal"))
    {
        // On failure `fsck` finds them. The old file had the same owner as the new one.
        let owner = runtime.sys().stat_at(None, path, false).map(|stat| stat.st_uid);
        let _ = owner.map(|owner| runtime.remove_objects(&old, owner));
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
                let started = self.start(journal, id);
                let done = started.and_then(|new| self.fill(journal, &new, Vec::new()));
                (temporary.clone(), done.and_then(|()| self.switch(&temporary)))
            }
        };
        done.inspect_err(|_| {
            // The temporary may be plain or managed.
            let _ = self.runtime.unlink(None, &temporary);
        })
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

    fn start(&self, journal: &mut Journal, id: FileId) -> Result<Contents> {
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
        self.make(id)
    }

    /// Removes the remains of an earlier run that cannot be resumed. It may have died before its
    /// temporary listed its objects.
    fn discard(&self, temporary: &Path, header: &Header) {
        let _ = self.runtime.unlink(None, temporary);
        // Make the removal durable before the journal that names the temporary is overwritten: a
        // power cut must not bring it back.
        let _ = sync_directory(self.runtime.sys(), None, temporary);
        let Place::Managed(blueprint) = &self.place else { return };
        let id = temporary_id(&header.destination);
        if let (true, Some(id)) = (header.goal == self.place.sum(), id) {
            let sys = self.runtime.sys();
            let _ = blueprint.remove(Objects { id, owner: sys.user() });
        }
    }
}
