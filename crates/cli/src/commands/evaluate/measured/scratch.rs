//! Where everything of a measurement lies for as long as it takes.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// A directory of this process alone, removed with it.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// Makes it in `parent`. Its name has no digits, which plans take for numbers of files.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(parent: &Path) -> anyhow::Result<Self> {
        let letter = |digit: char| char::from(b'a' + digit.to_digit(10).unwrap_or(0) as u8);
        let letters: String = std::process::id().to_string().chars().map(letter).collect();
        let parent = parent.canonicalize().with_context(|| format!("cannot use '{}'", parent.display()))?;
        let scratch = Self { dir: parent.join(format!("stripewise-evaluate-{letters}")) };
        scratch.clear()?;
        Ok(scratch)
    }

    /// Removes everything in it.
    ///
    /// # Errors
    /// The directory cannot be emptied.
    pub fn clear(&self) -> anyhow::Result<()> {
        let shown = self.dir.display();
        remove(&self.dir).with_context(|| format!("cannot empty '{shown}'"))?;
        std::fs::create_dir(&self.dir).with_context(|| format!("cannot make '{shown}'"))
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.dir) {
            eprintln!("stripewise: {} is left: {error}", self.dir.display());
        }
    }
}

fn remove(dir: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
