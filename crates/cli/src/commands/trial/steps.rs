//! The commands that a try runs, one after the other, as a user would: the programs of this
//! executable do all the work.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, anyhow};
use stripewise_console::interrupt;

/// Why a try stops early.
pub enum Stop {
    /// A signal has asked it to.
    Interrupted,
    /// The traced command ended with this exit code.
    Command(u8),
    /// A step failed.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Runs `stripewise` with these words.
pub struct Step {
    words: Vec<OsString>,
    output: Output,
}

/// Where a step prints what it prints to its standard output.
enum Output {
    Here,
    Stderr,
    File(File),
    Nowhere,
}

impl Step {
    /// A step that prints where this process does.
    pub fn new<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Self {
        Self { words: words.into_iter().map(|word| word.as_ref().to_owned()).collect(), output: Output::Here }
    }

    /// Adds words.
    pub fn with<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Prints to stderr, if so.
    pub fn on_stderr(mut self, is_so: bool) -> Self {
        if is_so {
            self.output = Output::Stderr;
        }
        self
    }

    /// Prints nothing but errors and progress.
    pub fn silently(mut self) -> Self {
        self.output = Output::Nowhere;
        self
    }

    /// Prints to a new file.
    pub fn into_file(mut self, path: &Path) -> anyhow::Result<Self> {
        self.output =
            Output::File(File::create(path).with_context(|| format!("cannot write {}", path.display()))?);
        Ok(self)
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// It could not be started, or this process was asked to end meanwhile.
    pub fn run(self) -> Result<ExitStatus, Stop> {
        if interrupt::asked() {
            return Err(Stop::Interrupted);
        }
        let program = std::env::current_exe().context("the path of this executable is not known")?;
        let mut command = Command::new(&program);
        // A plan in the environment would apply to all steps.
        command.args(&self.words).env_remove("STRIPEWISE_PLAN");
        match self.output {
            Output::Here => {}
            Output::Stderr => {
                command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
            }
            Output::File(file) => {
                command.stdout(file);
            }
            Output::Nowhere => {
                command.stdout(Stdio::null());
            }
        }
        let mut child = command.spawn().with_context(|| format!("{} cannot be run", program.display()))?;
        let status = interrupt::in_foreground(&mut child).context("waiting for a step")?;
        if interrupt::asked() { Err(Stop::Interrupted) } else { Ok(status) }
    }

    /// Runs it to its end; it has to succeed.
    ///
    /// # Errors
    /// As [`Step::run`], and if it failed. It has said why.
    pub fn succeed(self) -> Result<(), Stop> {
        let name = self.words.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
        let status = self.run()?;
        if status.success() {
            return Ok(());
        }
        Err(anyhow!("`stripewise {name}` failed ({status}); its own message says why").into())
    }
}

/// Writes what is in memory to disk and empties the page cache.
///
/// # Errors
/// The kernel does not allow it.
pub fn drop_caches() -> std::io::Result<()> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3\n")
}
