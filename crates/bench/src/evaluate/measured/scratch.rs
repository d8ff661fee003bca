//! Temporary directory of a measurement.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// A directory that belongs to this process alone and is removed on drop.
pub struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// Creates the directory in `parent`. Its name contains no digits, because plans would take
    /// these for file numbers.
    pub fn create(parent: &Path) -> anyhow::Result<Self> {
        let letter = |digit: char| char::from(b'a' + digit.to_digit(10).unwrap_or(0) as u8);
        let letters: String = std::process::id().to_string().chars().map(letter).collect();
        let parent = parent.canonicalize().with_context(|| format!("cannot use '{}'", parent.display()))?;
        let scratch = Self { dir: parent.join(format!("stripewise-evaluate-{letters}")) };
        scratch.clear()?;
        Ok(scratch)
    }

    /// Removes everything in the directory.
    pub fn clear(&self) -> anyhow::Result<()> {
        let shown = self.dir.display();
        remove(&self.dir).with_context(|| format!("cannot empty '{shown}'"))?;
        std::fs::create_dir(&self.dir).with_context(|| format!("cannot make '{shown}'"))
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.dir) {
            eprintln!("stripewise-bench: {} is left: {error}", self.dir.display());
        }
    }
}

fn remove(dir: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
