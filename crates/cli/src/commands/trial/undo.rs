//! The way back: the layouts that the files had before a try.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use stripewise_cluster::{Plan, RuleIndex, Spread};
use stripewise_cluster::{Rule, pattern};

use super::state::{Former, Trial};
use super::steps::{Step, Stop};
use crate::commands::place::find::{self, State};
use crate::commands::plan::present;
use crate::{files, managed};

/// Maximum number of files in one command line.
const FILES_PER_STEP: usize = 500;

/// Finds the layouts of the files that the plan moves, and writes those that are no plain files to
/// a plan of their own.
///
/// # Errors
/// A file has a layout that `place` cannot give back.
pub fn record(trial: &Trial, plan: &Plan) -> anyhow::Result<Former> {
    let (runtime, mut former) = (managed::runtime(Some(plan)), Former::default());
    let mut back = Plan { scheme: "former".to_owned(), cluster: plan.cluster.clone(), rules: Vec::new() };
    for file in find::find_data(&runtime, plan)? {
        match file.state {
            State::Plain => {}
            State::Placed => former.placed.push(file.path),
            State::Managed => {
                let path = file.path.display();
                let Some(manifest) = present::manifest_now(&runtime, &file.path)? else { continue };
                ensure!(
                    manifest.copies.is_none(),
                    "{path} has several copies, which cannot be brought back; turn it into a plain file with \
                     `stripewise export {path}`, or leave it out with --only"
                );
                let Some(layout) = present::layout_of(&manifest, &mut back.cluster)? else {
                    bail!(
                        "{path} is on servers that the plan's cluster does not have, so it could not be brought back; \
                         add them to the cluster file, or leave the file out with --only"
                    );
                };
                back.rules.push(Rule {
                    pattern: pattern::escape(&file.path.to_string_lossy()),
                    scheme: "former".to_owned(),
                    reason: "the layout from before a try".to_owned(),
                    predicted_s: 0.0,
                    elapsed_s: 0.0,
                    layouts: vec![layout],
                    spread: Spread::default(),
                    overlay: None,
                });
                former.managed.push(file.path);
            }
        }
    }
    if !back.rules.is_empty() {
        files::write_whole(&trial.former(), &back.to_toml())?;
    }
    Ok(former)
}

/// Gives all files of the plan the layouts back that they had. Files that came meanwhile become
/// plain files, or get the layout of the plan that the command ran over before.
///
/// # Errors
/// A step failed or was interrupted. The same again continues.
pub fn undo(trial: &Trial, quiet: bool) -> Result<(), Stop> {
    let quiet = quiet.then_some("--quiet");
    if trial.state.native {
        return Step::new(["place", "--native", "--undo", "--yes"])
            .with(quiet)
            .with([trial.plan()])
            .silently()
            .succeed();
    }
    let plan = files::plan(&trial.plan())?;
    let over = if trial.state.over { Some(files::plan(&trial.over())?) } else { None };
    let over_rules = over.as_ref().map(|over| (over, RuleIndex::of(over)));
    let has_place = |path: &PathBuf| {
        let rule = over_rules.as_ref().and_then(|(over, index)| index.rule_for(over, path));
        rule.is_some_and(|rule| !rule.layouts.is_empty())
    };
    let Former { placed, managed: was_managed } = &trial.state.former;
    let found = find::find_all(&managed::runtime(Some(&plan)), &plan, &[])?;
    let managed = found.into_iter().filter(|file| file.state != State::Plain).map(|file| file.path);
    let changed = managed.filter(|path| !placed.contains(path) && !was_managed.contains(path));
    let (new, plain): (Vec<PathBuf>, Vec<PathBuf>) = changed.partition(has_place);
    let is_there = |path: &&PathBuf| path.exists();
    let former: Vec<&PathBuf> = was_managed.iter().filter(is_there).collect();
    let place = |plan: PathBuf| Step::new(["place", "--yes"]).with(quiet).with([plan]);
    for paths in former.chunks(FILES_PER_STEP) {
        place(trial.former()).with(paths).silently().succeed()?;
    }
    for paths in new.chunks(FILES_PER_STEP) {
        place(trial.over()).with(paths).silently().succeed()?;
    }
    for paths in plain.chunks(FILES_PER_STEP) {
        if plan.rules.iter().any(|rule| rule.overlay.is_some()) {
            Step::new(["drain"]).with(quiet).with(paths).silently().succeed()?;
        }
        Step::new(["export"]).with(quiet).with(paths).silently().succeed()?;
    }
    Ok(())
}
