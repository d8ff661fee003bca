//! `stripewise run` runs a command over the layouts of a plan.

mod program;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use stripewise_cluster::Plan;
use stripewise_console::quoted;
use stripewise_target::Engine;

use crate::{files, output, preload, preparing};

/// Runs a command over the layouts of a plan
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise run -p plan.toml -- python3 train.py
  stripewise run -p plan.toml -- mpirun -n 16 ./app input           on one machine
  (eval \"$(stripewise run -p plan.toml --print-env)\"; srun ./app)   the variables instead, for a launcher
  stripewise trace -o t -- stripewise run -p plan.toml -- ./app     and record it
  stripewise run -p plan.toml --statistics s.jsonl -- ./app         what went to which copy of its files

--statistics writes a JSON object per line: for each process and each file with several copies (replicas, caches) the requests,
hits, and bytes read, written and copied by copy. Numbers of the same key add up:
  jq -s 'map(.hits) | add' s.jsonl                                  all lines: docs/formats/statistics.md

With Open MPI on several machines, pass the environment on: mpirun -x LD_PRELOAD -x STRIPEWISE_PLAN ...
New files whose path matches a rule of the plan get its layout; those that exist stay as they are until `stripewise place`
moves them. Files that are in a planned layout already also work without a plan, with the library alone.
Not reached: programs that do not use the C library (static ones, Go), and io_uring (--deny-io-uring makes it fail).")]
pub struct Args {
    /// The plan
    #[arg(short, long, value_name = "PLAN", env = "STRIPEWISE_PLAN")]
    plan: PathBuf,
    /// Print the environment variables that load the library and the plan, without running a
    /// command
    #[arg(long, conflicts_with = "command")]
    print_env: bool,
    /// With --print-env: print JSON
    #[arg(long, requires = "print_env")]
    json: bool,
    /// How the pieces of a request are executed concurrently: auto, uring, threads or serial
    #[arg(long, value_name = "ENGINE", env = "STRIPEWISE_FANOUT")]
    fanout: Option<Engine>,
    /// Deny io_uring to the command, because the library cannot see requests made through it
    #[arg(long, env = "STRIPEWISE_DENY_IO_URING", num_args = 0, value_parser = clap::builder::BoolishValueParser::new(), default_value = "0", default_missing_value = "1")]
    deny_io_uring: bool,
    /// Write statistics about files with several copies to this file: one JSON line per process and
    /// file
    #[arg(long, value_name = "FILE", env = "STRIPEWISE_STATISTICS")]
    statistics: Option<PathBuf>,
    #[command(flatten)]
    preload: preload::Flags,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "print_env")]
    command: Vec<OsString>,
}

/// Returns only if the command could not be started, or with `--print-env`.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let path =
        args.plan.canonicalize().with_context(|| format!("plan {} cannot be read", args.plan.display()))?;
    let plan = Plan::parse(&files::read(&path)?, &args.plan.display().to_string())?;
    let variables = variables(args, &path)?;
    if args.print_env {
        // The targets may be mounted on the job's nodes only.
        if let Err(problem) = preparing::prepare(&plan) {
            eprintln!("stripewise: on this machine: {problem:#}");
        }
        return print(&variables, args.json);
    }
    preparing::prepare(&plan)?;
    if let Some(path) = &args.statistics {
        std::fs::File::create(path).with_context(|| format!("--statistics {}", path.display()))?;
    }
    let name = &args.command[0];
    for reason in program::why_not_reached(name) {
        eprintln!("stripewise: {}: {reason}; its files keep their present layout", Path::new(name).display());
    }
    let error = Command::new(name).args(&args.command[1..]).envs(&variables).exec();
    Err(error).with_context(|| format!("{} cannot be run", Path::new(name).display()))
}

fn variables(args: &Args, plan: &Path) -> anyhow::Result<BTreeMap<&'static str, OsString>> {
    let libraries = args.preload.libraries()?;
    let mut variables = BTreeMap::from([
        ("LD_PRELOAD", preload::ld_preload(&libraries)),
        ("STRIPEWISE_PLAN", plan.as_os_str().to_owned()),
    ]);
    if let Some(engine) = args.fanout {
        variables.insert("STRIPEWISE_FANOUT", format!("{engine:?}").to_lowercase().into());
    }
    if let Some(path) = &args.statistics {
        // The path becomes absolute because the command's processes may change their directory.
        let path = std::path::absolute(path).with_context(|| format!("--statistics {}", path.display()))?;
        variables.insert("STRIPEWISE_STATISTICS", path.into_os_string());
    }
    if args.deny_io_uring {
        variables.insert("STRIPEWISE_DENY_IO_URING", "1".into());
    }
    Ok(variables)
}

/// Prints the variables as shell commands or as JSON.
fn print(variables: &BTreeMap<&'static str, OsString>, json: bool) -> anyhow::Result<()> {
    let text = |value: &OsStr| match value.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("{} is not UTF-8; use another path", Path::new(value).display()),
    };
    if json {
        let values = variables.iter().map(|(name, value)| Ok((*name, text(value)?)));
        let values = values.collect::<anyhow::Result<BTreeMap<_, _>>>()?;
        return output::json(&values);
    }
    for (name, value) in variables {
        println!("export {name}={}", quoted(&text(value)?));
    }
    Ok(())
}
