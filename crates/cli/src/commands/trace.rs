//! `stripewise trace` records what a command does to its files.

mod summary;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use stripewise_cluster::size;
use stripewise_console::{interrupt, progress};
use stripewise_recorder::{ENV_DIR, ENV_EXCLUDE, ENV_LIMIT, ENV_ONLY, TEXT_BYTES};
use stripewise_trace::{Correction, Merged, Meta, TraceWriter, merge};

use crate::darshan::make_trace;
use crate::output;
use crate::preload::{self, ld_preload};
use summary::print_summary;

/// Records what a command does to its files, or shows the contents of a trace
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise trace -o t -- mpirun -n 16 ./app input         record a job on this machine
  stripewise trace --only '*.h5' -o t -- python3 train.py   only files whose name ends in .h5
  stripewise trace --summary t                              what the application does
  stripewise trace --summary job.darshan                    the same of a log of Darshan 3
  stripewise trace --from job.darshan -o t                  a trace made of it, to keep
A job of a launcher is recorded in a directory that all nodes have, and merged when it has ended:
  mkdir /scratch/spool
  STRIPEWISE_TRACE_DIR=/scratch/spool LD_PRELOAD=/path/libstripewise_posix.so srun ./app
  stripewise trace --merge /scratch/spool -o t

With Open MPI on several machines, pass the environment on: mpirun -x LD_PRELOAD -x STRIPEWISE_TRACE_DIR ...
Not seen: programs that do not use the C library (static ones, Go), and accesses through mappings of a file.
Files of the system and of installed software are left out unless --only names them.")]
pub struct Args {
    /// The trace to write
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    /// Show the statistics of this trace, or of a Darshan log
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["output", "merge", "from", "command"])]
    summary: Option<PathBuf>,
    /// Make a trace of this Darshan log; what it does not tell is guessed, and said
    #[arg(long, value_name = "LOG", conflicts_with_all = ["merge", "command"], requires = "output")]
    from: Option<PathBuf>,
    /// Merge the spool that recorded processes left in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command", requires = "output")]
    merge: Option<PathBuf>,
    /// Print the statistics as JSON
    #[arg(long)]
    json: bool,

    /// Record only files whose absolute path matches; a pattern without / applies to the file's
    /// name (repeatable)
    ///
    /// ? matches any character except /, * any number of such characters, ** any number of any
    /// characters.
    #[arg(long, value_name = "GLOB", env = ENV_ONLY, value_delimiter = ':')]
    only: Vec<String>,
    /// Do not record files whose absolute path matches (repeatable)
    #[arg(long, value_name = "GLOB", env = ENV_EXCLUDE, value_delimiter = ':')]
    exclude: Vec<String>,
    /// Maximum bytes that one process may spool; calls beyond it are counted, and the trace is
    /// marked as incomplete
    #[arg(long, value_name = "SIZE", env = ENV_LIMIT, default_value = "1G", value_parser = size::parse)]
    limit: u64,
    /// Directory where processes spool their records; all nodes must share it [default:
    /// TRACE.spool]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Keep the spool
    #[arg(long)]
    keep_spool: bool,
    #[command(flatten)]
    preload: preload::Flags,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    /// The command to record and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let (Some(log), Some(output)) = (&args.from, &args.output) {
        make_trace(log, output, args.quiet)?;
        if args.json || !args.quiet {
            print_summary(output, args.json, SUMMARY_GROUPS)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    match (&args.summary, &args.merge, &args.output) {
        (Some(trace), ..) => print_summary(trace, args.json, SUMMARY_GROUPS)?,
        (None, Some(spool), Some(output)) => {
            interrupt::remove(&TraceWriter::temporary(output));
            merge_spool(spool, output, &Meta::default(), args.quiet)?;
            if args.json || !args.quiet {
                print_summary(output, args.json, SUMMARY_GROUPS)?;
            }
        }
        (None, None, _) if args.command.is_empty() => {
            bail!(
                "nothing to do: give a command to record after --, or --summary TRACE, --merge DIR or --from LOG"
            )
        }
        (None, None, Some(output)) => return record(args, output),
        (None, _, None) => bail!("where to? Name the trace to write with -o TRACE"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Time for which processes may continue after the command has ended.
const PATIENCE: Duration = Duration::from_secs(3);

/// Number of file groups shown after a run.
const GROUPS_SHOWN: usize = 10;

/// Number of file groups shown by `--summary`. Each takes up to four lines.
const SUMMARY_GROUPS: usize = 40;

/// Records the command and returns its exit code, whatever it is, unless no trace could be made.
fn record(args: &Args, output: &Path) -> anyhow::Result<ExitCode> {
    let libraries = args.preload.libraries()?;
    let spool = Spool::create(args, output)?;
    let mut command = Command::new(&args.command[0]);
    command
        .args(&args.command[1..])
        .env("LD_PRELOAD", ld_preload(&libraries))
        .env(ENV_DIR, &spool.dir)
        .env(ENV_ONLY, patterns(&args.only)?)
        .env(ENV_EXCLUDE, patterns(&args.exclude)?)
        .env(ENV_LIMIT, args.limit.to_string());
    let start = Instant::now();
    let status = run_child(&mut command).inspect_err(|_| spool.remove_if_empty())?;
    let wall_s = start.elapsed().as_secs_f64();
    spool.remove_if_empty();
    ensure!(
        spool.dir.exists(),
        "{} was not recorded ({status}): it did not load {}. Is it linked statically, set-uid, or not using the C library?",
        args.command[0].display(),
        libraries[0].display()
    );
    let meta = Meta {
        command: args.command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
        wall_s: Some(wall_s),
        exit_code: Some(output::exit_code(status)),
        incomplete: spool.still_written()?,
        ..Meta::default()
    };
    let merged = merge_spool(&spool.dir, output, &meta, args.quiet)?;
    for reason in &merged.incomplete {
        eprintln!("stripewise: the trace is incomplete: {reason}");
    }
    if let Some(failure) = meta.failure() {
        eprintln!(
            "stripewise: the traced command failed ({failure}); `plan` wants --accept-failed for this trace"
        );
    }
    spool.remove(args.keep_spool)?;
    if args.json || !args.quiet {
        print_summary(output, args.json, GROUPS_SHOWN)?;
    }
    Ok(output::exit_code(status).into())
}

static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn forward(signal: libc::c_int) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: `kill` is async-signal-safe.
        unsafe { libc::kill(child, signal) };
    }
}

extern "C" fn ignore(_: libc::c_int) {}

/// Runs the command to completion. This process outlives it: signals of the terminal reach the
/// command anyway, and other signals are forwarded to it.
fn run_child(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let program = command.get_program().to_os_string();
    let mut child = command.spawn().with_context(|| format!("{} cannot be run", program.display()))?;
    CHILD.store(child.id() as i32, Ordering::Relaxed);
    let handlers: [(libc::c_int, extern "C" fn(libc::c_int)); 4] =
        [(libc::SIGINT, ignore), (libc::SIGQUIT, ignore), (libc::SIGTERM, forward), (libc::SIGHUP, forward)];
    for (signal, handler) in handlers {
        // SAFETY: The handlers make only async-signal-safe calls.
        unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
    }
    let status = child.wait().with_context(|| format!("waiting for {}", program.display()))?;
    CHILD.store(0, Ordering::Relaxed);
    Ok(status)
}

/// Formats the patterns for the recorder: absolute if they contain a `/`, and separated by `:`.
fn patterns(patterns: &[String]) -> anyhow::Result<String> {
    let here = std::env::current_dir().context("the current directory is not known")?;
    let absolute = patterns.iter().filter(|pattern| !pattern.is_empty()).map(|pattern| {
        let relative = pattern.contains('/') && !pattern.starts_with(['/', '*']);
        if relative { format!("{}/{pattern}", here.display()) } else { pattern.clone() }
    });
    let joined = absolute.collect::<Vec<_>>().join(":");
    let bytes = joined.len();
    ensure!(bytes <= TEXT_BYTES, "the patterns have {bytes} bytes: at most {TEXT_BYTES} are possible");
    Ok(joined)
}

struct Spool {
    dir: PathBuf,
}

impl Spool {
    fn create(args: &Args, output: &Path) -> anyhow::Result<Spool> {
        let dir = args.spool.clone().unwrap_or_else(|| {
            let mut dir = output.as_os_str().to_os_string();
            dir.push(".spool");
            dir.into()
        });
        ensure!(
            !std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()),
            "spool {0} is not empty: `stripewise trace --merge {0} -o TRACE` makes a trace of it, or remove it",
            dir.display()
        );
        // Only the last directory is created, so that a mistyped path does not create a tree.
        if let Err(error) = std::fs::create_dir(&dir)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(error).with_context(|| format!("spool {} cannot be made", dir.display()));
        }
        let dir = dir.canonicalize().with_context(|| format!("spool {}", dir.display()))?;
        ensure!(dir.as_os_str().len() <= TEXT_BYTES, "the path of spool {} is too long", dir.display());
        let spool = Spool { dir };
        spool.probe().inspect_err(|_| spool.remove_if_empty())?;
        Ok(spool)
    }

    /// Tries what every process will do, before the command starts.
    fn probe(&self) -> anyhow::Result<()> {
        let dir = self.dir.display();
        stripewise_recorder::probe(&self.dir).map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => anyhow!(
                "spool {dir} is on a file system that cannot map files shared, so no process could be recorded; \
                 name a directory on another file system with --spool"
            ),
            _ => anyhow!("spool {dir} cannot be used ({error}); name another directory with --spool"),
        })
    }

    fn entries(&self) -> anyhow::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(&self.dir)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>());
        entries.with_context(|| format!("spool {} cannot be read", self.dir.display()))
    }

    fn remove_if_empty(&self) {
        // The call fails if the directory is not empty, as intended.
        let _ = std::fs::remove_dir(&self.dir);
    }

    /// Returns the processes of this machine that still write to the spool; their further calls
    /// will be missing from the trace. Waits up to [`PATIENCE`] for processes that are being
    /// killed, because a launcher does not wait for the ranks that it kills.
    fn still_written(&self) -> anyhow::Result<Vec<String>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let pids = self.writers()?.join(", ");
            if pids.is_empty() {
                return Ok(Vec::new());
            }
            if Instant::now() > deadline {
                return Ok(vec![format!("processes were still running when the command had ended: {pids}")]);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the processes of this machine that have a spool file in the directory.
    fn writers(&self) -> anyhow::Result<Vec<String>> {
        let pids = self.entries()?.into_iter().filter_map(|path| {
            // HOST-PID-TIME.live
            let stem = path.file_name()?.to_str()?.strip_suffix(".live")?.to_string();
            let pid: u32 = stem.rsplit('-').nth(1)?.parse().ok()?;
            let maps = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
            let maps = String::from_utf8_lossy(&maps);
            maps.contains(path.to_str()?).then(|| pid.to_string())
        });
        Ok(pids.collect())
    }

    fn remove(self, keep: bool) -> anyhow::Result<()> {
        if keep {
            eprintln!("stripewise: the spool is kept in {}", self.dir.display());
            return Ok(());
        }
        for path in self.entries()? {
            std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
        }
        std::fs::remove_dir(&self.dir).with_context(|| format!("{} cannot be removed", self.dir.display()))
    }
}

fn merge_spool(spool: &Path, output: &Path, meta: &Meta, quiet: bool) -> anyhow::Result<Merged> {
    let bar = progress::sharing("merging the spool", quiet);
    let merged = merge(spool, output, meta, &mut |fraction| progress::share(&bar, fraction))
        .with_context(|| format!("merging spool {} to {}", spool.display(), output.display()))?;
    bar.finish_and_clear();
    for Correction { node, reference, ahead_ns } in &merged.corrections {
        eprintln!(
            "stripewise: the clock of {node} was {:.6} s {} that of {reference}; the job's collective opens corrected its times",
            ahead_ns.unsigned_abs() as f64 / 1e9,
            if *ahead_ns > 0 { "ahead of" } else { "behind" }
        );
    }
    Ok(merged)
}
