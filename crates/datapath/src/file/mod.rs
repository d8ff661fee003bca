//! A managed file that is open in this process.

mod attributes;
mod copy;
mod holes;
mod io;
mod lock;
mod logical;
mod mapping;
mod overlay;
mod size;
mod split;
mod sync;

pub(crate) use attributes::without_write;
pub use attributes::{Attributes, Change};
pub use copy::IoOptions;
pub(crate) use copy::{Lost, OpenCopy, OpenOrLost};
pub use holes::Whence;
pub(crate) use lock::SIZE_LOCK_BYTE;
pub(crate) use logical::FileParts;
pub use logical::LogicalFile;
pub use mapping::MapExtent;
pub use overlay::{Around, Difference, Drained, Tell};
pub(crate) use overlay::{Context, Overlay, Rates, check_times, counts, each_span, forget_times};
pub(crate) use sync::sync_directory;
