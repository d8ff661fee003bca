//! The checks that every driver must pass, as one suite. A new driver gets a [`Bed`] and must pass.
//!
//! The checks use the driver as its callers do, make plain file calls alongside, and use what the
//! bed can do to the file system: make it ignore hints, fail in the middle, or run the caller as
//! another user. A check that needs a capability the bed lacks is skipped and reported.

mod creating;
mod preparing;
mod probing;
#[cfg(test)]
mod tests;
mod troubles;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stripewise_native::NativeLayout;
use stripewise_sys::user::act_as;
use stripewise_sys::{Real, Sys};

use crate::Driver;

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
    /// Layouts that no file system of this kind supports: refused before it is asked.
    pub unsupported: Vec<NativeLayout>,
    /// Layouts that this file system refuses (unknown pools, servers), and a word that the error
    /// contains.
    pub refused: Vec<(NativeLayout, String)>,
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
pub(crate) enum Verdict {
    Passed,
    Skipped(&'static str),
}

/// The result of a check, or the driver's mistake.
pub(crate) type Checked = Result<Verdict, String>;

type Check = fn(&dyn Driver, &Bed, &Path) -> Checked;

const CHECKS: [(&str, Check); 17] = [
    ("probe: here", probing::here),
    ("probe: elsewhere", probing::elsewhere),
    ("probe: without rights", probing::without_rights),
    ("prepare: new files inherit, also further down", preparing::inherited),
    ("prepare: files that are there keep what they have", preparing::others_keep_theirs),
    ("prepare: may be repeated", preparing::repeated),
    ("prepare: a file in the way", preparing::in_the_way),
    ("remove: leaves nothing", preparing::removed),
    ("remove: keeps files", preparing::removed_around_files),
    ("create: an empty file with its layout and permissions", creating::created),
    ("create: a file that exists stays as it is", creating::exists),
    ("read back: what is not there", creating::missing),
    ("unsupported layouts: refused before anything is made", troubles::unsupported),
    ("refused layouts: said, and nothing is left", troubles::refused),
    ("ignored hints: noticed", troubles::ignored),
    ("without rights, or without space: said, and nothing is left", troubles::without_rights_or_space),
    ("prepare: interrupted anywhere, then repeated", troubles::interrupted),
];

/// The results of the checks.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Names of the checks that passed.
    pub passed: Vec<&'static str>,
    /// Checks that the bed cannot run, with the reason.
    pub skipped: Vec<(&'static str, &'static str)>,
    /// Checks that failed, with the driver's mistake.
    pub failed: Vec<(&'static str, String)>,
}

impl Outcome {
    /// Prints which checks passed and which were skipped.
    ///
    /// # Panics
    /// If a check failed, with all failures.
    pub fn require(&self, driver: &str) {
        for (check, why) in &self.skipped {
            println!("{driver}: SKIPPED {check}: {why}");
        }
        println!("{driver}: {} checks passed, {} skipped", self.passed.len(), self.skipped.len());
        assert!(self.failed.is_empty(), "{driver}: {:#?}", self.failed);
    }
}

/// Runs all checks, each in a directory of its own below the bed's, which is removed again.
pub fn conformance(driver: &dyn Driver, bed: &Bed) -> Outcome {
    let mut outcome = Outcome::default();
    for (number, (name, check)) in CHECKS.into_iter().enumerate() {
        let dir = bed.dir.join(format!("check-{number}"));
        let made = std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()));
        match made.and_then(|()| check(driver, bed, &dir)) {
            Ok(Verdict::Passed) => outcome.passed.push(name),
            Ok(Verdict::Skipped(why)) => outcome.skipped.push((name, why)),
            Err(wrong) => outcome.failed.push((name, wrong)),
        }
        let _ = std::fs::remove_dir_all(&dir);
    }
    outcome
}

/// Fails the check with a message unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}
use ensure;

/// The result of a call that should have succeeded.
fn works<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// The paths in a directory, recursively.
fn listing(dir: &Path) -> Result<Vec<PathBuf>, String> {
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
fn require_empty(dir: &Path) -> Result<(), String> {
    let left = listing(dir)?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

/// Fails unless a path has a layout.
fn require_layout(driver: &dyn Driver, path: &Path, asked: &NativeLayout) -> Result<(), String> {
    let got = works("read_back", driver.read_back(path))?.layout;
    let met = got.as_ref().is_some_and(|got| asked.is_met_by(got));
    ensure!(met, "{}: asked for {asked}, has {got:?}", path.display());
    Ok(())
}

const NO_LAYOUTS: Checked = Ok(Verdict::Skipped("this file system has no layouts"));
