//! The extent map of a file with several copies: which copies of which bytes are valid, for all processes of a node, and
//! after any of them was killed and after a power cut.
//!
//! The protocol, and why it loses nothing, is `docs/formats/extents.md`.
//!
//! [`Map`] is what the data path calls around every request, and the background work around every copy;
//! [`Journal`] and [`repair`] are for tools. Everything may be called by several threads at once. The map says where data is and never touches it: that
//! is the caller's, between two calls.

#![cfg_attr(
    test,
    allow(
        clippy::single_range_in_vec_init,
        clippy::items_after_test_module,
        clippy::new_ret_no_self,
        reason = "lists of one range are meant, mutations are modules of tests, and stand-ins come as the interface"
    )
)]

mod board;
mod cache;
mod copy;
mod error;
mod fork;
mod hooks;
mod index;
mod join;
mod joined;
mod journal;
mod leave;
mod lists;
mod lmdb;
mod map;
mod read;
pub mod repair;
mod spec;
mod sync;
#[cfg(test)]
mod tests;
mod truncate;
mod types;
mod wait;
mod wishes;
mod write;

pub use board::Counter;
pub use copy::{Copier, CopyGuard};
pub use error::MapError;
pub use journal::Journal;
pub use lists::{Select, Space};
pub use map::Map;
pub use read::ReadGuard;
pub use spec::{MapSpec, Node, default_run_dir};
pub use truncate::TruncateGuard;
pub use types::{CopyId, Mask, Span};
pub use write::WriteGuard;

/// What every call here returns.
pub type Result<T> = std::result::Result<T, MapError>;
