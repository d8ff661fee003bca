//! What stripewise asks of a file system.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;
use stripewise_sys::{Fd, Mode, OFlags, Real, Sys};

use crate::error::{DriverError, Result};
use crate::files::HERE;

/// A kind of file system. Without state; all methods may be called from several threads at once.
///
/// A call that fails may leave a directory that was made, or one whose hints are partly set; calling [`Driver::prepare`] again
/// finishes it, [`Driver::remove`] takes it away. No call touches files that exist.
pub trait Driver: Send + Sync {
    /// Which one; `None`: plain directories.
    fn system(&self) -> Option<FileSystem>;

    /// What `driver = "..."` of a tier says.
    fn name(&self) -> &'static str {
        self.system().map_or("dirs", FileSystem::name)
    }

    /// What an existing directory offers; `None`: it is not on such a file system.
    ///
    /// # Errors
    /// The directory cannot be looked at. What the user may not do is no error, but said in [`Probe::rights`].
    fn probe(&self, dir: &Path) -> Result<Option<Probe>>;

    /// Makes `dir` a directory (made if missing, in one that exists) whose new files get `layout`, also in directories that are
    /// made in it later; then reads it back. Files that are in it keep what they have. May be repeated.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`] before anything is made, where the file system has no
    /// such layout; [`DriverError::Differs`] where it took another one.
    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()>;

    /// Makes a new empty file with `layout` and permissions `mode` (less the umask), then reads it back. A file that did not
    /// get its layout is removed again.
    ///
    /// # Errors
    /// As [`Driver::prepare`]; [`DriverError::Exists`] if there is anything of that name.
    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()>;

    /// As [`Driver::create`]; the new file is open for reading and writing.
    ///
    /// # Errors
    /// As there, or as open(2); then there is no file.
    fn create_open(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<Fd> {
        self.create(file, layout, mode)?;
        Real.open(HERE, file, OFlags::RDWR | OFlags::NOFOLLOW, Mode::empty()).map_err(|errno| {
            let _ = Real.unlink(HERE, file);
            DriverError::io(file, "opening the new file", errno)
        })
    }

    /// What a file really has, or what new files of a directory will get.
    ///
    /// # Errors
    /// The file cannot be looked at, or is not on such a file system.
    fn read_back(&self, path: &Path) -> Result<Actual>;

    /// As [`Driver::read_back`] of a regular file that is open and was found at `path`. Where the file system can be asked about
    /// an open file, `path` is not followed once more.
    ///
    /// # Errors
    /// As there.
    fn read_back_open(&self, path: &Path, _open: BorrowedFd<'_>) -> Result<Actual> {
        self.read_back(path)
    }

    /// Whether what has `actual` has all that [`Driver::create`] and [`Driver::prepare`] make of `layout`.
    fn has(&self, actual: &Actual, layout: &NativeLayout) -> bool {
        actual.layout.as_ref().is_some_and(|got| layout.is_met_by(got))
    }

    /// As [`Driver::create_open`], with what [`Actual::exact`] said of another file.
    ///
    /// # Errors
    /// As there; this file system never said so.
    fn create_exact(&self, file: &Path, exact: &str, _mode: u32) -> Result<Fd> {
        Err(never_said(file, exact))
    }

    /// Tells an existing directory what [`Actual::exact`] said of it, and reads it back.
    ///
    /// # Errors
    /// As [`Driver::prepare`]; this file system never said so.
    fn prepare_exact(&self, dir: &Path, exact: &str) -> Result<()> {
        Err(never_said(dir, exact))
    }

    /// Takes a prepared directory's hints away, and the directory itself where it is empty. One that is not there is no error.
    ///
    /// # Errors
    /// The hints cannot be taken away.
    fn remove(&self, dir: &Path) -> Result<()>;
}

/// What a directory's file system offers to this user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Which one; `None`: plain directories.
    pub system: Option<FileSystem>,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The groups of servers that files can be put on.
    pub pools: Vec<Pool>,
    /// The servers that a file can be put on, as [`stripewise_native::Stripe::Listed`] names them; empty where there is no such choice.
    pub servers: Vec<String>,
    /// What this user may not do, with the remedy, one sentence each.
    pub rights: Vec<String>,
    /// What else is worth knowing, one sentence each.
    pub notes: Vec<String>,
}

/// Servers that a file can be put on together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// As layouts name it.
    pub name: String,
    /// How many servers; `None`: the file system does not tell this user.
    pub servers: Option<u32>,
    /// What they are called, where that is known.
    pub server_names: Vec<String>,
    /// Bytes that can still be written to it, where that is known.
    pub free_bytes: Option<u64>,
}

fn never_said(path: &Path, exact: &str) -> DriverError {
    let problem = "this file system is told layouts in other words; is the record of another one?".to_owned();
    DriverError::Refused { path: path.to_owned(), value: exact.to_owned(), problem }
}

/// What a file has, or new files of a directory will get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actual {
    /// `None`: nothing that a layout could say (a plain file, a directory without hints).
    pub layout: Option<NativeLayout>,
    /// What else the file system said.
    pub note: Option<String>,
    /// All of it in the file system's own words, where a layout does not say all: what brings it back exactly.
    pub exact: Option<String>,
    /// Of a directory: `exact` is what one above it was told.
    pub inherited: bool,
}
