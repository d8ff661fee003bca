//! `stripewise advise` says what is slow in a job's I/O, why, and what to type.

mod page;

use std::path::{Path, PathBuf};

use anyhow::Context;
use stripewise_advise::{Advice, Facts, Storage, TraceFacts, facts_of_log, layouts, spec};
use stripewise_console::progress;
use stripewise_plan::{Collector, Workload};
use stripewise_trace::scope::is_data;
use stripewise_trace::summary::MAX_GROUPS;
use stripewise_trace::{Flags, Request, Trace};

use crate::darshan::{is_log, open_log, open_trace};
use crate::{files, output};

/// Says in five lines what is slow in a job's I/O, why, what to type, what that gains, how sure it
/// is
///
/// Reads a Darshan log or a trace; needs no calibration, no preload library and no root, and
/// changes nothing. The lines below the verdict have all findings with their remedies, the most
/// severe first, and commands for the file system that can be pasted. The layouts come from the
/// planner of `stripewise plan`, with built-in speeds of common servers unless -c names a cluster
/// file.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise advise job.darshan                          the file system is deduced from the log
  stripewise advise job.darshan --fs lustre:24           a Lustre with 24 OSTs of hard disks
  stripewise advise job.darshan --fs lustre:ost=24,class=hdd,pool=flash:8:nvme
                                                         and 8 of them are NVMe, in the pool flash
  stripewise advise app.trace --fs beegfs:16
  stripewise advise app.trace -c cluster.toml            the servers of a cluster file
  stripewise advise job.darshan --json                   the same facts, for scripts

File systems (--fs): lustre, beegfs, cephfs, orangefs, each with a number of servers, with
class=hdd, ssd or nvme, and pools (pool=NAME:COUNT or pool=NAME:COUNT:CLASS); or local.
Pools are parts of the servers. Name only pools that exist.

Line by line: Slow, what takes the time; Why, what was found; Type, what to do; Gain, a bound
where nothing better is known; Sure, how far to trust that.")]
pub struct Args {
    /// A Darshan log, or a trace from `stripewise trace`
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The file system of the job's files, such as lustre:24 [default: deduced from the log]
    #[arg(long, value_name = "SPEC", value_parser = spec::parse, env = "STRIPEWISE_FS", conflicts_with = "cluster")]
    fs: Option<Storage>,
    /// A cluster file that describes it
    #[arg(short, long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress bar
    #[arg(short, long, env = "STRIPEWISE_QUIET")]
    quiet: bool,
}

/// Reads the log, and prints the advice.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let trace = open_trace(&args.log)?;
    let mut facts = if is_log(&args.log) { of_log(&args.log)? } else { of_trace(&trace, args.quiet)? };
    // The trace of a log has read its single calls, too.
    facts.incomplete.clone_from(&trace.meta().incomplete);
    let storage = storage(args, &facts)?;
    let mut notes = Vec::new();
    // A layout without its times, or of files elsewhere, is no advice.
    let planned = match storage.parallel().filter(|_| facts.has_io()) {
        Some(_) => {
            let workload = workload(&trace, &facts, &storage, args.quiet)?;
            layouts(workload, &facts, &storage, &is_gone).unwrap_or_else(|error| {
                notes.push(format!("no layout is advised: {error}"));
                Vec::new()
            })
        }
        None => Vec::new(),
    };
    let advice = Advice::new(&facts, &storage, planned, notes);
    if args.json {
        return output::json(&advice);
    }
    print!("{}", page::page(&advice));
    Ok(())
}

fn of_log(path: &Path) -> anyhow::Result<Facts> {
    facts_of_log(&mut open_log(path)?).with_context(|| path.display().to_string())
}

fn of_trace(trace: &Trace, quiet: bool) -> anyhow::Result<Facts> {
    let mut facts = TraceFacts::new(trace.meta(), trace.processes(), trace)?;
    for_each(trace, "reading the trace", quiet, |call| facts.add(call))?;
    Ok(facts.finish())
}

fn storage(args: &Args, facts: &Facts) -> anyhow::Result<Storage> {
    Ok(match (&args.fs, &args.cluster) {
        (Some(storage), _) => storage.clone(),
        (None, Some(path)) => Storage::of_cluster(files::cluster(path, None)?.0, &path.display().to_string()),
        (None, None) => Storage::deduced(facts),
    })
}

/// The requests on data files of the file system, grouped by kind.
fn workload(trace: &Trace, facts: &Facts, storage: &Storage, quiet: bool) -> anyhow::Result<Workload> {
    let is_wanted = |name: &str| is_data(name.as_bytes()) && storage.holds(name, facts);
    let mut collector = Collector::only(trace.processes(), trace, is_wanted, MAX_GROUPS)?;
    let mut add = |call: &Request| {
        if !call.flags.has(Flags::OUTPUT) {
            collector.add(call);
        }
    };
    for_each(trace, "grouping", quiet, &mut add)?;
    Ok(collector.finish())
}

fn for_each(
    trace: &Trace,
    what: &'static str,
    quiet: bool,
    mut each: impl FnMut(&Request),
) -> anyhow::Result<()> {
    let bar = progress::bar(Some(trace.len()), "{msg} [{bar:40}] {human_pos}/{human_len} {eta}", quiet);
    bar.set_message(what);
    let mut requests = trace.requests()?;
    while let Some(batch) = requests.next_batch()? {
        batch.iter().for_each(&mut each);
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Whether a file is known not to exist: its directory is on this machine, and the file is not.
fn is_gone(name: &str) -> bool {
    let path = Path::new(name);
    path.parent().is_some_and(Path::is_dir) && !path.exists()
}
