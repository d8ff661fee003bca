//! The extent map of a file with several copies: which copies of which bytes are valid.
//!
//! The protocol is `docs/formats/extents.md`.

mod error;
mod map;
mod spec;
mod types;

pub use error::MapError;
pub use map::{Copier, CopyGuard, Map, ReadGuard, Select, TruncateGuard, WriteGuard};
pub use spec::{MapSpec, Node, default_run_dir};
pub use types::{CopyId, Mask, Span};

/// What every call here returns.
pub type Result<T> = std::result::Result<T, MapError>;
