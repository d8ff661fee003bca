//! `stripewise init` writes a cluster.toml for the storage behind some directories.

mod drafts;
mod look;
mod text;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::json;

use crate::{files, managed, output};
use drafts::Draft;
use look::Place;

/// Inspects the storage behind directories, and writes a commented cluster.toml
///
/// Directories on CephFS, Lustre, BeeGFS or OrangeFS become tiers of that file system, with the
/// servers and pools on which this user may place files; their targets will be created in the
/// directory. Any other directory becomes a server of its own: name one directory per disk or
/// mount. The inspection creates and removes small files in the directories and changes nothing
/// else. Capacities are the space that is free now. Performance is not measured here; run
/// `stripewise calibrate` next.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise init /scratch                                a server for each directory; to look at
  stripewise init /scratch -o disks.toml                  and written
  stripewise init /scratch --json                         what was found, for scripts
  stripewise init /mnt/cephfs/me/targets -o cluster.toml   the servers and pools of a parallel file system")]
pub struct Args {
    /// Directories to keep targets in
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Write the cluster file here [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing output file
    #[arg(long)]
    force: bool,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(output) = &args.output {
        let there = output.try_exists().with_context(|| format!("cannot look at {}", output.display()))?;
        ensure!(
            args.force || !there,
            "{} exists; name another file with -o, or overwrite it with --force",
            output.display()
        );
    }
    let places: Vec<Place> =
        managed::all_existing(&args.directories)?.into_iter().map(look::look).collect::<Result<_, _>>()?;
    let drafts = drafts::of(&places)?;
    let text = text::cluster(&places, &drafts);
    // The written file must parse.
    let read = stripewise_cluster::Cluster::parse_uncalibrated(&text, "the new cluster file");
    read.context("the file system has names that a cluster file cannot have")?;
    if let Some(output) = &args.output {
        files::write_whole(output, &text)?;
    }
    if args.json {
        return output::json(&json!({
            "cluster": text,
            "output": args.output.as_ref().map(|path| path.display().to_string()),
            "directories": places.iter().map(Place::json).collect::<Vec<_>>(),
            "tiers": drafts.iter().map(Draft::json).collect::<Vec<_>>(),
        }));
    }
    let Some(output) = &args.output else {
        print!("{text}");
        return Ok(());
    };
    for draft in &drafts {
        println!("{}", draft.summary());
    }
    for place in &places {
        for right in place.probe.iter().flat_map(|probe| &probe.rights) {
            println!("note: {}: {right}", place.path.display());
        }
    }
    println!("{} written; next: stripewise calibrate -c {0}", output.display());
    Ok(())
}
