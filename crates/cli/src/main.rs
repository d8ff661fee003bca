//! The `stripewise` program: parses the command line, calls the library crates, and prints results.

mod commands;
mod copying;
mod darshan;
mod files;
mod flags;
mod managed;
mod output;
mod preload;
mod preparing;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use commands::*;

/// Finds the data layout that makes an application's I/O fast on the storage it runs on, puts the
/// data in that layout, and runs the application over it unchanged.
#[derive(Parser)]
#[command(name = "stripewise", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Args),
    Calibrate(calibrate::Args),
    #[command(hide = true)]
    ClientTrial(calibrate::client::Args),
    Trace(trace::Args),
    Synth(synth::Args),
    Advise(advise::Args),
    Plan(plan::Args),
    Cost(Box<cost::Args>),
    Sim(sim::Args),
    Place(place::Args),
    Export(export::Args),
    Run(run::Args),
    Mount(mount::Args),
    Try(Box<trial::Args>),
    Drain(settle::Drain),
    Warm(settle::Warm),
    Status(status::Args),
    Fsck(fsck::Args),
    Cat(cat::Args),
    Cp(cp::Args),
    Rm(rm::Args),
    Report(report::Args),
    #[command(hide = true)]
    Generate(generate::Args),
}

fn main() -> ExitCode {
    stripewise_console::run("stripewise", || {
        match Cli::parse().command {
            Command::Init(args) => init::run(&args)?,
            Command::Calibrate(args) => calibrate::run(&args)?,
            Command::ClientTrial(args) => calibrate::client::run(&args)?,
            Command::Synth(args) => synth::run(&args)?,
            Command::Advise(args) => advise::run(&args)?,
            Command::Plan(args) => plan::run(&args)?,
            Command::Cost(args) => cost::run(&args)?,
            Command::Sim(args) => sim::run(&args)?,
            Command::Cat(args) => cat::run(&args)?,
            Command::Cp(args) => cp::run(&args)?,
            Command::Report(args) => report::run(args)?,
            Command::Generate(args) => generate::run(&args, Cli::command())?,
            Command::Run(args) => run::run(&args)?,
            // These continue after a failure, or return the exit code of a program.
            Command::Mount(args) => return mount::run(&args),
            Command::Trace(args) => return trace::run(&args),
            Command::Try(args) => return trial::run(&args),
            Command::Place(args) => return place::run(&args),
            Command::Export(args) => return export::run(&args),
            Command::Drain(args) => return settle::run(&args.flags, settle::Work::Drain),
            Command::Warm(args) => return settle::run(&args.flags, settle::Work::Warm),
            Command::Status(args) => return status::run(&args),
            Command::Fsck(args) => return fsck::run(&args),
            Command::Rm(args) => return rm::run(&args),
        }
        Ok(ExitCode::SUCCESS)
    })
}
