//! Output of `place --native`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::super::args::Args;
use super::super::find::Candidate;
use super::directories::Directory;
use super::former::Former;
use super::planned::Planned;
use super::wanted::Site;
use crate::managed::human;

/// Prints what would be done.
pub fn plan(
    site: &Site<'_>,
    directories: &[Directory<'_>],
    files: &[Planned<'_>],
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let (mut dirs, mut listed, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for dir in directories {
        let path = dir.path.display().to_string();
        match &dir.wanted {
            Ok(layout) => {
                let there = dir.has(&*site.driver, layout)?;
                let word = if there { "get" } else { "would get" };
                lines.push(format!("{path}: new files {word} {layout}"));
                lines.extend(dir.kept_lines());
                dirs.push(json!({ "path": path, "layout": layout.to_string(), "prepared": there }));
            }
            Err(why) => {
                lines.push(format!("{path}: new files would get what they get now: {why}"));
                dirs.push(json!({ "path": path, "error": why }));
            }
        }
    }
    for planned in files {
        let (path, bytes) = (planned.file.path.display().to_string(), planned.file.size_bytes);
        let mut entry =
            json!({ "path": path, "scheme": planned.file.scheme, "bytes": bytes, "placed": planned.there });
        match &planned.wanted {
            Ok(maker) => {
                let word = if planned.there { "has" } else { "would get" };
                lines.push(format!("{path}: {}, {word} {}", human(bytes), maker.layout));
                entry["layout"] = maker.layout.to_string().into();
            }
            Err(why) => {
                lines.push(format!("{path}: {}, would stay as it is: {why}", human(bytes)));
                entry["error"] = why.as_str().into();
            }
        }
        listed.push(entry);
    }
    if as_json {
        println!("{}", serde_json::to_string_pretty(&json!({ "directories": dirs, "files": listed }))?);
        return Ok(ExitCode::SUCCESS);
    }
    lines.iter().for_each(|line| println!("{line}"));
    let move_bytes =
        files.iter().filter(|file| !file.there && file.wanted.is_ok()).map(|file| file.file.size_bytes).sum();
    println!("{}: {} to copy", site.system.title(), human(move_bytes));
    Ok(ExitCode::SUCCESS)
}

/// Prints what was done.
pub fn done(directories: &[Value], files: &[Value], args: &Args) -> anyhow::Result<()> {
    say(directories, files, "placed", args)
}

/// Prints what was reverted.
pub fn undone(directories: &[Value], files: &[Value], args: &Args) -> anyhow::Result<()> {
    say(directories, files, "restored", args)
}

fn say(directories: &[Value], files: &[Value], verb: &str, args: &Args) -> anyhow::Result<()> {
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json!({ "directories": directories, "files": files }))?);
    } else if !args.quiet {
        let count = |value: bool| files.iter().filter(|file| file[verb] == value).count();
        println!("{verb}: {}; in their layout already: {}", count(true), count(false));
    }
    Ok(())
}

/// Prints what would be reverted.
pub fn undo(placed: &[(&PathBuf, &Former, &[Candidate<'_>])], as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        let dir = |(path, former, files): &(&PathBuf, &Former, &[Candidate<'_>])| {
            let layout = former.layout.as_ref().map(ToString::to_string);
            json!({ "path": path.display().to_string(), "layout": layout, "files": files.len() })
        };
        let dirs: Vec<_> = placed.iter().map(dir).collect();
        println!("{}", serde_json::to_string_pretty(&json!({ "directories": dirs }))?);
        return Ok(ExitCode::SUCCESS);
    }
    for (path, former, files) in placed {
        let layout =
            former.layout.as_ref().map_or("what the file system gives".to_owned(), ToString::to_string);
        println!("{}: new files, and {} existing ones, would get {layout}", path.display(), files.len());
    }
    if placed.is_empty() {
        println!("nothing was placed natively where the plan's patterns lead");
    }
    Ok(ExitCode::SUCCESS)
}
