//! `stripewise status` shows targets and managed files.

mod copies;
mod files;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use serde::Serialize;
use serde_json::{Value, json};
use stripewise_datapath::Runtime;
use stripewise_datapath::check::walk;
use stripewise_target::{Target, TargetError};

use crate::flags::{TargetDirectory, TargetsOf};
use crate::managed;
use crate::output::{self, human};
use files::FileStatus;

/// Shows targets, and where the bytes of managed files are
///
/// For a file with several copies it shows the bytes of each copy by state, the processes that have
/// the file open, and the operations since it was opened. The states are: valid (the copy has the
/// newest bytes), dirty (the copy has bytes newer than the original's), stale (the copy lacks the
/// newest bytes), and wanted (queued to be fetched into a cache). If the file's targets have
/// `sessions = true`, it lists the nodes that have the file open and those that died while they
/// had.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise status out.dat               one file: its layout, and how many bytes are where
  stripewise status /scratch/run7         all managed files below a directory
  stripewise status --json out.dat        the same for programs
  stripewise status -c cluster.toml       the targets: free space, bytes of objects, and of caches beside their limit")]
pub struct Args {
    /// Files, and directories with managed files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    targets: TargetsOf,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Exits with 1 if a target or a copy is missing or a file cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let directories = args.targets.directories()?;
    ensure!(
        !args.files.is_empty() || !directories.is_empty(),
        "status: nothing to show; name files or directories, or targets with -c CLUSTER or -p PLAN"
    );
    let runtime = managed::runtime(None);
    let targets: Vec<_> = directories.into_iter().map(|target| TargetStatus::of(&runtime, target)).collect();
    let roots = managed::all_existing(&args.files)?;
    let listing = walk(&runtime, &roots);
    if roots.iter().all(|root| root.is_file()) {
        managed::act_for_owner(&runtime, &listing.anchors)?;
    }
    let mut files: Vec<_> = listing.anchors.iter().map(|path| files::look(&runtime, path)).collect();
    // Plain files are shown only if they were named.
    files.extend(listing.plain.iter().filter(|path| roots.contains(path)).map(|path| files::plain(path)));
    if args.json {
        let files: Vec<_> = files.iter().map(files::to_json).collect();
        let targets: Vec<_> = targets.iter().map(TargetStatus::to_json).collect();
        output::json(&json!({ "targets": targets, "files": files }))?;
    } else {
        print_targets(&targets);
        files.iter().for_each(files::print);
    }
    let failed =
        targets.iter().any(|target| target.content.is_err()) || files.iter().any(FileStatus::has_failed);
    Ok(output::code(failed))
}

/// Status of one target.
struct TargetStatus {
    path: PathBuf,
    /// What is in it, or why it cannot be used.
    content: Result<Content, String>,
}

/// The content of a target, as `--json` shows it.
#[derive(Default, Serialize)]
struct Content {
    name: String,
    id: String,
    emulated: bool,
    free_bytes: u64,
    objects: u64,
    object_bytes: u64,
    /// Bytes that cache copies occupy on the disk.
    cached_bytes: u64,
    cache_limit_bytes: u64,
}

impl TargetStatus {
    fn of(runtime: &Runtime, directory: TargetDirectory) -> Self {
        let TargetDirectory { path, emulated, cache_limit_bytes } = directory;
        let look = || -> Result<Content, TargetError> {
            let target = Target::open(runtime.sys(), &path, None)?;
            let mut content = Content {
                name: target.name().to_owned(),
                id: target.id().to_owned(),
                emulated,
                free_bytes: target.free_bytes()?,
                cache_limit_bytes,
                ..Content::default()
            };
            for object in target.list_objects()?.iter().filter(|found| found.object.is_some()) {
                content.objects += 1;
                content.object_bytes += object.size;
                content.cached_bytes += if object.cached { object.allocated } else { 0 };
            }
            Ok(content)
        };
        let content = look().map_err(|error| error.to_string());
        Self { path, content }
    }

    fn to_json(&self) -> Value {
        let mut entry = match &self.content {
            Ok(content) => json!(content),
            Err(problem) => json!({ "problem": problem }),
        };
        entry["path"] = self.path.display().to_string().into();
        entry["ok"] = self.content.is_ok().into();
        entry
    }
}

fn print_targets(targets: &[TargetStatus]) {
    let header = ["target", "directory", "free", "objects", "bytes", "cached", "limit", ""];
    let mut table = output::table(header, 2..8);
    for TargetStatus { path, content } in targets {
        let Ok(content) = content else { continue };
        table.add_row([
            content.name.clone(),
            path.display().to_string(),
            human(content.free_bytes),
            content.objects.to_string(),
            human(content.object_bytes),
            human(content.cached_bytes),
            human(content.cache_limit_bytes),
            if content.emulated { "emulated" } else { "" }.to_owned(),
        ]);
    }
    if table.row_count() > 0 {
        println!("{}", table.to_string().trim_end());
    }
    for problem in targets.iter().filter_map(|target| target.content.as_ref().err()) {
        println!("problem: {problem}");
    }
}
