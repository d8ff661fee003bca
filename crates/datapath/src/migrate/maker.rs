//! Plain files with a native layout of their file system.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::Path;

use stripewise_sys::{Fd, Mode};

/// Creates files with one native layout of a file system. Used by several threads at once.
pub trait Maker: Debug + Sync {
    /// A text that identifies the layout: makers with equal descriptions create equal files.
    fn description(&self) -> String;

    /// Whether the file found at `path`, open as `open`, already has the layout.
    ///
    /// # Errors
    /// The layout cannot be determined; one line that names the file and the remedy.
    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String>;

    /// Creates an empty file at `path` with the layout and permissions `mode` (less the umask),
    /// open for reading and writing.
    ///
    /// # Errors
    /// The file exists, or it did not get the layout and was removed again; one line that names the
    /// file and the remedy.
    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String>;
}
