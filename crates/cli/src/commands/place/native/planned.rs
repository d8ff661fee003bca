//! Determines what a plan asks of a file system: the directories in which new files are created,
//! the layout that each directory gives them, and the layouts of existing files.

use std::collections::{BTreeMap, HashMap};
use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use stripewise_cluster::Rule;
use stripewise_cluster::pattern::match_path;
use stripewise_datapath::migrate::Goal;
use stripewise_datapath::parallel::{in_parallel, jobs_usual};
use stripewise_drivers::{Actual, Driver, TRIAL_PREFIX};
use stripewise_native::NativeLayout;

use super::super::find::{Candidate, State, expand};
use super::former::Change;
use super::maker::{NativeMaker, Wanted};
use super::site::Site;
use crate::copying::Move;

/// A directory in which new files of some rules are created.
pub struct Directory<'a> {
    pub path: PathBuf,
    pub rules: Vec<&'a Rule>,
    /// The layout of new files, or why no single layout fits.
    pub wanted: Result<NativeLayout, String>,
    /// Patterns of files that are to stay as they are, but get the layout as well when they are
    /// recreated.
    pub kept: Vec<&'a str>,
}

impl Directory<'_> {
    /// Returns whether the directory gives its new files `layout` already.
    pub fn has(&self, driver: &dyn Driver, layout: &NativeLayout) -> anyhow::Result<bool> {
        if !self.path.is_dir() {
            return Ok(false);
        }
        Ok(driver.has(&driver.read_back(&self.path)?, layout))
    }

    /// Creates the directory if it is missing. Its parent must exist.
    pub fn make(&self) -> anyhow::Result<()> {
        if !self.path.is_dir() {
            std::fs::create_dir(&self.path)
                .with_context(|| format!("{} cannot be made", self.path.display()))?;
        }
        Ok(())
    }

    /// Removes trial files and directories left by drivers that were killed.
    pub fn sweep(&self) {
        for trial in entries(&self.path).filter(|entry| is_trial(entry.file_name().as_ref())) {
            if trial.file_type().is_ok_and(|kind| kind.is_dir()) {
                // A driver creates a file in such a directory, and moves it away empty.
                entries(&trial.path()).for_each(|inside| remove_if_empty(&inside));
                // A leftover is harmless.
                let _ = std::fs::remove_dir(trial.path());
            } else {
                remove_if_empty(&trial);
            }
        }
    }

    /// Returns a line for each pattern whose files get the layout although the plan leaves them as
    /// they are.
    pub fn kept_lines(&self) -> impl Iterator<Item = String> {
        let path = self.path.display();
        self.kept.iter().map(move |pattern| {
            format!("{path}: so do new files of {pattern}, which the plan leaves as they are")
        })
    }
}

fn entries(dir: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    std::fs::read_dir(dir).into_iter().flatten().flatten()
}

/// Removes a file without bytes.
fn remove_if_empty(file: &DirEntry) {
    if file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0) {
        // A leftover is harmless.
        let _ = std::fs::remove_file(file.path());
    }
}

/// Returns whether a driver created the file or directory, or a directory above it, for a trial.
pub fn is_trial(path: &Path) -> bool {
    path.iter().any(|name| name.as_bytes().starts_with(TRIAL_PREFIX.as_bytes()))
}

/// Returns all directories of a plan, in order; if `given` is not empty, only those that are in it
/// or below one in it.
pub fn directories<'a>(site: &Site<'a>, found: &[Candidate<'a>], given: &[PathBuf]) -> Vec<Directory<'a>> {
    let mut rules_of: BTreeMap<PathBuf, Vec<&'a Rule>> = BTreeMap::new();
    for rule in &site.plan.rules {
        let here = |path: &PathBuf| is_below(path, given) && !is_trial(path);
        for path in of_pattern(&rule.pattern).into_iter().filter(here) {
            rules_of.entry(path).or_default().push(rule);
        }
    }
    let directory = |(path, rules): (PathBuf, Vec<&'a Rule>)| {
        let (rules, kept): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| !rule.layouts.is_empty());
        let wanted = one_of(site, &rules, &path, found);
        (!rules.is_empty()).then(|| Directory {
            wanted,
            path,
            rules,
            kept: kept.into_iter().map(|rule| rule.pattern.as_str()).collect(),
        })
    };
    rules_of.into_iter().filter_map(directory).collect()
}

/// Returns the single layout that all rules require in a directory.
fn one_of(
    site: &Site<'_>,
    rules: &[&Rule],
    dir: &Path,
    found: &[Candidate<'_>],
) -> Result<NativeLayout, String> {
    let mut first: Option<(&Rule, NativeLayout)> = None;
    for &rule in rules {
        let here = |file: &&Candidate<'_>| std::ptr::eq(file.rule, rule) && file.path.parent() == Some(dir);
        let size_max = found.iter().filter(here).map(|file| file.size_bytes).max();
        let layout = site.of_rule(rule, size_max).map_err(|why| {
            format!("{} cannot give {} its layout because {why}", site.system.title(), rule.pattern)
        })?;
        match &first {
            Some((other, known)) if *known != layout => {
                return Err(format!(
                    "{} is to get {known}, {} {layout}, and a directory has one layout for all new files; give them \
                     directories of their own, or plan with `stripewise plan --native`",
                    other.pattern, rule.pattern
                ));
            }
            Some(_) => {}
            None => first = Some((rule, layout)),
        }
    }
    first.map(|(_, layout)| layout).ok_or_else(|| "no rule of the plan leads there".to_owned())
}

/// Returns the directories of the files that match a pattern: the existing ones and, for a pattern
/// without wildcards, one that does not exist yet.
fn of_pattern(pattern: &str) -> Vec<PathBuf> {
    let Some((parent, last)) = pattern.rsplit_once('/') else { return Vec::new() };
    let parent = if parent.is_empty() { "/" } else { parent };
    if pattern.contains("**") {
        let mut all = Vec::new();
        expand(pattern).iter().for_each(|path| add_below(path, &mut all));
        all.retain(|path| leads_into(pattern, parent, last, path));
        return all;
    }
    let mut found: Vec<PathBuf> = expand(parent).into_iter().filter(|path| path.is_dir()).collect();
    if found.is_empty() && !parent.contains(['*', '<']) {
        found.push(parent.replace('\\', "").into());
    }
    found
}

/// Returns whether files directly in the directory `path` can match a pattern with `**`.
fn leads_into(pattern: &str, parent: &str, last: &str, path: &Path) -> bool {
    let matches = |pattern: &str, path: &[u8]| match_path(pattern.as_bytes(), path, None).is_some();
    let directory = path.as_os_str().as_bytes();
    let deeper = last.find("**").map(|at| &pattern[..pattern.len() - last.len() + at + 2]);
    matches(parent, directory) || deeper.is_some_and(|up_to| matches(up_to, &[directory, b"/x"].concat()))
}

/// Adds a directory and all directories below it but those of trials, without following symbolic
/// links.
fn add_below(path: &Path, all: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        return;
    }
    all.push(path.to_owned());
    for entry in entries(path) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_trial(entry.file_name().as_ref()) {
            add_below(&entry.path(), all);
        }
    }
}

fn is_below(path: &Path, given: &[PathBuf]) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let below = |root: &PathBuf| {
        std::path::absolute(root).is_ok_and(|root| path.starts_with(root))
            || root.canonicalize().is_ok_and(|root| real.starts_with(root))
    };
    given.is_empty() || given.iter().any(below)
}

/// An existing file with its planned layout, or why it cannot have one.
pub struct Planned<'a> {
    pub file: Candidate<'a>,
    pub maker: Result<NativeMaker<'a>, String>,
    /// The file has the layout already.
    pub there: bool,
    /// The file's complete present setting, if the file system reports one.
    pub exact: Option<String>,
}

impl Planned<'_> {
    /// Returns the move of the file, if it can have the layout.
    ///
    /// Files that have the layout are included: a run that was killed at its very end may have left
    /// something to finish.
    pub fn as_move(&self) -> Option<Move<'_>> {
        let goal = Goal::Native(self.maker.as_ref().ok()?);
        Some(self.file.as_move(goal))
    }

    /// Returns what the directory's record keeps of the file.
    pub fn as_change(&self) -> Change<'_> {
        let name = self.file.path.file_name().and_then(|name| name.to_str());
        Change { pattern: &self.file.rule.pattern, file: name.zip(self.exact.as_deref()) }
    }

    /// Returns the error of a file that cannot have the layout, which is also printed.
    pub fn impossible(&self) -> Option<Value> {
        let (path, why) = (self.file.path.display().to_string(), self.maker.as_ref().err()?);
        eprintln!("stripewise: {path}: stays as it is: {why}");
        Some(json!({ "path": path, "scheme": self.file.rule.scheme, "error": why }))
    }
}

/// Plans the layout of every existing file: that of new files in its directory, if these have a
/// single layout. A file whose present layout cannot be read, or that the driver leaves alone, gets
/// none.
pub fn plan_files<'a>(
    site: &'a Site<'a>,
    found: Vec<Candidate<'a>>,
    directories: &[Directory<'_>],
) -> Vec<Planned<'a>> {
    let real = |dir: &'_ Directory<'_>| dir.path.canonicalize().ok();
    let by_path: HashMap<PathBuf, &Directory<'_>> =
        directories.iter().filter_map(|dir| Some((real(dir)?, dir))).collect();
    let look = |file: &Candidate<'_>| match file.state {
        State::Plain => site.driver.read_back(&file.path),
        _ => Ok(Actual::default()),
    };
    let looked = in_parallel(&found, jobs_usual(), look);
    let plan_one = |(file, actual): (Candidate<'a>, stripewise_drivers::Result<Actual>)| {
        let parent = file.path.parent().and_then(|parent| by_path.get(parent));
        let of_rule = |dir: &&&Directory<'_>| dir.rules.iter().any(|rule| std::ptr::eq(*rule, file.rule));
        let beside = parent.filter(of_rule).and_then(|dir| dir.wanted.as_ref().ok());
        let layout = match beside {
            Some(layout) => Ok(layout.clone()),
            None => site.of_file(file.rule, &file.path, file.size_bytes),
        };
        let maker = layout
            .map(|layout| NativeMaker { driver: &*site.driver, wanted: Wanted::Layout(layout) })
            .map_err(|why| format!("{} cannot give it its layout because {why}", site.system.title()));
        let actual = match actual {
            Ok(Actual { left_alone: Some(why), .. }) => Err(why),
            actual => actual.map_err(|error| error.to_string()),
        };
        match actual {
            Ok(actual) => {
                let there = maker.as_ref().is_ok_and(|maker| maker.is_met_by(&actual));
                Planned { file, maker, there, exact: actual.exact }
            }
            Err(why) => Planned { file, maker: Err(why), there: false, exact: None },
        }
    };
    found.into_iter().zip(looked).map(plan_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_driver_left_is_removed() {
        let top = tempfile::tempdir().unwrap();
        let trial = top.path().join(format!("{TRIAL_PREFIX}0"));
        std::fs::create_dir(&trial).unwrap();
        for empty in [trial.join("file"), top.path().join(format!("{TRIAL_PREFIX}1")), top.path().join("kept")]
        {
            std::fs::write(empty, "").unwrap();
        }
        let path = top.path().to_owned();
        Directory { path, rules: Vec::new(), wanted: Err(String::new()), kept: Vec::new() }.sweep();
        let left: Vec<_> = entries(top.path()).map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["kept"]);
    }

    #[test]
    fn directories_of_patterns() {
        let top = tempfile::tempdir().unwrap();
        for name in ["r1/deep", "r1/.stripewise-trial-0", "r22", "other", "a*b"] {
            std::fs::create_dir_all(top.path().join(name)).unwrap();
        }
        std::fs::write(top.path().join("file"), "").unwrap();
        for (pattern, expected) in [
            ("out.<n>", &[""][..]),
            ("r<n>/out", &["r1", "r22"]),
            ("r1/deep/x", &["r1/deep"]),
            ("**", &["", "a*b", "other", "r1", "r1/deep", "r22"]),
            ("r1/**", &["r1", "r1/deep"]),
            ("r**", &["", "r1", "r1/deep", "r22"]),
            ("**/deep/x", &["r1/deep"]),
            ("a\\*b/x", &["a*b"]),
            ("new/x", &["new"]),
            ("q<n>/x", &[]),
            ("file/x", &["file"]),
        ] {
            let escaped = stripewise_cluster::pattern::escape(top.path().to_str().unwrap());
            let mut found = of_pattern(&format!("{escaped}/{pattern}"));
            found.sort();
            let expected: Vec<_> = expected.iter().map(|name| top.path().join(name)).collect();
            let same = |(one, other): (&PathBuf, &PathBuf)| one.components().eq(other.components());
            assert!(
                found.len() == expected.len() && found.iter().zip(&expected).all(same),
                "{pattern}: {found:?}"
            );
        }
    }
}
