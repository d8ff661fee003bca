//! A managed file that is open in this process, and its state there.

mod attributes;
mod copy;
mod holes;
mod io;
mod lock;
mod mapping;
mod overlay;
mod piece;
mod size;
mod split;
mod sync;

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stripewise_sys::{Fd, ForkLock, SysRef};
use stripewise_target::ObjectSet;

use crate::anchor::{Anchored, FileKey};
use crate::error::{FileError, FileResult, LogOnce};
use crate::manifest::Manifest;
pub use attributes::{Attributes, Change};
pub(crate) use attributes::{time, without_write};
pub use copy::IoOptions;
pub(crate) use copy::{OpenCopy, OpenOrLost};
pub use holes::Whence;
pub(crate) use lock::SIZE_LOCK_BYTE;
pub use mapping::MapExtent;
pub use overlay::{Around, Difference, Drained, Tell};
pub(crate) use overlay::{CachedBytes, Context, Overlay, Rates, check_times, counts, each_span, forget_times};
pub use piece::OnePiece;
pub(crate) use sync::sync_directory;

pub(crate) struct FileParts {
    pub key: FileKey,
    /// The path where the anchor was found or created, absolute if possible. Used in messages and
    /// to sync its directory.
    pub path: PathBuf,
    pub anchored: Anchored,
    /// Read-only descriptor of the anchor.
    pub anchor: Fd,
    /// Descriptor of `ID.manifest`.
    pub manifest_copy: Fd,
    pub original: OpenCopy,
    /// Copies 1, 2, ...
    pub extra: Vec<OpenOrLost>,
    /// Present if the file has several copies.
    pub overlay: Option<Overlay>,
    /// Objects and `ID.manifest` are also open for writing.
    pub writable: bool,
}

/// Descriptors of `ID.manifest` through which threads take the size lock.
#[derive(Debug, Default)]
struct Locks {
    /// A cached descriptor that holds no lock, with the process that opened it: in a forked child
    /// it would still be the parent's.
    idle: Option<(u32, Fd)>,
    /// Descriptors that hold the lock now: (process, descriptor).
    held: Vec<(u32, RawFd)>,
}

/// A managed file: its manifest, its objects, and private descriptors of them.
///
/// All methods may be called from any thread at any time. Offsets and sizes are those of the
/// logical file. No method sees the application's descriptors: the caller checks the access mode of
/// the descriptor used.
pub struct LogicalFile {
    context: Arc<Context>,
    parts: FileParts,
    /// Called when this process leaves the file.
    leaving: Option<fn(&LogicalFile)>,
    locks: ForkLock<Locks>,
    /// Duplicates of this file that slower threads opened at the same time. They stay open as long
    /// as this file: the process's POSIX locks are on object 0, and closing any descriptor of it
    /// drops them.
    spares: ForkLock<Vec<LogicalFile>>,
    /// A size that the file had at some time. Requests below it need not query the size first.
    size_hint: AtomicU64,
    /// End offset of the longest mapping that this process has made; 0 if none.
    mapped_to: AtomicU64,
    /// This process wrote since it last updated the anchor.
    written: AtomicBool,
    /// This process has made the names of objects and anchor durable.
    names_synced: AtomicBool,
    /// A truncate was interrupted, and this process may not finish it or failed to finish its own.
    interrupted: AtomicBool,
}

impl LogicalFile {
    pub(crate) fn new(context: Arc<Context>, parts: FileParts, leaving: Option<fn(&Self)>) -> Self {
        Self {
            context,
            parts,
            leaving,
            locks: ForkLock::default(),
            spares: ForkLock::default(),
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

    /// The manifest at the time when this process opened the file.
    pub fn manifest(&self) -> &Manifest {
        &self.parts.anchored.manifest
    }

    /// The path of the anchor at the time when this process opened the file.
    pub fn path(&self) -> &Path {
        &self.parts.path
    }

    /// Whether this process may write, that is, could open the objects for writing.
    pub fn is_writable(&self) -> bool {
        self.parts.writable
    }

    /// The objects of the original; object `n` lies on target `n` of the manifest.
    #[inline]
    pub fn objects(&self) -> &ObjectSet {
        self.parts.original.objects()
    }

    /// A private descriptor of the anchor, open for reading.
    pub fn anchor(&self) -> BorrowedFd<'_> {
        self.parts.anchor.as_fd()
    }

    fn manifest_copy(&self) -> BorrowedFd<'_> {
        self.parts.manifest_copy.as_fd()
    }

    pub(crate) fn anchored(&self) -> &Anchored {
        &self.parts.anchored
    }

    /// Keeps the descriptors of `other`, a duplicate of this file, open as long as this file.
    pub(crate) fn keep(&self, other: Self) {
        other.leave();
        self.spares.lock().push(other);
    }

    /// Removes the extent map of a file that is being removed before another process has seen it.
    pub(crate) fn remove_map(&self) {
        if let Some(overlay) = self.overlay() {
            // `fsck` finds anything left over.
            let _ = overlay.remove();
        }
    }

    /// Leaves the extent map. The last process of the node to leave syncs the map first; if the
    /// sync fails, it is left to the next process that joins.
    fn leave(&self) {
        if let Some(leaving) = self.leaving {
            leaving(self);
        }
        let Some(overlay) = self.overlay() else { return };
        let Some(map) = overlay.take_map() else { return };
        // Tests simulate a killed process: it does not leave the map.
        #[cfg(test)]
        if self.sys().stat(self.anchor()).err() == Some(stripewise_faulty::DEAD) {
            return drop(map);
        }
        let mut times = None;
        let left = map.leave(|| {
            // Sync times too: a power cut must not make an object older than its recorded time.
            self.sync_objects(false)?;
            times = Some(self.times_now());
            Ok(())
        });
        match (left, times) {
            (Ok(()), Some(times)) => self.note_times(&times),
            (Ok(()), None) => {}
            (Err(error), _) => drop(error.log_once()),
        }
        overlay.give_back_space();
    }

    /// For a forked child: gives up the locks that threads of the parent held at the fork.
    pub(crate) fn after_fork_child(&self) {
        self.forget_locks();
        if let Some(overlay) = self.overlay() {
            overlay.after_fork_child();
        }
    }

    #[inline]
    pub(crate) fn sys(&self) -> &SysRef {
        &self.context.sys
    }

    #[inline]
    fn original(&self) -> &OpenCopy {
        &self.parts.original
    }

    /// Joins the extent map if the file has several copies.
    pub(crate) fn join(&self) -> FileResult<()> {
        self.overlay().map_or(Ok(()), |overlay| overlay.join().map(drop))
    }

    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.parts.overlay.as_ref()
    }

    /// Whether other processes of this node have a file with several copies open. (Always false for
    /// a file with one copy, which has no map to show it.)
    pub(crate) fn has_other_members(&self) -> bool {
        let Some(overlay) = self.overlay() else { return false };
        overlay.map().is_ok_and(|map| map.processes().is_ok_and(|processes| processes > 1))
    }

    /// The usable copies, the original first.
    pub(crate) fn present(&self) -> impl Iterator<Item = &OpenCopy> {
        std::iter::once(self.original()).chain(self.parts.extra.iter().flatten())
    }

    fn lost(&self) -> impl Iterator<Item = &FileError> {
        self.parts.extra.iter().filter_map(|copy| copy.as_ref().err())
    }

    #[inline]
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
