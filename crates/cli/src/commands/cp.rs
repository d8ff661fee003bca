//! `stripewise cp` copies a file into or out of a layout.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use stripewise_datapath::Shape;
use stripewise_datapath::migrate::copy_file;

use crate::copying::CopyProgress;
use crate::{files, managed};

/// Copies a file between plain and managed layouts, verifying every byte
///
/// The copy appears at DST whole or not at all. Without --layout the copy is plain, unless it
/// replaces a managed file: then it gets that file's layout. Holes are preserved.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise cp out.dat copy.dat                                  a managed file to a plain one
  stripewise cp --layout plan.toml copy.dat /scratch/run8/out.dat   a copy as the plan lays out files of that name")]
pub struct Args {
    /// The file to copy
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// The copy's path, or a directory to create it in
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Use the layout that this plan gives files at DST's path
    #[arg(short = 'p', long, value_name = "PLAN")]
    layout: Option<PathBuf>,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
}

/// DST is unchanged after any error.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let source = managed::existing_file(&args.source)?;
    let destination = destination(&args.destination, &args.source)?;
    let plan = args.layout.as_deref().map(files::plan).transpose()?;
    let shape = match (&plan, &args.layout) {
        (Some(plan), Some(path)) => {
            let shape = plan.rule_for(&destination).and_then(|rule| Shape::of(rule, &destination));
            Some(shape.with_context(|| {
                format!("{}: no rule gives {} a layout", path.display(), destination.display())
            })?)
        }
        _ => None,
    };
    let runtime = managed::runtime(plan.as_ref());
    let bytes = source.metadata().map_or(0, |metadata| metadata.len());
    let progress = CopyProgress::new(bytes, 1, args.quiet);
    let copied = copy_file(&runtime, &source, &destination, shape, &mut progress.file(&source))?;
    progress.done(&format!("copied {} to {}", source.display(), destination.display()), copied);
    Ok(())
}

/// Returns the absolute path of the copy. If `given` is a directory, the copy keeps the source's
/// name.
fn destination(given: &Path, source: &Path) -> anyhow::Result<PathBuf> {
    if given.is_dir() {
        let name = source.file_name().with_context(|| format!("{} has no name", source.display()))?;
        return Ok(managed::existing(given)?.join(name));
    }
    // A symbolic link is kept, and the file that it leads to is replaced.
    if given.is_symlink() {
        return managed::existing(given);
    }
    let Some(name) = given.file_name() else { bail!("{} names no file", given.display()) };
    Ok(managed::existing(files::directory(given))?.join(name))
}
