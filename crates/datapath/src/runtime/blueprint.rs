//! The specification of a new file, with its targets open: everything except its id and name.

use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::{Cluster, CopySpec, MAX_COPIES, Overlay, OverlayKind, Plan, Rule};
use stripewise_layout::Layout;
use stripewise_sys::{Dir, Identity};
use stripewise_target::{FileId, ObjectSet, Objects, Target, TargetError, TargetRef};

use super::process::Runtime;
use crate::error::{Errno, Result};
use crate::manifest::{Copies, ExtraCopy, Manifest, copy_id};
use crate::{notice, paths};

/// The layout of one copy, restricted to the targets it uses, and these targets.
pub(crate) type Placed = (Layout, Vec<Arc<Target>>);

/// The specification of a file with all its copies.
#[derive(Clone)]
pub(crate) struct Blueprint {
    original: Placed,
    extra: Vec<Placed>,
    /// The settings of the copies in `extra`. Their ids derive from the file's id, see
    /// [`copy_id`].
    copies: Option<Box<Copies>>,
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
        Shape::of(self.plan.as_ref()?.rule_for(path)?, path)
    }

    /// Whether the plan has layouts for a new file at this absolute path. Does not allocate, and
    /// takes almost no time for paths outside the plan's directories.
    pub fn is_planned(&self, path: &Path) -> bool {
        let has_layouts = |plan: &Plan| plan.rule_for(path).is_some_and(|rule| !rule.layouts.is_empty());
        self.reach.has(path.as_os_str().as_encoded_bytes()) && self.plan().is_some_and(has_layouts)
    }

    /// The shape of a file that an open would create. The plan's rules are matched against the path
    /// as given, then against the path with symbolic links followed. `None` if no rule matches or
    /// no file can be created.
    ///
    /// # Errors
    /// The links could not be followed: the file may match a rule of the plan.
    pub(super) fn shape_for_open(&self, dir: Dir<'_>, path: &Path) -> Result<Option<Shape<'_>>> {
        let Some(plan) = self.plan() else { return Ok(None) };
        if plan.rules.iter().all(|rule| rule.layouts.is_empty()) || path.as_os_str().is_empty() {
            return Ok(None);
        }
        let absolute = paths::absolute(self.sys(), dir, path)?;
        if let Some(rule) = plan.rule_for(&absolute) {
            return Ok(Shape::of(rule, &absolute));
        }
        match paths::canonical(self.sys(), dir, path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
            followed => Ok(self.shape_for(&followed?)),
        }
    }

    /// Opens the targets of a shape.
    pub(crate) fn resolve(&self, shape: Shape<'_>, missing: Missing) -> Result<Blueprint, TargetError> {
        let original = self.place(shape.layout())?;
        let (Some(overlay), Some(plan)) = (shape.overlay(), self.plan()) else {
            return Ok(Blueprint::single(original));
        };
        let (mut extra, mut list) = (Vec::new(), Vec::new());
        for (spec, layout) in shape.copies() {
            match self.place(layout) {
                Ok(placed) => {
                    list.push(extra_copy(&plan.cluster, spec, layout, &placed));
                    extra.push(placed);
                }
                Err(error) if missing == Missing::LeaveOut => {
                    let name = &spec.name;
                    notice::warn_once(&format!("{error}; new files have no copy {name} there"));
                }
                Err(error) => return Err(error),
            }
        }
        if extra.is_empty() {
            return Ok(Blueprint::single(original));
        }
        let copies = Copies {
            kind: overlay.kind,
            lazy_close: overlay.lazy_close,
            durability: overlay.durability,
            background: overlay.background,
            procs: overlay.procs,
            procs_per_node: overlay.procs_per_node,
            servers: servers_of(&plan.cluster, shape.layouts()).max(original.1.len() as u32),
            list,
        };
        Ok(Blueprint { original, extra, copies: Some(Box::new(copies)) })
    }

    /// The blueprint of an existing file.
    pub(crate) fn blueprint_of(&self, manifest: &Manifest) -> Result<Blueprint, TargetError> {
        let place = |layout: &Layout, targets: &[TargetRef]| Ok((layout.clone(), self.targets_of(targets)?));
        let mut copies = manifest.all_copies().map(|copy| place(copy.layout, copy.targets));
        let original = copies.next().unwrap_or_else(|| place(&manifest.layout, &manifest.targets))?;
        let extra = copies.collect::<Result<_, TargetError>>()?;
        Ok(Blueprint { original, extra, copies: manifest.copies.clone() })
    }

    /// Opens the targets that a manifest names.
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

    fn place(&self, layout: &Layout) -> Result<Placed, TargetError> {
        let (layout, used) = layout.compacted();
        let targets = used.iter().map(|&index| self.targets.planned(index)).collect::<Result<_, _>>()?;
        Ok((layout, targets))
    }
}

/// The manifest entry of an extra copy that was placed; `layout` is its layout over the plan's
/// targets.
fn extra_copy(cluster: &Cluster, spec: &CopySpec, layout: &Layout, (placed, targets): &Placed) -> ExtraCopy {
    let count = targets.len() as u32;
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
        servers: servers_of(cluster, &spec.layouts).max(count),
        pool_servers: if pool_servers.iter().all(|&servers| servers == 0) { Vec::new() } else { pool_servers },
        targets: references(targets),
        layout: placed.clone(),
    }
}

fn servers_of(cluster: &Cluster, layouts: &[Layout]) -> u32 {
    cluster.servers_of(layouts).len() as u32
}

fn references(targets: &[Arc<Target>]) -> Vec<TargetRef> {
    targets.iter().map(|target| target.reference()).collect()
}

impl Blueprint {
    fn single(original: Placed) -> Self {
        Self { original, extra: Vec::new(), copies: None }
    }

    /// The copies of file `id`, the original first: the id, layout and targets of each.
    pub fn copies(&self, id: FileId) -> impl Iterator<Item = (FileId, &Placed)> {
        let all = std::iter::once(&self.original).chain(&self.extra);
        all.enumerate().map(move |(number, placed)| (copy_id(id, number), placed))
    }

    pub fn original(&self) -> &Placed {
        &self.original
    }

    /// The copies that hold all bytes once everything is copied: the original and replicas.
    pub fn whole_copies(&self) -> impl Iterator<Item = &Placed> {
        let cache = |copies: &Copies| matches!(copies.kind, OverlayKind::Cache { .. });
        let whole = if self.copies.as_deref().is_some_and(cache) { 0 } else { self.extra.len() };
        std::iter::once(&self.original).chain(&self.extra[..whole])
    }

    /// A text that identifies the blueprint: everything except ids.
    pub fn description(&self) -> String {
        let placed = |(layout, targets): &Placed| {
            let targets: Vec<&str> = targets.iter().map(|target| target.id()).collect();
            format!("{:?} {targets:?}", layout.regions())
        };
        let mut text = placed(&self.original);
        if let Some(copies) = &self.copies {
            let names: Vec<&str> = copies.list.iter().map(|copy| copy.name.as_str()).collect();
            let extra: Vec<_> = self.extra.iter().map(placed).collect();
            let Copies { kind, lazy_close, durability, .. } = &**copies;
            text.push_str(&format!(" {kind:?} {lazy_close} {durability:?} {names:?} {extra:?}"));
        }
        text
    }

    /// The manifest of file `id`.
    pub fn manifest(&self, id: FileId, path: &Path, created: String, anchor: Identity) -> Manifest {
        let mut copies = self.copies.clone();
        let list = copies.iter_mut().flat_map(|copies| &mut copies.list);
        for (number, copy) in (1..).zip(list) {
            copy.id = copy_id(id, number);
        }
        Manifest {
            id,
            pending_truncate: None,
            path: path.to_string_lossy().into_owned(),
            created,
            anchor,
            targets: references(&self.original.1),
            layout: self.original.0.clone(),
            copies,
        }
    }

    /// Removes the objects of a file, if there are any.
    ///
    /// # Errors
    /// The first failure; the removal of the others is still tried.
    pub fn remove(&self, of: Objects) -> Result<(), TargetError> {
        let journal = match (&self.copies, self.original.1.first()) {
            (Some(_), Some(target)) => target.remove_extents(of),
            _ => Ok(()),
        };
        // Remove the original last: its `ID.manifest` shows to which file the other objects belong.
        let copies: Vec<_> = self.copies(of.id).collect();
        let removed =
            copies.into_iter().rev().map(|(id, (_, targets))| ObjectSet::remove(targets, Objects { id, ..of }));
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

    pub(super) fn layouts(&self) -> &'p [Layout] {
        self.layouts
    }
}

/// The shape of a file with one copy.
impl<'p> From<&'p Layout> for Shape<'p> {
    fn from(layout: &'p Layout) -> Self {
        let layouts = std::slice::from_ref(layout);
        Self { layout, layouts, overlay: None, chosen: [0; MAX_COPIES - 1] }
    }
}
