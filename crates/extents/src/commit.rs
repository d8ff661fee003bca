//! A commit of the map: by the one-node protocol, or by the session of this node
//! (`docs/formats/nodes.md`).

use std::os::fd::BorrowedFd;
use std::path::Path;

use stripewise_sys::{Errno, LockKind};

use crate::hooks::reach;
use crate::joined::Joined;
use crate::journal::{Commit, JOIN_BYTE, Locked, Writer};
use crate::nodes::{Hold, JoinLock, Log, Record, Session, without_holds};
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

    /// Whether the index shows what other nodes had committed before this commit.
    pub fn has_acquired(&self) -> bool {
        matches!(self, Self::Session(commit) if commit.has_acquired)
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

    /// Also gives up these holds, under which no write is in progress.
    pub fn gives_up(&mut self, holds: Vec<Hold>) {
        if let Self::Session(commit) = self {
            commit.given_up = holds;
        }
    }

    /// Ends the commit: the index shows what was appended.
    pub fn settle(&mut self) {
        if let Self::Session(commit) = self {
            commit.settle();
        }
    }

    /// Makes the changes of [`Committing::changes`] durable. `closing`: the node closes the file.
    /// The caller then brings the index up to it, and [settles](Committing::settle).
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
    _sync: Locked,
    given_up: Vec<Hold>,
    /// The node lock, from the append until the index shows it.
    node: Option<Locked>,
    /// A process died while it appended.
    suspects: bool,
    /// This commit has read the log to its end.
    has_acquired: bool,
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
    pub fn begin(joined: &'j Joined, has_join_lock: bool) -> Result<Self> {
        let sync = joined.lock_board(SYNC_BYTE)?;
        let mut commit = Self {
            joined,
            _sync: sync,
            given_up: Vec::new(),
            node: None,
            suspects: false,
            has_acquired: false,
            has_join_lock,
            _join: None,
            _new: None,
        };
        if joined.is_over() {
            return Err(joined.spec.over());
        }
        commit.suspects = commit.has_died()?;
        Ok(commit)
    }

    /// Whether a process of the node died during an append, or before the index showed it.
    fn has_died(&self) -> Result<bool> {
        let joined = self.joined;
        if joined.is_sharing() && !self.is_unlinked() {
            // A process that appends has this lock.
            let _node = joined.lock_node()?;
            let has_died = joined.shared.is(Word::Appending);
            if has_died {
                joined.with_engine(|engine| joined.reconcile(engine))?;
            }
            return Ok(has_died);
        }
        Ok(joined.shared.is(Word::Appending))
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
        let has_news = !spans.is_empty() || !self.given_up.is_empty() || closing || self.suspects;
        if self.is_unlinked() || !has_news {
            return Ok(());
        }
        let lock = match (self.suspects, self.has_join_lock) {
            (true, _) => JoinLock::Suspects,
            (_, true) => JoinLock::Callers,
            _ => JoinLock::Perhaps,
        };
        self.node = Some(self.joined.lock_node()?);
        let suspects = self.suspects;
        let records = |log: &Log, own| records(log, own, &spans, &self.given_up, closing, suspects);
        let done = self.joined.with_engine(|engine| {
            let own = engine.session();
            let done = self.joined.append_with(engine, &mut |log| records(log, own), lock);
            if done.is_err() && engine.is_over() && !self.is_unlinked() {
                self.end_for_all();
            }
            done
        });
        match done {
            Ok(new) => {
                self._new = new.filter(|_| closing);
                self.has_acquired = self.joined.is_sharing();
                if !self.joined.is_sharing() {
                    // The masks are in the index as they are in the log.
                    self.settle();
                }
                Ok(())
            }
            // The journal was removed with the file.
            Err(_) if self.is_unlinked() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Notes that the index shows what was appended, and that the holds are given up.
    fn settle(&mut self) {
        if self.node.is_none() {
            return;
        }
        let shared = &self.joined.shared;
        if !self.given_up.is_empty() {
            let mut holds = shared.holds();
            holds.retain(|held| !self.given_up.contains(&held.hold()));
            shared.set_holds(&holds);
        }
        shared.set(Word::Appending, 0);
        self.node = None;
    }

    /// Lets all processes of the node know that the session is over.
    fn end_for_all(&self) {
        self.joined.shared.set(Word::Over, 1);
        // Writers look at this word.
        self.joined.shared.set(Word::Opened, PERHAPS_OPENED);
    }
}

/// The records of a commit: changes, then the session's end or its other holds. `suspects`: there
/// must be one, with which the journal is written anew.
fn records(
    log: &Log,
    own: Session,
    spans: &[Span],
    given_up: &[Hold],
    closing: bool,
    suspects: bool,
) -> Vec<Record> {
    let changes = (!spans.is_empty()).then(|| Record::Changes(spans.to_vec()));
    let holds = match given_up {
        _ if closing => Some(Record::Left(own)),
        [] if !suspects => None,
        _ => Some(without_holds(log, own, |hold| given_up.contains(hold))),
    };
    changes.into_iter().chain(holds).collect()
}

impl Joined {
    /// Whether the session of the node is over. A file that was removed has none any more.
    pub fn is_over(&self) -> bool {
        self.shared.is(Word::Over) && !self.shared.is(Word::Unlinked)
    }

    /// The right to commit. `has_join_lock`: the caller has the join lock.
    pub fn commit(&self, has_join_lock: bool) -> Result<Committing<'_>> {
        match &self.session {
            Some(_) => SessionCommit::begin(self, has_join_lock).map(Committing::Session),
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
