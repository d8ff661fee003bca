//! `stripewise warm` fetches prefetch hints into caches.

use std::process::ExitCode;

use crate::settling::{self, Flags, Work};

/// Fetches into the caches the data that earlier runs queued for them
///
/// While programs run, reads that would gain from a cache are added to the file's prefetch queue,
/// which is worked off when the servers are idle. This command fetches the rest between two runs,
/// as far as there is space, so that the next run finds the data in the cache. It can be
/// interrupted at any time; the next run continues.
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

/// Runs `stripewise warm`. A file that fails does not stop the rest.
///
/// # Errors
/// A plan cannot be read, or a file does not exist.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    settling::run(&args.flags, Work::Warm)
}
