//! `stripewise rm` removes files with their objects.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use stripewise_datapath::{FileError, Runtime};

use crate::{managed, output};

/// Removes managed or plain files, with all their objects
///
/// `rm` without the preload library removes only the anchor; `stripewise fsck --remove-orphans`
/// then removes the objects it leaves.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise rm out.dat
  stripewise rm -f /scratch/run*/*.h5")]
pub struct Args {
    /// The files to remove
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Ignore files that do not exist, and remove the names of files whose objects cannot be
    /// reached
    #[arg(short, long)]
    force: bool,
}

/// A file that fails does not stop the rest and makes the exit status 1.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = managed::runtime(None);
    let mut failed = false;
    for file in &args.files {
        if let Err(error) = remove(&runtime, file, args.force) {
            eprintln!("stripewise: {error:#}");
            failed = true;
        }
    }
    Ok(output::code(failed))
}

fn remove(runtime: &Arc<Runtime>, path: &Path, force: bool) -> anyhow::Result<()> {
    let cannot = || format!("{} cannot be removed", path.display());
    match path.symlink_metadata() {
        Err(error) if force && error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(cannot),
        Ok(metadata) if metadata.is_dir() => bail!("{}: it is a directory; name files", cannot()),
        Ok(_) => {}
    }
    if !force
        && !path.is_symlink()
        && let Err(error @ (FileError::Manifest(_) | FileError::Target(_))) = runtime.open_file(path)
    {
        bail!("{} with all that belongs to it (-f removes its name all the same): {error}", cannot());
    }
    runtime.unlink(None, path).with_context(cannot)
}
