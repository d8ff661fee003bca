//! `stripewise export` turns managed files into plain files.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use stripewise_datapath::Runtime;
use stripewise_datapath::migrate::Goal;

use crate::copying::{self, Move, migrate_all};
use crate::{managed, output};

/// Turns managed files back into plain ones
///
/// Every byte is copied and verified before the file at the path is replaced in one step. An
/// interrupted run can be repeated and continues where it stopped. No program may write to the
/// files meanwhile.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise export out.dat
  stripewise export /scratch/run7          all managed files below the directory")]
pub struct Args {
    /// Files, and directories with managed files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: copying::Flags,
}

/// A file that fails does not stop the rest.
///
/// No file is exported if one does not exist.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = managed::runtime(None);
    let files = find(&runtime, &args.files)?;
    managed::act_for_owner(&runtime, &files)?;
    let size = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    let moves = files.iter().map(|path| Move { path, size_bytes: size(path), goal: Goal::Plain, scheme: None });
    let moves: Vec<_> = moves.collect();
    let total = moves.iter().map(|file| file.size_bytes).sum();
    let (done, failed) = migrate_all(&runtime, &moves, total, "exported", &args.flags);
    if args.flags.json {
        output::json(&json!({ "files": done }))?;
    }
    Ok(output::code(failed))
}

/// Returns the named files, and all managed files in the named directories.
fn find(runtime: &Runtime, given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in managed::all_existing(given)? {
        match path.is_dir() {
            true => files.extend(managed::listing(runtime, &[path]).anchors),
            false => files.push(path),
        }
    }
    Ok(files)
}
