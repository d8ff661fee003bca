//! `stripewise drain`.

use std::process::ExitCode;

use crate::settling::{self, Flags, Work};

/// Brings the bytes of files with several copies where they belong
///
/// Of a file with a cache, what only the cache has is written back: the original is complete then. Of a file with replicas,
/// all copies become the same. What is cached stays cached. Programs may go on using the files meanwhile; what they are
/// writing just then is left, and said. Can be interrupted at any moment: what was done stays done, and the next run goes
/// on.
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

/// Drains them all; goes on after one that fails.
///
/// # Errors
/// A plan that cannot be read; a file that does not exist.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    settling::run(&args.flags, Work::Drain)
}
