//! Changes of the journal. The commit lock serializes the processes of the node; changes by other
//! nodes are detected.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use stripewise_sys::{Errno, Kind, LockKind, Mode};

use super::Journal;
use super::format::{Batch, HEADER_BYTES, Header, Writer, decode_batch};
use super::place::{COMMIT_BYTE, JOIN_BYTE, Locked, Place};
use crate::error::io;
use crate::hooks::reach;
use crate::shared::{OPENED, PERHAPS_OPENED, SharedState, Word};
use crate::{MapError, Node, Result};

/// Bytes by which a journal may exceed twice the length that its map needs. Small in tests, where
/// rewrites should be frequent.
const SLACK_BYTES: u64 = if cfg!(test) { 512 } else { 64 << 10 };
/// Bits of the next batch's sequence number in the word of the shared state that also holds the
/// journal's end. In one word, both change together even if the process is killed.
const NEXT_BITS: u32 = 24;
const NEXT_MAX: u64 = (1 << NEXT_BITS) - 1;

/// Journals longer than this are rewritten, bytes; `needed` is the length that the map needs.
pub(crate) const fn limit_bytes(needed: u64) -> u64 {
    needed.saturating_mul(2).saturating_add(SLACK_BYTES)
}

/// Where the next batch goes: offset and sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub end: u64,
    pub next: u64,
}

impl Position {
    pub fn load(shared: &SharedState) -> Self {
        let word = shared.get(Word::JournalPosition);
        Self { end: word >> NEXT_BITS, next: word & NEXT_MAX }
    }

    pub fn store(self, shared: &SharedState) {
        shared.set(Word::JournalPosition, self.end << NEXT_BITS | self.next.min(NEXT_MAX));
    }
}

/// Whether another node has changed the journal since the last commit in the shared state, as
/// [`Commit::begin`] would find. The caller holds the join lock, and no process has joined the map.
pub(crate) fn is_changed(
    place: &Place,
    journal: &Locked,
    shared: &SharedState,
    node: &Node,
    copies: u8,
) -> Result<bool> {
    let stat = place.sys.stat(journal.as_fd()).map_err(io(&place.path, "stat"))?;
    if stat.st_ino == shared.get(Word::JournalNewInode) {
        return Ok(false);
    }
    if stat.st_ino != shared.get(Word::JournalInode) {
        return Ok(stat.st_size != 0);
    }
    let bytes = place.sys.read_start(journal.as_fd(), usize::MAX).map_err(io(&place.path, "read"))?;
    let Position { mut end, mut next } = Position::load(shared);
    while let Some((batch, len)) = decode_batch(bytes.get(end as usize..).unwrap_or(&[]), next, copies) {
        if matches!(&batch, Batch::Opened(writer) if writer != node) {
            return Ok(true);
        }
        (end, next) = (end + len as u64, next + 1);
    }
    Ok(false)
}

/// The commit lock, and the journal that its holder may change.
pub(crate) struct Commit<'a, 'b> {
    place: &'a Place,
    shared: &'b SharedState,
    header: Header,
    node: &'b Node,
    /// `None`: the file has lost its last name, and its journal with it.
    file: Option<Locked>,
    /// A rewrite requires that no process joins meanwhile, because it might read the old journal.
    join: JoinLock,
}

/// The holder of the join lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoinLock {
    /// Not this commit; another process may hold it.
    Perhaps,
    /// This commit, until the rewrite is done.
    Taken,
    /// The caller. A new journal stays locked as long as the commit lasts.
    Callers,
}

impl<'a, 'b> Commit<'a, 'b> {
    /// Waits for the commit lock. `has_join_lock`: the caller already holds the join lock.
    pub fn begin(
        place: &'a Place,
        shared: &'b SharedState,
        header: Header,
        node: &'b Node,
        has_join_lock: bool,
    ) -> Result<Self> {
        let join = if has_join_lock { JoinLock::Callers } else { JoinLock::Perhaps };
        let mut commit = Self { place, shared, header, node, file: None, join };
        if !shared.is(Word::Unlinked) {
            commit.file = Some(place.lock(COMMIT_BYTE, true)?);
        }
        // A process that removes the file sets `Unlinked` first, and then waits for the commit
        // lock.
        if shared.is(Word::Unlinked) && commit.file.is_some() {
            // `Place::lock` has just created this journal.
            let _ = place.sys.unlink(Some(place.dir.as_fd()), Path::new(&place.name));
            commit.file = None;
        }
        commit.catch_up()?;
        Ok(commit)
    }

    /// Takes over what a dead process has appended or renamed, and detects changes by processes
    /// that do not share the index.
    fn catch_up(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let stat = self.place.sys.stat(file.as_fd()).map_err(io(&self.place.path, "stat"))?;
        let (shared, size) = (self.shared, stat.st_size as u64);
        if stat.st_ino == shared.get(Word::JournalInode) {
            let position = Position::load(shared);
            if size < position.end {
                self.set_broken();
            } else if size > position.end && !self.is_broken() {
                self.catch_up_with_tail(position)?;
            }
        } else if size == 0 {
            // The journal was removed and `Place::lock` created it; the next sync rewrites it.
            self.set_broken();
        } else if stat.st_ino == shared.get(Word::JournalNewInode) {
            let journal = Journal::read_from(&self.place.sys, file.as_fd(), &self.place.path)?;
            // The rename may not be on disk yet.
            self.place.sync_dir().inspect_err(|_| self.set_broken())?;
            self.set_opened(Some(journal.opened.is_some()));
            self.adopt(Position { end: journal.valid_bytes, next: journal.next }, size, stat.st_ino);
        } else {
            return Err(MapError::Changed { path: self.place.path.clone() });
        }
        Ok(())
    }

    fn catch_up_with_tail(&self, mut position: Position) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let bytes =
            self.place.sys.read_start(file.as_fd(), usize::MAX).map_err(io(&self.place.path, "read"))?;
        let before = position;
        let mut opened = None;
        while let Some((batch, len)) =
            decode_batch(bytes.get(position.end as usize..).unwrap_or(&[]), position.next, self.header.copies)
        {
            if matches!(&batch, Batch::Opened(node) if node != self.node) {
                return Err(MapError::Changed { path: self.place.path.clone() });
            }
            match batch {
                Batch::Opened(_) => opened = Some(true),
                Batch::Clean => opened = Some(false),
                Batch::Changes(_) => {}
            }
            position = Position { end: position.end + len as u64, next: position.next + 1 };
        }
        if position != before {
            // The process that wrote the tail may have died before it synced it.
            self.announce(opened);
            self.sync_file().inspect_err(|_| self.set_broken())?;
            self.set_opened(opened);
            position.store(self.shared);
        }
        Ok(())
    }

    /// Called before the position is stored, so that a process killed in between leaves a tail that
    /// the next commit catches up with.
    fn set_opened(&self, opened: Option<bool>) {
        if let Some(opened) = opened {
            self.shared.set(Word::Opened, if opened { OPENED } else { 0 });
        }
    }

    /// Called before a batch that opens or closes the file is written. A process killed around that
    /// write must not leave a shared state that claims a write intent exists.
    fn announce(&self, opened: Option<bool>) {
        let is_opened = self.shared.get(Word::Opened) == OPENED;
        if opened.is_some_and(|opened| opened != is_opened) {
            self.shared.set(Word::Opened, PERHAPS_OPENED);
        }
    }

    /// Marks the journal broken: its end on disk is unknown, and a later successful sync proves
    /// nothing.
    fn set_broken(&self) {
        self.shared.set(Word::JournalBroken, 1);
    }

    fn adopt(&self, position: Position, base: u64, inode: u64) {
        position.store(self.shared);
        self.shared.set(Word::JournalBase, base);
        // Last: until now the inode is recognized as that of the new journal.
        self.shared.set(Word::JournalInode, inode);
    }

    pub fn is_broken(&self) -> bool {
        self.file.is_some() && self.shared.is(Word::JournalBroken)
    }

    /// Whether the journal should be rewritten, with the whole map instead of the pending ranges.
    pub fn is_due(&self) -> bool {
        let position = Position::load(self.shared);
        let is_long = position.end > limit_bytes(self.shared.get(Word::JournalBase));
        self.is_broken() || (self.file.is_some() && (is_long || position.next > NEXT_MAX / 2))
    }

    /// Takes the join lock if this commit needs it. False if another process is joining, or is
    /// leaving and waits for this commit.
    pub fn may_rewrite(&mut self) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        if self.join == JoinLock::Perhaps {
            let taken = self.place.sys.try_lock(file.as_fd(), JOIN_BYTE, 1, LockKind::Exclusive);
            if taken.map_err(io(&self.place.path, "lock"))? {
                self.join = JoinLock::Taken;
            }
        }
        Ok(self.join != JoinLock::Perhaps)
    }

    /// A writer for what is to be appended, or with `whole` for the batches of a rewritten journal.
    pub fn writer(&self, whole: bool) -> Writer {
        if !whole {
            return Writer::new(Position::load(self.shared).next);
        }
        let mut writer = Writer::new(1);
        if self.shared.is(Word::Opened) {
            writer.opened(self.node);
        }
        writer
    }

    /// After a failed change, rewrites the journal as it was before the change, with a write
    /// intent.
    pub fn reopen(&mut self) -> Result<()> {
        let failed = || io(&self.place.path, "write the intent, after an error,")(Errno::IO);
        let file = self.file.as_ref().ok_or_else(failed)?;
        let bytes =
            self.place.sys.read_start(file.as_fd(), usize::MAX).map_err(io(&self.place.path, "read"))?;
        let end = Position::load(self.shared).end;
        let journal = Journal::parse(bytes.get(..end as usize).ok_or_else(failed)?, &self.place.path)?;
        if journal.valid_bytes != end || !self.may_rewrite()? {
            return Err(failed());
        }
        let mut writer = journal.writer();
        writer.opened(self.node);
        self.put(writer, true)
    }

    /// Appends the batches of a [`Commit::writer`] and syncs the journal, or with `whole` rewrites
    /// the journal with them.
    pub fn put(&mut self, writer: Writer, whole: bool) -> Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        if whole { self.rewrite(writer).inspect_err(|_| self.set_broken()) } else { self.append(writer) }
    }

    /// Returns the locks that a new journal was created with.
    pub fn into_lock(self) -> Option<Locked> {
        self.file
    }

    fn append(&self, writer: Writer) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if writer.is_empty() {
            return Ok(());
        }
        if self.is_broken() {
            return Err(io(&self.place.path, "append, after an error,")(Errno::IO));
        }
        let position = Position::load(self.shared);
        let opens = writer.opens;
        let (bytes, next) = writer.finish();
        let (sys, fd) = (&self.place.sys, file.as_fd());
        self.announce(opens);
        let written = (|| {
            // A dead process may have written part of a longer batch, whose rest must not follow
            // this one.
            if sys.stat(fd)?.st_size as u64 > position.end {
                sys.truncate(fd, position.end)?;
            }
            reach("append");
            sys.write_all_at(fd, &bytes, position.end)?;
            sys.sync_data(fd)
        })();
        if let Err(errno) = written {
            self.set_broken();
            return Err(io(&self.place.path, "append")(errno));
        }
        reach("appended");
        self.set_opened(opens);
        reach("position");
        Position { end: position.end + bytes.len() as u64, next }.store(self.shared);
        Ok(())
    }

    fn rewrite(&mut self, writer: Writer) -> Result<()> {
        let opens = Some(writer.opens == Some(true));
        let (bytes, next) = writer.finish();
        self.announce(opens);
        let old = self.file.as_ref().map(AsFd::as_fd);
        let note = |inode| self.shared.set(Word::JournalNewInode, inode);
        let (new, inode) = write_new(self.place, &self.header, &bytes, old, note)?;
        reach("renamed");
        self.set_opened(opens);
        let size = (HEADER_BYTES + bytes.len()) as u64;
        self.shared.set(Word::JournalBroken, 0);
        self.adopt(Position { end: size, next }, size, inode);
        if self.join == JoinLock::Taken {
            let _ = self.place.sys.unlock(new.as_fd(), JOIN_BYTE, 1);
            self.join = JoinLock::Perhaps;
        }
        self.file = Some(new);
        Ok(())
    }

    fn sync_file(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        self.place.sys.sync_data(file.as_fd()).map_err(io(&self.place.path, "sync"))
    }
}

/// Writes a new journal and renames it over the current one, `old`, whose mode and group it gets.
/// Returns it with both of its locks held, and its inode. `note` is called with the inode before
/// the rename.
pub(crate) fn write_new(
    place: &Place,
    header: &Header,
    batches: &[u8],
    old: Option<BorrowedFd<'_>>,
    note: impl FnOnce(u64),
) -> Result<(Locked, u64)> {
    let (sys, dir) = (&place.sys, Some(place.dir.as_fd()));
    let (name, new_name) = (Path::new(&place.name), place.new_name());
    let failed = |errno| io(&place.path, "write anew")(errno);
    let new = Locked::new(place, place.create_anew(&new_name).map_err(failed)?);
    let fd = new.as_fd();
    let inode = (|| {
        // Before the rename, so that a process that opens the journal afterwards waits.
        sys.lock(fd, 0, 2, LockKind::Exclusive)?;
        if let Some(old) = old {
            let old = sys.stat(old)?;
            sys.set_mode(Kind::Open(fd), Mode::from_raw_mode(old.st_mode & 0o7777))?;
            let _ = sys.set_owner(Kind::Open(fd), None, Some(old.st_gid));
        }
        sys.write_all_at(fd, &header.encode(), 0)?;
        sys.write_all_at(fd, batches, HEADER_BYTES as u64)?;
        sys.sync(fd)?;
        let inode = sys.stat(fd)?.st_ino;
        note(inode);
        reach("rename");
        sys.rename(dir, &new_name, dir, name)?;
        Ok(inode)
    })()
    .map_err(failed)?;
    place.sync_dir()?;
    Ok((new, inode))
}
