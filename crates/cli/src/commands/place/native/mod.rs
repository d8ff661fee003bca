//! `stripewise place --native`: gives directories and files native layouts of their file system, so
//! that programs run without stripewise.
//!
//! Protocol: `docs/decisions/0009-native-migration.md`.

mod directories;
mod former;
mod maker;
mod show;
mod undo;
mod wanted;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use stripewise_cluster::Plan;
use stripewise_console::progress;
use stripewise_datapath::migrate::Goal;
use stripewise_datapath::parallel::{in_parallel, jobs_usual};
use stripewise_drivers::{Actual, Driver};
use stripewise_native::NativeLayout;

use super::Args;
use super::find::{Candidate, State, find_all};
use crate::copying::{Manner, Move, migrate_all};
use crate::managed;
use directories::{Directory, directories};
pub use former::NAME as RECORD;
use former::{Change, Former};
use maker::WithLayout;
use wanted::Site;

/// An existing file with its planned layout, or why it cannot have one.
struct Planned<'a> {
    file: Candidate<'a>,
    wanted: Result<WithLayout<'a>, String>,
    /// The file has the layout already.
    there: bool,
    /// The file's complete present setting, if the file system reports one.
    exact: Option<String>,
}

/// Places a plan natively, or with `--undo` reverts that. A failure does not stop the rest.
///
/// # Errors
/// No single file system can hold the plan, or a file does not exist; then nothing was changed.
pub fn run(plan: &Plan, args: &Args) -> anyhow::Result<ExitCode> {
    let site = Site::of(plan)?;
    let runtime = managed::runtime(None);
    let looking = progress::looking(args.quiet);
    let found = find_all(&runtime, plan, &args.files)?;
    let directories = directories(&site, &found, &args.files);
    if !args.dry_run {
        directories.iter().for_each(Directory::sweep);
    }
    if args.undo {
        looking.finish_and_clear();
        return undo::run(&site, &runtime, found, &directories, args);
    }
    let files = plan_files(&site, found, &directories)?;
    looking.finish_and_clear();
    if args.dry_run {
        return show::plan(&site, &directories, &files, args.json);
    }
    remember(&site, &directories, &files)?;
    let prepared = place_directories(&site, &directories, args);
    let moves: Vec<Move<'_>> = files.iter().filter_map(Planned::as_move).collect();
    let total = files.iter().filter(|file| !file.there).map(|file| file.file.size_bytes).sum();
    let manner = Manner { verb: "placed", jobs: args.jobs, quiet: args.quiet };
    let (mut done, code) = migrate_all(&runtime, &moves, total, manner);
    done.extend(files.iter().filter_map(Planned::impossible));
    let failed = prepared.iter().chain(&done).any(|entry| entry.get("error").is_some());
    show::done(&prepared, &done, args)?;
    Ok(if failed { ExitCode::FAILURE } else { code })
}

impl Planned<'_> {
    /// Files that have the layout are included: a run that was killed at its very end may have left
    /// something to finish.
    fn as_move(&self) -> Option<Move<'_>> {
        let maker = self.wanted.as_ref().ok()?;
        let scheme = Some(self.file.scheme);
        let size_bytes = self.file.size_bytes;
        Some(Move { path: &self.file.path, size_bytes, goal: Goal::Native(maker), scheme })
    }

    fn as_change(&self) -> Change<'_> {
        let name = self.file.path.file_name().and_then(|name| name.to_str());
        Change { pattern: &self.file.rule.pattern, file: name.zip(self.exact.as_deref()) }
    }

    fn impossible(&self) -> Option<Value> {
        let (path, why) = (self.file.path.display().to_string(), self.wanted.as_ref().err()?);
        eprintln!("stripewise: {path}: stays as it is: {why}");
        Some(json!({ "path": path, "scheme": self.file.scheme, "error": why }))
    }
}

/// Plans the layout of every existing file: that of new files in its directory, if these have a
/// single layout.
fn plan_files<'a>(
    site: &'a Site<'a>,
    found: Vec<Candidate<'a>>,
    directories: &[Directory<'_>],
) -> anyhow::Result<Vec<Planned<'a>>> {
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
        let wanted = match beside {
            Some(layout) => Ok(layout.clone()),
            None => site.of_file(file.rule, &file.path, file.size_bytes),
        };
        let wanted = wanted
            .map(|layout| WithLayout { driver: &*site.driver, layout })
            .map_err(|why| format!("{} cannot give it its layout because {why}", site.system.title()));
        let actual = actual?;
        let there = wanted.as_ref().is_ok_and(|maker| maker.is_met_by(&actual));
        Ok(Planned { file, wanted, there, exact: actual.exact })
    };
    found.into_iter().zip(looked).map(plan_one).collect()
}

/// Records the former settings of every directory in which something will change. This happens
/// before any directory changes, because a directory may inherit its setting from one above it.
fn remember(site: &Site<'_>, directories: &[Directory<'_>], files: &[Planned<'_>]) -> anyhow::Result<()> {
    let mut changes: BTreeMap<PathBuf, Vec<Change<'_>>> = BTreeMap::new();
    for dir in directories {
        if let Ok(layout) = &dir.wanted
            && !has(&*site.driver, dir, layout)?
        {
            dir.make()?;
            let of_rules = dir.rules.iter().map(|rule| Change { pattern: &rule.pattern, file: None });
            changes.entry(dir.path.canonicalize()?).or_default().extend(of_rules);
        }
    }
    for planned in files.iter().filter(|planned| !planned.there && planned.wanted.is_ok()) {
        let parent = planned.file.path.parent().unwrap_or(Path::new("/"));
        changes.entry(parent.to_owned()).or_default().push(planned.as_change());
    }
    for (path, changes) in changes {
        Former::remember(&path, &site.driver.read_back(&path)?, changes)?;
    }
    Ok(())
}

/// Sets the layouts of directories, and returns the results as JSON.
fn place_directories(site: &Site<'_>, directories: &[Directory<'_>], args: &Args) -> Vec<Value> {
    let place = |dir: &Directory<'_>| {
        let path = dir.path.display().to_string();
        match place_directory(site, dir) {
            Ok(Prepared::AlreadyThere(layout)) => {
                json!({ "path": path, "layout": layout.to_string(), "prepared": false })
            }
            Ok(Prepared::Done(layout)) => {
                if !args.quiet && !args.json {
                    println!("{path}: new files get {layout}");
                    dir.kept_lines().for_each(|line| println!("{line}"));
                }
                json!({ "path": path, "layout": layout.to_string(), "prepared": true })
            }
            Err(error) => {
                eprintln!("stripewise: {path}: new files get what they got before: {error:#}");
                json!({ "path": path, "error": format!("{error:#}") })
            }
        }
    };
    directories.iter().map(place).collect()
}

/// Result for a directory.
enum Prepared<'a> {
    AlreadyThere(&'a NativeLayout),
    Done(&'a NativeLayout),
}

fn place_directory<'a>(site: &Site<'_>, dir: &'a Directory<'_>) -> anyhow::Result<Prepared<'a>> {
    let layout = dir.wanted.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
    if has(&*site.driver, dir, layout)? {
        return Ok(Prepared::AlreadyThere(layout));
    }
    site.driver.prepare(&dir.path, layout)?;
    Ok(Prepared::Done(layout))
}

/// Returns whether a directory gives its new files `layout` already.
fn has(driver: &dyn Driver, dir: &Directory<'_>, layout: &NativeLayout) -> anyhow::Result<bool> {
    if !dir.path.is_dir() {
        return Ok(false);
    }
    Ok(driver.has(&driver.read_back(&dir.path)?, layout))
}
