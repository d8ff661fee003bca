//! Files with several copies: the extent map of the file, and the decision which copy serves which
//! request.
//!
//! `docs/decisions/0006-copies.md` specifies this module. The order of data and map updates is that
//! of `docs/formats/extents.md`.
//!
//! - `Overlay` is the state of such a file in this process. `CopySet` (`copy_set`) is the file with
//!   its overlay and its joined extent map; the functions below are its methods.
//! - Requests: `read` and `write` follow the protocols of the map. `choice` selects the copy for
//!   each range, and `request` transfers the ranges.
//! - Caches: `space` reserves space and evicts, `accounts` counts what is used, and `ledger` shares
//!   it with other nodes.
//! - Background work: `background` runs the thread, and `work` does one unit of work on a file.
//!   `activity` makes the work yield to requests and to close.
//! - Commands: `drain` (also `warm`), `compare` and `tidy`.
//! - Special cases: `mapping` for mmap, `size` and `times` for lost and restored copies, `holes`
//!   for lseek.

mod accounts;
mod activity;
mod background;
mod choice;
mod copy_set;
mod drain;
mod ledger;
mod read;
mod request;
mod slot;
mod space;
mod state;
mod statistics;
mod times;
mod work;
mod write;

pub use background::Around;
pub(crate) use choice::Rates;
pub(crate) use copy_set::{CopySet, each_span};
pub use drain::{Difference, Drained, Tell};
pub(super) use request::Request;
pub(crate) use space::CachedBytes;
pub(super) use space::total;
pub(crate) use state::{Context, Overlay};
pub(crate) use statistics::counts;
pub(crate) use times::{check_times, forget_times};
