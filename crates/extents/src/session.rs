//! Joining the session of a node (`docs/formats/nodes.md`, "Joining").

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use stripewise_sys::{Errno, Fd, SysRef, asking};

use crate::error::io;
use crate::hooks::{blocked, reach};
use crate::joining::Joining;
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

    /// Goes on with the session of this node, or begins one. The caller has the join lock.
    pub fn attach_session(&self, header: &Header) -> Result<Attached> {
        let lock = self.open_lock(&self.spec.run_dir.join(shared::LOCK))?;
        let is_used = self.is_used(&lock)?;
        let mut suspects = false;
        match SharedState::open(self.sys, self.spec)? {
            Opened::Ready(shared) => {
                if let Some((env, engine)) = self.go_on(&shared)? {
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
        self.begin(lock, header, suspects)
    }

    /// The session that `shared` names. `None` if nothing of that counts any more: the session is
    /// over, or another node has recovered it, or its index is gone, or the journal had no sessions
    /// when `shared` was made.
    fn go_on(&self, shared: &SharedState) -> Result<Option<(Arc<Env>, FileEngine)>> {
        let session = Session(shared.get(Word::Session) as u32);
        if session == Session::NONE || shared.is(Word::Over) || !self.has_index() {
            return Ok(None);
        }
        let Some(mut engine) = FileEngine::attach_at(self.place, self.spec, session)? else { return Ok(None) };
        if shared.is_alone() {
            // The index is ahead of what was just read.
            engine.take_touched();
        }
        if shared.get(Word::JournalInode) != self.device()? {
            return Err(MapError::OtherMount { path: self.place.path.clone() });
        }
        Env::open(self.sys, &self.spec.run_dir, None).map(|env| Some((env, engine)))
    }

    fn device(&self) -> Result<u64> {
        let stat = self.sys.stat(self.place.dir.as_fd()).map_err(io(&self.place.path, "stat"))?;
        Ok(stat.st_dev)
    }

    /// The error of a process that joins while others still use what does not count any more.
    fn ended(&self, shared: &SharedState) -> MapError {
        match shared.get(Word::Session) {
            0 => MapError::Changed { path: self.place.path.clone() },
            _ => self.spec.over(),
        }
    }

    fn begin(&self, lock: Fd, header: &Header, suspects: bool) -> Result<Attached> {
        let device = self.device()?;
        let (mut engine, new) = match FileEngine::join_alone(self.sys, self.spec, self.place, header, suspects)?
        {
            Some(begun) => begun,
            None => FileEngine::join_beside(self.spec, self.place, suspects)?,
        };
        let (log, own) = (engine.log(), engine.session());
        let is_alone = is_alone(log, own);
        let made = self.make(&log.listed(), log.default_mask());
        // So that nobody has to recover the session.
        let leave = |_: &MapError| drop(engine.put(&mut |_| vec![Record::Left(own)], JoinLock::Callers));
        let (shared, env) = made.inspect_err(leave)?;
        engine.take_touched();
        shared.set_applied(engine.position());
        shared.set_alone(is_alone);
        shared.set(Word::JournalInode, device);
        shared.set(Word::Session, own.0.into());
        reach("ready");
        shared.set(Word::Ready, 1);
        Ok(Attached { lock, shared, env, engine: Some(engine), new: Some(new) })
    }
}
