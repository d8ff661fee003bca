//! What every driver must do, as one suite of checks. A new driver is given a [`Bed`] and must pass.
//!
//! The checks use the driver as others do, plain file calls beside it, and what the bed can do to the file system: make it ignore
//! hints, fail in the middle, run the caller as somebody else. What a bed cannot do is skipped, and said.

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

/// Runs what it is given while it may read but not write in a directory.
pub type Forbidden = Box<dyn Fn(&Path, &mut dyn FnMut())>;

/// Root as somebody else (of no effect on tools that are run); anybody else as the owner of a read-only directory.
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
    /// An empty directory on the file system where everything is allowed.
    pub dir: PathBuf,
    /// A writable directory on another file system; `None`: there is no elsewhere.
    pub elsewhere: Option<PathBuf>,
    /// Layouts that the file system has, in the form in which it says them; different from what files get by themselves. Two at least, unless
    /// it has none at all.
    pub supported: Vec<NativeLayout>,
    /// Layouts that no such file system has: refused before it is asked.
    pub unsupported: Vec<NativeLayout>,
    /// Layouts that this one refuses (unknown pools, servers), and a word that the error must have.
    pub refused: Vec<(NativeLayout, String)>,
    /// A layout whose servers take no more bytes.
    pub full: Option<NativeLayout>,
    /// From now on hints are taken without complaint and ignored, or (false) obeyed again.
    pub ignore_hints: Option<Box<dyn Fn(bool)>>,
    /// The driver's `n`-th further request to the file system and all after it fail; `None`: they work again.
    pub interrupt: Option<Box<dyn Fn(Option<u64>)>>,
    /// Somebody without rights, such as [`without_rights`].
    pub forbidden: Option<Forbidden>,
}

/// How a check ended that did not fail.
pub(crate) enum Verdict {
    Passed,
    Skipped(&'static str),
}

/// A check's end, or what the driver did wrong.
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

/// What became of the checks.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Names of those that passed.
    pub passed: Vec<&'static str>,
    /// Those that the bed cannot do, with the reason.
    pub skipped: Vec<(&'static str, &'static str)>,
    /// Those that failed, with what the driver did wrong.
    pub failed: Vec<(&'static str, String)>,
}

impl Outcome {
    /// Says what passed and what was skipped.
    ///
    /// # Panics
    /// If a check failed, with everything that was wrong.
    pub fn require(&self, driver: &str) {
        for (check, why) in &self.skipped {
            println!("{driver}: SKIPPED {check}: {why}");
        }
        println!("{driver}: {} checks passed, {} skipped", self.passed.len(), self.skipped.len());
        assert!(self.failed.is_empty(), "{driver}: {:#?}", self.failed);
    }
}

/// All checks, each in a directory of its own below the bed's, which is removed again.
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

/// The result of a call that should have worked.
fn works<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// What is in a directory, and below.
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

/// Fails unless a directory is as it was made.
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
