//! `stripewise drain` writes caches back and synchronizes replicas.

use std::process::ExitCode;

use crate::settling::{self, Flags, Work};

/// Writes cached data back to the originals and brings replicas in sync
///
/// For a file with caches, data that only a cache holds is written back, so that the original
/// becomes complete. For a file with replicas, all copies become equal. Cached data stays cached.
/// Programs may keep using the files meanwhile; ranges they are writing at that moment are left
/// over and reported. The command can be interrupted at any time: the work done is kept, and the
/// next run continues.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise drain out.dat                    what only a cache or one replica has, to where it belongs
  stripewise drain -p plan.toml /scratch      all files below a directory, from the copies that read fastest
  stripewise drain out.dat && stripewise export out.dat    a plain file again

Exits with 1 if something is left anywhere, and says of which file, how much and why.")]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
}

/// Runs `stripewise drain`. A file that fails does not stop the rest.
///
/// # Errors
/// A plan cannot be read, or a file does not exist.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    settling::run(&args.flags, Work::Drain)
}
