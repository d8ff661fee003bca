//! Leaving a map.

use std::path::Path;

use stripewise_sys::SysRef;

use crate::hooks::reach;
use crate::joined::Joined;
use crate::journal::JOIN_BYTE;
use crate::lmdb;
use crate::shared::{self, Word};
use crate::{MapError, Result};

pub(crate) fn leave(joined: Box<Joined>, sync_data: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<()> {
    reach("leave");
    let _join = match joined.place.lock(JOIN_BYTE, false) {
        // The file or its journal was removed.
        Err(MapError::Missing { .. }) => None,
        lock => Some(lock?),
    };
    if joined.living() > 1 {
        return Ok(());
    }
    // Held until the end: if the journal is rewritten, `commit` also holds the new journal's locks,
    // so that no process joins before everything is removed.
    reach("commit lock");
    let mut commit = joined.commit(true)?;
    let pending = {
        let txn = joined.read()?;
        let segments = joined.index.pending_segments(&txn)?;
        !segments.is_empty()
    };
    let is_closed = !joined.shared.is(Word::Opened) && !pending && !commit.is_broken();
    if !is_closed && !joined.shared.is(Word::Unlinked) {
        joined.sync_with(&mut commit, sync_data, true)?;
    }
    reach("clean");
    joined.shared.set(Word::Ready, 0);
    remove_run_dir(&joined.sys, &joined.spec.run_dir);
    Ok(())
}

/// Removes the index and the shared state. Errors are ignored: files that remain are useless
/// without the others.
pub(crate) fn remove_run_dir(sys: &SysRef, run_dir: &Path) {
    for name in [shared::FILE, lmdb::DATA, lmdb::LOCK, shared::LOCK] {
        let _ = sys.unlink(None, &run_dir.join(name));
    }
    let _ = sys.rmdir(None, run_dir);
}
