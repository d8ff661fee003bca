//! A driver without a file system: the template for a new one.
//!
//! It works on plain directories and moves no byte, but does everything that a driver must: it
//! keeps layouts in the attribute `user.stripewise.null`, which files inherit, and refuses pools
//! that the "file system" does not have. The "file system" is any directory with the attribute
//! `user.stripewise.null.pools` (`setfattr -n user.stripewise.null.pools -v "fast slow" DIR`), with
//! everything below it.
//!
//! To write a driver: copy this file, define in `stripewise_native` which layouts the system
//! supports, replace the bodies, and give [`conformance`](super::conformance) a bed. If the system
//! is told layouts by tools, implement [`Tooled`](crate::tooled::Tooled) instead, as `lustre` does.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_cluster::FileSystem;
use stripewise_native::{NativeLayout, Stripe};
use stripewise_sys::{Errno, Kind, Mode, Real, Sys, SysRef};

use crate::driver::{Actual, Driver, Pool, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};

const NAME: &str = "null";
/// The attribute with the names of the pools, on the topmost directory.
const POOLS: &str = "user.stripewise.null.pools";
/// The attribute with a layout: `width count pool`.
const LAYOUT: &str = "user.stripewise.null";

/// See the [module](self).
#[derive(Clone)]
pub struct Null {
    sys: SysRef,
}

impl Default for Null {
    fn default() -> Self {
        Self { sys: Arc::new(Real) }
    }
}

impl Driver for Null {
    // A real driver returns its file system, whose name becomes the driver's.
    fn system(&self) -> Option<FileSystem> {
        None
    }

    fn name(&self) -> &'static str {
        NAME
    }

    // A directory elsewhere is not an error. Rights that the user lacks go to `rights`, with the
    // remedy.
    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        files::look(&*self.sys, dir)?;
        let Some((mount, pools)) = self.mount(dir)? else { return Ok(None) };
        let pool = |name: String| Pool { name, ..Pool::default() };
        let rights = rights(&*self.sys, dir)?;
        Ok(Some(Probe { mount, pools: pools.into_iter().map(pool).collect(), rights, ..Probe::default() }))
    }

    // The order matters: refuse what can be refused without asking, create, set, then check what a
    // new file really gets.
    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()> {
        let value = value_of(layout)?;
        self.require_pool(&files::existing(&*self.sys, dir)?, &value)?;
        files::prepare(&*self.sys, dir, || {
            self.let_files_keep_theirs(dir)?;
            self.set(dir, &value)?;
            files::try_out(&*self.sys, dir, |trial| self.verify(trial, layout))
        })
    }

    // A file that did not get its layout must not stay.
    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()> {
        let value = value_of(layout)?;
        self.require_pool(files::parent(file), &value)?;
        drop(files::create_new(&*self.sys, file, mode)?);
        let made = files::writable(&*self.sys, file, || self.set(file, &value))
            .and_then(|()| self.verify(file, layout));
        if made.is_err() {
            let _ = self.sys.unlink(HERE, file);
        }
        made
    }

    // Returns what the file system reports, which may differ from what was set.
    fn read_back(&self, path: &Path) -> Result<Actual> {
        files::look(&*self.sys, path)?;
        self.require(path)?;
        for at in files::absolute(path)?.ancestors() {
            if let Some(value) = self.get(at, LAYOUT)? {
                return Ok(Actual { layout: Some(parse(at, &value)?), ..Actual::default() });
            }
        }
        Ok(Actual::default())
    }

    // May be repeated; leaves directories that are not empty.
    fn remove(&self, dir: &Path) -> Result<()> {
        if !files::exists(&*self.sys, dir) {
            return Ok(());
        }
        self.require(dir)?;
        self.let_files_keep_theirs(dir)?;
        match self.sys.remove_xattr(Kind::Named(HERE, dir), OsStr::new(LAYOUT)) {
            Ok(()) | Err(Errno::NODATA) => files::remove_if_empty(&*self.sys, dir),
            Err(errno) => Err(DriverError::io(dir, "taking its layout away", errno)),
        }
    }
}

impl Null {
    /// The topmost directory above an existing path, and its pools.
    fn mount(&self, path: &Path) -> Result<Option<(PathBuf, Vec<String>)>> {
        for at in files::absolute(path)?.ancestors() {
            if let Some(pools) = self.get(at, POOLS)? {
                return Ok(Some((at.to_owned(), pools.split_whitespace().map(str::to_owned).collect())));
            }
        }
        Ok(None)
    }

    fn require(&self, path: &Path) -> Result<Vec<String>> {
        let mount = self.mount(path)?;
        mount.map(|mount| mount.1).ok_or_else(|| DriverError::Elsewhere { path: path.to_owned(), system: NAME })
    }

    fn require_pool(&self, path: &Path, value: &str) -> Result<()> {
        let (pools, pool) = (self.require(path)?, value.split(' ').nth(2).unwrap_or_default());
        if pools.iter().any(|known| known == pool) {
            return Ok(());
        }
        let problem = format!("there is no pool {pool:?}, but {}", pools.join(", "));
        Err(DriverError::Refused { path: path.to_owned(), value: value.to_owned(), problem })
    }

    fn get(&self, path: &Path, name: &str) -> Result<Option<String>> {
        match files::attribute(&*self.sys, Kind::Named(HERE, path), name) {
            // Not every file system above has attributes.
            Err(Errno::OPNOTSUPP) => Ok(None),
            got => got.map_err(|errno| DriverError::io(path, format!("reading {name}"), errno)),
        }
    }

    fn set(&self, path: &Path, value: &str) -> Result<()> {
        let set = self.sys.set_xattr(Kind::Named(HERE, path), OsStr::new(LAYOUT), value.as_bytes());
        set.map_err(|errno| DriverError::io(path, format!("setting {LAYOUT}"), errno))
    }

    /// Records the layouts that files below have inherited so far. A real file system does so when
    /// a file is created.
    fn let_files_keep_theirs(&self, dir: &Path) -> Result<()> {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.let_files_keep_theirs(&path)?,
                Ok(kind) if kind.is_file() => {
                    if let Some(layout) = self.read_back(&path)?.layout {
                        self.set(&path, &value_of(&layout)?)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn verify(&self, path: &Path, asked: &NativeLayout) -> Result<()> {
        DriverError::compare(path, asked, self.read_back(path)?.layout, "use another file system")
    }
}

/// The rights that this user lacks in a directory of any file system, found by trying: one sentence
/// each.
fn rights(sys: &dyn Sys, dir: &Path) -> Result<Vec<String>> {
    let trial = files::scratch(sys, dir)?;
    match sys.mkdir(HERE, &trial, Mode::from_raw_mode(0o700)) {
        Ok(()) => files::remove_if_empty(sys, &trial).map(|()| Vec::new()),
        Err(errno) => Ok(vec![DriverError::io(dir, "making a directory in it", errno).to_string()]),
    }
}

fn value_of(layout: &NativeLayout) -> Result<String> {
    match layout.stripe() {
        Some(Stripe::Even { width, count, pool: Some(pool) }) if *count > 0 => {
            Ok(format!("{width} {count} {pool}"))
        }
        _ => Err(DriverError::Unsupported {
            system: NAME,
            layout: layout.clone(),
            problem: "only equal stripes in a pool can be pretended".to_owned(),
        }),
    }
}

fn parse(path: &Path, value: &str) -> Result<NativeLayout> {
    let fields: Vec<&str> = value.split(' ').collect();
    let layout = match fields[..] {
        [width, count, pool] => width
            .parse()
            .ok()
            .zip(count.parse().ok())
            .map(|(width, count)| NativeLayout::even(width, count, Some(pool))),
        _ => None,
    };
    layout.ok_or_else(|| DriverError::Refused {
        path: path.to_owned(),
        value: value.to_owned(),
        problem: format!("{LAYOUT} is not `width count pool`"),
    })
}
