//! `stripewise place` prepares a plan's targets and moves existing files into its layouts.

mod args;
mod asking;
pub mod find;
mod native;

use std::process::ExitCode;

use serde_json::json;
use stripewise_cluster::{Plan, TargetSpec};
use stripewise_console::progress;
use stripewise_datapath::migrate::Goal;

use crate::copying::migrate_all;
use crate::output::{self, human};
use crate::{files, managed, preparing};
pub use args::Args;
use find::{Candidate, State};

/// A file that fails does not stop the rest.
///
/// No file moves if a target is missing or a file does not exist.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = files::plan(&args.plan)?;
    if args.native {
        return native::run(&plan, args);
    }
    let runtime = managed::runtime(Some(&plan));
    if !args.dry_run {
        preparing::prepare(&plan)?;
    }
    let looking = progress::looking(args.flags.quiet);
    let found = find::find(&runtime, &plan, &args.files)?;
    looking.finish_and_clear();
    if args.dry_run {
        show(&plan, &found, args.flags.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let moved: Vec<_> = found.iter().filter(|file| file.state != State::Placed).collect();
    asking::confirm(&moved, args)?;
    let total_bytes = find::moves(&found).bytes;
    // Files that are in place are included: a run that was killed at its very end may have left
    // something to finish.
    let moves: Vec<_> = found.iter().map(|file| file.as_move(Goal::Managed(file.shape))).collect();
    let (done, failed) = migrate_all(&runtime, &moves, total_bytes, "placed", &args.flags);
    if args.flags.json {
        output::json(&json!({ "files": done }))?;
    } else if !args.flags.quiet {
        let moved = done.iter().filter(|file| file["placed"] == true).count();
        let there = found.iter().filter(|file| file.state == State::Placed).count();
        println!("placed: {moved}; in their layout already: {there}");
    }
    Ok(output::code(failed))
}

fn show(plan: &Plan, found: &[Candidate<'_>], as_json: bool) -> anyhow::Result<()> {
    let targets = plan.cluster.targets();
    let mut bytes = vec![0; targets.len()];
    for file in found.iter().filter(|file| file.state != State::Placed) {
        for layout in file.shape.whole_layouts() {
            for target in layout.targets() {
                bytes[target as usize] += layout.object_size(target, file.size_bytes);
            }
        }
    }
    let needs: Vec<_> = targets.iter().zip(&bytes).filter(|&(_, &bytes)| bytes > 0).collect();
    if as_json {
        let file = |Candidate { path, rule, size_bytes, state, .. }: &Candidate<'_>| {
            let path = path.display().to_string();
            json!({ "path": path, "scheme": rule.scheme, "bytes": size_bytes, "now": state.name() })
        };
        let need = |&(TargetSpec { name, path, .. }, bytes): &(&TargetSpec, &u64)| json!({ "name": name, "path": path.display().to_string(), "bytes": bytes });
        let files: Vec<_> = found.iter().map(file).collect();
        let needs: Vec<_> = needs.iter().map(need).collect();
        return output::json(&json!({ "files": files, "targets": needs, "moves": find::moves(found) }));
    }
    for file in found {
        let (path, size) = (file.path.display(), human(file.size_bytes));
        match file.state {
            State::Placed => println!("{path}: {size}, in its layout already"),
            state => println!("{path}: {size}, {} now, would become {}", state.name(), file.rule.scheme),
        }
    }
    for (target, bytes) in needs {
        println!("target {} ({}): {}", target.name, target.path.display(), human(*bytes));
    }
    if !found.is_empty() {
        let there = found.iter().filter(|file| file.state == State::Placed).count();
        println!("to move: {}; in their layout already: {there}", find::format(find::moves(found)));
    } else {
        println!(
            "no existing file matches the plan's patterns; new files get their layout when a program creates them"
        );
    }
    Ok(())
}
