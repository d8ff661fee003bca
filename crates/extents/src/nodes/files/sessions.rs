//! The session bytes of `ID.manifest`.

use std::os::fd::BorrowedFd;

use stripewise_sys::{Errno, LockKind, SysRef};

use super::super::{HoldKind, Log, Member, Session};
use crate::error::io;
use crate::journal::{Locked, Place};
use crate::{MapError, MapSpec, Node, Result};

/// The byte of session 0, which is no session.
const FIRST_BYTE: u64 = 1 << 32;
/// The bytes of all sessions.
const BYTES: u64 = 1 << 32;

fn byte_of(session: Session) -> u64 {
    FIRST_BYTE + u64::from(session.0)
}

/// Locks the byte of a session of this node, beside its other processes. Waits while another node
/// recovers the session.
pub(super) fn lock_own(place: &Place, session: Session) -> Result<Locked> {
    let wait = |fd: BorrowedFd<'_>| place.sys.lock(fd, byte_of(session), 1, LockKind::Shared).map(|()| true);
    let locked = place.lock_named(&place.manifest_name(), false, wait)?;
    locked.ok_or_else(|| io(&place.path, "lock a session of")(Errno::AGAIN))
}

/// Locks the byte of a dead session; `None` if the session lives. The lock belongs to a description
/// of its own, with which the shared lock of an own session conflicts as any other's does.
pub(super) fn lock_dead(place: &Place, session: Session) -> Result<Option<Locked>> {
    let take = |fd: BorrowedFd<'_>| place.sys.try_lock(fd, byte_of(session), 1, LockKind::Exclusive);
    place.lock_named(&place.manifest_name(), false, take)
}

/// A session of the log, for tools that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// The machine, and its boot.
    pub node: Node,
    /// Whether the session has the hold `alone`.
    pub is_alone: bool,
    /// Whether a process of the node has the file open. If not, the node or its processes have
    /// died, and the session is still to be recovered. The error says why this cannot be found out:
    /// the file system is mounted read-only, say.
    pub is_alive: Result<bool>,
}

/// The states of the sessions of the file's `log`, in the order of their numbers. Waits for no
/// other process. The lock by which a dead session is recognized is held for a moment only.
///
/// # Errors
/// The directory of the journal cannot be opened.
pub fn session_states(sys: &SysRef, spec: &MapSpec, log: &Log) -> Result<Vec<SessionState>> {
    let place = Place::new(sys, spec)?;
    let state = |(session, member): (Session, &Member)| SessionState {
        node: member.node.clone(),
        is_alone: member.holds.iter().any(|hold| hold.kind == HoldKind::Alone),
        is_alive: match lock_dead(&place, session) {
            Ok(dead) => Ok(dead.is_none()),
            Err(MapError::Io { errno: Errno::NOENT, .. }) => Ok(false),
            Err(error) => Err(error),
        },
    };
    Ok(log.members().map(state).collect())
}

/// The node of a session of the log that is alive and not this node's. Without `ID.manifest` none
/// is.
pub(crate) fn living(
    place: &Place,
    log: &Log,
    is_own: impl Fn(Session, &Member) -> bool,
) -> Result<Option<Node>> {
    for (session, member) in log.members().filter(|&(session, member)| !is_own(session, member)) {
        match lock_dead(place, session) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Some(member.node.clone())),
            Err(MapError::Io { errno: Errno::NOENT, .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Locks the bytes of all sessions of the log; `None` if one of them lives.
pub(super) fn lock_all_dead(place: &Place, log: &Log) -> Result<Option<Vec<Locked>>> {
    log.members().map(|(session, _)| lock_dead(place, session)).collect()
}

/// Whether the log has a dead session of this boot, whose processes had the same page cache as this
/// one.
pub(super) fn has_dead_of(place: &Place, log: &Log, node: &Node) -> Result<bool> {
    for (session, member) in log.members() {
        if member.node.boot == node.boot && lock_dead(place, session)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Locks the bytes of all sessions in `ID.manifest`, which is open for writing: until the
/// description is closed, no session is alive and none begins. False if one is alive.
///
/// # Errors
/// As fcntl(2).
pub fn lock_sessions(sys: &SysRef, manifest: BorrowedFd<'_>) -> stripewise_sys::Result<bool> {
    sys.try_lock(manifest, FIRST_BYTE, BYTES, LockKind::Exclusive)
}

/// As [`lock_sessions`]. `None` if there is no `ID.manifest`.
///
/// # Errors
/// EBUSY while a session is alive.
pub(crate) fn lock_all_sessions(place: &Place) -> Result<Option<Locked>> {
    match place.lock_named(&place.manifest_name(), false, |fd| lock_sessions(&place.sys, fd)) {
        Ok(Some(locked)) => Ok(Some(locked)),
        Ok(None) => Err(io(&place.path, "repair, while a node has the file open,")(Errno::BUSY)),
        Err(MapError::Io { errno: Errno::NOENT, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
