//! The demo's directory, and stripewise commands that run in it.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use stripewise_console::files;

use crate::shell;
use crate::workloads::Workloads;

/// Marks a directory as a demo's, so that a later demo may reuse it.
const MARKER: &str = ".stripewise-demo";
/// Directories that each demo creates anew. From an earlier demo's directory, only these are
/// removed.
const OWN_DIRS: [&str; 3] = ["servers", "data", "plans"];

/// An absolute directory that belongs to the demo.
pub struct Workspace {
    dir: PathBuf,
    /// The MPI programs, and the directory of the h5py program.
    pub workloads: Workloads,
    /// The interpreter of the h5py program.
    pub python: PathBuf,
    quiet: bool,
    begin: Instant,
}

impl Workspace {
    /// Creates the directory, or takes over an empty one or that of an earlier demo.
    pub fn create(dir: &Path, workloads: Workloads, python: PathBuf, quiet: bool) -> anyhow::Result<Self> {
        let shown = dir.display();
        fs::create_dir_all(dir).with_context(|| format!("cannot make the directory '{shown}'"))?;
        let dir = dir.canonicalize().with_context(|| format!("cannot use '{shown}'"))?;
        let empty = fs::read_dir(&dir).with_context(|| format!("cannot list '{shown}'"))?.next().is_none();
        let ours = empty || dir.join(MARKER).exists();
        ensure!(ours, "'{shown}' has other files in it; give a new or empty directory with --dir");
        let work = Self { dir, workloads, python, quiet, begin: Instant::now() };
        work.write(MARKER, "This directory belongs to `stripewise-bench demo`.\n")?;
        for own in OWN_DIRS {
            work.remove_dir(own)?;
            fs::create_dir(work.path(own)).with_context(|| format!("cannot make '{shown}/{own}'"))?;
        }
        Ok(work)
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        files::write_whole(&self.path(name), text)
    }

    pub fn remove_dir(&self, name: &str) -> anyhow::Result<()> {
        match fs::remove_dir_all(self.path(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove '{}'", self.path(name).display()))
            }
            _ => Ok(()),
        }
    }

    /// Runs `stripewise WORDS...` and returns its output.
    pub fn stripewise(&self, words: Vec<OsString>) -> anyhow::Result<String> {
        let mut line = vec![self.workloads.stripewise.clone().into_os_string()];
        line.extend(words);
        shell::output(&line, &self.dir)
    }

    /// Prints a progress line unless `--quiet` is given.
    pub fn say(&self, message: &str) {
        if !self.quiet {
            eprintln!("[{:5.1} s] {message}", self.begin.elapsed().as_secs_f64());
        }
    }
}
