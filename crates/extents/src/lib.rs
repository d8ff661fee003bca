//! The extent map of a file with several copies. It records which copies of which bytes are valid,
//! for all processes of a node, and stays correct after any of them is killed and after a power
//! cut.
//!
//! `docs/formats/extents.md` specifies the protocol and argues why it loses no data.
//!
//! The data path calls [`Map`] around every request, and background copying calls it around every
//! copy; [`Journal`] and [`repair`] are for tools. All functions may be called from several threads
//! at once. The map records where data is and never touches the data: the caller moves the bytes
//! between two calls.

#![cfg_attr(
    test,
    allow(
        clippy::single_range_in_vec_init,
        clippy::items_after_test_module,
        clippy::new_ret_no_self,
        reason = "lists of one range are meant, tests have helpers below them, and stand-ins come as the interface"
    )
)]

mod beside;
mod cache;
mod commit;
mod copy;
mod error;
mod exclusive;
mod holding;
mod hooks;
mod index;
mod join;
mod joined;
mod joining;
mod journal;
mod lists;
mod lmdb;
mod map;
mod nodelog;
pub mod nodes;
mod poll;
mod prefetch;
mod read;
pub mod repair;
mod session;
mod shared;
mod spec;
mod sync;
#[cfg(test)]
mod tests;
mod truncate;
mod types;
mod wait;
mod write;

pub use copy::{Copier, CopyGuard};
pub use error::MapError;
pub use holding::SyncData;
pub use journal::Journal;
pub use lists::{Select, Space};
pub use map::Map;
pub use read::ReadGuard;
pub use shared::Counter;
pub use spec::{MapSpec, Node, default_run_dir};
pub use truncate::TruncateGuard;
pub use types::{CopyId, Mask, Span};
pub use write::WriteGuard;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, MapError>;
