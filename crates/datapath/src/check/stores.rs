//! The objects found on the targets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_target::{FileId, Found, Objects, Target, list_components, read_manifest_copy};

use super::findings::of_target;
use super::scope::Run;
use crate::manifest::{Manifest, TEXT_BYTES_MAX, family};
use crate::runtime::Runtime;

/// All objects of one file found on the targets.
pub(super) type Parts<'a> = Vec<(&'a Arc<Target>, &'a Found)>;

/// The targets and the objects on them.
#[derive(Default)]
pub(super) struct Stores(Vec<(Arc<Target>, Vec<Found>)>);

impl Stores {
    /// Lists a target unless it was listed before.
    pub fn add(&mut self, run: &mut Run<'_>, target: Arc<Target>) {
        if self.0.iter().any(|(known, _)| known.id() == target.id()) {
            return;
        }
        match list_components(run.runtime.sys(), &target) {
            Ok(found) => self.0.push((target, found)),
            Err(error) => run.findings.push(of_target(target.path(), &error)),
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// `ID.manifest` for the damaged anchor at `path` of user `owner`: found by its id if that is
    /// still readable, or if exactly one names this path.
    pub fn copy_for(
        &self,
        runtime: &Runtime,
        path: &Path,
        id: Option<FileId>,
        owner: u32,
    ) -> Option<(FileId, Manifest)> {
        let path = std::path::absolute(path).ok()?;
        let copies = self.0.iter().flat_map(|(target, found)| {
            let copies = found.iter().filter(|found| found.component.is_none() && found.owner == owner);
            copies.filter_map(|found| Some((found.id, read_copy(runtime, target, found.objects())?)))
        });
        let copies: Vec<(FileId, Manifest)> = copies.collect();
        let by_id = copies.iter().find(|(found, _)| Some(*found) == id);
        let mut by_path = copies.iter().filter(|(_, copy)| Path::new(&copy.path) == path);
        by_id.or_else(|| by_path.next().filter(|_| by_path.next().is_none())).cloned()
    }

    /// All objects on the targets, by file (with all its copies) and owner.
    pub fn by_file(&self) -> BTreeMap<(FileId, u32), Parts<'_>> {
        let mut files: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (target, found) in
            self.0.iter().flat_map(|(target, all)| all.iter().map(move |found| (target, found)))
        {
            files.entry((family(found.id), found.owner)).or_default().push((target, found));
        }
        files
    }
}

/// The paths at which the files were created whose `ID.manifest` lies on `target`.
pub(super) fn paths_on(runtime: &Runtime, target: &Target) -> Vec<PathBuf> {
    let found = list_components(runtime.sys(), target).unwrap_or_default();
    let copies = found.iter().filter(|found| found.component.is_none());
    copies.filter_map(|found| Some(read_copy(runtime, target, found.objects())?.path.into())).collect()
}

pub(super) fn read_copy(runtime: &Runtime, target: &Target, of: Objects) -> Option<Manifest> {
    let text = read_manifest_copy(runtime.sys(), target, of, TEXT_BYTES_MAX).ok()?;
    Manifest::parse(&text, "copy").ok()
}
