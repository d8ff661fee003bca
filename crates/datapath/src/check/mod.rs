//! Checking and repairing managed files.
//!
//! Repairs never destroy a file's own bytes: they finish interrupted operations, rewrite the
//! metadata that locates the bytes, and set files aside instead of replacing them. Only objects
//! that belong to no file are removed, and only on request.

mod anchors;
mod copies;
mod findings;
mod orphans;
mod restore;
mod walk;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_sys::{Mode, OFlags};
use stripewise_target::{Target, TargetError};

pub use findings::{Finding, Kind};
pub use walk::{Listing, files_of, walk};

use crate::manifest::Manifest;
use crate::runtime::Runtime;

/// Options of a check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Finish interrupted truncates, restore anchors and `ID.manifest`, and update anchors.
    pub repair: bool,
    /// Remove objects that belong to no file, and temporaries of migrations and creations that did
    /// not complete.
    pub remove_orphans: bool,
    /// With `repair`: make a copy of an anchor the file, if the original is not among the files
    /// checked.
    pub adopt: bool,
    /// Continue with what a node had synced that died while it wrote a file with several copies.
    pub take_over: bool,
    /// Read all valid copies and compare them.
    pub compare: bool,
    /// Give up bytes that only a lost copy holds, or that only a lost map knew of.
    pub drop_dirty: bool,
    /// Objects changed less than this many seconds ago may belong to a creation in progress and are
    /// not orphans.
    pub orphan_age_s: u64,
}

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
    let scope = Scope { roots: &listing.roots, complete: listing.unreadable.is_empty() && known.all_readable };
    anchors::copied(runtime, options, &known, scope, &mut report.findings);
    report.targets = stores.len() as u64;
    let swept = walk::temporaries(runtime, listing, options, &mut report.findings);
    orphans::check(runtime, &stores, &known, &swept, scope, options, &mut report.findings);
    report
}

/// The scope of a check.
#[derive(Clone, Copy, Debug)]
struct Scope<'a> {
    /// The directories and files given by the user, without symbolic links; empty if the files were
    /// found through their targets.
    roots: &'a [PathBuf],
    /// Everything in the scope could be read.
    complete: bool,
}

impl Scope<'_> {
    /// Whether repairs may act on `path`, that is, `path` lies below a root.
    fn has(&self, path: &Path) -> bool {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        let path = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
        path.is_some_and(|path| self.roots.iter().any(|root| path.starts_with(root)))
    }

    /// Whether the whole file system that holds `directory` was checked.
    fn has_file_system_of(&self, runtime: &Runtime, directory: &Path) -> bool {
        let device = |path: &Path| runtime.sys().stat_at(None, path, true).map(|stat| stat.st_dev);
        let Ok(own) = device(directory) else { return false };
        let mount = directory.ancestors().take_while(|above| device(above) == Ok(own)).last();
        self.complete && mount.is_some_and(|mount| self.roots.iter().any(|root| mount.starts_with(root)))
    }
}

/// Whether the anchor of a file certainly no longer exists under any name: the kernel reports that,
/// or every place where it could be was checked.
fn is_gone(runtime: &Runtime, manifest: &Manifest, scope: Scope<'_>) -> bool {
    let sys = runtime.sys();
    let path = Path::new(&manifest.path);
    // The anchor's file was overwritten in place: the caller has found no anchor there.
    let there = sys.open(None, path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty());
    let there = there.and_then(|fd| sys.identity(fd.as_fd()));
    if !manifest.anchor.is_unknown() && there.is_ok_and(|there| there == manifest.anchor) {
        return true;
    }
    let directory = path.ancestors().skip(1).find_map(|above| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Some((above, sys.open(None, above, flags, Mode::empty()).ok()?))
    });
    let Some((above, opened)) = directory else { return false };
    match sys.exists(opened.as_fd(), &manifest.anchor) {
        Ok(Some(exists)) => !exists,
        _ => path.parent() == Some(above) && scope.has_file_system_of(runtime, above),
    }
}

fn of_target(path: &Path, error: &TargetError) -> Finding {
    Finding::new(Kind::Target, path, error.to_string())
}
