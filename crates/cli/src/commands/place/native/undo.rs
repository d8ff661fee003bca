//! `stripewise place --native --undo`: restores the former settings of directories, and rewrites
//! files with what their directories give.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::{Value, json};
use stripewise_datapath::Runtime;
use stripewise_datapath::migrate::Goal;
use stripewise_drivers::Driver;

use super::super::args::Args;
use super::super::find::Candidate;
use super::former::Former;
use super::maker::{NativeMaker, Wanted};
use super::planned::Directory;
use super::site::Site;
use crate::copying::{Move, migrate_all};
use crate::output;

/// A directory in which something was placed, and the files in it that were placed.
struct Placed<'a> {
    path: PathBuf,
    former: Former,
    files: Vec<Candidate<'a>>,
}

/// Reverts the placement of a plan. A directory's record is removed when all its files match it.
///
/// A record that cannot be read is an error before anything changes.
pub fn run(
    site: &Site<'_>,
    runtime: &Arc<Runtime>,
    found: Vec<Candidate<'_>>,
    directories: &[Directory<'_>],
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let placed = placed(found, directories)?;
    if args.dry_run {
        preview(&placed, args.flags.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut failed = false;
    let (mut back, mut done) = (Vec::new(), Vec::new());
    // Directories are restored before any file and from the top down, because a directory may
    // inherit its setting from one above it.
    let restored: Vec<_> = placed.iter().map(|dir| restore(&*site.driver, dir)).collect();
    for (dir, restored) in placed.iter().zip(restored) {
        let path = dir.path.display().to_string();
        match restored.and_then(|()| NativeMaker::inheriting(&*site.driver, &dir.path)) {
            Ok(maker) => {
                let (files, some_failed) = move_back(runtime, &maker, dir, args);
                failed |= some_failed;
                if !some_failed {
                    Former::forget(&dir.path)?;
                }
                done.extend(files);
                back.push(json!({ "path": path, "restored": true }));
            }
            Err(error) => {
                eprintln!("stripewise: {path}: {error:#}");
                back.push(json!({ "path": path, "error": format!("{error:#}") }));
                failed = true;
            }
        }
    }
    print(&back, &done, "restored", args)?;
    Ok(output::code(failed))
}

fn preview(placed: &[Placed<'_>], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let dir = |dir: &Placed<'_>| {
            let layout = dir.former.layout.as_ref().map(ToString::to_string);
            json!({ "path": dir.path.display().to_string(), "layout": layout, "files": dir.files.len() })
        };
        return output::json(&json!({ "directories": placed.iter().map(dir).collect::<Vec<_>>() }));
    }
    for Placed { path, former, files } in placed {
        let layout = former.layout.as_ref().map(ToString::to_string);
        let exact = || former.exact.as_ref().map(|exact| exact.replace('\n', " "));
        let layout = layout.or_else(exact).unwrap_or_else(|| "what the file system gives".to_owned());
        println!("{}: new files, and {} existing ones, would get {layout}", path.display(), files.len());
    }
    if placed.is_empty() {
        println!("nothing was placed natively where the plan's patterns lead");
    }
    Ok(())
}

fn placed<'a>(found: Vec<Candidate<'a>>, directories: &[Directory<'_>]) -> anyhow::Result<Vec<Placed<'a>>> {
    let mut paths: Vec<PathBuf> = directories.iter().filter_map(|dir| dir.path.canonicalize().ok()).collect();
    paths.extend(found.iter().filter_map(|file| file.path.parent().map(PathBuf::from)));
    paths.sort();
    paths.dedup();
    let mut placed = Vec::new();
    for path in paths {
        if let Some(former) = Former::of(&path)? {
            placed.push(Placed { path, former, files: Vec::new() });
        }
    }
    for file in found {
        let of_file = |dir: &&mut Placed<'_>| {
            file.path.parent() == Some(&*dir.path) && dir.former.patterns.contains(&file.rule.pattern)
        };
        if let Some(dir) = placed.iter_mut().find(of_file) {
            dir.files.push(file);
        }
    }
    Ok(placed)
}

/// Prints what was done; `verb` names it, for lines and as the key of each file's result.
pub fn print(directories: &[Value], files: &[Value], verb: &str, args: &Args) -> anyhow::Result<()> {
    if args.flags.json {
        output::json(&json!({ "directories": directories, "files": files }))?;
    } else if !args.flags.quiet {
        let count = |value: bool| files.iter().filter(|file| file[verb] == value).count();
        println!("{verb}: {}; in their layout already: {}", count(true), count(false));
    }
    Ok(())
}

/// Removes the directory's own layout, or restores its former one. The record in the directory
/// prevents its removal as an empty directory.
fn restore(driver: &dyn Driver, dir: &Placed<'_>) -> anyhow::Result<()> {
    if let Some(exact) = &dir.former.exact {
        return driver.prepare_exact(&dir.path, exact).context("its former layout cannot be put back");
    }
    driver.remove(&dir.path).context("its layout cannot be taken away")?;
    let now = driver.read_back(&dir.path)?.layout;
    match &dir.former.layout {
        Some(former) if now.as_ref() != Some(former) => {
            driver.prepare(&dir.path, former).context("its former layout cannot be put back")
        }
        _ => Ok(()),
    }
}

/// Rewrites files with their former settings, if these are known and differ from what their
/// directory gives, else with the settings of `inheriting`. Returns the results as JSON, and
/// whether a file failed.
fn move_back(
    runtime: &Arc<Runtime>,
    inheriting: &NativeMaker<'_>,
    dir: &Placed<'_>,
    args: &Args,
) -> (Vec<Value>, bool) {
    let own = |file: &Candidate<'_>| {
        let exact = dir.former.files.get(file.path.file_name()?.to_str()?)?;
        // The directory may also name servers, which the setting of a file does not.
        if inheriting.gives(exact) {
            return None;
        }
        Some(NativeMaker { driver: inheriting.driver, wanted: Wanted::Exact(exact) })
    };
    let own: Vec<_> = dir.files.iter().map(own).collect();
    let moves = dir.files.iter().zip(&own).map(|(file, own)| Move {
        path: &file.path,
        size_bytes: file.size_bytes,
        goal: Goal::Native(own.as_ref().unwrap_or(inheriting)),
        scheme: None,
    });
    let moves: Vec<_> = moves.collect();
    let total = dir.files.iter().map(|file| file.size_bytes).sum();
    migrate_all(runtime, &moves, total, "restored", &args.flags)
}
