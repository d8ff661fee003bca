//! The steps of a migration, and of a copy.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use stripewise_sys::{FileType, Mode, OFlags, Stat};
use stripewise_target::FileId;

use super::contents::{Contents, Version};
use super::copy::{checksum, copy_range};
use super::error::MigrateError;
use super::journal::{self, Header, Journal};
use super::{Phase, Progress};
use crate::Errno;
use crate::manifest::Manifest;
use crate::runtime::{Blueprint, Missing, Runtime, Shape, temporary_id, temporary_name};
use crate::trouble::Trouble;

/// Bytes between two lines of the journal: what a kill costs at most.
const CHUNK_BYTES: u64 = 64 << 20;

/// What a file is to become.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// Managed, made of this.
    Managed(Shape<'a>),
    /// A plain file.
    Plain,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// It was what it is to be.
    AlreadyThere,
    /// It was moved: so many bytes.
    Done(u64),
}

type Result<T> = std::result::Result<T, MigrateError>;

/// Where the copy goes.
enum Place {
    Managed(Blueprint),
    Plain,
}

/// One run of [`migrate`].
struct Job<'a> {
    runtime: &'a Runtime,
    path: &'a Path,
    source: Contents,
    stat: Stat,
    version: Version,
    place: Place,
    chunk_bytes: u64,
    progress: &'a mut dyn FnMut(Progress),
}

/// Makes the file at `path` (absolute, no symbolic link) what `goal` says.
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
    migrate_in_chunks(runtime, path, goal, CHUNK_BYTES, progress)
}

pub(crate) fn migrate_in_chunks(
    runtime: &Runtime,
    path: &Path,
    goal: Goal<'_>,
    chunk_bytes: u64,
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
    let place = place_of(runtime, goal)?;
    if !journal::exists(runtime.sys(), path) && is_there(runtime, &Contents::open(runtime, path)?, goal) {
        return Ok(Migration::AlreadyThere);
    }
    let journal = Journal::open(runtime.sys(), path).map_err(io("open the journal of"))?;
    let mut journal = journal.ok_or_else(|| MigrateError::Busy(path.into()))?;
    let source = match Contents::open(runtime, path) {
        Ok(source) => source,
        Err(error) => {
            journal.remove_if_new();
            return Err(error.into());
        }
    };
    if is_there(runtime, &source, goal) {
        finish_earlier(runtime, path, &source, &journal);
        journal.remove().map_err(io("remove the journal of"))?;
        return Ok(Migration::AlreadyThere);
    }
    let version = source.version().map_err(io("stat"))?;
    let stat = source.stat().map_err(io("stat"))?;
    let mut job = Job { runtime, path, source, stat, version, place, chunk_bytes, progress };
    let done = job.run(&mut journal);
    journal.remove().map_err(io("remove the journal of"))?;
    done.map(|()| Migration::Done(version.size))
}

fn place_of(runtime: &Runtime, goal: Goal<'_>) -> Result<Place> {
    Ok(match goal {
        Goal::Plain => Place::Plain,
        Goal::Managed(shape) => Place::Managed(runtime.resolve(shape, Missing::Fail).map_err(Trouble::from)?),
    })
}

fn is_there(runtime: &Runtime, source: &Contents, goal: Goal<'_>) -> bool {
    match (source.managed(), goal) {
        (None, Goal::Plain) => true,
        (Some(file), Goal::Managed(shape)) => runtime.is_placed(file.manifest(), shape),
        _ => false,
    }
}

/// An earlier run was killed after the rename: what the file was before may still have its components.
fn finish_earlier(runtime: &Runtime, path: &Path, now: &Contents, journal: &Journal) {
    let Some((header, sums)) = &journal.found else { return };
    let Some(replaced) = &header.replaced else { return };
    let temporary = path.with_file_name(&header.destination);
    let all_copied =
        sums.len() as u64 == chunks(&header.source, header.chunk_bytes) && sums.iter().all(Option::is_some);
    let renamed = runtime.sys().stat_at(None, &temporary, false).err() == Some(Errno::NOENT);
    let is_it = now.managed().is_none_or(|file| header.destination == temporary_name(file.manifest().id));
    if let (true, true, true, Ok(old)) =
        (all_copied, renamed, is_it, Manifest::parse(replaced.as_bytes(), "journal"))
    {
        // Left to fsck otherwise.
        let _ = runtime.remove_components(&old);
    }
}

fn chunks(version: &Version, chunk_bytes: u64) -> u64 {
    version.size.div_ceil(chunk_bytes)
}

impl Job<'_> {
    /// Goes on with what an earlier run left, or starts with an empty temporary. After a failure neither is left.
    fn run(&mut self, journal: &mut Journal) -> Result<()> {
        let (temporary, done) = match self.resume(journal) {
            Some((temporary, destination, sums)) => {
                let done = self.fill(journal, &temporary, &destination, sums);
                (temporary, done)
            }
            None => {
                let id = FileId::random(&**self.runtime.sys()).map_err(self.io("make an id for"))?;
                let temporary = self.path.with_file_name(temporary_name(id));
                let started = self.start(journal, &temporary, id);
                let done = started.and_then(|new| self.fill(journal, &temporary, &new, Vec::new()));
                (temporary, done)
            }
        };
        done.inspect_err(|_| {
            // Whatever it was, a plain or a managed one.
            let _ = self.runtime.unlink(None, &temporary);
        })
    }

    fn io(&self, what: &'static str) -> impl FnOnce(Errno) -> MigrateError {
        let path = self.path.to_owned();
        move |errno| MigrateError::Trouble(Trouble::Io { path, what, errno })
    }

    /// The temporary of an earlier run, and the checksums of its chunks, if it was on its way from and to the same.
    fn resume(&self, journal: &mut Journal) -> Option<(PathBuf, Contents, Vec<Option<u32>>)> {
        let (header, sums) = journal.found.take()?;
        let temporary = self.path.with_file_name(&header.destination);
        let same = header.source == self.version
            && header.goal == self.goal_sum()
            && header.chunk_bytes == self.chunk_bytes;
        if let Some(destination) = same.then(|| self.open_temporary(&temporary)).flatten() {
            return Some((temporary, destination, sums));
        }
        self.discard(&temporary, &header);
        None
    }

    fn start(&self, journal: &mut Journal, temporary: &Path, id: FileId) -> Result<Contents> {
        self.check_space()?;
        let replaced = self.source.managed().map(|file| file.manifest().format()).transpose();
        let header = Header {
            source: self.version,
            destination: temporary_name(id),
            goal: self.goal_sum(),
            chunk_bytes: self.chunk_bytes,
            replaced: replaced.map_err(Trouble::from)?,
        };
        journal.begin(&header).map_err(self.io("write the journal of"))?;
        self.make_temporary(temporary, id)
    }

    /// Removes what an earlier run left that is of no use. It may have died before its temporary said what belongs to it.
    fn discard(&self, temporary: &Path, header: &Header) {
        let _ = self.runtime.unlink(None, temporary);
        let Place::Managed(blueprint) = &self.place else { return };
        let id = temporary_id(&header.destination);
        if let (true, Some(id)) = (header.goal == self.goal_sum(), id) {
            let _ = blueprint.remove(self.runtime.sys(), id);
        }
    }

    /// Tells one goal from another.
    fn goal_sum(&self) -> u32 {
        match &self.place {
            Place::Plain => 0,
            Place::Managed(blueprint) => crc32fast::hash(blueprint.description().as_bytes()) | 1,
        }
    }

    fn open_temporary(&self, temporary: &Path) -> Option<Contents> {
        match (&self.place, Contents::open(self.runtime, temporary).ok()?) {
            (Place::Managed(_), Contents::Managed(file)) if file.is_writable() => Some(Contents::Managed(file)),
            (Place::Plain, Contents::Plain(sys, _)) => {
                let fd = sys.open(None, temporary, OFlags::RDWR | OFlags::NOFOLLOW, Mode::empty()).ok()?;
                Some(Contents::Plain(sys, fd))
            }
            _ => None,
        }
    }

    fn make_temporary(&self, temporary: &Path, id: FileId) -> Result<Contents> {
        // Nobody else's until it is complete.
        let mode = Mode::RUSR | Mode::WUSR;
        match &self.place {
            Place::Plain => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                let sys = self.runtime.sys();
                let fd = sys.open(None, temporary, flags, mode).map_err(self.io("create a file beside"))?;
                Ok(Contents::Plain(sys.clone(), fd))
            }
            Place::Managed(blueprint) => {
                let new = self.runtime.build_with(id, self.path, mode, blueprint.clone())?;
                Ok(Contents::Managed(
                    self.runtime.keep_temporary(new).map_err(self.io("create a file beside"))?,
                ))
            }
        }
    }

    fn fill(
        &mut self,
        journal: &mut Journal,
        temporary: &Path,
        destination: &Contents,
        mut sums: Vec<Option<u32>>,
    ) -> Result<()> {
        let total = self.version.size;
        sums.resize(chunks(&self.version, self.chunk_bytes) as usize, None);
        for (index, sum) in (0..).zip(&mut sums) {
            if sum.is_none() {
                let copied = self.copy_chunk(destination, index)?;
                journal.chunk_done(index, copied).map_err(self.io("write the journal of"))?;
                *sum = Some(copied);
            }
        }
        destination.set_size(total).map_err(self.io("set the size of the copy of"))?;
        destination.settle().map_err(self.io("bring in sync the copy of"))?;
        destination.sync().map_err(self.io("sync the copy of"))?;
        for (index, sum) in (0..).zip(&sums) {
            self.verify_chunk(destination, index, sum.unwrap_or_default())?;
        }
        if self.source.version().map_err(self.io("stat"))? != self.version {
            return Err(MigrateError::Changed(self.path.into()));
        }
        destination.take_attributes(&self.stat).map_err(self.io("set the attributes of the copy of"))?;
        destination.sync().map_err(self.io("sync the copy of"))?;
        self.runtime.rename(None, temporary, None, self.path, 0).map_err(self.io("replace"))?;
        crate::file::sync_directory(self.runtime.sys(), None, self.path)
            .map_err(self.io("sync the directory of"))
    }

    fn range(&self, index: u64) -> (u64, u64) {
        (index * self.chunk_bytes, ((index + 1) * self.chunk_bytes).min(self.version.size))
    }

    fn copy_chunk(&mut self, destination: &Contents, index: u64) -> Result<u32> {
        let (range, total) = (self.range(index), self.version.size);
        let tell = |done| (self.progress)(Progress { phase: Phase::Copy, done, total });
        copy_range(&self.source, destination, range, tell).map_err(self.io("copy"))
    }

    fn checksum(&mut self, destination: &Contents, index: u64) -> Result<u32> {
        let (range, total) = (self.range(index), self.version.size);
        let tell = |done| (self.progress)(Progress { phase: Phase::Verify, done, total });
        checksum(destination, range, tell).map_err(self.io("read back the copy of"))
    }

    /// A chunk that an earlier run wrote may have been lost in a power cut though the journal knows it: it is copied again.
    fn verify_chunk(&mut self, destination: &Contents, index: u64, sum: u32) -> Result<()> {
        if self.checksum(destination, index)? == sum {
            return Ok(());
        }
        let sum = self.copy_chunk(destination, index)?;
        destination.sync().map_err(self.io("sync the copy of"))?;
        if self.checksum(destination, index)? == sum {
            return Ok(());
        }
        Err(MigrateError::Damaged(self.path.into()))
    }

    /// Old and new lie side by side until the end.
    fn check_space(&self) -> Result<()> {
        let data = (self.stat.st_blocks as u64).saturating_mul(512);
        let check = |where_: &Path, need_bytes: u64, free_bytes: u64| {
            if need_bytes <= free_bytes {
                return Ok(());
            }
            let (path, where_) = (self.path.into(), where_.into());
            Err(MigrateError::NoSpace { path, where_, need_bytes, free_bytes })
        };
        let sys = self.runtime.sys();
        match &self.place {
            Place::Plain => {
                let parent = self.path.parent().unwrap_or(Path::new("/"));
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                let fd =
                    sys.open(None, parent, flags, Mode::empty()).map_err(self.io("open the directory of"))?;
                let free = sys.stat_fs(fd.as_fd()).map_err(self.io("find the free space beside"))?;
                check(parent, self.version.size.min(data), free.f_bavail.saturating_mul(free.f_frsize))
            }
            // Copies that share a disk may need more together; then writing them fails.
            Place::Managed(blueprint) => blueprint.whole_copies().try_for_each(|(layout, targets)| {
                (0..).zip(targets).try_for_each(|(index, target)| {
                    let need = layout.component_size(index, self.version.size).min(data);
                    check(target.path(), need, target.free_bytes(sys).map_err(Trouble::from)?)
                })
            }),
        }
    }
}
