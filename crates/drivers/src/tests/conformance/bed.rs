//! What the checks are run on, and what they have in common.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stripewise_native::NativeLayout;
use stripewise_sys::user::act_as;
use stripewise_sys::{Real, Sys};

use crate::driver::Driver;

/// Runs a closure while it may read but not write in a directory.
pub type Forbidden = Box<dyn Fn(&Path, &mut dyn FnMut())>;

/// Root acts as another user (without effect on tools that are run); any other user acts as the
/// owner of a read-only directory.
pub fn without_rights() -> Forbidden {
    const NOBODY: u32 = 65534;
    let root = Real.user() == 0;
    let permit = |dir: &Path, mode| {
        let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode));
    };
    Box::new(move |dir, run| {
        let _acting = act_as(Some(NOBODY).filter(|_| root));
        permit(dir, if root { 0o755 } else { 0o555 });
        run();
        permit(dir, 0o755);
    })
}

/// A place to test a driver on.
#[derive(Default)]
pub struct Bed {
    /// An empty directory on the file system, where everything is allowed.
    pub dir: PathBuf,
    /// A writable directory on another file system; `None`: there is none.
    pub elsewhere: Option<PathBuf>,
    /// Layouts that the file system supports, in the form in which it reports them, and different
    /// from the default layout. At least two, unless it supports none at all.
    pub supported: Vec<NativeLayout>,
    /// Layouts that files can have, but directories cannot.
    pub files_only: Vec<NativeLayout>,
    /// Layouts that no file system of this kind supports: refused before it is asked.
    pub unsupported: Vec<NativeLayout>,
    /// Layouts that this file system refuses (unknown pools, servers), and a word that the error
    /// contains.
    pub refused: Vec<(NativeLayout, String)>,
    /// Files on listed servers have the pool of their directory, or are refused there.
    pub inherits_pools: bool,
    /// A layout whose servers accept no more bytes.
    pub full: Option<NativeLayout>,
    /// Makes the file system accept and ignore hints (true) or obey them again (false).
    pub ignore_hints: Option<Box<dyn Fn(bool)>>,
    /// Makes the driver's `n`-th further request to the file system, and all requests after it,
    /// fail; `None`: they succeed again.
    pub interrupt: Option<Box<dyn Fn(Option<u64>)>>,
    /// Runs the driver without rights, such as [`without_rights`].
    pub forbidden: Option<Forbidden>,
}

/// The result of a check that did not fail.
pub enum Verdict {
    Passed,
    Skipped(&'static str),
}

/// The result of a check, or the driver's mistake.
pub type Checked = Result<Verdict, String>;

/// Fails the check with a message unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}
pub(super) use ensure;

/// The result of a call that should have succeeded.
pub fn works<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// The paths in a directory, recursively.
pub fn listing(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for entry in works("listing", std::fs::read_dir(dir))? {
        let path = works("listing", entry)?.path();
        if path.is_dir() {
            all.extend(listing(&path)?);
        }
        all.push(path);
    }
    all.sort();
    Ok(all)
}

/// Fails unless a directory is empty.
pub fn require_empty(dir: &Path) -> Result<(), String> {
    let left = listing(dir)?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

/// Fails unless a path has a layout.
pub fn require_layout(driver: &dyn Driver, path: &Path, asked: &NativeLayout) -> Result<(), String> {
    let got = works("read_back", driver.read_back(path))?.layout;
    let met = got.as_ref().is_some_and(|got| asked.is_met_by(got));
    ensure!(met, "{}: asked for {asked}, has {got:?}", path.display());
    Ok(())
}

pub const NO_LAYOUTS: Checked = Ok(Verdict::Skipped("this file system has no layouts"));
