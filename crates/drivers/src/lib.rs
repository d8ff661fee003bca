//! Parallel file systems: finds out whether a directory is on one and what this user may do there,
//! prepares directories whose new files inherit a layout, creates files with a layout, and reads
//! back the layouts that they really got.
//!
//! All I/O runs on the caller's thread. Drivers keep no state, so threads can share them. A driver
//! always compares the requested layout with the actual one.

mod beegfs;
mod cephfs;
mod driver;
mod error;
mod files;
mod lustre;
mod mounts;
mod orangefs;
#[cfg(test)]
mod tests;
mod tool;
mod tooled;

pub use driver::{Actual, Driver, Pool, Probe, To};
pub use error::{DriverError, Result};
pub use files::TRIAL_PREFIX;

use stripewise_cluster::FileSystem;

/// The driver of a parallel file system.
pub fn driver(system: FileSystem) -> Box<dyn Driver> {
    match system {
        FileSystem::CephFs => Box::new(cephfs::CephFs::default()),
        FileSystem::Lustre => Box::new(lustre::Lustre::default()),
        FileSystem::BeeGfs => Box::new(beegfs::BeeGfs::default()),
        FileSystem::OrangeFs => Box::new(orangefs::OrangeFs::default()),
    }
}

/// The drivers of all parallel file systems.
pub fn all() -> Vec<Box<dyn Driver>> {
    FileSystem::ALL.map(driver).into()
}
