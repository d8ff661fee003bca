//! `stripewise warm`.

use std::process::ExitCode;

use crate::settling::{self, Flags, Work};

/// Fetches into the cache what earlier runs wanted there
///
/// While programs run, reads that would gain from the cache are noted, and fetched when nothing else is going on. This
/// does the rest between two runs, so that the next one finds it in the cache, as far as there is space. Can be interrupted
/// at any moment; the next run goes on.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise warm out.dat                    before the run that reads it again
  stripewise warm -p plan.toml /scratch      all files below a directory
  stripewise status out.dat                  what is cached, and what is wanted

Exits with 1 if something could not be fetched; what does not fit into the cache is said, and no failure.")]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
}

/// Warms them all; goes on after one that fails.
///
/// # Errors
/// A plan that cannot be read; a file that does not exist.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    settling::run(&args.flags, Work::Warm)
}
