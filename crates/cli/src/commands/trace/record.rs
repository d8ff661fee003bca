//! Runs a command with the recorder and merges what its processes leave.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use stripewise_recorder::{ENV_DIR, ENV_EXCLUDE, ENV_LIMIT, ENV_ONLY, TEXT_BYTES};
use stripewise_trace::Meta;

use super::args::Args;
use super::{merge_spool, print_summary};
use crate::trace_launch;

/// How long processes may go on after the command has ended.
const PATIENCE: Duration = Duration::from_secs(3);

/// Groups of files that are shown after a run.
const GROUPS_SHOWN: usize = 10;

/// Records the command; its exit code is the result, whatever it is, unless no trace could be made.
pub fn run(args: &Args, output: &Path) -> anyhow::Result<ExitCode> {
    let libraries = trace_launch::libraries(args.lib.as_deref(), &args.mpi)?;
    let spool = Spool::create(args, output)?;
    let mut command = Command::new(&args.command[0]);
    command
        .args(&args.command[1..])
        .env("LD_PRELOAD", trace_launch::ld_preload(&libraries))
        .env(ENV_DIR, &spool.dir)
        .env(ENV_ONLY, patterns(&args.only)?)
        .env(ENV_EXCLUDE, patterns(&args.exclude)?)
        .env(ENV_LIMIT, args.limit.to_string());
    let start = Instant::now();
    let status = trace_launch::run(&mut command).inspect_err(|_| spool.remove_if_empty())?;
    let meta = Meta {
        command: args.command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
        wall_s: Some(start.elapsed().as_secs_f64()),
        exit_code: Some(trace_launch::exit_code(status)),
        ..Meta::default()
    };
    spool.remove_if_empty();
    ensure!(
        spool.dir.exists(),
        "{} was not recorded ({status}): it did not load {}. Is it linked statically, set-uid, or not using the C library?",
        args.command[0].display(),
        libraries[0].display()
    );
    let meta = Meta { incomplete: spool.still_written()?, ..meta };
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
    if args.json {
        print_summary(output, true, usize::MAX)?;
    } else if !args.quiet {
        print_summary(output, false, GROUPS_SHOWN)?;
    }
    Ok(trace_launch::exit_code(status).into())
}

/// The patterns as the recorder takes them: absolute if they have a `/`, `:` between them.
fn patterns(patterns: &[String]) -> anyhow::Result<String> {
    let here = std::env::current_dir().context("the current directory is not known")?;
    let absolute = patterns.iter().filter(|pattern| !pattern.is_empty()).map(|pattern| {
        let relative = pattern.contains('/') && !pattern.starts_with(['/', '*']);
        if relative { format!("{}/{pattern}", here.display()) } else { pattern.clone() }
    });
    let joined = absolute.collect::<Vec<_>>().join(":");
    ensure!(
        joined.len() <= TEXT_BYTES,
        "the patterns have {} bytes: at most {TEXT_BYTES} are possible",
        joined.len()
    );
    Ok(joined)
}

/// The spool's directory.
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
        if std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
            let dir = dir.display();
            bail!(
                "spool {dir} is not empty: `stripewise trace --merge {dir} -o TRACE` makes a trace of it, or remove it"
            );
        }
        // Not those above it: a directory that is mistyped is not to appear.
        match std::fs::create_dir(&dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("spool {} cannot be made", dir.display()));
            }
            _ => {}
        }
        let dir = dir.canonicalize().with_context(|| format!("spool {}", dir.display()))?;
        ensure!(
            dir.as_os_str().as_bytes().len() <= TEXT_BYTES,
            "the path of spool {} is too long",
            dir.display()
        );
        Ok(Spool { dir })
    }

    fn entries(&self) -> anyhow::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(&self.dir)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>());
        entries.with_context(|| format!("spool {} cannot be read", self.dir.display()))
    }

    fn remove_if_empty(&self) {
        // It fails if there is something in it, which is what is wanted.
        let _ = std::fs::remove_dir(&self.dir);
    }

    /// Whether processes of this machine are still at it: then their further calls will be missing. Those that are just
    /// being ended (a launcher does not wait for the ranks that it kills) get some time.
    fn still_written(&self) -> anyhow::Result<Vec<String>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let pids = self.writers()?;
            if pids.is_empty() {
                return Ok(Vec::new());
            }
            if Instant::now() > deadline {
                let pids = pids.join(", ");
                return Ok(vec![format!("processes were still running when the command had ended: {pids}")]);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processes of this machine that have a spool in the directory.
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
