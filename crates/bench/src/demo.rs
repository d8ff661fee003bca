//! `stripewise-bench demo` runs the whole chain on emulated servers with real programs.

mod candidates;
mod chain;
mod experiment;
mod servers;
mod table;
mod workspace;

use std::path::PathBuf;

use anyhow::Context;
use stripewise_report::Results;

use experiment::Experiment;
use workspace::Workspace;

use crate::machine;
use crate::shell::arguments;
use crate::workloads::{self, Workloads};

/// Demonstrates the whole chain on this machine: real programs run faster because of the layouts of
/// their files
///
/// Creates 4 HDD and 4 SSD servers from directories. The servers are emulated: every access takes
/// the time that a server of its class would take. Calibrates them, traces an MPI program (16
/// ranks, random access to a shared file) and an h5py program, plans and places their files, runs
/// the programs again under every candidate layout, checks every byte, and prints predicted and
/// measured times. The traces, the plan of the chosen layout, results.json and the report stay in
/// the directory.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    stripewise-bench demo\n  \
    stripewise-bench demo --json --dir /scratch/demo\n  \
    stripewise-bench demo --quick\n\n\
    Needs the workloads: `make build` puts them in build/, where the demo finds them.")]
pub struct Args {
    /// Directory for everything the demo writes: new, empty, or of an earlier demo
    #[arg(long, value_name = "DIR", default_value = "stripewise-demo", env = "STRIPEWISE_DEMO_DIR")]
    dir: PathBuf,
    /// Run a short version: smaller files, one request size, one measurement per layout
    #[arg(long)]
    quick: bool,
    /// Keep the servers' directories
    #[arg(long)]
    keep: bool,
    /// Print results.json instead of tables
    #[arg(long)]
    json: bool,
    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
    /// Directory of the built workloads [default: build/ next to this program, in a directory above
    /// it, or in the current directory]
    #[arg(long, value_name = "DIR", env = "STRIPEWISE_WORKLOADS")]
    workloads: Option<PathBuf>,
    /// A Python with h5py and NumPy [default: the one in .venv next to the workloads, or python3]
    #[arg(long, value_name = "PROGRAM", env = "STRIPEWISE_PYTHON")]
    python: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let workloads = Workloads::find(args.workloads.as_deref())?;
    let python = workloads::find_python(args.python.as_deref(), &workloads.build)?;
    let work = Workspace::create(&args.dir, workloads, python, args.quiet)?;
    let outcome = all_experiments(&work, args.quick);
    if !args.keep {
        work.remove_dir("servers")?;
        work.remove_dir("data")?;
    }
    let results = outcome?;
    work.write("results.json", &results.to_json()?)?;
    work.stripewise(arguments!["report", "-r", "results.json", "-o", "report.html"])?;
    if args.json {
        println!("{}", results.to_json()?);
    } else {
        table::print(&results, &work);
    }
    Ok(())
}

fn all_experiments(work: &Workspace, quick: bool) -> anyhow::Result<Results> {
    let date = machine::utc_now();
    servers::calibrate(work, quick)?;
    let mut workloads = Vec::new();
    for experiment in Experiment::all(quick) {
        let rows =
            chain::run(&experiment, work).with_context(|| format!("experiment '{}'", experiment.name()))?;
        workloads.extend(rows);
    }
    Ok(Results {
        version: stripewise_report::results::RESULTS_VERSION,
        date,
        command: "stripewise-bench demo".to_string() + if quick { " --quick" } else { "" },
        machine: machine::describe(),
        servers: servers::described(),
        workloads,
    })
}
