//! A managed file while it is checked.

use std::path::PathBuf;

use stripewise_sys::Stat;
use stripewise_target::Objects;

use super::findings::{Finding, Kind};
use crate::anchor::Anchored;
use crate::manifest::{Manifest, family};

/// An anchor and its manifest.
pub(super) struct Looked {
    pub path: PathBuf,
    pub anchored: Anchored,
    pub stat: Stat,
    pub is_copied: bool,
}

impl Looked {
    pub fn manifest(&self) -> &Manifest {
        &self.anchored.manifest
    }

    pub fn owner(&self) -> u32 {
        self.stat.st_uid
    }

    pub fn objects(&self) -> Objects {
        self.manifest().objects(self.owner())
    }

    pub fn is_of(&self, of: Objects) -> bool {
        (family(self.objects().id), self.owner()) == (family(of.id), of.owner)
    }

    pub fn finding(&self, kind: Kind, text: impl Into<String>) -> Finding {
        Finding::new(kind, &self.path, text).of(self.manifest().id)
    }
}
