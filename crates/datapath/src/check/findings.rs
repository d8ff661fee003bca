//! What can be found.

use std::path::{Path, PathBuf};

use stripewise_target::FileId;

/// What sort of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file or directory could not be looked at.
    Unreadable,
    /// A target is missing or not the one it should be.
    Target,
    /// The manifest in an anchor is damaged.
    Manifest,
    /// A component is lost.
    Component,
    /// A component is longer than its layout can make it.
    Length,
    /// A truncate was interrupted.
    Truncate,
    /// Two anchors with the same components: one is a copy that was made without this library.
    Duplicate,
    /// The manifest copy beside component 0 is lost or says something else.
    Copy,
    /// Permissions or group of the objects are not those of the anchor, which a program without
    /// this library has changed.
    Access,
    /// Objects lie in a directory that all users share, as earlier versions put them there.
    Shared,
    /// The anchor was overwritten; its components are there.
    Destroyed,
    /// The extent map of a file with several copies cannot be used.
    Map,
    /// Another node writes the file, or did when it died.
    Node,
    /// A copy beside the original is lost, and something of it counts.
    LostCopy,
    /// A copy beside the original is lost, and nothing of it counts.
    UnusedCopy,
    /// Processes that wrote a file with several copies did not come to their end: the next one goes on.
    Interrupted,
    /// Copies that should be the same are not.
    Differs,
    /// A cache copy takes space for bytes that are not valid in it.
    Space,
    /// Components with bytes in them that belong to no file.
    Orphan,
    /// Components without bytes that belong to no file: a creation was interrupted.
    Unborn,
    /// Programs without the library may write to the anchor: an earlier version made it, or plain
    /// chmod allowed it.
    Unprotected,
    /// A temporary of a migration or creation that did not end.
    Temporary,
}

impl Kind {
    /// Whether it is wrong, or just so.
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

    /// One word, for people and programs.
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

/// The remedy where nothing can be brought back.
pub(super) const NEVER_SYNCED: &str =
    "if the file was made just before a power cut and never synced, remove it with `stripewise rm -f`";

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What sort of thing.
    pub kind: Kind,
    /// The file, or the target's directory.
    pub path: PathBuf,
    /// The components' name, where it is about them.
    pub id: Option<FileId>,
    /// What is wrong, and the remedy.
    pub text: String,
    /// It was set right.
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

    /// Takes down how a repair ended.
    pub(super) fn repair<E: std::fmt::Display>(mut self, done: Result<(), E>) -> Self {
        match done {
            Ok(()) => self.repaired = true,
            Err(error) => self.text = format!("{} (repair failed: {error})", self.text),
        }
        self
    }
}
