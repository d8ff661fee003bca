//! The files, placed as their plan says.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use stripewise_cluster::{CopySpec, Plan, Rule};
use stripewise_layout::Layout;

use crate::SimError;
use crate::overlay::{Decider, Overlay};
use crate::placed::Placed;
use crate::process::Handle;

/// A file.
#[derive(Debug)]
pub(crate) struct File {
    /// Per copy, the number of its [`Placed`], the original first.
    pub copies: Box<[u32]>,
    /// Per copy, the number of objects of the copies before it.
    pub base: Box<[u32]>,
    /// Number of objects of all copies.
    pub objects: u32,
    /// `None` if the file has a single copy.
    pub overlay: Option<Box<Overlay>>,
}

/// All files, and the layouts that they share.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub files: Vec<File>,
    pub placed: Vec<Placed>,
}

/// What the files of one plan share: layouts, identified by their address, and the deciders of
/// files with the same layouts.
#[derive(Default)]
struct Known {
    layouts: HashMap<*const Layout, u32>,
    deciders: HashMap<Vec<u32>, Rc<Decider>>,
}

impl Files {
    /// The placement of a copy of a file.
    #[inline]
    pub fn placed_of(&self, handle: Handle, copy: usize) -> &Placed {
        let placed = handle.single.unwrap_or_else(|| self.files[handle.file as usize].copies[copy]);
        &self.placed[placed as usize]
    }

    /// The number of objects of the copies before this one.
    #[inline]
    pub fn base_of(&self, handle: Handle, copy: usize) -> usize {
        if handle.single.is_some() { 0 } else { self.files[handle.file as usize].base[copy] as usize }
    }

    /// Adds the files at these paths; `procs` is (p, c).
    pub fn open(
        &mut self,
        plan: &Plan,
        paths: &[impl AsRef<Path>],
        servers: usize,
        procs: (u32, u32),
    ) -> Result<(), SimError> {
        let mut known = Known::default();
        let first = self.files.len();
        for path in paths {
            match self.file(plan, path.as_ref(), servers, procs, &mut known) {
                Ok(file) => self.files.push(file),
                Err(error) => {
                    self.files.truncate(first);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        plan: &Plan,
        path: &Path,
        servers: usize,
        procs: (u32, u32),
        known: &mut Known,
    ) -> Result<File, SimError> {
        let not_placed = || {
            let path = path.display();
            SimError(format!(
                "{path}: no rule of the plan places it: plan for a trace with this file, or leave it out"
            ))
        };
        let rule = plan.rule_for(path).ok_or_else(not_placed)?;
        let original = rule.choose(path).ok_or_else(not_placed)?;
        let (specs, mut copies) = (rule.copies_for(path).map(|(spec, _)| spec).collect::<Vec<_>>(), Vec::new());
        for layout in std::iter::once(original).chain(rule.copies_for(path).map(|(_, layout)| layout)) {
            if let Some(target) = layout.targets().find(|&target| target as usize >= servers) {
                let path = path.display();
                let text = format!("{path}: its layout uses server {target} of {servers}: make the plan anew");
                return Err(SimError(text));
            }
            copies.push(self.placed(layout, known));
        }
        let (mut base, mut objects) = (Vec::with_capacity(copies.len()), 0);
        for &copy in &copies {
            base.push(objects);
            objects += self.placed[copy as usize].servers.len() as u32;
        }
        let overlay = self.overlay(plan, rule, &copies, &specs, procs, known)?;
        Ok(File { copies: copies.into(), base: base.into(), objects, overlay })
    }

    fn placed(&mut self, layout: &Layout, known: &mut Known) -> u32 {
        *known.layouts.entry(layout).or_insert_with(|| {
            self.placed.push(Placed::new(layout));
            self.placed.len() as u32 - 1
        })
    }

    fn overlay(
        &self,
        plan: &Plan,
        rule: &Rule,
        copies: &[u32],
        specs: &[&CopySpec],
        procs: (u32, u32),
        known: &mut Known,
    ) -> Result<Option<Box<Overlay>>, SimError> {
        let Some(spec) = rule.overlay.as_ref().filter(|_| copies.len() > 1) else { return Ok(None) };
        let decider = match known.deciders.get(copies) {
            Some(decider) => Rc::clone(decider),
            None => {
                let placed: Vec<&Placed> = copies.iter().map(|&copy| &self.placed[copy as usize]).collect();
                let new = Rc::new(Decider::new(plan, spec, &placed, specs, spread_over(rule), procs)?);
                known.deciders.insert(copies.to_vec(), Rc::clone(&new));
                new
            }
        };
        Ok(Some(Box::new(Overlay::new(spec, decider, copies.len(), procs.0))))
    }
}

/// Number of servers over which the originals of a rule's files are spread.
fn spread_over(rule: &Rule) -> usize {
    let mut targets: Vec<u32> = rule.layouts.iter().flat_map(Layout::targets).collect();
    targets.sort_unstable();
    targets.dedup();
    targets.len()
}
