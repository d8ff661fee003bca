//! Looking after managed files: what is wrong with them, and setting it right.
//!
//! Nothing here takes a file's own bytes away: repairs finish what was interrupted, rewrite what says where the bytes
//! are, and set files aside instead of replacing them. Only components that belong to no file are removed, and only when
//! that is asked for.

mod anchors;
mod copies;
mod findings;
mod orphans;
mod restore;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_target::{Target, TargetError};

pub use findings::{Finding, Kind};
pub use walk::{Listing, files_of, walk};

use crate::runtime::Runtime;

/// What to do besides looking.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Finish interrupted truncates, restore manifests and copies of them, bring anchors up to date.
    pub repair: bool,
    /// Remove components that belong to no file, and temporaries of migrations and creations that did not end.
    pub remove_orphans: bool,
    /// Go on with what another node had synced that died while it wrote a file with several copies.
    pub take_over: bool,
    /// Read what several copies have, and compare it.
    pub compare: bool,
    /// Give up what only a lost copy has, or a lost map knew of.
    pub drop_dirty: bool,
    /// What changed less than so many seconds ago may still be in the making: it is no orphan.
    pub orphan_age_s: u64,
}

/// What [`check`] found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Managed files that were looked at.
    pub files: u64,
    /// Targets whose components were listed.
    pub targets: u64,
    /// In no order that means anything.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is wrong (any more).
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.repaired || !finding.kind.is_problem())
    }
}

/// Checks the files in `listing`, and the components on `targets` (directories of a cluster) and on all targets that the
/// files name. `tell` gets each file's path before it is looked at.
pub fn check(
    runtime: &Runtime,
    listing: &Listing,
    targets: &[PathBuf],
    options: Options,
    tell: &mut dyn FnMut(&Path),
) -> Report {
    let mut report = Report::default();
    report.findings.extend(listing.unreadable.iter().map(|(path, errno)| {
        Finding::new(Kind::Unreadable, path, format!("cannot be read: {errno}; run this as its owner"))
    }));
    let mut stores = orphans::Stores::default();
    for path in targets {
        match Target::open(runtime.sys(), path, None) {
            Ok(target) => stores.add(runtime.sys(), Arc::new(target), &mut report.findings),
            Err(error) => report.findings.push(of_target(path, &error)),
        }
    }
    let mut known = anchors::Known::new();
    for path in &listing.anchors {
        tell(path);
        report.files += 1;
        anchors::check(runtime, path, options, &mut known, &mut stores, &mut report.findings);
    }
    report.targets = stores.len() as u64;
    let swept = walk::temporaries(runtime, listing, options, &mut report.findings);
    orphans::check(runtime, &stores, &known, &swept, options, &mut report.findings);
    report
}

fn of_target(path: &Path, error: &TargetError) -> Finding {
    Finding::new(Kind::Target, path, error.to_string())
}
