//! The `stripewise-bench` program measures stripewise: it runs the `stripewise` program as a user
//! does, over real programs on emulated servers, and simulates what is too large for one machine.

mod demo;
mod evaluate;
mod machine;
mod output;
mod scripts;
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
    /// Measures layouts and PSA on throttled disks under a real file system, as root
    Disks(scripts::Args),
    /// Measures layouts, caches and replicas on a CephFS on throttled disks, as root
    Cephfs(scripts::Args),
    /// Measures the cache, the replicas and their overhead on emulated servers
    Copies(scripts::Args),
    /// Measures the joint plan beside what sites recommend, and beside plans made by hand
    Mix(scripts::Args),
    /// Measures the migration of files on a CephFS, with kills
    Migration(scripts::Args),
    /// Compares what plans promise with what real programs gain on four set-ups, as root
    Promises(scripts::Args),
    /// Compares the simulator with real programs on emulated servers
    Simulation(scripts::Args),
}

fn main() -> ExitCode {
    stripewise_console::run("stripewise-bench", || match Cli::parse().command {
        Command::Demo(args) => demo::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Disks(args) => scripts::run("disks", args),
        Command::Cephfs(args) => scripts::run("cephfs", args),
        Command::Copies(args) => scripts::run("copies", args),
        Command::Mix(args) => scripts::run("mix", args),
        Command::Migration(args) => scripts::run("migration", args),
        Command::Promises(args) => scripts::run("promises", args),
        Command::Simulation(args) => scripts::run("simulation", args),
    })
}
