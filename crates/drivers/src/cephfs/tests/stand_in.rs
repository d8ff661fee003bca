//! Keeps the layouts of the stand-in for a CephFS, and accepts those that Ceph 16.2 was observed to
//! accept.
//!
//! Layouts are kept in the attribute `user.fake.layout` of real files and directories.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stripewise_native::cephfs::{Attribute, UNIT};
use stripewise_sys::{Errno, Kind, Mode, Real, Result, Sys};

use crate::files::HERE;

pub const KEPT: &str = "user.fake.layout";
const OBJECT_LIMIT: u64 = 4 << 30;

/// (number, name, whether files may be in it)
pub const POOLS: [(u64, &str, bool); 5] =
    [(1, "metrics", false), (2, "metadata", false), (3, "hdd", true), (7, "ssd", true), (64, "hdd0", true)];

/// The default layout.
pub fn root() -> Attribute {
    Attribute { stripe_unit: 4 << 20, stripe_count: 1, object_size: 4 << 20, pool: Some("hdd".to_owned()) }
}

pub fn kept(path: &Path) -> Option<Attribute> {
    let value = Real.xattr(Kind::Named(HERE, path), OsStr::new(KEPT)).ok()?;
    Attribute::parse(&String::from_utf8(value).unwrap())
}

pub fn keep(of: Kind<'_>, attribute: &Attribute) -> Result<()> {
    let keep = || Real.set_xattr(of, OsStr::new(KEPT), attribute.text().as_bytes());
    // Only the stand-in needs permission to record the layout that a new file inherits.
    let mode = std::fs::metadata(path(of)).unwrap().permissions();
    if !mode.readonly() {
        return keep();
    }
    Real.set_mode(of, Mode::from_raw_mode(0o600))?;
    keep()?;
    Real.set_mode(of, Mode::from_raw_mode(mode.mode() & 0o7777))
}

/// The layout that a file or directory has or inherits.
pub fn inherited(path: &Path) -> Attribute {
    path.ancestors().find_map(kept).unwrap_or_else(root)
}

/// Records the layouts that files created by others have had since their creation.
pub fn pin_files(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pin_files(&path);
        } else if path.is_file() && kept(&path).is_none() {
            keep(Kind::Named(HERE, &path), &inherited(&path)).unwrap();
        }
    }
}

pub fn path(of: Kind<'_>) -> PathBuf {
    match of {
        Kind::Open(fd) => std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap(),
        Kind::Named(_, path) => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
    }
}

/// Sets fields as the metadata server does.
pub fn set_fields(mut attribute: Attribute, name: &str, value: &str) -> Result<Attribute> {
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
