//! A commit of the map: by the one-node protocol, or by the session of this node
//! (`docs/formats/nodes.md`).

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use stripewise_sys::{Errno, LockKind};

use crate::error::io;
use crate::hooks::reach;
use crate::joined::{Joined, NodeSession};
use crate::journal::{Commit, JOIN_BYTE, Locked, Writer};
use crate::nodes::JoinLock;
use crate::shared::{OPENED, PERHAPS_OPENED, SYNC_BYTE, Word};
use crate::wait::Wait;
use crate::{MapError, Result, Span};

/// The right to commit: no other process of the node commits meanwhile.
pub(crate) enum Committing<'j> {
    OneNode(Commit<'j, 'j>),
    Session(SessionCommit<'j>),
}

/// Changes for a commit.
pub(crate) enum Changes {
    Encoded(Writer),
    Listed(Vec<Span>),
}

impl Changes {
    /// Adds a range, which begins after those that were added before.
    pub fn add(&mut self, span: Span) {
        match self {
            Self::Encoded(writer) => writer.change(span),
            Self::Listed(spans) => span.add_to(spans),
        }
    }
}

impl Committing<'_> {
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::OneNode(commit) if commit.is_broken())
    }

    /// Whether the journal has to be written anew, for which [`Committing::may_rewrite`] must
    /// succeed first.
    pub fn must_rewrite(&self) -> bool {
        match self {
            Self::OneNode(commit) => commit.is_broken(),
            Self::Session(commit) => commit.suspects,
        }
    }

    /// Whether the commit should write the whole map, to which the journal is then reduced. A
    /// session's engine does that by itself.
    pub fn is_due(&self) -> bool {
        matches!(self, Self::OneNode(commit) if commit.is_due())
    }

    /// Whether this commit has the join lock, which it takes if it can.
    pub fn may_rewrite(&mut self) -> Result<bool> {
        match self {
            Self::OneNode(commit) => commit.may_rewrite(),
            Self::Session(commit) => commit.may_rewrite(),
        }
    }

    /// No changes yet; `whole` if the whole map will be added.
    pub fn changes(&self, whole: bool) -> Changes {
        match self {
            Self::OneNode(commit) => Changes::Encoded(commit.writer(whole)),
            Self::Session(_) => Changes::Listed(Vec::new()),
        }
    }

    /// Makes the changes of [`Committing::changes`] durable. `closing`: the node closes the file.
    pub fn put(&mut self, changes: Changes, whole: bool, closing: bool) -> Result<()> {
        match (self, changes) {
            (Self::OneNode(commit), Changes::Encoded(mut writer)) => {
                if closing {
                    writer.clean();
                }
                commit.put(writer, whole)
            }
            (Self::Session(commit), Changes::Listed(spans)) => commit.put(spans, closing),
            _ => Err(MapError::Caller { what: "commit", errno: Errno::INVAL }),
        }
    }
}

/// The sync lock of a session's node.
pub(crate) struct SessionCommit<'j> {
    joined: &'j Joined,
    session: &'j NodeSession,
    _sync: Locked,
    /// A process died while it appended.
    suspects: bool,
    has_join_lock: bool,
    /// The join lock that this commit has taken.
    _join: Option<Locked>,
    /// The journal that the end of the session was written to. It stays locked, so that no process
    /// joins before this node has cleaned up.
    _new: Option<Locked>,
}

impl<'j> SessionCommit<'j> {
    /// Waits for the sync lock.
    ///
    /// # Errors
    /// EIO if the session is over.
    pub fn begin(joined: &'j Joined, session: &'j NodeSession, has_join_lock: bool) -> Result<Self> {
        let file = joined.open_board_lock()?;
        let locked = joined.sys.lock(file.as_fd(), SYNC_BYTE, 1, LockKind::Exclusive);
        locked.map_err(io(&joined.spec.run_dir, "lock"))?;
        let (sync, suspects) = (Locked::new(&joined.place, file), joined.shared.is(Word::Appending));
        let commit = Self { joined, session, _sync: sync, suspects, has_join_lock, _join: None, _new: None };
        if joined.is_over() { Err(joined.spec.over()) } else { Ok(commit) }
    }

    /// Notes that processes of this node write. The session itself is the write intent.
    pub fn open(&self) {
        self.joined.shared.set(Word::Opened, OPENED);
    }

    fn is_unlinked(&self) -> bool {
        self.joined.shared.is(Word::Unlinked)
    }

    fn may_rewrite(&mut self) -> Result<bool> {
        if !self.has_join_lock {
            let place = &self.joined.place;
            let take = |fd: BorrowedFd<'_>| place.sys.try_lock(fd, JOIN_BYTE, 1, LockKind::Exclusive);
            self._join = place.lock_named(Path::new(&place.name), false, take)?;
            self.has_join_lock = self._join.is_some();
        }
        Ok(self.has_join_lock)
    }

    fn put(&mut self, spans: Vec<Span>, closing: bool) -> Result<()> {
        if self.is_unlinked() || (spans.is_empty() && !closing) {
            return Ok(());
        }
        let lock = match (self.suspects, self.has_join_lock) {
            (true, _) => JoinLock::Suspects,
            (_, true) => JoinLock::Callers,
            _ => JoinLock::Perhaps,
        };
        let mut engine = self.session.lock();
        let engine = engine.as_mut().ok_or_else(|| self.joined.spec.over())?;
        self.joined.shared.set(Word::Appending, 1);
        match engine.commit(spans, closing, lock) {
            Ok(new) => {
                self._new = new.filter(|_| closing);
                self.joined.shared.set(Word::Appending, 0);
                Ok(())
            }
            // The journal was removed with the file.
            Err(_) if self.is_unlinked() => Ok(()),
            Err(error) => {
                if engine.is_over() {
                    self.end_for_all();
                }
                Err(error)
            }
        }
    }

    /// Lets all processes of the node know that the session is over.
    fn end_for_all(&self) {
        self.joined.shared.set(Word::Over, 1);
        // Writers look at this word.
        self.joined.shared.set(Word::Opened, PERHAPS_OPENED);
    }
}

impl Joined {
    /// Whether the session of the node is over. A file that was removed has none any more.
    pub fn is_over(&self) -> bool {
        self.shared.is(Word::Over) && !self.shared.is(Word::Unlinked)
    }

    /// The right to commit. `has_join_lock`: the caller has the join lock.
    pub fn commit(&self, has_join_lock: bool) -> Result<Committing<'_>> {
        match &self.session {
            Some(session) => SessionCommit::begin(self, session, has_join_lock).map(Committing::Session),
            None => Commit::begin(&self.place, &self.shared, self.header, &self.spec.node, has_join_lock)
                .map(Committing::OneNode),
        }
    }

    /// The right to commit, for a sync. A broken journal has to be rewritten; then this waits until
    /// no process is joining or leaving.
    pub fn commit_to_sync(&self) -> Result<Committing<'_>> {
        let mut wait = Wait::new(&self.sys);
        reach("commit lock");
        loop {
            let mut commit = self.commit(false)?;
            if !commit.must_rewrite() || commit.may_rewrite()? {
                return Ok(commit);
            }
            // A leaving process holds the join lock and waits for the commit lock.
            drop(commit);
            wait.pause();
        }
    }

    /// Declares the write intent: the journal records that this node writes the file before it
    /// does.
    pub fn ensure_opened(&self) -> Result<()> {
        let is_opened = || self.shared.get(Word::Opened) == OPENED;
        if is_opened() {
            return Ok(());
        }
        self.shared_state_has_its_name()?;
        let commit = self.commit_to_sync()?;
        if is_opened() {
            return Ok(());
        }
        let mut commit = match commit {
            Committing::OneNode(commit) => commit,
            Committing::Session(commit) => {
                commit.open();
                return Ok(());
            }
        };
        if commit.is_broken() {
            return commit.reopen();
        }
        let mut writer = commit.writer(false);
        writer.opened(&self.spec.node);
        commit.put(writer, false)
    }
}
