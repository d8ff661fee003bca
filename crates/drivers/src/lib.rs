//! Parallel file systems: finds out whether a directory is on one and what this user may do there,
//! prepares directories whose new files inherit a layout, creates files with a layout, and reads
//! back the layouts that they really got.
//!
//! All I/O runs on the caller's thread. Drivers keep no state, so threads can share them. A driver
//! always compares the requested layout with the actual one.

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
