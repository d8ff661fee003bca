//! Checking and repairing managed files.
//!
//! Repairs never destroy a file's own bytes: they finish interrupted operations, rewrite the
//! metadata that locates the bytes, and set files aside instead of replacing them. Only objects
//! that belong to no file are removed, and only on request.

mod anchors;
mod copies;
mod findings;
mod looked;
mod orphans;
mod restore;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_target::Target;

pub use findings::{Finding, Kind, Options};
pub use walk::{Listing, files_of, walk};

use crate::runtime::Runtime;
use findings::{Run, Scope, of_target};
use walk::Stores;

/// The result of [`check`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of managed files checked.
    pub files: u64,
    /// Number of targets whose objects were listed.
    pub targets: u64,
    /// The findings, in no particular order.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether no problem is left.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.repaired || !finding.kind.is_problem())
    }
}

/// Checks the files in `listing`, and the objects on `targets` (directories of a cluster) and on
/// all targets that the files name. Calls `tell` with each file's path before checking it.
pub fn check(
    runtime: &Runtime,
    listing: &Listing,
    targets: &[PathBuf],
    options: Options,
    tell: &mut dyn FnMut(&Path),
) -> Report {
    let mut run = Run { runtime, options, findings: Vec::new() };
    run.findings.extend(listing.unreadable.iter().map(|(path, errno)| {
        Finding::new(Kind::Unreadable, path, format!("cannot be read: {errno}; run this as its owner"))
    }));
    let mut stores = Stores::default();
    for path in targets {
        match Target::open(runtime.sys(), path, None) {
            Ok(target) => stores.add(&mut run, Arc::new(target)),
            Err(error) => run.findings.push(of_target(path, &error)),
        }
    }
    let mut known = anchors::Known::new();
    for path in &listing.anchors {
        tell(path);
        anchors::check(&mut run, path, &mut known, &mut stores);
    }
    let scope = Scope {
        roots: &listing.roots,
        complete: listing.unreadable.is_empty() && known.all_readable,
        targets_named: !targets.is_empty(),
    };
    anchors::copied(&mut run, &known, scope);
    let targets = stores.len() as u64;
    let swept = walk::temporaries(&mut run, listing);
    orphans::check(&mut run, &stores, &known, &swept, scope);
    Report { files: listing.anchors.len() as u64, targets, findings: run.findings }
}
