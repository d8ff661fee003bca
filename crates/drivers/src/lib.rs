//! Parallel file systems: is a directory on one, what may this user do there, prepare directories whose new files inherit
//! a layout, make files with a layout, read back what they really got.
//!
//! Everything here does I/O on the caller's thread and keeps no state, so drivers are shareable between threads. Nothing
//! is believed: what was asked for is compared with what is there.

mod dirs;
mod driver;
mod error;
mod tool;

pub use dirs::Dirs;
pub use driver::{Actual, Driver, Pool, Probe};
pub use error::DriverError;
pub use tool::Tool;

/// What a driver's call returns.
pub type Result<T> = std::result::Result<T, DriverError>;
