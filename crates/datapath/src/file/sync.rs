//! Making things durable, and telling the world without the library about them.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use stripewise_sys::{Dir, Kind, Mode, OFlags, SysRef, Timestamps};

use super::{Attributes, LogicalFile, OpenCopy, attributes};
use crate::{Errno, Result, trouble};

impl LogicalFile {
    /// fsync(2), or fdatasync(2) if `data_only`: everything that any process wrote before survives a power cut.
    ///
    /// # Errors
    /// As fsync(2).
    pub fn sync(&self, data_only: bool) -> Result<()> {
        match self.overlay().filter(|overlay| !overlay.is_given_away()) {
            Some(overlay) => self.sync_map(overlay, data_only)?,
            None => self.sync_components(data_only)?,
        }
        if !self.names_synced.load(Ordering::Acquire) {
            self.sync_names()?;
            self.names_synced.store(true, Ordering::Release);
        }
        self.update_anchor();
        if data_only { self.sys().sync_data(self.anchor()) } else { self.sys().sync(self.anchor()) }
    }

    /// The components of all copies that can be used.
    pub(super) fn sync_components(&self, data_only: bool) -> Result<()> {
        let sync = |copy: &OpenCopy| copy.components().sync(&self.shared.fan_out, data_only);
        // All are tried.
        self.present().map(sync).fold(Ok(()), std::result::Result::and).map_err(|error| trouble::told(&error))
    }

    /// The names of components, manifest copy and anchor.
    fn sync_names(&self) -> Result<()> {
        for copy in self.present() {
            copy.components().sync_names().map_err(|error| trouble::told(&error))?;
        }
        sync_directory(self.sys(), None, &self.parts.path)
    }

    /// To be called when the application closes its last descriptor of the file (and may be called
    /// at any close): brings the anchor's time up to date if this process wrote. Errors are not
    /// reported: close(2) has none to give for them, and inside the library the components' times
    /// count, too. The replicas of a file are brought in sync, unless its plan leaves that to
    /// others.
    pub fn closing(&self) {
        if let Some(overlay) = self.overlay().filter(|overlay| !overlay.is_given_away()) {
            overlay.turn().pause(self.sys());
            // What is not done is left to the next process.
            let _ = self.bring_in_sync(overlay);
        }
        self.update_anchor();
    }

    /// To be called when the process ends, or the program that it runs, with the file open: as the last close, which nobody else
    /// will call. What is used afterwards all the same joins the map anew.
    pub fn ending(&self) {
        self.closing();
        match self.overlay() {
            // Whoever goes on (an exec may fail) has its stores in the mapping seen by others.
            Some(overlay) if overlay.has_mapped() => {
                // Like close, this has nobody to tell.
                let _ = self.sync_map(overlay, true);
            }
            Some(_) => self.leave(),
            None => {}
        }
    }

    /// Gives the anchor the time of the file, for programs without this library.
    fn update_anchor(&self) {
        if self.parts.writable
            && self.written.swap(false, Ordering::AcqRel)
            && self.try_update_anchor().is_err()
        {
            self.mark_written();
        }
    }

    fn try_update_anchor(&self) -> Result<()> {
        let Attributes { modified, .. } = self.attributes()?;
        if modified == attributes::modified(&self.sys().stat(self.anchor())?) {
            return Ok(());
        }
        let times = Timestamps { last_access: attributes::OMIT, last_modification: modified };
        // Only the owner may set a time; who else writes leaves the anchor's older one.
        let _ = self.sys().set_times(Kind::Open(self.anchor()), &times);
        Ok(())
    }
}

/// Makes what happened to the name `path` durable. A directory that may not be read is left alone.
pub(crate) fn sync_directory(sys: &SysRef, dir: Dir<'_>, path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match sys.open(dir, parent, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
        Ok(fd) => sys.sync(fd.as_fd()),
        Err(Errno::ACCESS | Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}
