//! `stripewise cp`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use stripewise_datapath::Shape;
use stripewise_datapath::migrate::copy_file;

use crate::copying::CopyProgress;
use crate::managed;

/// Copies a file between plain and managed, checking every byte
///
/// The copy appears at DST whole or not at all. Without --layout it is plain, or has the layout of the managed file that
/// it replaces. Holes stay holes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise cp out.dat copy.dat                                  a managed file to a plain one
  stripewise cp --layout plan.toml copy.dat /scratch/run8/out.dat   a copy as the plan lays out files of that name")]
pub struct Args {
    /// The file to copy
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// The copy, or a directory to put it in
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// The layout that this plan gives files of DST's path
    #[arg(short = 'p', long, value_name = "PLAN")]
    layout: Option<PathBuf>,
    /// Say nothing while it works
    #[arg(short, long)]
    quiet: bool,
}

/// Copies it.
///
/// # Errors
/// Whatever the error, DST is as it was.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let source = managed::existing_file(&args.source)?;
    let destination = destination(&args.destination, &args.source)?;
    let plan = args.layout.as_deref().map(managed::plan).transpose()?;
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
    Ok(ExitCode::SUCCESS)
}

/// Absolute; in the directory where one is named.
fn destination(given: &Path, source: &Path) -> anyhow::Result<PathBuf> {
    if given.is_dir() {
        let name = source.file_name().with_context(|| format!("{} has no name", source.display()))?;
        return Ok(managed::existing(given)?.join(name));
    }
    // A link is not replaced: what it leads to is.
    if given.is_symlink() {
        return managed::existing(given);
    }
    let Some(name) = given.file_name() else { bail!("{} names no file", given.display()) };
    Ok(managed::existing(crate::files::directory(given))?.join(name))
}
