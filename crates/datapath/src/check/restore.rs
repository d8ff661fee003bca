//! Restores anchors and `ID.manifest`.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use stripewise_extents::nodes::lock_sessions;
use stripewise_sys::user::act_as;
use stripewise_sys::{Kind, LockKind, Mode, OFlags, Stat, SysRef};
use stripewise_target::{Access, ObjectSet, TargetError};

use super::walk::{ASIDE, read_copy};
use crate::error::{FileError, FileResult};
use crate::file::{SIZE_LOCK_BYTE, sync_directory, without_write};
use crate::manifest::{Manifest, TEXT_BYTES_MAX};
use crate::runtime::{Runtime, temporary_name};
use crate::{Errno, intent};

/// What to do with the file at the path where an anchor is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Old {
    /// Rename it to `PATH.stripewise-aside`, with a number appended if that exists.
    SetAside,
    /// Replace it: it has the same content.
    Replaced,
}

/// Creates the anchor described by `manifest` (from `ID.manifest`) at `path`. Acts with the
/// permissions of its owner, even if root runs it.
pub(super) fn anchor(
    runtime: &Runtime,
    path: &Path,
    manifest: &Manifest,
    owner: u32,
    old: Old,
) -> FileResult<()> {
    let sys = runtime.sys();
    let io = |what| FileError::io(path, what);
    let set = runtime.open_objects(manifest.original(), owner)?;
    let like = &set.stats()?[0];
    let _acting = act_as(Some(owner));
    let temporary = path.with_file_name(temporary_name(manifest.id));
    let _ = sys.unlink(None, &temporary);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let new = sys.open(None, &temporary, flags, Mode::RUSR | Mode::WUSR);
    let new = new.map_err(io("write the manifest beside"))?;
    let made = || {
        let anchor = sys.identity(new.as_fd()).map_err(io("restore"))?;
        let text = Manifest { anchor, pending_truncate: None, ..manifest.clone() }.format()?;
        write_anchor(sys, new.as_fd(), &text, like).map_err(io("restore"))?;
        // `ID.manifest` names the file's anchor. Update it before the new anchor has its name.
        write_copy(runtime, &set, like, &text, path)?;
        if old == Old::SetAside {
            set_aside(runtime, path).map_err(io("restore"))?;
            sys.rename_noreplace(None, &temporary, None, path).map_err(io("restore"))?;
        } else {
            sys.rename(None, &temporary, None, path).map_err(io("restore"))?;
        }
        sync_directory(sys, None, path).map_err(io("restore"))
    };
    made().inspect_err(|_| {
        let _ = sys.unlink(None, &temporary);
    })
}

/// Writes text, group and mode of a new anchor; group and mode are those of the objects.
fn write_anchor(sys: &SysRef, new: BorrowedFd<'_>, text: &str, like: &Stat) -> Result<(), Errno> {
    sys.write_all_at(new, text.as_bytes(), 0)?;
    // Not permitted for a group of which the owner is not a member.
    let _ = sys.set_owner(Kind::Open(new), None, Some(like.st_gid));
    sys.set_mode(Kind::Open(new), without_write(Mode::from_raw_mode(like.st_mode & 0o7777)))?;
    sys.sync(new)
}

/// Writes `ID.manifest` next to object 0, and keeps an intent to truncate that is in the old one.
fn write_copy(runtime: &Runtime, set: &ObjectSet, like: &Stat, text: &str, path: &Path) -> FileResult<()> {
    let sys = runtime.sys();
    let io = |what| FileError::io(path, what);
    let access =
        Access { group: Some(like.st_gid), ..Access::of_mode(Mode::from_raw_mode(like.st_mode & 0o777)) };
    let mut text = text.to_owned();
    let old = match set.open_manifest(OFlags::RDWR) {
        Err(error) if error.errno() == Errno::NOENT => None,
        old => Some(old?),
    };
    if let Some(old) = &old {
        // Hold the size lock until the new file has the name: a program that has the file open may
        // be about to truncate it.
        sys.lock(old.as_fd(), SIZE_LOCK_BYTE, 1, LockKind::Exclusive).map_err(io("lock"))?;
        // The sessions of nodes that have the file open hold locks of the old file.
        if !lock_sessions(sys, old.as_fd()).map_err(io("lock"))? {
            return Err(io("write its manifest anew, while a node has the file open,")(Errno::BUSY));
        }
        let old = sys.read_start(old.as_fd(), TEXT_BYTES_MAX).map_err(io("read"))?;
        text.extend(intent::in_text(&old).map(intent::line));
    }
    set.replace_manifest(text.as_bytes(), &access)?;
    Ok(set.sync_names()?)
}

fn set_aside(runtime: &Runtime, path: &Path) -> Result<(), Errno> {
    for number in 0.. {
        let mut aside = path.as_os_str().to_owned();
        aside.push(ASIDE);
        if number > 0 {
            aside.push(format!(".{number}"));
        }
        match runtime.sys().rename_noreplace(None, path, None, &PathBuf::from(aside)) {
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(()),
            done => return done,
        }
    }
    Ok(())
}

/// Whether objects of the file are lost although their targets are there.
pub(super) fn has_lost_objects(runtime: &Runtime, manifest: &Manifest, owner: u32) -> bool {
    let opened = runtime.open_objects(manifest.original(), owner);
    matches!(opened, Err(TargetError::Io { errno: Errno::NOENT, .. }))
}

/// Writes `ID.manifest` again, unless it is intact and differs: it was then changed on purpose.
pub(super) fn copy(runtime: &Runtime, path: &Path, manifest: &Manifest, owner: u32) -> FileResult<()> {
    let set = runtime.open_objects(manifest.original(), owner)?;
    let like = set.stats()?[0];
    let text = Manifest { pending_truncate: None, ..manifest.clone() }.format()?;
    let target =
        set.targets().first().ok_or_else(|| FileError::io(path, "find its first target")(Errno::IO))?;
    if read_copy(target, set.objects()).is_some() {
        let what =
            "write its manifest anew, as it says something else (remove it when no program uses the file),";
        return Err(FileError::io(path, what)(Errno::EXIST));
    }
    write_copy(runtime, &set, &like, &text, path)
}
