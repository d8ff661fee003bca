//! The `stripewise-bench` program measures stripewise: it runs the `stripewise` program as a user
//! does, over real programs on emulated servers, and simulates what is too large for one machine.

mod demo;
mod evaluate;
mod machine;
mod output;
mod shell;
mod workloads;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures stripewise: a demonstration of the whole chain, and the experiments of the papers.
#[derive(Parser)]
#[command(name = "stripewise-bench", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Evaluate(evaluate::Args),
}

fn main() -> ExitCode {
    stripewise_console::run("stripewise-bench", || match Cli::parse().command {
        Command::Demo(args) => demo::run(args),
        Command::Evaluate(args) => evaluate::run(&args),
    })
}
