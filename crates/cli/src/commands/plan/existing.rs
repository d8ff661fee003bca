//! Finds the existing files that a plan for the workload could move. The trace need not name them:
//! a rule applies to all files whose names match its pattern.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::{Cluster, Plan, Rule, Spread};
use stripewise_console::progress;
use stripewise_datapath::Runtime;
use stripewise_layout::{Layout, constructors};
use stripewise_plan::workload::FileSet;
use stripewise_plan::{ExistingFile, Workload, sort_rules};
use stripewise_target::TargetRef;

use super::present::{layout_of, manifest_now};
use crate::commands::place::find::{State, find_data};
use crate::managed;

/// Stores in every set of the workload the files that `place` would move for a rule with another
/// layout.
pub fn find(workload: &mut Workload, cluster: &Cluster, quiet: bool) -> anyhow::Result<()> {
    // Which files a rule moves does not depend on its layout, unless they have that layout.
    let layouts = vec![constructors::on_one(0)?];
    let mut rules: Vec<Rule> = workload.file_sets.iter().map(|set| rule(set, layouts.clone())).collect();
    sort_rules(&mut rules);
    let plan = Plan { scheme: String::new(), cluster: cluster.clone(), rules };
    let runtime = managed::runtime(Some(&plan));
    let looking = progress::looking(quiet);
    let mut known = Known { runtime: &runtime, cluster, layouts: Vec::new() };
    let sets = workload.file_sets.iter_mut().map(|set| (set.pattern.clone(), set));
    let mut sets: HashMap<String, &mut FileSet> = sets.collect();
    for file in find_data(&runtime, &plan)? {
        let Some(set) = sets.get_mut(&file.rule.pattern) else { continue };
        let layout = if file.state == State::Plain { None } else { known.layout(&file.path)? };
        let index = layout.map(|layout| index_of(layout, &mut set.existing.layouts));
        let name: Arc<str> = file.path.to_string_lossy().into();
        set.existing.files.push(ExistingFile { name, size: file.size_bytes, layout: index });
    }
    looking.finish_and_clear();
    Ok(())
}

fn rule(set: &FileSet, layouts: Vec<Layout>) -> Rule {
    Rule {
        pattern: set.pattern.clone(),
        scheme: String::new(),
        reason: String::new(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts,
        spread: Spread::default(),
        overlay: None,
    }
}

/// The index of a layout among others, to which it is added if it is new.
fn index_of(layout: Layout, layouts: &mut Vec<Layout>) -> u32 {
    let known = layouts.iter().position(|known| *known == layout);
    known.unwrap_or_else(|| {
        layouts.push(layout);
        layouts.len() - 1
    }) as u32
}

/// The layouts of manifests with target numbers of the cluster.
struct Known<'a> {
    runtime: &'a Runtime,
    cluster: &'a Cluster,
    /// Targets and layout of a manifest, and the layout over servers of the cluster; `None` if the
    /// cluster has other directories.
    layouts: Vec<(Vec<TargetRef>, Layout, Option<Layout>)>,
}

impl Known<'_> {
    /// The layout of a managed file; `None` if no plan with one copy leaves the file there.
    fn layout(&mut self, path: &Path) -> anyhow::Result<Option<Layout>> {
        let manifest = manifest_now(self.runtime, path)?.filter(|manifest| manifest.copies.is_none());
        let Some(manifest) = manifest else { return Ok(None) };
        let is_it = |known: &&(Vec<TargetRef>, Layout, Option<Layout>)| {
            known.0 == manifest.targets && known.1 == manifest.layout
        };
        if let Some((.., layout)) = self.layouts.iter().find(is_it) {
            return Ok(layout.clone());
        }
        let mut cluster = self.cluster.clone();
        let layout = layout_of(&manifest, &mut cluster)?;
        let targets = cluster.targets();
        let is_here = |target: &TargetRef| {
            targets.iter().any(|known| known.name == target.name && known.path == target.path)
        };
        let layout = layout.filter(|_| manifest.targets.iter().all(is_here));
        let layout = layout.map(|layout| cluster.unfold(&layout, 0));
        self.layouts.push((manifest.targets, manifest.layout, layout.clone()));
        Ok(layout)
    }
}
