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

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;
use stripewise_native::cephfs::Attribute;
use stripewise_sys::{Errno, Fd, Kind};

use self::attributes::{Xattr, denied_or_io};
use self::handle::{SYSTEM, may_write};
use crate::driver::{Actual, Driver, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};

pub use self::handle::CephFs;

impl Driver for CephFs {
    fn system(&self) -> Option<FileSystem> {
        Some(SYSTEM)
    }

    fn fences_nodes(&self) -> bool {
        true
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
        files::prepare(&*self.sys, dir, || self.prepare_existing(dir, &asked))
    }

    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()> {
        self.create_open(file, layout, mode).map(drop)
    }

    fn create_open(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<Fd> {
        let asked = attribute_of(layout)?;
        self.create_with(file, &asked.text(), &asked, mode)
    }

    fn create_exact(&self, file: &Path, exact: &str, mode: u32) -> Result<Fd> {
        self.create_with(file, exact, &self.file(file).understood(exact)?, mode)
    }

    fn prepare_exact(&self, dir: &Path, exact: &str) -> Result<()> {
        let attribute = self.dir(dir);
        let asked = attribute.understood(exact)?;
        self.require(dir)?;
        attribute.set(exact, &asked)?;
        attribute.verify_exact(exact, &asked)
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        // Only files on a CephFS have the attribute, so this one answer suffices.
        let attribute = self.file(path);
        if let Ok(Some(text)) = attribute.text() {
            return attribute.actual(text, None);
        }
        self.require(path)?;
        if !files::is_directory(&*self.sys, path)? {
            return attribute.text()?.map_or(Ok(Actual::default()), |text| attribute.actual(text, None));
        }
        // The nearest layout applies.
        let absolute = files::absolute(path)?;
        let mount = (self.mount_of)(path)?.map(|mount| mount.point);
        for dir in absolute.ancestors() {
            if let Some(text) = self.dir(dir).text()? {
                return self.dir(dir).actual(text, (dir != absolute).then_some(dir));
            }
            if Some(dir) == mount.as_deref() {
                break;
            }
        }
        let note = Some("what a directory above the mounted one says".to_owned());
        Ok(Actual { note, inherited: true, ..Actual::default() })
    }

    fn read_back_open(&self, path: &Path, open: BorrowedFd<'_>) -> Result<Actual> {
        let attribute = Xattr { of: Kind::Open(open), ..self.file(path) };
        match attribute.text() {
            Ok(Some(text)) => attribute.actual(text, None),
            _ => self.read_back(path),
        }
    }

    fn has(&self, actual: &Actual, layout: &NativeLayout) -> bool {
        let got = actual.exact.as_deref().and_then(Attribute::parse);
        // Layouts do not contain the object size.
        got.zip(Attribute::of(layout).ok()).is_some_and(|(got, asked)| {
            asked.layout().is_met_by(&got.layout()) && asked.object_size == got.object_size
        })
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        if !files::exists(&*self.sys, dir) {
            return Ok(());
        }
        self.require(dir)?;
        match self.dir(dir).remove() {
            Ok(()) | Err(Errno::NODATA) => files::remove_if_empty(&*self.sys, dir),
            Err(errno) => Err(denied_or_io(dir, "taking its layout away", errno)),
        }
    }
}

impl CephFs {
    /// A new file that has `value`, which means `asked`: inherited from its directory, or else set
    /// on the file.
    fn create_with(&self, file: &Path, value: &str, asked: &Attribute, mode: u32) -> Result<Fd> {
        let open = files::create_new(&*self.sys, file, mode)?;
        let attribute = Xattr { of: Kind::Open(open.as_fd()), ..self.file(file) };
        let tell = || {
            self.require(files::parent(file))?;
            files::writable(&*self.sys, file, || attribute.set(value, asked))?;
            attribute.verify_exact(value, asked)
        };
        let made = match attribute.text() {
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
        let attribute = self.dir(dir);
        let former = attribute.text()?;
        if attribute.verify(asked).is_err() {
            attribute.set(&asked.text(), asked)?;
        }
        let tried = files::try_out(&*self.sys, dir, |trial| self.file(trial).verify(asked));
        tried.map_err(|error| {
            let _ = match former {
                Some(former) => attribute.set(&former, asked).is_ok(),
                None => attribute.remove().is_ok(),
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
