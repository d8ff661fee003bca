//! The interface between stripewise and a file system.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use stripewise_cluster::FileSystem;
use stripewise_native::{NativeLayout, Objects};
use stripewise_sys::{Fd, Mode, OFlags, Real, Sys};

use crate::error::{DriverError, Result};
use crate::files::HERE;

/// A kind of file system. Stateless; several threads may call all methods at once.
///
/// A call that is killed may leave a new directory, or one whose hints are partly set. Calling
/// [`Driver::prepare`] again completes it, and [`Driver::remove`] removes it. No call but
/// [`Driver::change`] touches existing files.
pub trait Driver: Send + Sync {
    /// The file system; `None`: plain directories.
    fn system(&self) -> Option<FileSystem>;

    /// The value of `driver = "..."` in a tier.
    fn name(&self) -> &'static str {
        self.system().map_or("dirs", FileSystem::name)
    }

    /// Whether its locks are coherent between nodes, and freed only once nothing that their node
    /// does takes effect any more (E1 and E3 of `docs/formats/nodes.md`). True only where that was
    /// tested.
    fn fences_nodes(&self) -> bool {
        false
    }

    /// What an existing directory offers; `None`: it is not on such a file system.
    ///
    /// # Errors
    /// The directory cannot be examined. Missing rights of the user are not an error but are listed
    /// in [`Probe::rights`].
    fn probe(&self, dir: &Path) -> Result<Option<Probe>>;

    /// Makes `dir` a directory whose new files get `layout`, also in directories that are created
    /// in it later; then reads the layout back. Creates `dir` if it is missing. Files that are
    /// already in it keep their layouts. May be repeated.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`](crate::DriverError::Unsupported) before anything is created,
    /// where the file system does not support the layout;
    /// [`DriverError::Differs`](crate::DriverError::Differs) where it set another one. An existing
    /// directory has its former hints again, except after
    /// [`DriverError::NotPutBack`](crate::DriverError::NotPutBack).
    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()>;

    /// Creates an empty file with `layout` and permissions `mode` (less the umask), then reads the
    /// layout back. A file that did not get its layout is removed again.
    ///
    /// # Errors
    /// As [`Driver::prepare`]; [`DriverError::Exists`](crate::DriverError::Exists) if the name
    /// exists.
    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()>;

    /// As [`Driver::create`], and opens the new file for reading and writing.
    ///
    /// # Errors
    /// As [`Driver::create`], or as open(2); then the file does not exist.
    fn create_open(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<Fd> {
        self.create(file, layout, mode)?;
        open_new(file)
    }

    /// The layout that a file really has, or that new files of a directory will get.
    ///
    /// # Errors
    /// The file cannot be examined, or is not on such a file system.
    fn read_back(&self, path: &Path) -> Result<Actual>;

    /// As [`Driver::read_back`], for a regular file that is open and was found at `path`. Where the
    /// file system can be asked about an open file, `path` is not resolved again.
    ///
    /// # Errors
    /// As [`Driver::read_back`].
    fn read_back_open(&self, path: &Path, _open: BorrowedFd<'_>) -> Result<Actual> {
        self.read_back(path)
    }

    /// Whether `actual` has every property that [`Driver::create`] and [`Driver::prepare`] set for
    /// `layout`.
    fn has(&self, actual: &Actual, layout: &NativeLayout) -> bool {
        actual.layout.as_ref().is_some_and(|got| layout.is_met_by(got))
    }

    /// As [`Driver::create_open`], with the text from [`Actual::exact`] of another file.
    ///
    /// # Errors
    /// As [`Driver::create_open`]; this file system never produces such a text.
    fn create_exact(&self, file: &Path, exact: &str, _mode: u32) -> Result<Fd> {
        Err(never_said(file, exact))
    }

    /// Sets the text from [`Actual::exact`] on an existing directory, and reads it back.
    ///
    /// # Errors
    /// As [`Driver::prepare`]; this file system never produces such a text.
    fn prepare_exact(&self, dir: &Path, exact: &str) -> Result<()> {
        Err(never_said(dir, exact))
    }

    /// Whether [`Driver::change`] can give an existing file this layout.
    fn can_change(&self, _to: To<'_>) -> bool {
        false
    }

    /// Gives an existing file another layout and reads it back. The file keeps its inode and its
    /// contents.
    ///
    /// # Errors
    /// The file system refused, or set another layout. The contents are as before, and so is the
    /// layout, except after [`DriverError::NotPutBack`](crate::DriverError::NotPutBack).
    fn change(&self, file: &Path, _to: To<'_>) -> Result<()> {
        let problem = "this file system sets layouts on new files only";
        Err(DriverError::refused(file, "its layout", problem))
    }

    /// Removes a prepared directory's hints, and the directory itself if it is empty. A missing
    /// directory is not an error.
    ///
    /// # Errors
    /// The hints cannot be removed.
    fn remove(&self, dir: &Path) -> Result<()>;
}

/// The layout that an existing file is to get.
#[derive(Clone, Copy, Debug)]
pub enum To<'a> {
    /// Expressed as a layout.
    Layout(&'a NativeLayout),
    /// The text from [`Actual::exact`] of another file.
    Exact(&'a str),
}

/// What a directory's file system offers to this user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The file system; `None`: plain directories.
    pub system: Option<FileSystem>,
    /// The mount point.
    pub mount: PathBuf,
    /// The groups of servers on which files can be placed.
    pub pools: Vec<Pool>,
    /// The servers on which a file can be placed, as [`stripewise_native::Stripe::Listed`] names
    /// them; empty where servers cannot be chosen.
    pub servers: Vec<String>,
    /// Rights that this user lacks, with the remedy, one sentence each.
    pub rights: Vec<String>,
    /// Other useful facts, one sentence each.
    pub notes: Vec<String>,
}

impl Probe {
    /// Sets the pools of a file system whose files are placed by pool: its servers are the pools
    /// with one server.
    pub(crate) fn set_pools(&mut self, pools: Vec<Pool>) {
        let of_one = pools.iter().filter(|pool| pool.servers == Some(1));
        self.servers = of_one.map(|pool| pool.name.clone()).collect();
        self.pools = pools;
    }
}

/// A group of servers on which a file can be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// The pool's name in layouts.
    pub name: String,
    /// Number of servers; `None`: the file system does not tell this user.
    pub servers: Option<u32>,
    /// The names of the servers; empty where unknown.
    pub server_names: Vec<String>,
    /// Of every placement group (CephFS), by number: the index in `server_names` of the server that
    /// answers its requests; empty where there are none or they are unknown.
    pub groups: Vec<u32>,
    /// Bytes that can still be written to the pool, where known.
    pub free_bytes: Option<u64>,
}

/// Opens a file that was just created for reading and writing, or removes it.
pub(crate) fn open_new(file: &Path) -> Result<Fd> {
    Real.open(HERE, file, OFlags::RDWR | OFlags::NOFOLLOW, Mode::empty()).map_err(|errno| {
        let _ = Real.unlink(HERE, file);
        DriverError::io(file, "opening the new file", errno)
    })
}

/// The error for a text that was not produced by this file system.
pub(crate) fn never_said(path: &Path, exact: &str) -> DriverError {
    let problem = "this file system is told layouts in other words; is the record of another one?";
    DriverError::refused(path, exact, problem)
}

/// The layout that a file has, or that new files of a directory will get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actual {
    /// `None`: nothing that a layout can express (a plain file, a directory without hints).
    pub layout: Option<NativeLayout>,
    /// Further information from the file system.
    pub note: Option<String>,
    /// The layout in the file system's own syntax, which restores it exactly. Set where a
    /// [`NativeLayout`] does not express everything.
    pub exact: Option<String>,
    /// Its objects, where the file system chooses a server for each of them (CephFS).
    pub objects: Option<Objects>,
    /// For a directory: `exact` comes from a directory above it.
    pub inherited: bool,
    /// For a directory: its new files begin on a certain server, which the `exact` of a file does
    /// not name.
    pub pinned: bool,
    /// Why the path is left as it is: it has properties that no layout expresses, and that a new
    /// file would lack.
    pub left_alone: Option<String>,
}
