//! The engine on files: the log is the journal `ID.extents`, and sessions lock bytes of
//! `ID.manifest` (`docs/formats/nodes.md`, "Engine on files").

mod convert;
mod sessions;
mod tail;
#[cfg(test)]
pub(crate) mod tests;

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use stripewise_sys::{Errno, SysRef};

use super::{Batch, Engine, Hold, Log, Member, Record, Session, rules};
use crate::error::io;
use crate::hooks::reach;
use crate::joining::{Start, checked};
use crate::journal::{JOIN_BYTE, Locked, Place};
use crate::{MapError, MapSpec, Node, Result};
use tail::Tail;

pub use sessions::{SessionState, lock_sessions, session_states};
pub(crate) use sessions::{living, lock_all_sessions};
pub(crate) use tail::{JoinLock, Touched};

/// A session's access to the journal of a file that several nodes use. It holds the session byte
/// until it is dropped; a session that is dropped without [`FileEngine::leave`] is dead.
///
/// After most failures the session is over: every further call fails with EIO. Drop the engine
/// soon, but not before all processes of the node know it and nothing of the session is written any
/// more, and join anew. Until then other nodes do not recover the session, and after a failed
/// append they do not append.
pub struct FileEngine {
    place: Arc<Place>,
    tail: Tail,
    session: Session,
    _byte: Locked,
    /// The dead session that this engine may recover.
    dead: Option<(Session, Locked)>,
    /// The commit lock of an append that has failed. The other processes of this machine must not
    /// append behind it.
    _failed: Option<Locked>,
    is_over: bool,
}

impl std::fmt::Debug for FileEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileEngine").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Errors that say nothing about whether the file system has cut the node off. A wait was
/// interrupted, or something is full, or nothing was attempted.
const HARMLESS: [Errno; 8] = [
    Errno::INTR,
    Errno::TIMEDOUT,
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOMEM,
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::INVAL,
];

impl FileEngine {
    /// Begins a session: chooses its number, locks its byte, and appends `joined`, with the hold
    /// `alone` if the log has no other session. Writes a journal of version 1 anew as version 2
    /// first. `spec.run_dir` and `spec.default` are used only for a journal of version 1.
    ///
    /// # Errors
    /// As [`crate::Map::join`]. EBUSY for a journal of version 1 that is open, also on this node.
    pub fn join(sys: &SysRef, spec: &MapSpec) -> Result<Self> {
        let new = checked(spec)?;
        spec.check_owner(sys)?;
        reach("join");
        let place = Arc::new(Place::new(sys, spec)?);
        let (joining, stat) = place.lock_join(spec.create)?;
        let start = Start::of_joining(spec, &place, &new, (&joining, &stat))?;
        let (tail, commit) = lock_log(sys, spec, &place, &start)?;
        let (session, records) = next_session(&tail.log, &spec.node, &place)?;
        let suspects = sessions::has_dead_of(&place, &tail.log, &spec.node)?;
        Self::begin(&place, tail, commit, (session, records), suspects).map(|(engine, _)| engine)
    }

    /// Begins a session. If all others are dead, it recovers them and is alone. The caller has the
    /// join lock of the journal that begins with `start`. `suspects`: an append of this machine has
    /// failed whose session the log does not show. Returns the journal as well, which stays locked
    /// against commits, and a new journal also against joins.
    ///
    /// # Errors
    /// As [`FileEngine::join`].
    pub(crate) fn join_map(
        sys: &SysRef,
        spec: &MapSpec,
        place: &Arc<Place>,
        start: &Start,
        suspects: bool,
    ) -> Result<(Self, Locked)> {
        let (tail, commit) = lock_log(sys, spec, place, start)?;
        let log = &tail.log;
        // Kept until the sessions are recovered.
        let dead = sessions::lock_all_dead(place, log)?;
        let (joining, has_dead) = match dead {
            Some(_) => {
                let is_own = |(_, member): (Session, &Member)| member.node.boot == spec.node.boot;
                (records_alone(log, &spec.node, place)?, log.members().any(is_own))
            }
            None => (next_session(log, &spec.node, place)?, sessions::has_dead_of(place, log, &spec.node)?),
        };
        Self::begin(place, tail, commit, joining, suspects || has_dead)
    }

    /// Appends the `records` by which a session joins. `suspects`: what a failed append of this
    /// machine has left may look as if it were on disk.
    fn begin(
        place: &Arc<Place>,
        mut tail: Tail,
        commit: Locked,
        (session, records): (Session, Vec<Record>),
        suspects: bool,
    ) -> Result<(Self, Locked)> {
        let byte = sessions::lock_own(place, session)?;
        reach("session byte");
        let lock = if suspects { JoinLock::Suspects } else { JoinLock::Callers };
        let new = tail.put(place, &commit, &Batch::by(session, records), lock)?;
        reach("joined");
        Ok((Self::new(place.clone(), tail, session, byte), new.unwrap_or(commit)))
    }

    fn new(place: Arc<Place>, tail: Tail, session: Session, byte: Locked) -> Self {
        Self { place, tail, session, _byte: byte, dead: None, _failed: None, is_over: false }
    }

    /// Goes on with a session of this node, for another of its processes. `None` if the session is
    /// no longer in the log.
    ///
    /// # Errors
    /// As [`Engine::read`].
    pub fn attach(sys: &SysRef, spec: &MapSpec, session: Session) -> Result<Option<Self>> {
        spec.check_owner(sys)?;
        let place = Arc::new(Place::new(sys, spec)?);
        let byte = sessions::lock_own(&place, session)?;
        let tail = Tail::open(&place, spec.id)?;
        Ok(Self::attached(&place, spec, tail, session, byte))
    }

    /// [`FileEngine::attach`], by the journal that begins with `start`.
    pub(crate) fn attach_at(
        place: &Arc<Place>,
        spec: &MapSpec,
        session: Session,
        start: &Start,
    ) -> Result<Option<Self>> {
        let byte = sessions::lock_own(place, session)?;
        let mut tail = Tail::begun(place, spec.id, start)?;
        // Another node may have recovered the session after the start was read.
        tail.read(place)?;
        Ok(Self::attached(place, spec, tail, session, byte))
    }

    /// `tail` was read after the byte was locked: from then on no other node recovers the session.
    fn attached(
        place: &Arc<Place>,
        spec: &MapSpec,
        tail: Tail,
        session: Session,
        byte: Locked,
    ) -> Option<Self> {
        let is_in = tail.log.member(session).is_some_and(|member| member.node == spec.node);
        is_in.then(|| Self::new(place.clone(), tail, session, byte))
    }

    /// Waits for the join lock of the journal, by the description that this engine has of it.
    /// `None` if that is no longer the journal.
    ///
    /// # Errors
    /// As [`Engine::append`]. [`MapError::Missing`] does not end the session.
    pub(crate) fn lock_join(&mut self) -> Result<Option<Locked>> {
        self.check()?;
        match self.tail.lock_join(&self.place) {
            Err(error @ MapError::Missing { .. }) => Err(error),
            done => self.judged(done),
        }
    }

    /// Device number of the mount that this engine uses.
    pub(crate) fn device(&self) -> u64 {
        self.tail.device()
    }

    /// The session's number in the log.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Whether the session is over, because a call failed in a way that the node may have been cut
    /// off, or its append may be lost.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Where the log's masks may have changed since the last call.
    pub(crate) fn take_touched(&mut self) -> Touched {
        self.tail.take_touched()
    }

    /// The journal's inode, and the number of the batch that this engine reads next.
    pub(crate) fn position(&self) -> (u64, u64) {
        self.tail.position()
    }

    /// The dead session that this engine may recover, because it has locked its byte.
    pub(crate) fn dead(&self) -> Option<Session> {
        self.dead.as_ref().map(|(dead, _)| *dead)
    }

    /// Ends the session, which has committed everything and is used by no other process.
    ///
    /// # Errors
    /// As [`Engine::append`]; other nodes then recover the session.
    pub fn leave(mut self) -> Result<()> {
        let _join = self.place.lock(JOIN_BYTE, false)?;
        let left = Record::Left(self.session);
        self.put(&mut |_| vec![left.clone()], JoinLock::Callers).map(drop)
    }

    /// Appends the records of this session that `decide` makes of the log's state. Returns the
    /// journal, with both locks, if it was written anew.
    ///
    /// # Errors
    /// As [`Engine::append`].
    pub(crate) fn put(
        &mut self,
        decide: &mut dyn FnMut(&Log) -> Vec<Record>,
        lock: JoinLock,
    ) -> Result<Option<Locked>> {
        self.check()?;
        let session = self.session;
        let done = self.change(&mut |log| Batch::by(session, decide(log)), lock);
        self.judged(done)
    }

    /// Closes what a forked child has inherited. The child's only thread calls this before anything
    /// else, and joins or attaches by itself if it needs an engine.
    pub fn abandon(self) {
        self.place.held.close_inherited();
        stripewise_sys::fd::close_inherited(self.place.dir.as_raw_fd());
        // Its locks and memory belong to the parent.
        std::mem::forget(self);
    }

    fn check(&self) -> Result<()> {
        if self.is_over {
            Err(io(&self.place.path, "go on with a session that is over")(Errno::IO))
        } else {
            Ok(())
        }
    }

    /// Notes whether the session is over.
    fn judged<T>(&mut self, done: Result<T>) -> Result<T> {
        let fails = done.as_ref().is_err_and(|error| !HARMLESS.contains(&error.errno()));
        self.is_over |= fails || self.tail.is_broken;
        done
    }

    /// Returns the new journal, with both locks, if it was written anew.
    fn change(&mut self, decide: &mut dyn FnMut(&Log) -> Vec<Batch>, lock: JoinLock) -> Result<Option<Locked>> {
        let commit = self.tail.lock(&self.place, lock)?;
        let batches = decide(&self.tail.log);
        let mut new = None;
        if !batches.is_empty() {
            match self.tail.put(&self.place, &commit, &batches, lock) {
                Err(error) if self.tail.is_broken => {
                    if lock == JoinLock::Perhaps {
                        // It may have been taken to write the journal anew.
                        let _ = self.place.sys.unlock(commit.as_fd(), JOIN_BYTE, 1);
                    }
                    self._failed = Some(commit);
                    return Err(error);
                }
                done => new = done?,
            }
        }
        // A session that was recovered is no longer this engine's to recover.
        self.dead.take_if(|(dead, _)| self.tail.log.member(*dead).is_none());
        self.unlock(commit)?;
        Ok(new)
    }

    /// Releases the commit lock. If that fails, other nodes wait until the engine is dropped.
    fn unlock(&mut self, commit: Locked) -> Result<()> {
        let done = commit.release();
        self.is_over |= done.is_err();
        done.map_err(io(&self.place.path, "unlock"))
    }
}

/// The log, read to its end, and its commit lock. A journal of version 1 is first written anew as
/// version 2. The caller has the join lock of the journal that begins with `start`.
fn lock_log(sys: &SysRef, spec: &MapSpec, place: &Place, start: &Start) -> Result<(Tail, Locked)> {
    match start.header.last_session {
        Some(_) => {
            let mut tail = Tail::begun(place, spec.id, start)?;
            let commit = tail.lock(place, JoinLock::Callers)?;
            Ok((tail, commit))
        }
        None => {
            let commit = convert::convert(sys, spec, place)?;
            Ok((Tail::open(place, spec.id)?, commit))
        }
    }
}

/// The number of a new session, and the records by which it joins after it has recovered all
/// sessions of the log.
fn records_alone(log: &Log, node: &Node, place: &Place) -> Result<(Session, Vec<Record>)> {
    let (session, mut records) = next_session(log, node, place)?;
    let mut after = log.clone();
    for (dead, _) in log.members() {
        let recovered = rules::recover(&after, dead);
        Batch::by(Session::NONE, recovered.clone()).iter().for_each(|batch| after.apply(batch));
        records.extend(recovered);
    }
    let alone = Record::Holds(session, vec![Hold::ALONE]);
    if !records.contains(&alone) {
        records.push(alone);
    }
    Ok((session, records))
}

/// The number of a new session and the records by which it joins.
fn next_session(log: &Log, node: &Node, place: &Place) -> Result<(Session, Vec<Record>)> {
    if log.last_session().0 == u32::MAX {
        let problem = "no session number is left".to_owned();
        return Err(MapError::Damaged { path: place.path.clone(), problem });
    }
    Ok(rules::join(log, node))
}

impl Engine for FileEngine {
    type Error = MapError;

    fn log(&self) -> &Log {
        &self.tail.log
    }

    fn read(&mut self) -> Result<()> {
        self.check()?;
        let done = self.tail.read(&self.place);
        self.judged(done)
    }

    fn append(&mut self, decide: &mut dyn FnMut(&Log) -> Vec<Batch>) -> Result<()> {
        self.check()?;
        let done = self.change(decide, JoinLock::Perhaps).map(drop);
        self.judged(done)
    }

    fn rewrite(&mut self) -> Result<()> {
        self.check()?;
        let done = (|| {
            let _join = self.place.lock(JOIN_BYTE, false)?;
            let commit = self.tail.lock(&self.place, JoinLock::Callers)?;
            self.tail.rewrite(&self.place, &commit, &[])?;
            self.unlock(commit)
        })();
        self.judged(done)
    }

    fn lock_dead(&mut self, session: Session) -> Result<bool> {
        self.check()?;
        if self.dead.as_ref().is_some_and(|(dead, _)| *dead == session) {
            return Ok(true);
        }
        let done = sessions::lock_dead(&self.place, session).map(|lock| lock.map(|lock| (session, lock)));
        self.dead = self.judged(done)?;
        Ok(self.dead.is_some())
    }
}
