//! Commands that can be pasted into a shell.

use std::path::Path;

use serde::Serialize;
use stripewise_cluster::FileSystem;
use stripewise_native::{NativeLayout, calls, commands, shell};

/// Maximum number of files that get a command of their own.
const FILES_MAX: usize = 4;

/// A command, and what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Command {
    /// What to type.
    pub text: String,
    /// What it does, as a comment.
    pub what: String,
    /// The directory whose new files it is for.
    #[serde(skip)]
    pub directory: Option<String>,
}

impl Command {
    /// A command.
    pub fn new(text: impl Into<String>, what: impl Into<String>) -> Command {
        Command { text: text.into(), what: what.into(), directory: None }
    }
}

/// The commands that give new files of a directory a layout.
pub fn of_directory(system: FileSystem, layout: &NativeLayout, directory: &str) -> Vec<Command> {
    let texts = commands(system, layout, Path::new(directory), true);
    // OrangeFS takes several commands, which belong together.
    let text = texts.join(" && ");
    let what = "new files of the directory".to_owned();
    let command = Command { text, what, directory: Some(directory.to_owned()) };
    if command.text.is_empty() { Vec::new() } else { vec![command] }
}

/// The commands that give existing files a layout. Only Lustre changes a file in place; elsewhere a
/// copy in a directory with the layout replaces it.
pub fn of_files(system: FileSystem, layout: &NativeLayout, files: &[&str]) -> Vec<Command> {
    if files.is_empty() {
        return Vec::new();
    }
    let what = "existing files that are read again";
    if files.len() > FILES_MAX {
        return of_many(system, layout, files).into_iter().collect();
    }
    let of = |file: &&str| match system {
        FileSystem::Lustre => migrate(layout, Path::new(file)),
        _ => {
            let (old, new) = (shell(file), shell(&format!("{file}.new")));
            Some(format!("cp -p {old} {new} && mv {new} {old}"))
        }
    };
    files.iter().filter_map(of).map(|text| Command::new(text, what)).collect()
}

/// `lfs migrate` takes the options of `lfs setstripe`.
fn migrate(layout: &NativeLayout, file: &Path) -> Option<String> {
    let mut call = calls(FileSystem::Lustre, layout, file, false).ok()?.pop()?;
    call[1] = "migrate".to_owned();
    Some(call.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" "))
}

/// One command for all files of the first one's directory with names like its own.
fn of_many(system: FileSystem, layout: &NativeLayout, files: &[&str]) -> Option<Command> {
    let (directory, name) = files[0].rsplit_once('/')?;
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let (directory, stem) = (shell(directory), shell(&format!("{stem}*")));
    if system != FileSystem::Lustre {
        return None;
    }
    let migrate = migrate(layout, Path::new("FILE"))?;
    let migrate = migrate.strip_suffix(" FILE")?;
    Some(Command::new(
        format!("lfs find {directory} -type f -name {stem} -print0 | xargs -0 -n 1 {migrate}"),
        format!("{} existing files that are read again", files.len()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    fn texts(all: Vec<Command>) -> Vec<String> {
        all.into_iter().map(|command| command.text).collect()
    }

    #[test]
    fn directories() {
        let layout = NativeLayout::even(4 * M, 8, None);
        let of = |system| texts(of_directory(system, &layout, "/scratch/my run")).join("\n");
        assert_eq!(of(FileSystem::Lustre), "lfs setstripe -S 4M -c 8 \"/scratch/my run\"");
        assert_eq!(
            of(FileSystem::BeeGfs),
            "beegfs entry set --num-targets=8 --chunk-size=4Mi \"/scratch/my run\""
        );
        assert!(
            of(FileSystem::CephFs)
                .starts_with("setfattr -n ceph.dir.layout -v \"stripe_unit=4194304 stripe_count=8")
        );
        assert!(of(FileSystem::OrangeFs).contains("strip_size:4194304"), "{}", of(FileSystem::OrangeFs));
    }

    #[test]
    fn files_that_exist() {
        let layout = NativeLayout::even(4 * M, 8, Some("flash"));
        assert_eq!(
            texts(of_files(FileSystem::Lustre, &layout, &["/s/x"])),
            ["lfs migrate -S 4M -c 8 -p flash /s/x"]
        );
        let layout = NativeLayout::even(4 * M, 8, None);
        assert_eq!(
            texts(of_files(FileSystem::BeeGfs, &layout, &["/s/x"])),
            ["cp -p /s/x /s/x.new && mv /s/x.new /s/x"]
        );
        let names: Vec<String> = (0..9).map(|i| format!("/s/x.{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let many = texts(of_files(FileSystem::Lustre, &layout, &names));
        assert_eq!(many, ["lfs find /s -type f -name \"x.*\" -print0 | xargs -0 -n 1 lfs migrate -S 4M -c 8"]);
    }
}
