//! The shape of a new file: a layout for every copy, over the plan's targets.

use std::path::Path;

use stripewise_cluster::{CopySpec, MAX_COPIES, Overlay, OverlayKind, Rule};
use stripewise_layout::Layout;

/// The layouts of a file's copies as a plan gives them, with the plan's target numbers.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'p> {
    layout: &'p Layout,
    /// The original's layouts of all files of the rule.
    layouts: &'p [Layout],
    overlay: Option<&'p Overlay>,
    /// Per extra copy, the index of its layout.
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

    /// The original's layouts of all files of the rule.
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
