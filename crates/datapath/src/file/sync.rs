//! Making data and names durable, and updating the anchor for programs without the library.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use stripewise_sys::{Dir, Kind, Mode, OFlags, SysRef, Timestamps};

use super::LogicalFile;
use super::attributes::{OMIT, time};
use super::copy::OpenCopy;
use crate::error::{Errno, FileResult, Logged, Result};
use crate::paths::directory_of;

impl LogicalFile {
    /// fsync(2), or fdatasync(2) if `data_only`: everything that any process wrote before the call
    /// survives a power cut.
    ///
    /// # Errors
    /// Same as fsync(2).
    pub fn sync(&self, data_only: bool) -> Result<()> {
        match self.overlay().filter(|overlay| !overlay.is_given_away()) {
            Some(_) => self.sync_copies(data_only)?,
            None => self.sync_objects(data_only)?,
        }
        if !self.names_synced.load(Ordering::Acquire) {
            self.sync_names()?;
            self.names_synced.store(true, Ordering::Release);
        }
        // The objects' times would take from other nodes what they cache of the objects while they
        // write. Close asks for them.
        if !self.copies_if_joined().is_some_and(|copies| copies.is_sharing()) {
            self.update_anchor();
        }
        if data_only { self.sys().sync_data(self.anchor()) } else { self.sys().sync(self.anchor()) }
    }

    fn sync_copies(&self, data_only: bool) -> Result<()> {
        self.copies()?.map_or(Ok(()), |copies| copies.sync(data_only))
    }

    pub(super) fn sync_objects(&self, data_only: bool) -> Result<()> {
        let sync = |copy: &OpenCopy| copy.objects().sync(&self.context.fan_out, data_only);
        // Sync all copies even if one fails.
        self.present().map(sync).fold(Ok(()), std::result::Result::and).logged()
    }

    /// Syncs the directory entries of the objects, of `ID.manifest` and of the anchor.
    fn sync_names(&self) -> Result<()> {
        for copy in self.present() {
            copy.objects().sync_names().logged()?;
        }
        sync_directory(self.sys(), None, &self.parts.path)
    }

    /// Makes what programs on other nodes have committed visible here, as opening the file does.
    pub(crate) fn acquire_map(&self) -> FileResult<()> {
        let Some(copies) = self.copies_if_joined() else { return Ok(()) };
        Ok(copies.map.acquire()?)
    }

    /// As opening the file does, makes what programs on other nodes have committed visible here.
    ///
    /// # Errors
    /// EIO if the log cannot be read, or if this node no longer uses the file.
    pub fn acquire_committed(&self) -> Result<()> {
        self.acquire_map().logged()
    }

    /// Whether several nodes may have the file open at the same time, and share its copies.
    pub fn has_session(&self) -> bool {
        self.copies_if_joined().is_some_and(|copies| copies.map.has_session())
    }

    /// Makes what programs on other nodes have committed visible here. Where they only see what was
    /// committed, this does so as well: it must be called when the application gets or gives up a
    /// lock of the file.
    ///
    /// # Errors
    /// As [`LogicalFile::sync`].
    pub fn exchange(&self) -> Result<()> {
        match self.copies_if_joined() {
            Some(copies) if copies.is_sharing() => copies.sync(true),
            _ => Ok(()),
        }
    }

    /// Must be called when the application closes its last descriptor of the file, and may be
    /// called at any close. Updates the anchor's time if this process wrote, and brings replicas in
    /// sync unless the file has `lazy_close`. Errors are not reported: close(2) has none for them,
    /// and inside the library the objects' times count too.
    pub fn closing(&self) {
        if let Some(overlay) = self.overlay().filter(|overlay| !overlay.is_given_away()) {
            let _ = self.exchange();
            overlay.turn.pause(self.sys());
            // A later process completes the rest.
            let _ = self.copies_if_joined().map_or(Ok(()), |copies| copies.bring_in_sync());
        }
        self.update_anchor();
    }

    /// Must be called after [`LogicalFile::closing`] if the application has other descriptors of
    /// the file: background work goes on, for which other nodes may wait.
    pub fn stays_open(&self) {
        if let Some(overlay) = self.overlay() {
            overlay.turn.resume();
        }
    }

    /// Must be called when the process exits or executes another program with the file open. Acts
    /// as the last close, which nothing else will call. If the file is used afterwards, it joins
    /// the map again.
    pub fn ending(&self) {
        self.closing();
        match self.overlay() {
            // The process stays joined: if it continues (an exec may fail), other processes must
            // still see its stores through the mapping.
            Some(overlay) if overlay.has_mapped() => {
                // As in close, errors cannot be reported.
                let _ = self.sync_copies(true);
            }
            Some(_) => self.leave(),
            None => {}
        }
    }

    /// Sets the anchor's modification time to that of the file, for programs without this library.
    fn update_anchor(&self) {
        if self.parts.writable
            && self.written.swap(false, Ordering::AcqRel)
            && self.try_update_anchor().is_err()
        {
            self.mark_written();
        }
    }

    fn try_update_anchor(&self) -> Result<()> {
        let modified = self.attributes()?.modified;
        let anchor = self.sys().stat(self.anchor())?;
        if modified == time(anchor.st_mtime, anchor.st_mtime_nsec) {
            return Ok(());
        }
        let times = Timestamps { last_access: OMIT, last_modification: modified };
        // Only the owner may set a time; writes of other users leave the anchor's time older.
        let _ = self.sys().set_times(Kind::Open(self.anchor()), &times);
        Ok(())
    }
}

/// Makes a change of the name `path` durable. Skips a directory that this process may not read.
pub(crate) fn sync_directory(sys: &SysRef, dir: Dir<'_>, path: &Path) -> Result<()> {
    match sys.open(dir, directory_of(path), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
        Ok(fd) => sys.sync(fd.as_fd()),
        Err(Errno::ACCESS | Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}
