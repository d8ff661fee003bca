//! Plain directories: they have no layouts of their own, stripewise stripes over them.

use std::path::Path;

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;
use stripewise_sys::{Dir, Errno, Real, Sys};

use crate::{Actual, Driver, DriverError, Probe, Result};

const HERE: Dir<'static> = None;

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
        let stat = Real.stat_at(HERE, dir, true);
        stat.map_err(|errno| DriverError::io(dir, "looking at the directory", errno))?;
        Ok(Some(Probe { mount: dir.to_owned(), ..Probe::default() }))
    }

    fn prepare(&self, _dir: &Path, layout: &NativeLayout) -> Result<()> {
        Err(Self::refuse(layout))
    }

    fn create(&self, _file: &Path, layout: &NativeLayout, _mode: u32) -> Result<()> {
        Err(Self::refuse(layout))
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        let stat = Real.stat_at(HERE, path, true);
        stat.map_err(|errno| DriverError::io(path, "looking at the file", errno))?;
        Ok(Actual { layout: None, note: None })
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        match Real.rmdir(HERE, dir) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(DriverError::io(dir, "removing the directory", errno)),
        }
    }
}
