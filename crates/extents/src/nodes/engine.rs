//! What the protocol needs of the parallel file system.

use super::log::Log;
use super::record::{Batch, Session};

/// One node's access to the log and to the sessions' locks. `docs/formats/nodes.md`, "Engine", says
/// what implementations guarantee (E1 to E3).
pub trait Engine {
    /// Why a call failed. Any error means that the session may be over.
    type Error;

    /// The state of the log as far as this node has read it.
    fn log(&self) -> &Log;

    /// Reads the log to its end.
    ///
    /// # Errors
    /// If the log cannot be read, or the node was cut off.
    fn read(&mut self) -> Result<(), Self::Error>;

    /// Takes the commit lock, reads the log to its end, appends the batches that `decide` makes of
    /// its state, and applies them. They are durable when this returns. A crash leaves the first
    /// of them, or none.
    ///
    /// # Errors
    /// If the log cannot be read or written, or the node was cut off. Nothing, some or all of the
    /// batches may then have been appended.
    fn append(&mut self, decide: &mut dyn FnMut(&Log) -> Vec<Batch>) -> Result<(), Self::Error>;

    /// Replaces the log by a shorter one with the same state ([`Log::restated`]).
    ///
    /// # Errors
    /// As [`Engine::append`].
    fn rewrite(&mut self) -> Result<(), Self::Error>;

    /// Locks a session's byte exclusively. False if the session lives.
    ///
    /// # Errors
    /// As [`Engine::read`].
    fn lock_dead(&mut self, session: Session) -> Result<bool, Self::Error>;
}
