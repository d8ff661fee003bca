//! CephFS: layouts are the attributes `ceph.file.layout` and `ceph.dir.layout`, under the kernel
//! client and `ceph-fuse` alike.
//!
//! Files created in a directory inherit its layout, and so do files below it unless a nearer
//! directory has one. A file's layout can be set until it is first written. The metadata server
//! validates each value and rounds none.

mod admin;
mod attributes;
mod handle;
mod probe;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;
use stripewise_native::cephfs::Attribute;
use stripewise_sys::{Errno, Fd, Kind};

use self::attributes::{actual, is_met, understood};
use self::handle::{DIR_LAYOUT, FILE_LAYOUT, SYSTEM, may_write};
use crate::driver::{Actual, Driver, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};

pub use self::handle::CephFs;

impl Driver for CephFs {
    fn system(&self) -> Option<FileSystem> {
        Some(SYSTEM)
    }

    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        match self.mount(dir)? {
            Some(mount) => probe::probe(self, dir, &mount).map(Some),
            None => Ok(None),
        }
    }

    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()> {
        let asked = attribute_of(layout)?;
        self.require(&files::existing(&*self.sys, dir)?)?;
        let made = files::make_directories(&*self.sys, dir)?;
        let prepared = self.prepare_existing(dir, &asked);
        if prepared.is_err() {
            made.undo(&*self.sys);
        }
        prepared
    }

    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()> {
        self.create_open(file, layout, mode).map(drop)
    }

    fn create_open(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<Fd> {
        let asked = attribute_of(layout)?;
        self.create_with(file, &asked.text(), &asked, mode)
    }

    fn create_exact(&self, file: &Path, exact: &str, mode: u32) -> Result<Fd> {
        self.create_with(file, exact, &understood(file, FILE_LAYOUT, exact)?, mode)
    }

    fn prepare_exact(&self, dir: &Path, exact: &str) -> Result<()> {
        let asked = understood(dir, DIR_LAYOUT, exact)?;
        self.require(dir)?;
        let of = Kind::Named(HERE, dir);
        self.set(of, dir, DIR_LAYOUT, exact, &asked)?;
        self.verify_exact(of, dir, DIR_LAYOUT, exact, &asked)
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        // Only files on a CephFS have the attribute, so this one answer suffices.
        if let Ok(Some(text)) = self.text(Kind::Named(HERE, path), path, FILE_LAYOUT) {
            return actual(path, FILE_LAYOUT, text, None);
        }
        self.require(path)?;
        if !files::is_directory(&files::look(&*self.sys, path)?) {
            let text = self.text(Kind::Named(HERE, path), path, FILE_LAYOUT)?;
            return text.map_or(Ok(Actual::default()), |text| actual(path, FILE_LAYOUT, text, None));
        }
        // The nearest layout applies.
        let absolute = files::absolute(path)?;
        let mount = (self.mount_of)(path)?.map(|mount| mount.point);
        for dir in absolute.ancestors() {
            if let Some(text) = self.text(Kind::Named(HERE, dir), dir, DIR_LAYOUT)? {
                return actual(dir, DIR_LAYOUT, text, (dir != absolute).then_some(dir));
            }
            if Some(dir) == mount.as_deref() {
                break;
            }
        }
        let note = Some("what a directory above the mounted one says".to_owned());
        Ok(Actual { note, inherited: true, ..Actual::default() })
    }

    fn read_back_open(&self, path: &Path, open: BorrowedFd<'_>) -> Result<Actual> {
        match self.text(Kind::Open(open), path, FILE_LAYOUT) {
            Ok(Some(text)) => actual(path, FILE_LAYOUT, text, None),
            _ => self.read_back(path),
        }
    }

    fn has(&self, actual: &Actual, layout: &NativeLayout) -> bool {
        let got = actual.exact.as_deref().and_then(Attribute::parse);
        got.zip(Attribute::of(layout).ok()).is_some_and(|(got, asked)| is_met(&asked, &got))
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        if !files::exists(&*self.sys, dir) {
            return Ok(());
        }
        self.require(dir)?;
        match self.sys.remove_xattr(Kind::Named(HERE, dir), OsStr::new(DIR_LAYOUT)) {
            Ok(()) | Err(Errno::NODATA) => files::remove_if_empty(&*self.sys, dir),
            Err(errno) => Err(self.failed(dir, "taking its layout away", errno)),
        }
    }
}

impl CephFs {
    /// A new file that has `value`, which means `asked`: inherited from its directory, or else set
    /// on the file.
    fn create_with(&self, file: &Path, value: &str, asked: &Attribute, mode: u32) -> Result<Fd> {
        let open = files::create_new(&*self.sys, file, mode)?;
        let of = Kind::Open(open.as_fd());
        let tell = || {
            self.require(files::parent(file))?;
            files::writable(&*self.sys, file, || self.set(of, file, FILE_LAYOUT, value, asked))?;
            self.verify_exact(of, file, FILE_LAYOUT, value, asked)
        };
        let made = match self.text(of, file, FILE_LAYOUT) {
            Ok(Some(given)) if given == value => Ok(()),
            _ => tell(),
        };
        match made {
            Ok(()) => Ok(open),
            Err(error) => {
                let _ = self.sys.unlink(HERE, file);
                Err(error)
            }
        }
    }

    /// Sets the layout and checks what a new file gets. If the layout is already set, the caller
    /// needs no right to set it. On failure the previous layout is restored.
    fn prepare_existing(&self, dir: &Path, asked: &Attribute) -> Result<()> {
        let of = Kind::Named(HERE, dir);
        let former = self.text(of, dir, DIR_LAYOUT)?;
        if self.verify(of, dir, DIR_LAYOUT, asked).is_err() {
            self.set(of, dir, DIR_LAYOUT, &asked.text(), asked)?;
        }
        let tried = files::try_out(&*self.sys, dir, |trial| {
            self.verify(Kind::Named(HERE, trial), trial, FILE_LAYOUT, asked)
        });
        tried.map_err(|error| {
            let _ = match former {
                Some(former) => self.set(of, dir, DIR_LAYOUT, &former, asked).is_ok(),
                None => self.sys.remove_xattr(of, OsStr::new(DIR_LAYOUT)).is_ok(),
            };
            match error {
                DriverError::Denied { path, doing, .. } if doing == files::WRITING => {
                    let remedy = may_write(asked.pool.as_deref().unwrap_or("POOL"));
                    DriverError::Denied { path, doing, remedy }
                }
                error => error,
            }
        })
    }
}

fn attribute_of(layout: &NativeLayout) -> Result<Attribute> {
    Attribute::of(layout).map_err(|problem| DriverError::unsupported(SYSTEM, layout, problem))
}
