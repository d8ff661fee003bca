//! `stripewise place` prepares a plan's targets and moves existing files into its layouts.

mod args;
mod find;
mod native;

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use stripewise_cluster::Plan;
use stripewise_console::progress;
use stripewise_datapath::Runtime;
use stripewise_datapath::migrate::Goal;

pub use args::Args;

use crate::copying::{Manner, Move, migrate_all};
use crate::managed::{self, human};
use crate::preparing;
use find::{Candidate, State};

/// Runs `stripewise place`. A file that fails does not stop the rest.
///
/// # Errors
/// The plan cannot be read, a target is missing, or a file does not exist; then no file is moved.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = managed::plan(&args.plan)?;
    if args.native {
        return native::run(&plan, &args);
    }
    let runtime = managed::runtime(Some(&plan));
    if !args.dry_run {
        preparing::prepare(&plan)?;
    }
    let looking = progress::looking(args.quiet);
    let found = find::find(&runtime, &plan, &args.files)?;
    looking.finish_and_clear();
    if args.dry_run {
        return show(&plan, &found, args.json);
    }
    let (done, code) = place_all(&runtime, &found, &args);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json!({ "files": done }))?);
    } else if !args.quiet {
        let moved = done.iter().filter(|file| file["placed"] == true).count();
        let there = found.iter().filter(|file| file.state == State::Placed).count();
        println!("placed: {moved}; in their layout already: {there}");
    }
    Ok(code)
}

fn place_all(runtime: &Arc<Runtime>, found: &[Candidate<'_>], args: &Args) -> (Vec<Value>, ExitCode) {
    let to_move = found.iter().filter(|file| file.state != State::Placed);
    let total_bytes = to_move.map(|file| file.size_bytes).sum();
    // Files that are in place are included: a run that was killed at its very end may have left
    // something to finish.
    let moves = found.iter().map(|file| Move {
        path: &file.path,
        size_bytes: file.size_bytes,
        goal: Goal::Managed(file.shape),
        scheme: Some(file.scheme),
    });
    let moves: Vec<_> = moves.collect();
    let manner = Manner { verb: "placed", jobs: args.jobs, quiet: args.quiet };
    migrate_all(runtime, &moves, total_bytes, manner)
}

/// Prints what would be done.
fn show(plan: &Plan, found: &[Candidate<'_>], as_json: bool) -> anyhow::Result<ExitCode> {
    let targets = plan.cluster.targets();
    let mut bytes = vec![0; targets.len()];
    for file in found.iter().filter(|file| file.state != State::Placed) {
        for layout in file.shape.whole_layouts() {
            for target in layout.targets() {
                bytes[target as usize] += layout.component_size(target, file.size_bytes);
            }
        }
    }
    let needs: Vec<_> = targets.iter().zip(&bytes).filter(|&(_, &bytes)| bytes > 0).collect();
    if as_json {
        let file = |file: &Candidate<'_>| {
            let state = file.state.name();
            let path = file.path.display().to_string();
            json!({ "path": path, "scheme": file.scheme, "bytes": file.size_bytes, "now": state })
        };
        let need = |(target, bytes): &(&stripewise_cluster::TargetSpec, &u64)| json!({ "name": target.name, "path": target.path.display().to_string(), "bytes": bytes });
        let files: Vec<_> = found.iter().map(file).collect();
        let needs: Vec<_> = needs.iter().map(need).collect();
        println!("{}", serde_json::to_string_pretty(&json!({ "files": files, "targets": needs }))?);
        return Ok(ExitCode::SUCCESS);
    }
    for file in found {
        let (path, size) = (file.path.display(), human(file.size_bytes));
        match file.state {
            State::Placed => println!("{path}: {size}, in its layout already"),
            state => println!("{path}: {size}, {} now, would become {}", state.name(), file.scheme),
        }
    }
    for (target, bytes) in needs {
        println!("target {} ({}): {}", target.name, target.path.display(), human(*bytes));
    }
    if found.is_empty() {
        println!(
            "no existing file matches the plan's patterns; new files get their layout when a program creates them"
        );
    }
    Ok(ExitCode::SUCCESS)
}
