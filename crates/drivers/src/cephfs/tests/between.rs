//! A layer between a CephFS driver and the kernel. It counts requests, fails them and drops hints.
//! Where there is no CephFS, it acts as a strict one for the calls that the driver makes.
//!
//! The values that it accepts and refuses ([`stand_in`]) were observed on Ceph 16.2 (`ceph-fuse`):
//! sizes, pools by name and by number, written files, the errors.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use stripewise_sys::{Dir, Errno, Fd, Kind, Mode, OFlags, Real, Result, Stat, Sys};

use super::stand_in;
use crate::files::HERE;

const WRITTEN: &str = "user.fake.written";

/// See the [module](self).
pub struct Between {
    /// Number of requests that still pass; below 0: all pass.
    pub left: AtomicI64,
    pub ignores_hints: AtomicBool,
    /// Nothing may be created here, and no layout set.
    pub read_only: AtomicBool,
    /// No layout may be set (capabilities without p).
    pub no_layouts: AtomicBool,
    /// Requests to servers of this pool fail with this error.
    pub trouble: Mutex<Option<(&'static str, Errno)>>,
    /// The top directory of the stand-in for a CephFS.
    pub fake: Option<PathBuf>,
}

impl Between {
    pub fn new(fake: Option<PathBuf>) -> Self {
        Self {
            left: AtomicI64::new(-1),
            ignores_hints: AtomicBool::new(false),
            read_only: AtomicBool::new(false),
            no_layouts: AtomicBool::new(false),
            trouble: Mutex::new(None),
            fake,
        }
    }

    fn count(&self) -> Result<()> {
        match self.left.load(Relaxed) {
            0 => Err(Errno::IO),
            left if left < 0 => Ok(()),
            left => {
                self.left.store(left - 1, Relaxed);
                Ok(())
            }
        }
    }

    fn may_make(&self) -> Result<()> {
        if self.read_only.load(Relaxed) { Err(Errno::ACCESS) } else { Ok(()) }
    }

    /// The path, if it is on the stand-in and of the kind that the attribute is for.
    fn fake_path(&self, of: Kind<'_>, name: &str) -> Result<PathBuf> {
        let path = stand_in::path(of);
        let fake = self.fake.as_ref().is_some_and(|root| path.starts_with(root));
        if !fake {
            return Err(Errno::OPNOTSUPP);
        }
        let is_dir = Real.stat_at(HERE, &path, true).map(|_| path.is_dir())?;
        if is_dir == name.starts_with("ceph.dir.layout") || name == "ceph.cluster_fsid" {
            Ok(path)
        } else {
            Err(Errno::NODATA)
        }
    }
}

/// Calls that are only counted.
macro_rules! counted {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> Result<$result> {
            self.count()?;
            Real.$name($($argument),*)
        })*
    };
}

impl Sys for Between {
    fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        self.count()?;
        let creates = flags.contains(OFlags::CREATE);
        if creates && Real.stat_at(dir, path, false).is_err() {
            self.may_make()?;
        }
        let file = Real.open(dir, path, flags, mode)?;
        if creates && self.fake.is_some() {
            let path = stand_in::path(Kind::Open(file.as_fd()));
            stand_in::keep(Kind::Open(file.as_fd()), &stand_in::inherited(path.parent().unwrap()))?;
        }
        Ok(file)
    }

    unsafe fn pwrite(&self, fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize> {
        self.count()?;
        if self.fake.is_some() {
            let attribute = stand_in::kept(&stand_in::path(Kind::Open(fd))).unwrap();
            let trouble = *self.trouble.lock().unwrap();
            if let Some((_, errno)) = trouble.filter(|&(pool, _)| attribute.pool.as_deref() == Some(pool)) {
                return Err(errno);
            }
            Real.set_xattr(Kind::Open(fd), OsStr::new(WRITTEN), b"1")?;
        }
        unsafe { Real.pwrite(fd, buffer, len, offset) }
    }

    fn mkdir(&self, dir: Dir<'_>, path: &Path, mode: Mode) -> Result<()> {
        self.count()?;
        if Real.stat_at(dir, path, false).is_err() {
            self.may_make()?;
        }
        Real.mkdir(dir, path, mode)
    }

    fn xattr(&self, of: Kind<'_>, name: &OsStr) -> Result<Vec<u8>> {
        self.count()?;
        let name = name.to_str().unwrap();
        if self.fake.is_none() {
            return Real.xattr(of, OsStr::new(name));
        }
        let path = self.fake_path(of, name)?;
        match name {
            "ceph.cluster_fsid" => Ok(b"0-fake".to_vec()),
            // The top always has one.
            "ceph.dir.layout" if Some(&path) == self.fake.as_ref() => {
                Ok(stand_in::inherited(&path).text().into_bytes())
            }
            "ceph.dir.layout" => Ok(stand_in::kept(&path).ok_or(Errno::NODATA)?.text().into_bytes()),
            "ceph.file.layout" => Ok(stand_in::inherited(&path).text().into_bytes()),
            _ => Err(Errno::NODATA),
        }
    }

    fn set_xattr(&self, of: Kind<'_>, name: &OsStr, value: &[u8]) -> Result<()> {
        self.count()?;
        if self.ignores_hints.load(Relaxed) {
            return Ok(());
        }
        if self.fake.is_none() {
            return Real.set_xattr(of, name, value);
        }
        let name = name.to_str().unwrap();
        let path = self.fake_path(of, name)?;
        if self.read_only.load(Relaxed) || self.no_layouts.load(Relaxed) {
            return Err(Errno::ACCESS);
        }
        let attribute =
            stand_in::set_fields(stand_in::inherited(&path), name, std::str::from_utf8(value).unwrap())?;
        if path.is_dir() {
            stand_in::pin_files(&path);
        } else if Real.xattr(of, OsStr::new(WRITTEN)).is_ok() || std::fs::metadata(&path).unwrap().len() > 0 {
            return Err(Errno::NOTEMPTY);
        }
        stand_in::keep(of, &attribute)
    }

    fn remove_xattr(&self, of: Kind<'_>, name: &OsStr) -> Result<()> {
        self.count()?;
        if self.fake.is_none() {
            return Real.remove_xattr(of, name);
        }
        let path = self.fake_path(of, name.to_str().unwrap())?;
        stand_in::pin_files(&path);
        Real.remove_xattr(of, OsStr::new(stand_in::KEPT))
    }

    counted! {
        fn rmdir(dir: Dir<'_>, path: &Path) -> ();
        fn unlink(dir: Dir<'_>, path: &Path) -> ();
        fn sync(fd: BorrowedFd<'_>) -> ();
        fn stat_at(dir: Dir<'_>, path: &Path, follow: bool) -> Stat;
        fn set_mode(of: Kind<'_>, mode: Mode) -> ();
        fn random(buffer: &mut [u8]) -> ();
        fn list_xattr(of: Kind<'_>) -> Vec<OsString>;
    }

    stripewise_faulty::without_features!();

    fn is_real(&self) -> bool {
        false
    }
}
