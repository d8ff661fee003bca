//! The specification of a new file, with its targets open: everything except its id and name.

use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::{Cluster, CopySpec, MAX_COPIES, Overlay, OverlayKind, Rule};
use stripewise_layout::Layout;
use stripewise_sys::{Dir, Identity};
use stripewise_target::{FileId, ObjectSet, Objects, Target, TargetError, TargetRef};

use super::Runtime;
use crate::error::{Errno, Result};
use crate::manifest::{Copies, CopyRef, ExtraCopy, Manifest, copy_id};
use crate::{notice, paths};

/// The specification of a file with all its copies.
#[derive(Clone)]
pub(crate) struct Blueprint {
    /// What the manifests of all files of this blueprint have in common: everything except ids,
    /// path, time of creation, and anchor.
    common: Box<Manifest>,
    /// The targets of each copy, the original first.
    targets: Vec<Vec<Arc<Target>>>,
}

/// What to do if a target of an extra copy is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Leave that copy out and log it.
    LeaveOut,
    /// Fail with the target's error.
    Fail,
}

impl Runtime {
    /// The shape that the plan gives a new file at this absolute path.
    pub fn shape_for(&self, path: &Path) -> Option<Shape<'_>> {
        Shape::of(self.rule_for(path)?, path)
    }

    /// Whether the plan has layouts for a new file at this absolute path. Does not allocate, and
    /// takes almost no time for paths outside the plan's directories.
    pub fn is_planned(&self, path: &Path) -> bool {
        self.reach.has(path.as_os_str().as_encoded_bytes())
            && self.rule_for(path).is_some_and(|rule| !rule.layouts.is_empty())
    }

    /// The shape of a file that an open would create. The plan's rules are matched against the path
    /// as given, then against the path with symbolic links followed. `None` if no rule matches or
    /// no file can be created.
    ///
    /// # Errors
    /// The links could not be followed: the file may match a rule of the plan.
    pub(super) fn shape_for_open(&self, dir: Dir<'_>, path: &Path) -> Result<Option<Shape<'_>>> {
        if self.reach.is_empty() || path.as_os_str().is_empty() {
            return Ok(None);
        }
        let absolute = paths::absolute(self.sys(), dir, path)?;
        if let Some(rule) = self.rule_for(&absolute) {
            return Ok(Shape::of(rule, &absolute));
        }
        match paths::canonical(self.sys(), dir, path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
            followed => Ok(self.shape_for(&followed?)),
        }
    }

    pub(crate) fn resolve(&self, shape: Shape<'_>, missing: Missing) -> Result<Blueprint, TargetError> {
        let (layout, original) = self.place(shape.layout())?;
        let mut common = Box::new(Manifest {
            // Set for each file.
            id: FileId([0; 16]),
            path: String::new(),
            created: String::new(),
            anchor: Identity::default(),
            pending_truncate: None,
            targets: references(&original),
            layout,
            copies: None,
        });
        let mut targets = vec![original];
        let (Some(overlay), Some(plan)) = (shape.overlay(), self.plan()) else {
            return Ok(Blueprint { common, targets });
        };
        let mut list = Vec::new();
        for (spec, layout) in shape.copies() {
            match self.place(layout) {
                Ok((placed, of_copy)) => {
                    list.push(extra_copy(&plan.cluster, spec, layout, placed, &of_copy));
                    targets.push(of_copy);
                }
                Err(error) if missing == Missing::LeaveOut => {
                    let name = &spec.name;
                    notice::warn_once(&format!("{error}; new files have no copy {name} there"));
                }
                Err(error) => return Err(error),
            }
        }
        if !list.is_empty() {
            common.copies = Some(Box::new(Copies {
                kind: overlay.kind,
                lazy_close: overlay.lazy_close,
                durability: overlay.durability,
                background: overlay.background,
                procs: overlay.procs,
                procs_per_node: overlay.procs_per_node,
                servers: servers_of(&plan.cluster, shape.layouts).max(common.targets.len() as u32),
                list,
            }));
        }
        Ok(Blueprint { common, targets })
    }

    pub(crate) fn blueprint_of(&self, manifest: &Manifest) -> Result<Blueprint, TargetError> {
        let targets = manifest.all_copies().map(|copy| self.targets_of(copy.targets));
        Ok(Blueprint { targets: targets.collect::<Result<_, _>>()?, common: Box::new(manifest.clone()) })
    }

    pub(crate) fn targets_of(&self, targets: &[TargetRef]) -> Result<Vec<Arc<Target>>, TargetError> {
        targets.iter().map(|target| self.targets.named(target)).collect()
    }

    /// Opens the target with `ID.manifest` and object 0 of the original; empty if the manifest has
    /// no target.
    pub(crate) fn first_target(&self, manifest: &Manifest) -> Result<Vec<Arc<Target>>, TargetError> {
        self.targets_of(manifest.targets.get(..1).unwrap_or_default())
    }

    /// Whether a file lies where `shape` would put it, and its copies have the settings of `shape`.
    /// Touches no target.
    pub fn is_placed(&self, manifest: &Manifest, shape: Shape<'_>) -> bool {
        let is_at = |(layout, targets): (&Layout, &[TargetRef]), planned: &Layout| {
            let (planned, used) = planned.compacted();
            let same =
                |(there, &index): (&TargetRef, &u32)| self.targets.planned_path(index) == Some(&there.path);
            *layout == planned && targets.iter().zip(&used).all(same)
        };
        if !is_at((&manifest.layout, &manifest.targets), shape.layout()) {
            return false;
        }
        match (&manifest.copies, shape.overlay()) {
            (None, None) => true,
            (Some(copies), Some(overlay)) => {
                let same = |(copy, (spec, planned)): (&ExtraCopy, (&CopySpec, &Layout))| {
                    copy.name == spec.name && is_at((&copy.layout, &copy.targets), planned)
                };
                copies.kind == overlay.kind
                    && (copies.lazy_close, copies.durability) == (overlay.lazy_close, overlay.durability)
                    && copies.list.len() == shape.copies().count()
                    && copies.list.iter().zip(shape.copies()).all(same)
            }
            _ => false,
        }
    }

    /// The layout restricted to the targets that it uses, and these targets.
    fn place(&self, layout: &Layout) -> Result<(Layout, Vec<Arc<Target>>), TargetError> {
        let (layout, used) = layout.compacted();
        let targets = used.iter().map(|&index| self.targets.planned(index)).collect::<Result<_, _>>()?;
        Ok((layout, targets))
    }
}

/// The manifest entry of an extra copy that was placed; `layout` is its layout over the plan's
/// targets.
fn extra_copy(
    cluster: &Cluster,
    spec: &CopySpec,
    layout: &Layout,
    placed: Layout,
    targets: &[Arc<Target>],
) -> ExtraCopy {
    let of_pool = |target| match cluster.native_target(target) {
        Some(native) => cluster.targets_of(native.tier).len() as u32,
        None => 0,
    };
    let pool_servers: Vec<u32> = layout.targets().map(of_pool).collect();
    ExtraCopy {
        name: spec.name.clone(),
        // Set once the file's id is known.
        id: FileId([0; 16]),
        groups: spec.groups.clamp(1, servers_of(cluster, std::slice::from_ref(layout))),
        servers: servers_of(cluster, &spec.layouts).max(targets.len() as u32),
        pool_servers: if pool_servers.iter().all(|&servers| servers == 0) { Vec::new() } else { pool_servers },
        targets: references(targets),
        layout: placed,
    }
}

fn servers_of(cluster: &Cluster, layouts: &[Layout]) -> u32 {
    cluster.servers_of(layouts).len() as u32
}

fn references(targets: &[Arc<Target>]) -> Vec<TargetRef> {
    targets.iter().map(|target| target.reference()).collect()
}

impl Blueprint {
    /// The targets of each copy, the original first.
    pub fn targets(&self) -> &[Vec<Arc<Target>>] {
        &self.targets
    }

    /// The layouts and targets of the copies that hold all bytes once everything is copied: the
    /// original and replicas.
    pub fn whole_copies(&self) -> impl Iterator<Item = (&Layout, &[Arc<Target>])> {
        let copies = self.common.all_copies().zip(&self.targets).filter(|(copy, _)| !copy.is_cache);
        copies.map(|(copy, targets)| (copy.layout, &**targets))
    }

    /// A text that identifies the blueprint: everything except ids.
    pub fn description(&self) -> String {
        let placed = |copy: CopyRef<'_>| {
            let targets: Vec<&str> = copy.targets.iter().map(|target| target.id.as_str()).collect();
            format!("{:?} {targets:?}", copy.layout.regions())
        };
        let mut text = placed(self.common.original());
        if let Some(copies) = &self.common.copies {
            let extra = || self.common.all_copies().skip(1);
            let names: Vec<&str> = extra().map(|copy| copy.name).collect();
            let extra: Vec<_> = extra().map(placed).collect();
            let Copies { kind, lazy_close, durability, .. } = &**copies;
            text.push_str(&format!(" {kind:?} {lazy_close} {durability:?} {names:?} {extra:?}"));
        }
        text
    }

    /// The manifest of file `id`.
    pub fn manifest(&self, id: FileId, path: &Path, created: String, anchor: Identity) -> Manifest {
        let path = path.to_string_lossy().into_owned();
        let mut manifest =
            Manifest { id, path, created, anchor, pending_truncate: None, ..Manifest::clone(&self.common) };
        let list = manifest.copies.iter_mut().flat_map(|copies| &mut copies.list);
        for (number, copy) in (1..).zip(list) {
            copy.id = copy_id(id, number);
        }
        manifest
    }

    /// Removes the objects of a file, if there are any.
    ///
    /// # Errors
    /// The first failure; the removal of the others is still tried.
    pub fn remove(&self, of: Objects) -> Result<(), TargetError> {
        let journal = match self.targets.first().and_then(|original| original.first()) {
            Some(target) if self.common.copies.is_some() => target.remove_extents(of),
            _ => Ok(()),
        };
        // Remove the original last: its `ID.manifest` shows to which file the other objects belong.
        let removed =
            self.targets.iter().enumerate().rev().map(|(number, targets)| {
                ObjectSet::remove(targets, Objects { id: copy_id(of.id, number), ..of })
            });
        removed.fold(journal, Result::and)
    }
}

/// The layouts of a file's copies as a plan gives them, with the plan's target numbers.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'p> {
    layout: &'p Layout,
    layouts: &'p [Layout],
    overlay: Option<&'p Overlay>,
    chosen: [usize; MAX_COPIES - 1],
}

impl<'p> Shape<'p> {
    /// The shape that a rule gives the file at this absolute path; `None` if the rule does not
    /// match or has no layouts.
    pub fn of(rule: &'p Rule, path: &Path) -> Option<Self> {
        let layout = rule.choose(path)?;
        let mut chosen = [0; MAX_COPIES - 1];
        let copies = rule.overlay.iter().flat_map(|overlay| &overlay.copies);
        for (index, copy) in chosen.iter_mut().zip(copies) {
            *index = copy.spread.index(&rule.pattern, path, copy.layouts.len())?;
        }
        Some(Self { layout, layouts: &rule.layouts, overlay: rule.overlay.as_ref(), chosen })
    }

    /// The original's layout.
    pub fn layout(&self) -> &'p Layout {
        self.layout
    }

    /// The kind and settings of the extra copies, if there are any.
    pub fn overlay(&self) -> Option<&'p Overlay> {
        self.overlay
    }

    /// The extra copies, from copy 1 on, with the layout of each.
    pub fn copies(&self) -> impl Iterator<Item = (&'p CopySpec, &'p Layout)> + use<'p> {
        let copies = self.overlay.into_iter().flat_map(|overlay| &overlay.copies).zip(self.chosen);
        copies.filter_map(|(copy, index)| Some((copy, copy.layouts.get(index)?)))
    }

    /// The layouts of the copies that hold all bytes once everything is copied: the original and
    /// replicas.
    pub fn whole_layouts(&self) -> impl Iterator<Item = &'p Layout> + use<'p> {
        let replicas = self.overlay.is_some_and(|overlay| overlay.kind == OverlayKind::Replicas);
        let copies = self.copies().filter(move |_| replicas).map(|(_, layout)| layout);
        std::iter::once(self.layout).chain(copies)
    }
}

/// The shape of a file with one copy.
impl<'p> From<&'p Layout> for Shape<'p> {
    fn from(layout: &'p Layout) -> Self {
        let layouts = std::slice::from_ref(layout);
        Self { layout, layouts, overlay: None, chosen: [0; MAX_COPIES - 1] }
    }
}
