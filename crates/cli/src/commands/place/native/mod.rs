//! `stripewise place --native`: gives directories and files native layouts of their file system, so
//! that programs run without stripewise.
//!
//! Protocol: `docs/decisions/0009-native-migration.md`.

mod former;
mod maker;
mod planned;
mod site;
mod undo;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use stripewise_cluster::Plan;
use stripewise_console::progress;
use stripewise_drivers::DriverError;
use stripewise_native::NativeLayout;

use super::args::Args;
use super::asking;
use super::find::find_all;
use crate::copying::{Move, migrate_all};
use crate::managed;
use crate::output::{self, human};
use former::{Change, Former};
use planned::{Directory, Planned, directories, is_trial, plan_files};
use site::Site;

/// Places a plan natively, or with `--undo` reverts that. A failure does not stop the rest.
///
/// Nothing changes if no single file system can hold the plan, or a file does not exist.
pub fn run(plan: &Plan, args: &Args) -> anyhow::Result<ExitCode> {
    let site = Site::of(plan)?;
    let runtime = managed::runtime(None);
    let looking = progress::looking(args.flags.quiet);
    let mut found = find_all(&runtime, plan, &args.files)?;
    found.retain(|file| !is_trial(&file.path));
    let directories = directories(&site, &found, &args.files);
    if !args.dry_run {
        directories.iter().for_each(Directory::sweep);
    }
    if args.undo {
        looking.finish_and_clear();
        return undo::run(&site, &runtime, found, &directories, args);
    }
    let files = plan_files(&site, found, &directories);
    looking.finish_and_clear();
    if args.dry_run {
        preview(&site, &directories, &files, args.flags.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let moved: Vec<_> = files.iter().filter(|planned| !planned.there).map(|planned| &planned.file).collect();
    asking::confirm(&moved, args)?;
    remember(&site, &directories, &files)?;
    let prepared = place_directories(&site, &directories, args);
    let moves: Vec<Move<'_>> = files.iter().filter_map(Planned::as_move).collect();
    let total = files.iter().filter(|file| !file.there).map(|file| file.file.size_bytes).sum();
    let (mut done, _) = migrate_all(&runtime, &moves, total, "placed", &args.flags);
    done.extend(files.iter().filter_map(Planned::impossible));
    let failed = prepared.iter().chain(&done).any(|entry| entry.get("error").is_some());
    undo::print(&prepared, &done, "placed", args)?;
    Ok(output::code(failed))
}

/// Records the former settings of every directory in which something will change. This happens
/// before any directory changes, because a directory may inherit its setting from one above it.
fn remember(site: &Site<'_>, directories: &[Directory<'_>], files: &[Planned<'_>]) -> anyhow::Result<()> {
    let mut changes: BTreeMap<PathBuf, Vec<Change<'_>>> = BTreeMap::new();
    for dir in directories {
        if let Ok(layout) = &dir.wanted
            && !dir.has(&*site.driver, layout)?
        {
            dir.make()?;
            let of_rules = dir.rules.iter().map(|rule| Change { pattern: &rule.pattern, file: None });
            changes.entry(dir.path.canonicalize()?).or_default().extend(of_rules);
        }
    }
    for planned in files.iter().filter(|planned| !planned.there && planned.maker.is_ok()) {
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
            Ok((layout, prepared)) => {
                if prepared && !args.flags.quiet && !args.flags.json {
                    println!("{path}: new files get {layout}");
                    dir.kept_lines().for_each(|line| println!("{line}"));
                }
                json!({ "path": path, "layout": layout.to_string(), "prepared": prepared })
            }
            Err(error) => {
                let is_halfway = matches!(error.downcast_ref(), Some(DriverError::NotPutBack { .. }));
                let state = if is_halfway { "" } else { "new files get what they got before: " };
                eprintln!("stripewise: {path}: {state}{error:#}");
                json!({ "path": path, "error": format!("{error:#}") })
            }
        }
    };
    directories.iter().map(place).collect()
}

/// Returns the layout of the directory's new files, and whether they did not get it before.
fn place_directory<'a>(site: &Site<'_>, dir: &'a Directory<'_>) -> anyhow::Result<(&'a NativeLayout, bool)> {
    let layout = dir.wanted.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
    let there = dir.has(&*site.driver, layout)?;
    if !there {
        site.driver.prepare(&dir.path, layout)?;
    }
    Ok((layout, !there))
}

fn preview(
    site: &Site<'_>,
    directories: &[Directory<'_>],
    files: &[Planned<'_>],
    as_json: bool,
) -> anyhow::Result<()> {
    let (mut dirs, mut listed, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for dir in directories {
        let path = dir.path.display().to_string();
        match &dir.wanted {
            Ok(layout) => {
                let there = dir.has(&*site.driver, layout)?;
                let word = if there { "get" } else { "would get" };
                lines.push(format!("{path}: new files {word} {layout}"));
                lines.extend(dir.kept_lines());
                dirs.push(json!({ "path": path, "layout": layout.to_string(), "prepared": there }));
            }
            Err(why) => {
                lines.push(format!("{path}: new files would get what they get now: {why}"));
                dirs.push(json!({ "path": path, "error": why }));
            }
        }
    }
    for planned in files {
        let (path, bytes) = (planned.file.path.display().to_string(), planned.file.size_bytes);
        let mut entry = json!({ "path": path, "scheme": planned.file.rule.scheme, "bytes": bytes, "placed": planned.there });
        match &planned.maker {
            Ok(maker) => {
                let word = if planned.there { "has" } else { "would get" };
                lines.push(format!("{path}: {}, {word} {}", human(bytes), maker.wanted));
                entry["layout"] = maker.wanted.to_string().into();
            }
            Err(why) => {
                lines.push(format!("{path}: {}, would stay as it is: {why}", human(bytes)));
                entry["error"] = why.as_str().into();
            }
        }
        listed.push(entry);
    }
    if as_json {
        return output::json(&json!({ "directories": dirs, "files": listed }));
    }
    lines.iter().for_each(|line| println!("{line}"));
    let move_bytes =
        files.iter().filter(|file| !file.there && file.maker.is_ok()).map(|file| file.file.size_bytes).sum();
    println!("{}: {} to copy", site.system.title(), human(move_bytes));
    Ok(())
}
