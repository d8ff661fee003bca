//! `stripewise fsck`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;
use stripewise_datapath::check::{Finding, Options, Report, check, files_of, walk};

use crate::flags::TargetsOf;
use crate::managed;
use crate::progress::Progress;

/// Checks managed files and targets, and repairs them
///
/// Looks at manifests, components and their lengths, interrupted truncates, overwritten anchors, and components that belong
/// to no file; of files with several copies, at the extent map and its journal, at who writes the file, and for lost copies.
/// Exits with 1 if something is wrong; a note (an anchor whose size is not up to date, what an interrupted creation left, a
/// lost copy of which nothing is needed) is nothing wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise fsck /scratch/run7                       the managed files below a directory
  stripewise fsck -c cluster.toml                     the files that have components on these targets
  stripewise fsck -p plan.toml --repair /scratch      and finish, restore and bring up to date what can be
  stripewise fsck -c cluster.toml /scratch --remove-orphans
  stripewise fsck --compare /scratch                  and whether copies that should be the same are
  stripewise fsck --repair --drop-dirty out.dat       the cache is gone for good: names what is lost with it
  stripewise fsck --take-over out.dat                 the node that was writing the file is gone for good

Components whose file is not below the directories named and not where it was made either are called orphans: name all
directories that a file may have been moved to before you remove any, and move none meanwhile.")]
pub struct Args {
    /// Files, and directories with managed files [default: where the targets' files were made]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    targets: TargetsOf,
    /// Finish interrupted truncates, restore damaged and overwritten anchors (what is there is set aside), bring anchors up
    /// to date; rebuild lost extent maps from what was synced, forget lost copies whose bytes are elsewhere, too, and give
    /// back space of caches that holds nothing
    #[arg(long)]
    repair: bool,
    /// With --repair: give up bytes that only a lost copy has, or that a lost journal knew of. They are named
    #[arg(long, requires = "repair")]
    drop_dirty: bool,
    /// Read everything that several copies of a file have, and compare it
    #[arg(long)]
    compare: bool,
    /// Go on with what another node had synced that died while it was writing. If it lives and goes on writing, its data is
    /// lost, and it may destroy yours: be sure that it is gone
    #[arg(long)]
    take_over: bool,
    /// With --repair: make a copy of an anchor that a program without stripewise made (a restored
    /// backup, a move to another file system) the file, where the original is not among the files
    /// looked at. Name all directories where it may be
    #[arg(long, requires = "repair")]
    adopt: bool,
    /// Remove components that belong to no file, and what interrupted migrations and creations left
    #[arg(long)]
    remove_orphans: bool,
    /// Seconds that something must have been unchanged for before it counts as left behind
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    orphan_age: u64,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    /// Say nothing while it works
    #[arg(short, long)]
    quiet: bool,
}

/// Checks, and prints what was found.
///
/// # Errors
/// A cluster or plan file that cannot be read; nothing to check.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let targets: Vec<PathBuf> = args.targets.directories()?.into_iter().map(|target| target.path).collect();
    if args.files.is_empty() && targets.is_empty() {
        bail!("fsck: nothing to check; name files or directories, or targets with -c CLUSTER or -p PLAN");
    }
    let runtime = managed::runtime(None);
    let roots = args.files.iter().map(|path| managed::existing(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let listing = if roots.is_empty() { files_of(&runtime, &targets) } else { walk(&runtime, &roots) };
    // Below directories there are others' files, too, and orphans.
    if !roots.is_empty() && roots.iter().all(|root| root.is_file()) {
        managed::act_for_owner(&runtime, &listing.anchors)?;
    }
    let options = Options {
        repair: args.repair,
        remove_orphans: args.remove_orphans,
        take_over: args.take_over,
        compare: args.compare,
        drop_dirty: args.drop_dirty,
        adopt: args.adopt,
        orphan_age_s: args.orphan_age,
    };
    let progress = Progress::counting("files checked", args.quiet);
    let mut looked = 0;
    let report = check(&runtime, &listing, &targets, options, &mut |_| {
        looked += 1;
        progress.count(looked);
    });
    progress.finish();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&to_json(&report))?);
    } else {
        print(&report);
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &Report) {
    for finding in &report.findings {
        let state = match finding {
            Finding { repaired: true, .. } => "repaired",
            _ if finding.kind.is_problem() => "problem",
            _ => "note",
        };
        println!("{state}: {}: {} [{}]", finding.path.display(), said(finding), finding.kind.name());
    }
    let open = report.findings.iter().filter(|finding| finding.kind.is_problem() && !finding.repaired).count();
    println!("{} managed files and {} targets checked: {open} problems", report.files, report.targets);
}

/// The text without the path that it may begin with.
fn said(finding: &Finding) -> &str {
    let path = format!("{}: ", finding.path.display());
    finding.text.strip_prefix(&path).unwrap_or(&finding.text)
}

fn to_json(report: &Report) -> serde_json::Value {
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.name(),
            "problem": finding.kind.is_problem(),
            "path": finding.path.display().to_string(),
            "id": finding.id.map(|id| id.to_string()),
            "text": said(finding),
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
