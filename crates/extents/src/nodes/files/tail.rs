//! The journal as an engine has read it, and how it grows.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Errno, LockKind, OFlags};

use crate::error::io;
use crate::hooks::reach;
use crate::joining::Start;
use crate::journal::{
    COMMIT_BYTE, HEADER_BYTES, Header, JOIN_BYTE, Kept, Locked, Place, Position, limit_bytes, write_new,
};
use crate::nodes::record::{encode_batches, is_readable};
use crate::nodes::{Batch, Log, Record, Session};
use crate::{MapError, Result, Span};

/// The journal as far as it was read.
pub(super) struct Tail {
    /// Stays open so that its inode is not used again, by which a new journal is recognized, and
    /// so that a node that was cut off cannot append: opened anew, the file could be written to.
    file: Arc<Kept>,
    identity: Identity,
    /// Its length when it was last read, bytes.
    len: u64,
    header: Header,
    position: Position,
    pub log: Log,
    /// Length that the journal would have if it were written anew, bytes. As of when it was opened:
    /// a hint.
    needed: u64,
    /// Whether the journal's name is known to survive a power cut.
    is_name_durable: bool,
    /// A write has failed: the end of the journal on disk is unknown.
    pub is_broken: bool,
    touched: Touched,
}

/// Where the log's masks may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// Only in these ranges.
    Ranges(Vec<Range<u64>>),
    /// Anywhere, as the journal was read from its start.
    All,
}

/// Bytes by which a journal may exceed twice the length that it needs when a process joins or
/// leaves. The next one reads all of it, and every 4 KiB of short appends may lie elsewhere on the
/// disk of a parallel file system.
const JOIN_SLACK_BYTES: u64 = 4 << 10;

/// More ranges than this count as [`Touched::All`].
const TOUCHED_MAX: usize = 1 << 16;

impl Touched {
    const NOWHERE: Self = Self::Ranges(Vec::new());

    fn add(&mut self, batch: &Batch) {
        let (Self::Ranges(ranges), Record::Changes(spans)) = (&mut *self, &batch.record) else { return };
        ranges.extend(spans.iter().map(Span::range));
        if ranges.len() > TOUCHED_MAX {
            *self = Self::All;
        }
    }
}

/// Device and inode.
type Identity = (u64, u64);

/// What a journal that is written anew has in place of the old one's batches.
fn restated(log: &Log) -> (Vec<u8>, u64) {
    encode_batches(&log.restated(), 1)
}

impl Tail {
    /// Opens the journal of the file with this id, and reads it to its end.
    pub fn open(place: &Place, id: [u8; 16]) -> Result<Self> {
        let path = &place.path;
        let (file, stat) = match place.open_with_stat(Path::new(&place.name), OFlags::RDWR) {
            Err(Errno::NOENT) => return Err(MapError::Missing { path: path.clone() }),
            opened => opened.map_err(io(path, "open"))?,
        };
        let file = Arc::new(Kept::new(place, file));
        Self::begun(place, id, &Start::read(place, file, &stat)?)
    }

    /// The journal that begins with `start`, read to the end that it had then.
    pub fn begun(place: &Place, id: [u8; 16], start: &Start) -> Result<Self> {
        let (path, header) = (&place.path, start.header);
        if place.sys.may_be_stale(start.file.as_fd()).map_err(io(path, "map"))? {
            return Err(MapError::Stale { path: path.clone() });
        }
        let Some(last) = header.last_session.filter(|_| header.id == id) else {
            return Err(MapError::Changed { path: path.clone() });
        };
        let mut tail = Self {
            file: start.file.clone(),
            identity: start.identity,
            len: start.len,
            header,
            position: Position { end: HEADER_BYTES as u64, next: 1 },
            log: Log::new(header.default, Session(last)),
            needed: 0,
            is_name_durable: false,
            is_broken: false,
            touched: Touched::All,
        };
        tail.take(&start.batches);
        tail.read_on(place)?;
        tail.needed = (HEADER_BYTES + restated(&tail.log).0.len()) as u64;
        Ok(tail)
    }

    /// Reads the journal to its end, from the start if it was replaced.
    pub fn read(&mut self, place: &Place) -> Result<()> {
        reach("read log");
        match self.named_len(place)? {
            Some(len) => {
                self.len = len;
                self.read_on(place)
            }
            None => {
                *self = Self::open(place, self.header.id)?;
                Ok(())
            }
        }
    }

    /// Waits for the join lock of this journal; `None` if it is no longer the file's.
    pub fn lock_join(&self, place: &Place) -> Result<Option<Locked>> {
        let locked = place.sys.lock(self.file.as_fd(), JOIN_BYTE, 1, LockKind::Exclusive);
        locked.map_err(io(&place.path, "lock"))?;
        let join = Locked::of_kept(place, self.file.clone(), (JOIN_BYTE, 1));
        Ok(self.named_len(place)?.map(|_| join))
    }

    /// Takes the commit lock, and reads the journal to its end. `lock` says what else the caller
    /// has, or may get: a join lock that [`JoinLock::is_taken`] takes is released with this one.
    pub fn lock(&mut self, place: &Place, lock: JoinLock) -> Result<Locked> {
        let bytes = if lock == JoinLock::Perhaps { (0, 0) } else { (COMMIT_BYTE, 1) };
        loop {
            let file = self.file.clone();
            let locked = place.sys.lock(file.as_fd(), COMMIT_BYTE, 1, LockKind::Exclusive);
            locked.map_err(io(&place.path, "lock"))?;
            let commit = Locked::of_kept(place, file, bytes);
            self.read(place)?;
            // Else it was replaced while this call waited.
            if commit.is_of(&self.file) {
                return Ok(commit);
            }
        }
    }

    /// The length of the journal, bytes; `None` if it was replaced.
    fn named_len(&self, place: &Place) -> Result<Option<u64>> {
        match place.sys.stat_at(Some(place.dir.as_fd()), Path::new(&place.name), false) {
            Err(Errno::NOENT) => Err(MapError::Missing { path: place.path.clone() }),
            Err(errno) => Err(io(&place.path, "stat")(errno)),
            Ok(named) if (named.st_dev, named.st_ino) == self.identity => Ok(Some(named.st_size as u64)),
            Ok(_) => Ok(None),
        }
    }

    /// Reads what was appended. A batch that is incomplete is read again the next time.
    fn read_on(&mut self, place: &Place) -> Result<()> {
        // A read behind the end would make a parallel file system look up the length once more.
        let news = self.len.saturating_sub(self.position.end) as usize;
        let bytes = place.sys.read_from(self.file.as_fd(), self.position.end, news);
        self.take(&bytes.map_err(io(&place.path, "read"))?);
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        let Position { end, next } = &mut self.position;
        let touched = &mut self.touched;
        *end += self.log.take(bytes, next, self.header.copies, |batch| touched.add(batch)) as u64;
    }

    /// Where the masks may have changed since the last call.
    pub fn take_touched(&mut self) -> Touched {
        std::mem::replace(&mut self.touched, Touched::NOWHERE)
    }

    /// The journal's device number.
    pub fn device(&self) -> u64 {
        self.identity.0
    }

    /// The journal's inode, and the number of its next batch.
    pub fn position(&self) -> (u64, u64) {
        (self.identity.1, self.position.next)
    }

    /// Makes batches durable. `commit` is the locked journal, which was read to its end; `lock`
    /// says what else the caller has. Returns the new journal, with both locks, if it was written
    /// anew.
    pub fn put(
        &mut self,
        place: &Place,
        commit: &Locked,
        batches: &[Batch],
        lock: JoinLock,
    ) -> Result<Option<Locked>> {
        let (bytes, _) = encode_batches(batches, self.position.next);
        if !is_readable(&bytes, self.position.next, self.header.copies) {
            return Err(io(&place.path, "encode a change of the log")(Errno::INVAL));
        }
        let is_long = self.position.end > self.limit_bytes(lock);
        if (is_long && lock.is_taken(place, commit)) || lock == JoinLock::Suspects {
            match self.rewrite(place, commit, batches) {
                // The old journal is still the journal, and is no worse than before.
                Err(_) if lock != JoinLock::Suspects && !self.is_broken => {}
                new => return new.map(Some),
            }
        }
        match self.append(place, commit.as_fd(), &bytes) {
            // A new journal does not depend on what is on disk of this one.
            Err(_) if lock.is_taken(place, commit) => self.rewrite(place, commit, batches).map(Some),
            done => done.map(|()| None),
        }
    }

    /// A journal that is longer is written anew, bytes.
    fn limit_bytes(&self, lock: JoinLock) -> u64 {
        let limit = limit_bytes(self.needed);
        match lock {
            JoinLock::Perhaps => limit,
            JoinLock::Callers | JoinLock::Suspects => {
                limit.min(self.needed.saturating_mul(2) + JOIN_SLACK_BYTES)
            }
        }
    }

    fn append(&mut self, place: &Place, commit: BorrowedFd<'_>, bytes: &[u8]) -> Result<()> {
        let (sys, end) = (&place.sys, self.position.end);
        // A write that finds no space would leave an end of the journal that is not known.
        let allocated = sys.allocate(commit, end, bytes.len() as u64, true);
        if let Err(errno @ (Errno::NOSPC | Errno::DQUOT)) = allocated {
            return Err(io(&place.path, "append")(errno));
        }
        let written = (|| {
            if !self.is_name_durable {
                // The node that renamed the journal may have died before it synced the name.
                sys.sync(place.dir.as_fd())?;
            }
            // A dead node may have written part of a longer batch, whose rest must not follow this
            // one.
            if self.len > end {
                sys.truncate(commit, end)?;
            }
            reach("append");
            sys.write_all_at(commit, bytes, end)?;
            sys.sync_data(commit)
        })();
        if let Err(errno) = written {
            self.is_broken = true;
            return Err(io(&place.path, "append")(errno));
        }
        reach("appended");
        self.is_name_durable = true;
        self.take(bytes);
        self.len = self.position.end;
        Ok(())
    }

    /// Replaces the journal by one with the log's state and then `batches`. The caller has both
    /// locks. Returns the new journal, with both locks.
    pub fn rewrite(&mut self, place: &Place, old: &Locked, batches: &[Batch]) -> Result<Locked> {
        let (mut bytes, next) = restated(&self.log);
        bytes.extend(encode_batches(batches, next).0);
        let header = Header { last_session: Some(self.log.last_session().0), ..self.header };
        let new = match write_new(place, &header, &bytes, Some(old.as_fd()), |_| {}) {
            Ok((new, _)) => new,
            Err(error) => {
                // After the rename, nothing may be appended to either of them.
                self.is_broken |= !matches!(self.named_len(place), Ok(Some(_)));
                return Err(error);
            }
        };
        reach("renamed");
        self.is_broken = true;
        *self = Self::open(place, self.header.id)?;
        self.is_name_durable = true;
        Ok(new)
    }
}

/// What the caller of [`Tail::put`] has besides the commit lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinLock {
    /// Nothing. Another process may have the join lock.
    Perhaps,
    /// The join lock.
    Callers,
    /// The join lock, and the suspicion that what this machine reads at the end of the journal is
    /// not on disk.
    Suspects,
}

impl JoinLock {
    /// Whether the join lock is held now. A process that holds it may be waiting for the commit
    /// lock.
    fn is_taken(self, place: &Place, commit: &Locked) -> bool {
        let take = || place.sys.try_lock(commit.as_fd(), JOIN_BYTE, 1, LockKind::Exclusive);
        self != Self::Perhaps || matches!(take(), Ok(true))
    }
}
