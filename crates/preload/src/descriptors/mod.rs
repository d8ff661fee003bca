//! What descriptors and names refer to: how a managed file is recognized, and what the library
//! remembers of each descriptor.

pub mod access;
pub mod adopt;
pub mod entry;
pub mod paths;
pub mod record;
pub mod seen;
pub mod sniff;
pub mod subject;
pub mod table;
pub mod twin;

pub use adopt::tracked;
pub use entry::{Entry, EntryRef};
pub use paths::{Absolute, FdPath, borrow_dir, follows, to_path};
pub use record::Call;
pub use seen::Found;
pub use sniff::Named;
pub use subject::{Managed, Subject, on_managed, on_recorded};
pub use table::Known;
pub use twin::Twin;
