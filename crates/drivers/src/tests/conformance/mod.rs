//! The checks that every driver must pass, as one suite. A new driver gets a [`Bed`] and must pass.
//!
//! The checks use the driver as its callers do, make plain file calls alongside, and use what the
//! bed can do to the file system: make it ignore hints, fail in the middle, or run the caller as
//! another user. A check that needs a capability the bed lacks is skipped and reported.

mod bed;
mod creating;
mod linked;
mod preparing;
mod probing;
mod tests;
mod troubles;

use std::path::Path;

use crate::driver::Driver;
pub use bed::{Bed, without_rights};
use bed::{Checked, Verdict};

type Check = fn(&dyn Driver, &Bed, &Path) -> Checked;

const CHECKS: [(&str, Check); 20] = [
    ("probe: here", probing::here),
    ("probe: elsewhere", probing::elsewhere),
    ("probe: without rights", probing::without_rights),
    ("prepare: new files inherit, also further down", preparing::inherited),
    ("prepare: files that are there keep what they have", preparing::others_keep_theirs),
    ("prepare: may be repeated", preparing::repeated),
    ("prepare: a file in the way", preparing::in_the_way),
    ("prepare: one that fails leaves the former hints", preparing::failed),
    ("links: the same directory, and no other changes", linked::through_a_link),
    ("remove: leaves nothing", preparing::removed),
    ("remove: keeps files", preparing::removed_around_files),
    ("create: an empty file with its layout and permissions", creating::created),
    ("create: the group and permissions of any new file", creating::belonging),
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
