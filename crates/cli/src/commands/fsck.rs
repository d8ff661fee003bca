//! `stripewise fsck` checks and repairs managed files.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use serde_json::json;
use stripewise_console::progress;
use stripewise_datapath::check::{Finding, Options, Report, check, files_of, walk};

use crate::flags::TargetsOf;
use crate::{managed, output};

/// Checks managed files and targets, and repairs them
///
/// Checks manifests, objects and their lengths, interrupted truncates, overwritten anchors, and
/// objects that belong to no file. For files with several copies it also checks the extent map and
/// its journal, finds out which node writes the file, and looks for lost copies. Exits with 1 if
/// there is a problem. Notes are not problems: an anchor whose size is out of date, leftovers of an
/// interrupted creation, a lost copy none of whose bytes are needed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise fsck /scratch/run7                       the managed files below a directory
  stripewise fsck -c cluster.toml                     the files that have objects on these targets
  stripewise fsck -p plan.toml --repair /scratch      and finish, restore and bring up to date what can be
  stripewise fsck -c cluster.toml /scratch --remove-orphans
  stripewise fsck --compare /scratch                  and whether copies that should be the same are
  stripewise fsck --repair --drop-dirty out.dat       the cache is gone for good: names what is lost with it
  stripewise fsck --take-over out.dat                 the node that was writing the file is gone for good

Objects whose file is not below the directories named and not where it was made either are called orphans: name all
directories that a file may have been moved to before you remove any, and move none meanwhile.")]
pub struct Args {
    /// Files, and directories with managed files [default: the paths at which the targets' files
    /// were created]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    targets: TargetsOf,
    /// Finish interrupted truncates, restore damaged or overwritten anchors (the overwriting
    /// content is set aside), bring anchors up to date, rebuild lost extent maps from what was
    /// synced, remove lost copies from the map if their bytes are also elsewhere, and release cache
    /// space that holds no valid data
    #[arg(long)]
    repair: bool,
    /// With --repair: give up bytes that only a lost copy holds, or that only a lost journal
    /// recorded. They are listed
    #[arg(long, requires = "repair")]
    drop_dirty: bool,
    /// Read all valid bytes of every copy of a file, and compare the copies
    #[arg(long)]
    compare: bool,
    /// Take over files that another node was writing when it died, as that node last synced them.
    /// If the node is alive and keeps writing, its data is lost and it may destroy yours: be sure
    /// that it is gone
    #[arg(long)]
    take_over: bool,
    /// With --repair: if a program without stripewise copied an anchor (a restored backup, a move
    /// to another file system), make that copy the file, provided that the original is not among
    /// the files checked. Name all directories where the original may be
    #[arg(long, requires = "repair")]
    adopt: bool,
    /// Remove objects that belong to no file, and leftovers of interrupted migrations and creations
    #[arg(long)]
    remove_orphans: bool,
    /// Seconds without changes after which an object or a temporary file counts as left behind
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    orphan_age: u64,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    /// Suppress progress output
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let targets: Vec<PathBuf> = args.targets.directories()?.into_iter().map(|target| target.path).collect();
    ensure!(
        !args.files.is_empty() || !targets.is_empty(),
        "fsck: nothing to check; name files or directories, or targets with -c CLUSTER or -p PLAN"
    );
    let runtime = managed::runtime(None);
    let roots = managed::all_existing(&args.files)?;
    let listing = if roots.is_empty() { files_of(&runtime, &targets) } else { walk(&runtime, &roots) };
    // Directories may also contain orphans and files of other users, so only a list of files allows
    // the switch to their owner.
    if !roots.is_empty() && roots.iter().all(|root| root.is_file()) {
        managed::act_for_owner(&runtime, &listing.anchors)?;
    }
    let &Args {
        repair, remove_orphans, take_over, compare, drop_dirty, adopt, orphan_age: orphan_age_s, ..
    } = args;
    let options = Options { repair, remove_orphans, take_over, compare, drop_dirty, adopt, orphan_age_s };
    let bar = progress::counting("files checked", args.quiet);
    let report = check(&runtime, &listing, &targets, options, &mut |_| bar.inc(1));
    bar.finish_and_clear();
    if args.json {
        output::json(&to_json(&report))?;
    } else {
        print(&report);
    }
    Ok(output::code(!report.is_clean()))
}

fn print(report: &Report) {
    for finding in &report.findings {
        let state = match finding {
            Finding { repaired: true, .. } => "repaired",
            _ if finding.kind.is_problem() => "problem",
            _ => "note",
        };
        let text = output::without_path(&finding.text, &finding.path);
        println!("{state}: {}: {text} [{}]", finding.path.display(), finding.kind.name());
    }
    let open = report.findings.iter().filter(|finding| finding.kind.is_problem() && !finding.repaired).count();
    println!("{} managed files and {} targets checked: {open} problems", report.files, report.targets);
}

fn to_json(report: &Report) -> serde_json::Value {
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.name(),
            "problem": finding.kind.is_problem(),
            "path": finding.path.display().to_string(),
            "id": finding.id.map(|id| id.to_string()),
            "text": output::without_path(&finding.text, &finding.path),
            "repaired": finding.repaired,
        })
    };
    json!({
        "clean": report.is_clean(),
        "files": report.files,
        "targets": report.targets,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
