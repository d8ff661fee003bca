//! One managed file of this process.

mod attributes;
mod copy;
mod holes;
mod io;
mod lock;
mod mapping;
mod overlay;
mod size;
mod split;
mod sync;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stripewise_sys::{Fd, SysRef};
use stripewise_target::{ComponentSet, FanOut};

pub use attributes::Attributes;
pub(crate) use attributes::without_write;
pub(crate) use copy::{Further, Lost, OpenCopy};
pub use holes::Whence;
pub use io::IoOptions;
pub(crate) use lock::SIZE_LOCK_BYTE;
pub use mapping::MapExtent;
pub use overlay::{Around, Difference, Drained, Statistics, Tell};
pub(crate) use overlay::{Overlay, Rates, Surroundings, check_times, forget_times};
pub(crate) use sync::sync_directory;

use crate::anchor::Anchored;
use crate::forked::ForkSafe;
use crate::manifest::Manifest;
use crate::runtime::FileKey;
use crate::trouble::{self, Trouble};

/// What all files of a process share.
pub(crate) struct Shared {
    pub sys: SysRef,
    pub fan_out: FanOut,
    pub surroundings: Arc<Surroundings>,
    /// See [`crate::Settings::leaving`].
    pub leaving: Option<fn(&LogicalFile)>,
}

/// What a [`LogicalFile`] is made of.
pub(crate) struct Parts {
    pub key: FileKey,
    /// Where the anchor was found or made, absolute if possible: for messages, and to sync its directory.
    pub path: PathBuf,
    pub anchored: Anchored,
    /// Open for reading.
    pub anchor: Fd,
    /// `ID.manifest`.
    pub manifest_copy: Fd,
    /// Copy 0.
    pub original: OpenCopy,
    /// Copy 1, 2, ...
    pub further: Vec<Further>,
    /// Of a file with several copies.
    pub overlay: Option<Overlay>,
    /// Components and `ID.manifest` are open for writing, too.
    pub writable: bool,
}

/// A managed file: its manifest, its components, and private descriptors of them.
///
/// All methods may be called from any thread at any time. Offsets and sizes are those of the logical file. No method
/// knows the application's descriptors: who may read or write through which is for the caller to check.
pub struct LogicalFile {
    shared: Arc<Shared>,
    parts: Parts,
    locks: ForkSafe<lock::Locks>,
    /// The same file opened once more by a thread that was slower. Its descriptor of component 0,
    /// which has the program's POSIX locks, must not be closed before this file goes: closing any
    /// drops them.
    spares: ForkSafe<Vec<LogicalFile>>,
    /// A size that the file had at some time: requests below it need not ask for the size first.
    size_hint: AtomicU64,
    /// The end of the longest mapping that this process has made; 0: it has made none.
    mapped_to: AtomicU64,
    /// This process wrote since the anchor was last brought up to date.
    written: AtomicBool,
    /// This process has made the names of components and anchor durable.
    names_synced: AtomicBool,
    /// A truncate was interrupted that this process may not finish, or that it began and could not
    /// finish yet.
    interrupted: AtomicBool,
}

impl LogicalFile {
    pub(crate) fn new(shared: Arc<Shared>, parts: Parts) -> Self {
        Self {
            shared,
            parts,
            locks: ForkSafe::default(),
            spares: ForkSafe::default(),
            size_hint: AtomicU64::new(0),
            mapped_to: AtomicU64::new(0),
            written: AtomicBool::new(false),
            names_synced: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
        }
    }

    /// Device and inode of the anchor.
    pub fn key(&self) -> FileKey {
        self.parts.key
    }

    /// As it was when this process opened the file.
    pub fn manifest(&self) -> &Manifest {
        &self.parts.anchored.manifest
    }

    /// Where the anchor was when this process opened the file.
    pub fn path(&self) -> &Path {
        &self.parts.path
    }

    /// Whether this process may write: it was allowed to open the components for writing.
    pub fn is_writable(&self) -> bool {
        self.parts.writable
    }

    /// The components of the original; component `n` lies on target `n` of the manifest.
    pub fn components(&self) -> &ComponentSet {
        self.parts.original.components()
    }

    /// A private descriptor of the anchor, open for reading.
    pub fn anchor(&self) -> BorrowedFd<'_> {
        self.parts.anchor.as_fd()
    }

    /// A private descriptor of `ID.manifest`.
    fn manifest_copy(&self) -> BorrowedFd<'_> {
        self.parts.manifest_copy.as_fd()
    }

    pub(crate) fn anchored(&self) -> &Anchored {
        &self.parts.anchored
    }

    /// Keeps another one's descriptors open as long as this file.
    pub(crate) fn keep(&self, other: Self) {
        other.leave();
        self.spares.lock().push(other);
    }

    /// The file is being removed before anybody knew of it.
    pub(crate) fn remove_map(&self) {
        if let Some(overlay) = self.overlay() {
            // What is left is found by fsck.
            let _ = overlay.remove();
        }
    }

    /// Leaves the extent map. The last process of the node to do so syncs it: an error then leaves it to the next process.
    fn leave(&self) {
        if let Some(leaving) = self.shared.leaving {
            leaving(self);
        }
        let Some(map) = self.overlay().and_then(Overlay::take_map) else { return };
        // What a kill does, tests do to the model of a process.
        #[cfg(test)]
        if self.sys().stat(self.anchor()).err() == Some(stripewise_sys::faulty::DEAD) {
            return drop(map);
        }
        let mut times = None;
        let left = map.leave(|| {
            // Their times, too: a power cut must not make them older.
            self.sync_components(false)?;
            times = Some(self.times_now());
            Ok(())
        });
        match (left, self.overlay(), times) {
            (Ok(()), Some(overlay), Some(times)) => self.note_times(overlay, times),
            (Ok(()), _, _) => {}
            (Err(error), _, _) => drop(trouble::map_told(&error)),
        }
    }

    /// In a forked child: gives up the locks that threads of the parent were holding at the fork.
    pub(crate) fn after_fork_child(&self) {
        self.forget_locks();
        if let Some(overlay) = self.overlay() {
            overlay.after_fork_child();
        }
    }

    pub(crate) fn sys(&self) -> &SysRef {
        &self.shared.sys
    }

    fn original(&self) -> &OpenCopy {
        &self.parts.original
    }

    /// Joins the extent map of a file with several copies.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn join(&self) -> std::result::Result<(), Trouble> {
        self.overlay().map_or(Ok(()), |overlay| overlay.join().map(drop))
    }

    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.parts.overlay.as_ref()
    }

    /// The copies that can be used, the original first.
    pub(crate) fn present(&self) -> impl Iterator<Item = &OpenCopy> {
        std::iter::once(self.original()).chain(self.parts.further.iter().flatten())
    }

    /// The copies that cannot.
    fn lost(&self) -> impl Iterator<Item = &Lost> {
        self.parts.further.iter().filter_map(|copy| copy.as_ref().err())
    }

    fn mark_written(&self) {
        self.written.store(true, Ordering::Release);
    }
}

impl Drop for LogicalFile {
    fn drop(&mut self) {
        self.leave();
    }
}

impl std::fmt::Debug for LogicalFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogicalFile").field("path", &self.parts.path).field("id", &self.manifest().id).finish()
    }
}
