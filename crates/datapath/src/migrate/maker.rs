//! Plain files that the file system itself lays out.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::Path;

use stripewise_sys::{Fd, Mode};

/// Makes new files with one layout of the file system's own. May be used by several threads at once.
pub trait Maker: Debug + Sync {
    /// Tells one layout from another: two makers with the same description make the same files.
    fn description(&self) -> String;

    /// Whether the file that was found at `path`, and is open as `open`, has the layout already.
    ///
    /// # Errors
    /// It cannot be found out: one line that names the file and the remedy.
    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String>;

    /// Makes an empty file at `path` with the layout, and with permissions `mode` (less the umask); it is open for reading and
    /// writing.
    ///
    /// # Errors
    /// There is one, or it did not get the layout; then there is none. One line that names the file and the remedy.
    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String>;
}
