//! The findings that a check reports.

use std::fmt::Display;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use stripewise_sys::{Mode, OFlags};
use stripewise_target::{FileId, TargetError};

use crate::manifest::Manifest;
use crate::runtime::Runtime;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file or directory could not be examined.
    Unreadable,
    /// A target is missing or is not the expected one.
    Target,
    /// The manifest in an anchor is damaged.
    Manifest,
    /// An object is lost.
    Object,
    /// An object is longer than its layout allows.
    Length,
    /// A truncate was interrupted.
    Truncate,
    /// Two anchors have the same objects: one is a copy made without this library.
    Duplicate,
    /// `ID.manifest` is lost or differs from the manifest in the anchor.
    Copy,
    /// Permissions or group of the objects differ from those of the anchor, which a program without
    /// this library has changed.
    Access,
    /// Objects lie in a directory shared by all users, where earlier versions put them.
    Shared,
    /// The anchor was overwritten, but its objects are there.
    Destroyed,
    /// The extent map of a file with several copies cannot be used.
    Map,
    /// Another node writes the file, or did when it died.
    Node,
    /// An extra copy is lost, and the map names bytes of it.
    LostCopy,
    /// An extra copy is lost, and the map names none of its bytes.
    UnusedCopy,
    /// Processes that wrote a file with several copies were killed; the next process continues.
    Interrupted,
    /// Copies that should be identical differ.
    Differs,
    /// A cache copy uses space for bytes that are not valid in it.
    Space,
    /// Objects with data that belong to no file.
    Orphan,
    /// Objects without data that belong to no file, left by an interrupted creation.
    Unborn,
    /// Programs without the library may write to the anchor, because an earlier version created it
    /// or a plain chmod allowed it.
    Unprotected,
    /// A temporary of a migration or creation that did not complete.
    Temporary,
}

impl Kind {
    /// Whether the finding is a problem or only worth knowing.
    pub fn is_problem(self) -> bool {
        self.described().1
    }

    /// The name of the kind in one word, for people and programs.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// The name, and whether it is a problem.
    fn described(self) -> (&'static str, bool) {
        match self {
            Self::Unreadable => ("unreadable", true),
            Self::Target => ("target", true),
            Self::Manifest => ("manifest", true),
            Self::Object => ("object", true),
            Self::Length => ("length", true),
            Self::Truncate => ("truncate", true),
            Self::Duplicate => ("duplicate", true),
            Self::Copy => ("copy", true),
            Self::Access => ("access", true),
            Self::Shared => ("shared", false),
            Self::Destroyed => ("destroyed", true),
            Self::Map => ("map", true),
            Self::Node => ("node", true),
            Self::LostCopy => ("lost-copy", true),
            Self::UnusedCopy => ("unused-copy", false),
            Self::Interrupted => ("interrupted", false),
            Self::Differs => ("differs", true),
            Self::Space => ("space", false),
            Self::Orphan => ("orphan", true),
            Self::Unborn => ("unborn", false),
            Self::Unprotected => ("unprotected", false),
            Self::Temporary => ("temporary", false),
        }
    }
}

/// The remedy for a file that cannot be restored.
pub(super) const NEVER_SYNCED: &str =
    "if the file was made just before a power cut and never synced, remove it with `stripewise rm -f`";

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: Kind,
    /// The file, or the target's directory.
    pub path: PathBuf,
    /// The id of the file's objects, if the finding is about them.
    pub id: Option<FileId>,
    /// The problem and its remedy.
    pub text: String,
    /// The problem was repaired.
    pub repaired: bool,
}

impl Finding {
    pub(super) fn new(kind: Kind, path: &Path, text: impl Into<String>) -> Self {
        Self { kind, path: path.to_owned(), id: None, text: text.into(), repaired: false }
    }

    pub(super) fn of(mut self, id: FileId) -> Self {
        self.id = Some(id);
        self
    }

    pub(super) fn repair<E: std::fmt::Display>(mut self, done: Result<(), E>) -> Self {
        match done {
            Ok(()) => self.repaired = true,
            Err(error) => self.text = format!("{} (repair failed: {error})", self.text),
        }
        self
    }
}

/// The finding that a target cannot be used, for the file or target at `path`.
pub(super) fn of_target(path: &Path, error: &TargetError) -> Finding {
    Finding::new(Kind::Target, path, error.to_string())
}

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

pub(super) struct Run<'a> {
    pub runtime: &'a Runtime,
    pub options: Options,
    pub findings: Vec<Finding>,
}

impl Run<'_> {
    /// Adds a finding, and repairs it if that is asked for.
    pub fn add<E: Display>(&mut self, finding: Finding, asked: bool, repair: impl FnOnce() -> Result<(), E>) {
        self.findings.push(if asked { finding.repair(repair()) } else { finding });
    }

    /// Adds a finding that `fsck --repair` repairs.
    pub fn repairable<E: Display>(&mut self, finding: Finding, repair: impl FnOnce() -> Result<(), E>) {
        self.add(finding, self.options.repair, repair);
    }

    /// Whether something last changed at `modified_s` is too old to belong to a creation in
    /// progress.
    pub fn is_old(&self, modified_s: i64) -> bool {
        let now_s = (self.runtime.sys().wall_ns() / 1_000_000_000) as i64;
        now_s.saturating_sub(modified_s) >= self.options.orphan_age_s as i64
    }
}

/// The scope of a check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    /// The directories and files given by the user, without symbolic links; empty if the files were
    /// found through their targets.
    pub roots: &'a [PathBuf],
    /// Everything in the scope could be read.
    pub complete: bool,
    /// The user named targets: objects on them that no file accounts for are worth a finding.
    pub targets_named: bool,
}

impl Scope<'_> {
    /// Whether repairs may act on `path`, that is, `path` lies below a root.
    pub fn has(&self, path: &Path) -> bool {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        let path = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
        path.is_some_and(|path| self.roots.iter().any(|root| path.starts_with(root)))
    }

    /// Whether all files that this machine sees were checked.
    pub fn has_everything(&self) -> bool {
        self.complete && self.roots.iter().any(|root| root == Path::new("/"))
    }

    /// Whether the whole file system that holds `directory` was checked.
    pub fn has_file_system_of(&self, runtime: &Runtime, directory: &Path) -> bool {
        let device = |path: &Path| runtime.sys().stat_at(None, path, true).map(|stat| stat.st_dev);
        let Ok(own) = device(directory) else { return false };
        let mount = directory.ancestors().take_while(|above| device(above) == Ok(own)).last();
        self.complete && mount.is_some_and(|mount| self.roots.iter().any(|root| mount.starts_with(root)))
    }
}

/// Whether the anchor of a file certainly no longer exists under any name: the kernel reports that,
/// or every place where it could be was checked.
pub(super) fn is_gone(runtime: &Runtime, manifest: &Manifest, scope: Scope<'_>) -> bool {
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
