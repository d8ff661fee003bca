//! Between a CephFS driver and the kernel: counts requests, fails them, swallows hints; and where there is no CephFS, is a strict
//! one for the calls that the driver makes.
//!
//! What it takes and refuses was tried out with Ceph 16.2 (`ceph-fuse`): sizes, pools by name and by number, written files, the
//! errors. Attributes are kept as `user.fake.*` of real files.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use stripewise_native::cephfs::{Attribute, UNIT};
use stripewise_sys::{
    Dir, Errno, Fd, IoVec, Kind, Listed, LockKind, Mode, OFlags, Real, Result, SeekFrom, SharedMap, Stat,
    StatVfs, Sys, Timestamps,
};

use crate::files::HERE;

const KEPT: &str = "user.fake.layout";
const WRITTEN: &str = "user.fake.written";
const OBJECT_LIMIT: u64 = 4 << 30;

/// See the [module](self).
pub struct Between {
    /// Requests that are still let through; below 0: all.
    pub left: AtomicI64,
    pub ignores_hints: AtomicBool,
    /// Nothing may be made here, and no layout set.
    pub read_only: AtomicBool,
    /// No layout may be set (capabilities without p).
    pub no_layouts: AtomicBool,
    /// What is asked of servers in this pool fails with this.
    pub trouble: Mutex<Option<(&'static str, Errno)>>,
    /// The top of a CephFS that is none.
    pub fake: Option<PathBuf>,
}

/// (number, name, whether files may be in it)
pub const POOLS: [(u64, &str, bool); 5] =
    [(1, "metrics", false), (2, "metadata", false), (3, "hdd", true), (7, "ssd", true), (64, "hdd0", true)];

impl Between {
    /// What is by default.
    fn root() -> Attribute {
        Attribute { stripe_unit: 4 << 20, stripe_count: 1, object_size: 4 << 20, pool: Some("hdd".to_owned()) }
    }

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

    fn kept(path: &Path) -> Option<Attribute> {
        let value = Real.xattr(Kind::Named(HERE, path), OsStr::new(KEPT)).ok()?;
        Attribute::parse(&String::from_utf8(value).unwrap())
    }

    fn keep(of: Kind<'_>, attribute: &Attribute) -> Result<()> {
        let keep = || Real.set_xattr(of, OsStr::new(KEPT), attribute.text().as_bytes());
        // Only the stand-in needs permission for what a file gets when it is made.
        let mode = std::fs::metadata(Self::path(of)).unwrap().permissions();
        if !mode.readonly() {
            return keep();
        }
        Real.set_mode(of, Mode::from_raw_mode(0o600))?;
        keep()?;
        Real.set_mode(of, Mode::from_raw_mode(mode.mode() & 0o7777))
    }

    /// What a file or directory has or inherits.
    fn inherited(path: &Path) -> Attribute {
        path.ancestors().find_map(Self::kept).unwrap_or_else(Self::root)
    }

    /// Files that others made get now what they have had since.
    fn pin_files(dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                Self::pin_files(&path);
            } else if path.is_file() && Self::kept(&path).is_none() {
                Self::keep(Kind::Named(HERE, &path), &Self::inherited(&path)).unwrap();
            }
        }
    }

    fn path(of: Kind<'_>) -> PathBuf {
        use std::os::fd::AsRawFd;
        match of {
            Kind::Open(fd) => std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap(),
            Kind::Named(_, path) => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        }
    }

    /// The path, where it is on the CephFS that is none and of the kind that the attribute is for.
    fn fake_path(&self, of: Kind<'_>, name: &str) -> Result<PathBuf> {
        let path = Self::path(of);
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

    /// As the metadata server sets fields.
    fn set_fields(mut attribute: Attribute, name: &str, value: &str) -> Result<Attribute> {
        let fields = match name.rsplit_once("layout.") {
            Some((_, field)) => format!("{field}={value}"),
            None => value.to_owned(),
        };
        for field in fields.split_whitespace() {
            let (field, value) = field.split_once('=').ok_or(Errno::INVAL)?;
            let number = value.parse::<u64>();
            match field {
                "stripe_unit" => attribute.stripe_unit = number.map_err(|_| Errno::INVAL)?,
                "stripe_count" => attribute.stripe_count = number.map_err(|_| Errno::INVAL)? as u32,
                "object_size" => attribute.object_size = number.map_err(|_| Errno::INVAL)?,
                "pool" => {
                    let known = |pool: &&(u64, &str, bool)| pool.1 == value || number == Ok(pool.0);
                    let pool = POOLS.iter().find(known).filter(|pool| pool.2).ok_or(Errno::INVAL)?;
                    attribute.pool = Some(pool.1.to_owned());
                }
                _ => return Err(Errno::NODATA),
            }
        }
        let Attribute { stripe_unit: unit, stripe_count: count, object_size: object, .. } = attribute;
        let whole = unit >= UNIT && unit.is_multiple_of(UNIT) && object.is_multiple_of(unit);
        if whole && count > 0 && object >= unit && object < OBJECT_LIMIT {
            Ok(attribute)
        } else {
            Err(Errno::INVAL)
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
            let path = Self::path(Kind::Open(file.as_fd()));
            Self::keep(Kind::Open(file.as_fd()), &Self::inherited(path.parent().unwrap()))?;
        }
        Ok(file)
    }

    unsafe fn pwrite(&self, fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize> {
        self.count()?;
        if self.fake.is_some() {
            let attribute = Self::kept(&Self::path(Kind::Open(fd))).unwrap();
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
                Ok(Self::inherited(&path).text().into_bytes())
            }
            "ceph.dir.layout" => Ok(Self::kept(&path).ok_or(Errno::NODATA)?.text().into_bytes()),
            "ceph.file.layout" => Ok(Self::inherited(&path).text().into_bytes()),
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
        let attribute = Self::set_fields(Self::inherited(&path), name, std::str::from_utf8(value).unwrap())?;
        if path.is_dir() {
            Self::pin_files(&path);
        } else if Real.xattr(of, OsStr::new(WRITTEN)).is_ok() || std::fs::metadata(&path).unwrap().len() > 0 {
            return Err(Errno::NOTEMPTY);
        }
        Self::keep(of, &attribute)
    }

    fn remove_xattr(&self, of: Kind<'_>, name: &OsStr) -> Result<()> {
        self.count()?;
        if self.fake.is_none() {
            return Real.remove_xattr(of, name);
        }
        let path = self.fake_path(of, name.to_str().unwrap())?;
        Self::pin_files(&path);
        Real.remove_xattr(of, OsStr::new(KEPT))
    }

    counted! {
        fn rmdir(dir: Dir<'_>, path: &Path) -> ();
        fn unlink(dir: Dir<'_>, path: &Path) -> ();
        fn sync(fd: BorrowedFd<'_>) -> ();
        fn stat_at(dir: Dir<'_>, path: &Path, follow: bool) -> Stat;
        fn set_mode(of: Kind<'_>, mode: Mode) -> ();
        fn random(buffer: &mut [u8]) -> ();
        fn list_xattr(of: Kind<'_>) -> Vec<OsString>;
        // Drivers do not make these.
        fn seek(fd: BorrowedFd<'_>, to: SeekFrom) -> u64;
        fn truncate(fd: BorrowedFd<'_>, size: u64) -> ();
        fn grow(fd: BorrowedFd<'_>, size: u64) -> ();
        fn sync_data(fd: BorrowedFd<'_>) -> ();
        fn stat(fd: BorrowedFd<'_>) -> Stat;
        fn stat_fs(fd: BorrowedFd<'_>) -> StatVfs;
        fn link(old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> ();
        fn rename(old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> ();
        fn rename_noreplace(old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> ();
        fn read_link(dir: Dir<'_>, path: &Path) -> OsString;
        fn list(dir: BorrowedFd<'_>) -> Vec<Listed>;
        fn lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> ();
        fn try_lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> bool;
        fn unlock(fd: BorrowedFd<'_>, start: u64, len: u64) -> ();
        fn set_times(of: Kind<'_>, times: &Timestamps) -> ();
        fn set_owner(of: Kind<'_>, user: Option<u32>, group: Option<u32>) -> ();
        fn map_shared(fd: BorrowedFd<'_>, words: usize) -> SharedMap;
    }

    unsafe fn pread(&self, fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize> {
        unsafe { Real.pread(fd, buffer, len, offset) }
    }
    unsafe fn preadv(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        unsafe { Real.preadv(fd, vectors, offset) }
    }
    unsafe fn pwritev(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        unsafe { Real.pwritev(fd, vectors, offset) }
    }
    fn is_real(&self) -> bool {
        false
    }
    fn now_ns(&self) -> u64 {
        Real.now_ns()
    }
    fn wall_ns(&self) -> u64 {
        Real.wall_ns()
    }
    fn sleep_until_ns(&self, until_ns: u64) {
        Real.sleep_until_ns(until_ns);
    }
    fn user(&self) -> u32 {
        Real.user()
    }
    fn say(&self, line: &[u8]) {
        Real.say(line);
    }
}
