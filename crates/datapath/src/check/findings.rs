//! The findings that a check reports.

use std::path::{Path, PathBuf};

use stripewise_target::{FileId, TargetError};

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
    Component,
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
        !matches!(
            self,
            Self::Unborn
                | Self::Unprotected
                | Self::Temporary
                | Self::UnusedCopy
                | Self::Interrupted
                | Self::Shared
                | Self::Space
        )
    }

    /// The name of the kind in one word, for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Target => "target",
            Self::Manifest => "manifest",
            Self::Component => "component",
            Self::Length => "length",
            Self::Truncate => "truncate",
            Self::Duplicate => "duplicate",
            Self::Copy => "copy",
            Self::Access => "access",
            Self::Shared => "shared",
            Self::Destroyed => "destroyed",
            Self::Map => "map",
            Self::Node => "node",
            Self::LostCopy => "lost-copy",
            Self::UnusedCopy => "unused-copy",
            Self::Interrupted => "interrupted",
            Self::Differs => "differs",
            Self::Space => "space",
            Self::Orphan => "orphan",
            Self::Unborn => "unborn",
            Self::Unprotected => "unprotected",
            Self::Temporary => "temporary",
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

    /// Records the result of a repair.
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
