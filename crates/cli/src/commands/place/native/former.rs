//! Records, in a file in each directory, which layout the directory's new files got before a plan
//! was placed there. `--undo` reads this file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use stripewise_drivers::Actual;
use stripewise_native::NativeLayout;

use super::super::find::RECORD;
use crate::files;

const COMMENT: &str = "# Written by `stripewise place --native`: what this directory's new files got before. `stripewise place --native --undo PLAN` \
    puts it back and removes this file.\n";

/// The record of one directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Former {
    version: u32,
    /// Patterns of the rules whose files in this directory were placed, by any plan.
    pub patterns: Vec<String>,
    /// The directory's complete former setting, if the file system reports one: see
    /// [`Actual::exact`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// The complete former settings of files that differed from what the directory gave, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Former layout of new files; `None` means the file system's own choice.
    pub layout: Option<NativeLayout>,
}

/// A change that is about to be made in a directory.
pub struct Change<'a> {
    pub pattern: &'a str,
    /// An existing file's name and its complete present setting, if the file system reports one.
    pub file: Option<(&'a str, &'a str)>,
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(RECORD)
}

impl Former {
    /// Reads the record of a directory; `None` if nothing was placed in it.
    pub fn of(dir: &Path) -> anyhow::Result<Option<Self>> {
        let path = path_in(dir);
        if !path.exists() {
            return Ok(None);
        }
        let text = files::read(&path)?;
        let remedy = "it was changed or is of another version; write the directory's former layout by hand";
        let former: Self = toml::from_str(&text).with_context(|| format!("{}: {remedy}", path.display()))?;
        anyhow::ensure!(former.version == 1, "{}: version {}: {remedy}", path.display(), former.version);
        Ok(Some(former))
    }

    /// Records the present layout of a directory's new files (`now`) and of the files in it that
    /// are about to change. Existing entries of the record are kept, because they are older. The
    /// record is durable when this returns.
    pub fn remember<'a>(
        dir: &Path,
        now: &Actual,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> anyhow::Result<()> {
        let known = Self::of(dir)?;
        let mut former = known.clone().unwrap_or_else(|| Self::anew(now));
        let before = former.patterns.clone();
        for Change { pattern, file } in changes {
            if !former.patterns.iter().any(|known| known == pattern) {
                former.patterns.push(pattern.to_owned());
            }
            // Files of a recorded pattern were placed before, so their present setting is not the
            // former one.
            let Some((name, exact)) = file.filter(|_| !before.iter().any(|known| known == pattern)) else {
                continue;
            };
            if ![&now.exact, &former.exact].iter().any(|given| given.as_deref() == Some(exact)) {
                former.files.entry(name.to_owned()).or_insert_with(|| exact.to_owned());
            }
        }
        if known.as_ref() == Some(&former) {
            return Ok(());
        }
        let text = format!("{COMMENT}{}", toml::to_string(&former)?);
        write(dir, &text).with_context(|| format!("{} cannot be written", path_in(dir).display()))
    }

    fn anew(now: &Actual) -> Self {
        let exact = now.exact.clone().filter(|_| !now.inherited);
        Self { version: 1, patterns: Vec::new(), exact, files: BTreeMap::new(), layout: now.layout.clone() }
    }

    pub fn forget(dir: &Path) -> anyhow::Result<()> {
        let path = path_in(dir);
        std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))
    }
}

/// Writes the record whole or not at all. The temporary name is fixed, so that the next run
/// overwrites what a kill left.
fn write(dir: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = dir.join(format!("{RECORD}.new"));
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path_in(dir))?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use stripewise_native::{Component, Stripe};

    use super::*;

    #[test]
    fn the_first_layout_is_remembered_and_all_patterns() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Former::of(dir.path()).unwrap(), None);
        let part = |end, servers: &[&str]| {
            let servers = servers.iter().map(|&server| server.to_owned()).collect();
            Component { end, stripe: Stripe::Listed { width: 1 << 20, servers } }
        };
        let first = NativeLayout { components: vec![part(Some(1 << 30), &["0"]), part(None, &["1", "2"])] };
        let of = |layout: Option<&NativeLayout>| Actual { layout: layout.cloned(), ..Actual::default() };
        let for_patterns = |patterns: &[&'static str]| {
            patterns.iter().map(|pattern| Change { pattern, file: None }).collect::<Vec<_>>()
        };
        Former::remember(dir.path(), &of(Some(&first)), for_patterns(&["/a/<n>"])).unwrap();
        Former::remember(dir.path(), &of(None), for_patterns(&["/a/<n>", "/a/x"])).unwrap();
        let former = Former::of(dir.path()).unwrap().unwrap();
        assert_eq!((former.layout, former.patterns), (Some(first), vec!["/a/<n>".into(), "/a/x".into()]));
        Former::forget(dir.path()).unwrap();
        assert_eq!(Former::of(dir.path()).unwrap(), None);
        for layout in [None, Some(NativeLayout::even(65536, 4, Some("hdd")))] {
            Former::remember(dir.path(), &of(layout.as_ref()), []).unwrap();
            assert_eq!(Former::of(dir.path()).unwrap().unwrap().layout, layout);
            Former::forget(dir.path()).unwrap();
        }
    }

    #[test]
    fn all_that_directories_and_files_had_is_remembered_once() {
        let dir = tempfile::tempdir().unwrap();
        let has = |exact: &str, inherited| Actual { exact: Some(exact.into()), inherited, ..Actual::default() };
        let change = |pattern, name, exact| Change { pattern, file: Some((name, exact)) };
        let files =
            [change("/p", "plain", "own"), change("/p", "other", "4M"), change("/p", "a \"b\"=c", "8M")];
        Former::remember(dir.path(), &has("own", false), files).unwrap();
        // The first placement changes the files and their directory. A second plan follows.
        Former::remember(
            dir.path(),
            &has("128M", false),
            [change("/p", "plain", "x"), change("/p", "other", "x")],
        )
        .unwrap();
        let files = [change("/q", "new", "128M"), change("/q", "old", "own"), change("/q", "third", "2M")];
        Former::remember(dir.path(), &has("128M", false), files).unwrap();
        let former = Former::of(dir.path()).unwrap().unwrap();
        assert_eq!(
            (former.exact.as_deref(), &former.patterns[..]),
            (Some("own"), &["/p".into(), "/q".into()][..])
        );
        let files = [("a \"b\"=c", "8M"), ("other", "4M"), ("third", "2M")];
        assert_eq!(former.files, files.map(|(name, exact)| (name.into(), exact.into())).into());
        Former::forget(dir.path()).unwrap();
        Former::remember(dir.path(), &has("above", true), [change("/p", "f", "above")]).unwrap();
        let former = Former::of(dir.path()).unwrap().unwrap();
        assert_eq!(
            (former.exact, former.files.len()),
            (None, 0),
            "what one above it gives comes back by itself"
        );
    }

    #[test]
    fn a_record_of_a_version_that_did_not_know_all_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let text = "version = 1\npatterns = [\"/a/**\"]\n\n[[layout.components]]\n\n[layout.components.stripe.even]\n\
            width = 65536\ncount = 4\npool = \"hdd\"\n";
        std::fs::write(path_in(dir.path()), text).unwrap();
        let former = Former::of(dir.path()).unwrap().unwrap();
        assert_eq!(former.layout, Some(NativeLayout::even(65536, 4, Some("hdd"))));
        assert_eq!((former.exact, former.files.len()), (None, 0));
    }

    #[test]
    fn a_damaged_record_is_said_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["nonsense", "version = 2\npatterns = []\n"] {
            std::fs::write(path_in(dir.path()), text).unwrap();
            let error = Former::of(dir.path()).unwrap_err();
            assert!(format!("{error:#}").contains(RECORD), "{error:#}");
            assert!(Former::remember(dir.path(), &Actual::default(), []).is_err());
            assert_eq!(std::fs::read_to_string(path_in(dir.path())).unwrap(), text);
        }
    }
}
