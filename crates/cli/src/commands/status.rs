//! `stripewise status` shows targets and managed files.

mod copies;
mod files;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;
use stripewise_datapath::check::walk;

use crate::flags::TargetsOf;
use crate::{managed, output};
use files::FileStatus;

/// Shows targets, and where the bytes of managed files are
///
/// For a file with several copies it shows the bytes of each copy by state, the processes that have
/// the file open, and the operations since it was opened. The states are: valid (the copy has the
/// newest bytes), dirty (the copy has bytes newer than the original's), stale (the copy lacks the
/// newest bytes), and wanted (queued to be fetched into a cache).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise status out.dat               one file: its layout, and how many bytes are where
  stripewise status /scratch/run7         all managed files below a directory
  stripewise status --json out.dat        the same for programs
  stripewise status -c cluster.toml       the targets: free space, bytes of objects, and of caches beside their limit")]
pub struct Args {
    /// Files, and directories with managed files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    targets: TargetsOf,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Exits with 1 if a target or a copy is missing or a file cannot be
/// used.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let directories = args.targets.directories()?;
    if args.files.is_empty() && directories.is_empty() {
        bail!("status: nothing to show; name files or directories, or targets with -c CLUSTER or -p PLAN");
    }
    let runtime = managed::runtime(None);
    let targets: Vec<_> = directories.iter().map(|target| targets::look(&runtime, target)).collect();
    let roots = managed::all_existing(&args.files)?;
    let listing = walk(&runtime, &roots);
    if roots.iter().all(|root| root.is_file()) {
        managed::act_for_owner(&runtime, &listing.anchors)?;
    }
    let mut files: Vec<_> = listing.anchors.iter().map(|path| files::look(&runtime, path)).collect();
    // Plain files are shown only if they were named.
    files.extend(listing.plain.iter().filter(|path| roots.contains(path)).map(|path| files::plain(path)));
    if args.json {
        let files: Vec<_> = files.iter().map(files::to_json).collect();
        let targets: Vec<_> = targets.iter().map(targets::to_json).collect();
        output::json(&json!({ "targets": targets, "files": files }))?;
    } else {
        targets::print(&targets);
        files.iter().for_each(files::print);
    }
    let failed =
        targets.iter().any(|target| target.content.is_err()) || files.iter().any(FileStatus::has_failed);
    Ok(output::code(failed))
}
