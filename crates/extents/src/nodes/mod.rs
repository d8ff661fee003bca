//! The extent map on several nodes: the records of the log, the state that they give, and the
//! decisions of the protocol (`docs/formats/nodes.md`).
//!
//! The decisions do no I/O: the log, its lock and the liveness of sessions are an [`Engine`], which
//! [`FileEngine`] implements on the journal.

mod engine;
mod files;
mod log;
mod member;
mod ranges;
mod record;
mod rules;
#[cfg(test)]
pub(crate) mod tests;

pub use engine::Engine;
pub use files::{FileEngine, SessionState, lock_sessions, session_states};
pub(crate) use files::{JoinLock, Touched, living, lock_all_sessions};
pub use log::{Log, Member};
pub use member::Own;
pub use ranges::Ranges;
pub(crate) use record::encode_batches;
pub use record::{Batch, Hold, HoldKind, Record, Session, decode_batch, encode_batch};
pub use rules::{
    collapse, evicted, evictions_of_others, is_alone, is_asked, is_asked_for, is_granted, is_granted_beside,
    is_usable, is_write, join, may_add, may_add_beside, may_be_alone, may_punch, may_recover,
    owes_acknowledgement, own_holds, recover, widest_write, with_hold, without_holds, written_by_others,
};
