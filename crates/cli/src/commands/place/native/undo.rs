//! `stripewise place --native --undo`: restores the former settings of directories, and rewrites
//! files with what their directories give.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::{Value, json};
use stripewise_datapath::Runtime;
use stripewise_datapath::migrate::{Goal, Maker};
use stripewise_drivers::Driver;

use super::super::args::Args;
use super::super::find::Candidate;
use super::directories::Directory;
use super::former::Former;
use super::maker::{Exactly, Inheriting};
use super::show;
use super::wanted::Site;
use crate::copying::{Manner, Move, migrate_all};

/// A directory in which something was placed, and the files in it that were placed.
struct Placed<'a> {
    path: PathBuf,
    former: Former,
    files: Vec<Candidate<'a>>,
}

/// Reverts the placement of a plan. A directory's record is removed when all its files match it.
///
/// # Errors
/// A record cannot be read; then nothing was changed.
pub fn run(
    site: &Site<'_>,
    runtime: &Arc<Runtime>,
    found: Vec<Candidate<'_>>,
    directories: &[Directory<'_>],
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let placed = placed(found, directories)?;
    if args.dry_run {
        return show::undo(
            &placed.iter().map(|dir| (&dir.path, &dir.former, &dir.files[..])).collect::<Vec<_>>(),
            args.json,
        );
    }
    let mut code = ExitCode::SUCCESS;
    let (mut back, mut done) = (Vec::new(), Vec::new());
    // Directories are restored before any file and from the top down, because a directory may
    // inherit its setting from one above it.
    let restored: Vec<_> = placed.iter().map(|dir| restore(&*site.driver, dir)).collect();
    for (dir, restored) in placed.iter().zip(restored) {
        let path = dir.path.display().to_string();
        match restored.and_then(|()| Inheriting::in_directory(&*site.driver, &dir.path)) {
            Ok(maker) => {
                let (files, ended) = move_back(runtime, &*site.driver, &maker, dir, args);
                match files.iter().any(|file| file.get("error").is_some()) {
                    true => code = ended,
                    false => Former::forget(&dir.path)?,
                }
                done.extend(files);
                back.push(json!({ "path": path, "restored": true }));
            }
            Err(error) => {
                eprintln!("stripewise: {path}: {error:#}");
                back.push(json!({ "path": path, "error": format!("{error:#}") }));
                code = ExitCode::FAILURE;
            }
        }
    }
    show::undone(&back, &done, args)?;
    Ok(code)
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
/// directory gives.
fn move_back(
    runtime: &Arc<Runtime>,
    driver: &dyn Driver,
    inheriting: &Inheriting<'_>,
    dir: &Placed<'_>,
    args: &Args,
) -> (Vec<Value>, ExitCode) {
    let own = |file: &Candidate<'_>| {
        let exact = dir.former.files.get(file.path.file_name()?.to_str()?)?;
        Some(Exactly { driver, exact })
    };
    let own: Vec<_> = dir.files.iter().map(own).collect();
    let makers = own.iter().map(|own| own.as_ref().map_or(inheriting as &dyn Maker, |own| own));
    let moves: Vec<_> = dir
        .files
        .iter()
        .zip(makers)
        .map(|(file, maker)| (&file.path, file.size_bytes, Goal::Native(maker)))
        .map(|(path, size_bytes, goal)| Move { path, size_bytes, goal, scheme: None })
        .collect();
    let total = dir.files.iter().map(|file| file.size_bytes).sum();
    let manner = Manner { verb: "restored", jobs: args.jobs, quiet: args.quiet };
    migrate_all(runtime, &moves, total, manner)
}
