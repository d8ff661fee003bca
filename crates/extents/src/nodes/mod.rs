//! The extent map on several nodes: the records of the log, the state that they give, and the
//! decisions of the protocol (`docs/formats/nodes.md`).
//!
//! Nothing here does I/O: the log, its lock and the liveness of sessions are an [`Engine`].

mod engine;
mod log;
mod member;
mod ranges;
mod record;
mod rules;
#[cfg(test)]
mod tests;

pub use engine::Engine;
pub use log::{Log, Member};
pub use member::Own;
pub use ranges::Ranges;
pub use record::{Batch, Hold, HoldKind, Record, Session, decode_batch, encode_batch};
pub use rules::{
    collapse, evicted, is_asked, is_granted, is_usable, join, may_add, may_be_alone, may_punch, may_recover,
    owes_acknowledgement, own_holds, recover, with_hold, without_holds,
};
