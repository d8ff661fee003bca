//! Parallel file systems: is a directory on one, what may this user do there, prepare directories whose new files inherit
//! a layout, make files with a layout, read back what they really got.
//!
//! Everything here does I/O on the caller's thread and keeps no state, so drivers are shareable between threads. Nothing
//! is believed: what was asked for is compared with what is there.

mod beegfs;
mod cephfs;
pub mod conformance;
mod dirs;
mod driver;
mod error;
#[cfg(test)]
mod fake;
mod files;
mod lustre;
mod mounts;
mod null;
mod orangefs;
mod tool;

pub use beegfs::BeeGfs;
pub use cephfs::CephFs;
pub use dirs::Dirs;
pub use driver::{Actual, Driver, Pool, Probe};
pub use error::{DriverError, Result};
pub use files::TRIAL_PREFIX;
pub use lustre::Lustre;
pub use null::Null;
pub use orangefs::{OrangeFs, Tools};
pub use tool::Tool;

use stripewise_cluster::FileSystem;

/// The driver of a parallel file system.
pub fn driver(system: FileSystem) -> Box<dyn Driver> {
    match system {
        FileSystem::CephFs => Box::new(CephFs::default()),
        FileSystem::Lustre => Box::new(Lustre::default()),
        FileSystem::BeeGfs => Box::new(BeeGfs::default()),
        FileSystem::OrangeFs => Box::new(OrangeFs::default()),
    }
}

/// The drivers of all parallel file systems.
pub fn all() -> Vec<Box<dyn Driver>> {
    FileSystem::ALL.map(driver).into()
}
