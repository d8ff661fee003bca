//! Output of `place --native`.

use serde_json::{Value, json};

use super::super::Args;
use super::directories::Directory;
use super::planned::Planned;
use super::site::Site;
use crate::output::{self, human};

/// Prints what would be done.
pub fn preview(
    site: &Site<'_>,
    directories: &[Directory<'_>],
    files: &[Planned<'_>],
    as_json: bool,
) -> anyhow::Result<()> {
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
        let mut entry = json!({ "path": path, "scheme": planned.file.rule.scheme, "bytes": bytes, "placed": planned.there });
        match &planned.maker {
            Ok(maker) => {
                let word = if planned.there { "has" } else { "would get" };
                lines.push(format!("{path}: {}, {word} {}", human(bytes), maker.wanted));
                entry["layout"] = maker.wanted.to_string().into();
            }
            Err(why) => {
                lines.push(format!("{path}: {}, would stay as it is: {why}", human(bytes)));
                entry["error"] = why.as_str().into();
            }
        }
        listed.push(entry);
    }
    if as_json {
        return output::json(&json!({ "directories": dirs, "files": listed }));
    }
    lines.iter().for_each(|line| println!("{line}"));
    let move_bytes =
        files.iter().filter(|file| !file.there && file.maker.is_ok()).map(|file| file.file.size_bytes).sum();
    println!("{}: {} to copy", site.system.title(), human(move_bytes));
    Ok(())
}

/// Prints what was done; `verb` names it, for lines and as the key of each file's result.
pub fn result(directories: &[Value], files: &[Value], verb: &str, args: &Args) -> anyhow::Result<()> {
    if args.json {
        output::json(&json!({ "directories": directories, "files": files }))?;
    } else if !args.quiet {
        let count = |value: bool| files.iter().filter(|file| file[verb] == value).count();
        println!("{verb}: {}; in their layout already: {}", count(true), count(false));
    }
    Ok(())
}
