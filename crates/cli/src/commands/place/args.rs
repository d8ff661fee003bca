//! Flags of `stripewise place`.

use std::path::PathBuf;

use crate::copying;

/// Prepares a plan's targets and moves existing files into its layouts
///
/// Every byte is copied and verified before the file at the path is replaced in one step. An
/// interrupted run can be repeated and continues where it stopped. Files that are already in the
/// planned layout are left alone. So are executable files, unless they are named: the kernel cannot
/// run a program from a managed file. If the patterns match more than 1000 files, or files of other
/// users, it asks first. No program may write to the files meanwhile. Mode, owner,
/// times and attributes in the user. namespace are kept; access control lists are not.
///
/// With --native, programs need no part of stripewise afterwards: directories get the native
/// layouts of their file system for new files, and existing files are rewritten into them with all
/// their attributes. The previous layouts are recorded in each directory, in
/// .stripewise-native.toml.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise place plan.toml --dry-run        what would be moved, and how much
  stripewise place plan.toml                  all existing files that the plan's patterns match
  stripewise place plan.toml /scratch/run7    only those below a directory
  stripewise export /scratch/run7             and back
  stripewise place --native plan.toml         as the file system's own layouts, to run without stripewise
  stripewise place --native --undo plan.toml  and back")]
pub struct Args {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Move only these files, and files in these directories
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Use native layouts of the file system for directories and files, so that programs run
    /// without stripewise
    #[arg(long)]
    pub native: bool,
    /// With --native: restore the previous layouts of directories, and rewrite files into their
    /// directories' layouts
    #[arg(long, requires = "native")]
    pub undo: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Move files of other users, and any number of files, without asking
    #[arg(short, long, conflicts_with = "dry_run")]
    pub yes: bool,
    #[command(flatten)]
    pub flags: copying::Flags,
}
