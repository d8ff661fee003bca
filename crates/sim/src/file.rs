//! The files, placed as their plan says.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::rc::Rc;

use stripewise_cluster::{Plan, Rule, RuleIndex};
use stripewise_layout::Layout;

use crate::SimError;
use crate::overlay::{Decider, Overlay};
use crate::placed::Placed;

#[derive(Debug)]
pub(crate) enum File {
    /// The file has one copy: the number of its [`Placed`].
    Single(u32),
    /// The file has several copies.
    Copies(Box<Overlay>),
}

/// All files, and the layouts that those with one copy share.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub files: Vec<File>,
    placed: Vec<Placed>,
}

/// What the files of one plan share, identified by the addresses of their layouts.
#[derive(Default)]
pub(crate) struct Known {
    placed: HashMap<*const Layout, u32>,
    deciders: HashMap<Vec<*const Layout>, Rc<Decider>>,
}

impl Files {
    /// The copies of a file that has several.
    pub fn overlay(&mut self, file: u32) -> &mut Overlay {
        match &mut self.files[file as usize] {
            File::Copies(overlay) => overlay,
            File::Single(_) => unreachable!("the file has one copy"),
        }
    }

    /// The placement of a copy of a file, and the number of objects of the copies before it.
    #[inline]
    pub fn placed_of(&self, file: u32, copy: usize) -> (&Placed, usize) {
        match &self.files[file as usize] {
            File::Single(placed) => (&self.placed[*placed as usize], 0),
            File::Copies(overlay) => (&overlay.by.placed[copy], overlay.by.first_target[copy]),
        }
    }

    /// The numbers of objects and copies of a file.
    pub fn size(&self, file: u32) -> (usize, usize) {
        match &self.files[file as usize] {
            File::Single(placed) => (self.placed[*placed as usize].servers.len(), 1),
            File::Copies(overlay) => (overlay.by.objects, overlay.by.placed.len()),
        }
    }

    /// Places a file as a plan says; `procs` is (p, c), and `servers` the number of servers.
    pub fn place(
        &mut self,
        (plan, rules): (&Plan, &RuleIndex),
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
        let rule = rules.rule_for(plan, path).ok_or_else(not_placed)?;
        let original = rule.choose(path).ok_or_else(not_placed)?;
        let (specs, others): (Vec<_>, Vec<_>) = rule.copies_for(path).unzip();
        let layouts: Vec<&Layout> = std::iter::once(original).chain(others).collect();
        if let Some(target) =
            layouts.iter().flat_map(|layout| layout.targets()).find(|&t| t as usize >= servers)
        {
            let path = path.display();
            let text = format!("{path}: its layout uses server {target} of {servers}: make the plan anew");
            return Err(SimError(text));
        }
        let Some(spec) = rule.overlay.as_ref().filter(|_| layouts.len() > 1) else {
            let placed = *known.placed.entry(original).or_insert_with(|| {
                self.placed.push(Placed::new(original));
                self.placed.len() as u32 - 1
            });
            return Ok(File::Single(placed));
        };
        let key = layouts.iter().map(|&layout| std::ptr::from_ref(layout)).collect();
        let decider = match known.deciders.entry(key) {
            Entry::Occupied(decider) => Rc::clone(decider.get()),
            Entry::Vacant(new) => {
                let placed = layouts.iter().map(|layout| Placed::new(layout)).collect();
                let decider = Decider::new(plan, spec, placed, &specs, spread_over(rule), procs)?;
                Rc::clone(new.insert(Rc::new(decider)))
            }
        };
        Ok(File::Copies(Box::new(Overlay::new(spec, decider, procs.0))))
    }
}

/// Number of servers over which the originals of a rule's files are spread.
fn spread_over(rule: &Rule) -> usize {
    let mut targets: Vec<u32> = rule.layouts.iter().flat_map(Layout::targets).collect();
    targets.sort_unstable();
    targets.dedup();
    targets.len()
}
