//! What a directory's new files got before a plan was placed in it: a file in the directory, for the way back.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use stripewise_native::NativeLayout;

use crate::files;

/// Its name; what begins so is never a file of a plan.
pub const NAME: &str = ".stripewise-native.toml";

const COMMENT: &str = "# Written by `stripewise place --native`: what this directory's new files got before. `stripewise place --native --undo PLAN` \
    puts it back and removes this file.\n";

/// The record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Former {
    version: u32,
    /// Patterns of the rules whose files in this directory were placed, by any plan.
    pub patterns: Vec<String>,
    /// What new files got; `None`: the file system's own choice.
    pub layout: Option<NativeLayout>,
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

impl Former {
    /// The record of a directory, if something was placed in it.
    ///
    /// # Errors
    /// It cannot be read or understood.
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

    /// Makes sure that the directory, whose new files get `layout` now, remembers it; what it remembers already counts more.
    /// Durable when it returns.
    ///
    /// # Errors
    /// The record cannot be read or written.
    pub fn remember<'a>(
        dir: &Path,
        layout: Option<&NativeLayout>,
        patterns: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<()> {
        let known = Self::of(dir)?;
        let mut former =
            known.clone().unwrap_or(Self { version: 1, patterns: Vec::new(), layout: layout.cloned() });
        for pattern in patterns {
            if !former.patterns.iter().any(|known| known == pattern) {
                former.patterns.push(pattern.to_owned());
            }
        }
        if known.as_ref() == Some(&former) {
            return Ok(());
        }
        let text = format!("{COMMENT}{}", toml::to_string(&former)?);
        write(dir, &text).with_context(|| format!("{} cannot be written", path_in(dir).display()))
    }

    /// Nothing is to be put back any more.
    ///
    /// # Errors
    /// The record cannot be removed.
    pub fn forget(dir: &Path) -> anyhow::Result<()> {
        let path = path_in(dir);
        std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))
    }
}

/// Whole or not at all; under a name of its own first, so that what a kill leaves is written over by the next run.
fn write(dir: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = dir.join(format!("{NAME}.new"));
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
        Former::remember(dir.path(), Some(&first), ["/a/<n>"]).unwrap();
        Former::remember(dir.path(), None, ["/a/<n>", "/a/x"]).unwrap();
        let former = Former::of(dir.path()).unwrap().unwrap();
        assert_eq!((former.layout, former.patterns), (Some(first), vec!["/a/<n>".into(), "/a/x".into()]));
        Former::forget(dir.path()).unwrap();
        assert_eq!(Former::of(dir.path()).unwrap(), None);
        for layout in [None, Some(NativeLayout::even(65536, 4, Some("hdd")))] {
            Former::remember(dir.path(), layout.as_ref(), []).unwrap();
            assert_eq!(Former::of(dir.path()).unwrap().unwrap().layout, layout);
            Former::forget(dir.path()).unwrap();
        }
    }

    #[test]
    fn a_damaged_record_is_said_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["nonsense", "version = 2\npatterns = []\n"] {
            std::fs::write(path_in(dir.path()), text).unwrap();
            let error = Former::of(dir.path()).unwrap_err();
            assert!(format!("{error:#}").contains(NAME), "{error:#}");
            assert!(Former::remember(dir.path(), None, []).is_err());
            assert_eq!(std::fs::read_to_string(path_in(dir.path())).unwrap(), text);
        }
    }
}
