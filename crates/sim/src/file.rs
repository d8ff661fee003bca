//! The files: where each lies, as its plan says.

use std::collections::HashMap;
use std::path::Path;

use stripewise_cluster::{Plan, Rule};
use stripewise_layout::Layout;

use crate::SimError;
use crate::placed::Placed;

/// One file.
#[derive(Debug)]
pub(crate) struct File {
    /// Per copy, the number of its [`Placed`]: the original first.
    pub copies: Box<[u32]>,
}

/// All files, and the layouts that they share.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub files: Vec<File>,
    pub placed: Vec<Placed>,
}

impl Files {
    /// Adds the files at these paths.
    pub fn open(&mut self, plan: &Plan, paths: &[impl AsRef<Path>], servers: usize) -> Result<(), SimError> {
        // Many files share few layouts: of one plan, each is known by where it is.
        let mut known: HashMap<*const Layout, u32> = HashMap::new();
        for path in paths {
            let path = path.as_ref();
            let not_placed = || SimError::NotPlaced { path: path.display().to_string() };
            let rule = plan.rule_for(path).ok_or_else(not_placed)?;
            let original = rule.choose(path).ok_or_else(not_placed)?;
            let mut copies = Vec::with_capacity(1);
            for layout in std::iter::once(original).chain(layouts_of_copies(rule, path)) {
                if let Some(target) = layout.targets().find(|&target| target as usize >= servers) {
                    return Err(SimError::UnknownTarget { path: path.display().to_string(), target, servers });
                }
                let placed = &mut self.placed;
                copies.push(*known.entry(layout).or_insert_with(|| {
                    placed.push(Placed::new(layout));
                    placed.len() as u32 - 1
                }));
            }
            self.files.push(File { copies: copies.into() });
        }
        Ok(())
    }
}

fn layouts_of_copies<'a>(rule: &'a Rule, path: &'a Path) -> impl Iterator<Item = &'a Layout> {
    rule.copies_for(path).map(|(_, layout)| layout)
}
