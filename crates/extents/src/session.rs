//! Joining the session of a node (`docs/formats/nodes.md`, "Joining").

use std::sync::Arc;
use std::time::Duration;

use stripewise_sys::{Errno, Fd, SysRef, asking};

use crate::hooks::{blocked, reach};
use crate::joining::{Joining, Start};
use crate::journal::{Header, Locked};
use crate::lmdb::Env;
use crate::nodes::{Engine, FileEngine, JoinLock, Record, Session, is_alone};
use crate::shared::{self, Opened, SharedState, Word};
use crate::spec::SHARED_FILE;
use crate::{MapError, Result};

/// Time for which an open waits for a node that is alone.
const PATIENCE: Duration = Duration::from_secs(30);

// In tests an open that nobody will serve does not wait.
#[cfg(test)]
thread_local! { pub(crate) static IS_PATIENT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) }; }

#[cfg(not(test))]
fn patience() -> Duration {
    PATIENCE
}

#[cfg(test)]
fn patience() -> Duration {
    if IS_PATIENT.get() { PATIENCE * 10 } else { Duration::ZERO }
}
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A wait for another node.
pub(crate) struct Patience<'a> {
    sys: &'a SysRef,
    since_ns: u64,
    next: Duration,
}

impl<'a> Patience<'a> {
    pub fn new(sys: &'a SysRef) -> Self {
        Self { sys, since_ns: sys.now_ns(), next: Duration::from_millis(1) }
    }

    pub fn is_over(&self) -> bool {
        u128::from(self.sys.now_ns() - self.since_ns) >= patience().as_nanos()
    }

    /// # Errors
    /// EINTR: a signal ends the call that waits.
    pub fn pause(&mut self) -> stripewise_sys::Result<()> {
        if blocked() {
            return Ok(());
        }
        if asking::is_interrupted() {
            return Err(Errno::INTR);
        }
        self.sys.sleep_until_ns(self.sys.now_ns() + self.next.as_nanos() as u64);
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// What a process has of a map before it claims a block of the shared state.
pub(crate) struct Attached {
    /// `board.lock`.
    pub lock: Fd,
    pub shared: SharedState,
    pub env: Arc<Env>,
    pub engine: Option<FileEngine>,
    /// A new journal, which stays locked until the block is claimed.
    pub new: Option<Locked>,
}

impl Joining<'_> {
    /// Whether the file is used with sessions. What the processes of this node have left of the
    /// one-node protocol is first taken over by it.
    pub fn has_sessions(&self, header: &Header) -> Result<bool> {
        Ok(header.last_session.is_some() || self.spec.sessions && !self.spec.has_shared_state(self.sys)?)
    }

    /// Goes on with the session of this node, or begins one. The caller has the join lock of the
    /// journal that begins with `start`.
    pub fn attach_session(&self, start: &Start) -> Result<Attached> {
        let lock = self.open_lock(&self.spec.run_dir.join(shared::LOCK))?;
        let is_used = self.is_used(&lock)?;
        let mut suspects = false;
        match SharedState::open(self.sys, self.spec)? {
            Opened::Ready(shared) => {
                if let Some((env, engine)) = self.go_on(&shared, start)? {
                    return Ok(Attached { lock, shared, env, engine: Some(engine), new: None });
                }
                if is_used {
                    return Err(self.ended(&shared));
                }
                suspects = shared.is(Word::Over) || shared.is(Word::Appending);
            }
            Opened::Other { version } if is_used => {
                let path = self.spec.run_dir.join(SHARED_FILE);
                return Err(MapError::Version { path, found: version, known: shared::VERSION });
            }
            _ => {}
        }
        self.begin(lock, start, suspects)
    }

    /// The session that `shared` names. `None` if nothing of that counts any more: the session is
    /// over, or another node has recovered it, or its index is gone, or the journal had no sessions
    /// when `shared` was made.
    fn go_on(&self, shared: &SharedState, start: &Start) -> Result<Option<(Arc<Env>, FileEngine)>> {
        let session = Session(shared.get(Word::Session) as u32);
        if session == Session::NONE || shared.is(Word::Over) || !self.has_index() {
            return Ok(None);
        }
        let engine = FileEngine::attach_at(self.place, self.spec, session, start)?;
        let Some(mut engine) = engine else { return Ok(None) };
        if shared.is_alone() {
            // The index is ahead of what was just read.
            engine.take_touched();
        }
        if shared.get(Word::JournalInode) != engine.device() {
            return Err(MapError::OtherMount { path: self.place.path.clone() });
        }
        Env::open(self.sys, &self.spec.run_dir, None).map(|env| Some((env, engine)))
    }

    /// The error of a process that joins while others still use what does not count any more.
    fn ended(&self, shared: &SharedState) -> MapError {
        match shared.get(Word::Session) {
            0 => MapError::Changed { path: self.place.path.clone() },
            _ => self.spec.over(),
        }
    }

    fn begin(&self, lock: Fd, start: &Start, suspects: bool) -> Result<Attached> {
        let (mut engine, new) = FileEngine::join_map(self.sys, self.spec, self.place, start, suspects)?;
        let (log, own) = (engine.log(), engine.session());
        let is_alone = is_alone(log, own);
        let (shared, env) = match self.make(&log.listed(), log.default_mask()) {
            Ok(made) => made,
            Err(error) => {
                // The append waits for the commit lock, which a new journal's description has.
                drop(new);
                // So that no other node has to recover the session.
                let _ = engine.put(&mut |_| vec![Record::Left(own)], JoinLock::Perhaps);
                return Err(error);
            }
        };
        engine.take_touched();
        shared.set_applied(engine.position());
        shared.set_alone(is_alone);
        shared.set(Word::JournalInode, engine.device());
        shared.set(Word::Session, own.0.into());
        reach("ready");
        shared.set(Word::Ready, 1);
        Ok(Attached { lock, shared, env, engine: Some(engine), new: Some(new) })
    }
}
