//! Plain directories: they have no layouts of their own, so stripewise stripes over them.

use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;
use stripewise_sys::{Real, SysRef};

use crate::driver::{Actual, Driver, Probe};
use crate::error::{DriverError, Result};
use crate::files;
use crate::mounts::mount_of;

/// Any directory of any file system. Every layout is unsupported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dirs;

impl Dirs {
    fn refuse(layout: &NativeLayout) -> DriverError {
        let problem =
            "stripewise stripes over plain directories itself; give each server a directory of its own";
        DriverError::Unsupported {
            system: "a plain directory",
            layout: layout.clone(),
            problem: problem.to_owned(),
        }
    }
}

impl Driver for Dirs {
    fn system(&self) -> Option<FileSystem> {
        None
    }

    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        files::look(&sys(), dir)?;
        let mount = mount_of(dir)?.map_or_else(|| dir.to_owned(), |mount| mount.point);
        Ok(Some(Probe { mount, rights: files::rights(&sys(), dir)?, ..Probe::default() }))
    }

    fn prepare(&self, _dir: &Path, layout: &NativeLayout) -> Result<()> {
        Err(Self::refuse(layout))
    }

    fn create(&self, _file: &Path, layout: &NativeLayout, _mode: u32) -> Result<()> {
        Err(Self::refuse(layout))
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        files::look(&sys(), path)?;
        Ok(Actual::default())
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        files::remove_if_empty(&sys(), dir)
    }
}

fn sys() -> SysRef {
    Arc::new(Real)
}
