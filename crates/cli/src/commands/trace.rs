//! `stripewise trace` records what a command does to its files.

mod args;
mod record;
mod summary;
mod tables;

use std::process::ExitCode;

use stripewise_trace::Meta;

pub use args::Args;
use record::merge_spool;
use summary::print_summary;

/// Runs `stripewise trace`.
///
/// # Errors
/// The command cannot be run or was not recorded, or a file cannot be read or written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.mode()? {
        args::Mode::Summary(path) => {
            print_summary(&path, args.json, usize::MAX)?;
            Ok(ExitCode::SUCCESS)
        }
        args::Mode::Merge { spool, output } => {
            merge_spool(&spool, &output, &Meta::default(), args.quiet)?;
            if args.json || !args.quiet {
                print_summary(&output, args.json, usize::MAX)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        args::Mode::Record { output } => record::run(&args, &output),
    }
}
