//! Bringing back anchors, and copies of their manifests.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use stripewise_sys::user::act_as;
use stripewise_sys::{Kind, Mode, OFlags, Stat, SysRef};
use stripewise_target::{Access, ComponentSet, Opening, TargetError};

use crate::Errno;
use crate::file::sync_directory;
use crate::manifest::{CopyRef, Manifest, TEXT_BYTES_MAX};
use crate::runtime::{Runtime, temporary_name};
use crate::trouble::Trouble;

/// What is appended to the name of a file that is set aside.
pub(super) const ASIDE: &str = ".stripewise-aside";

/// What becomes of the file that stands where an anchor is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Old {
    /// It is renamed to `PATH.stripewise-aside`, or with a number if that exists.
    SetAside,
    /// The new one takes its place: it says the same.
    Replaced,
}

/// Makes the anchor that `manifest` (of the copy) describes anew at `path`, with the rights of its owner: what the owner may not do
/// there is not done, whoever runs this.
pub(super) fn anchor(
    runtime: &Runtime,
    path: &Path,
    manifest: &Manifest,
    owner: u32,
    old: Old,
) -> Result<(), Trouble> {
    let sys = runtime.sys();
    let io = |what| Trouble::io(path, what);
    let set = open(runtime, manifest, owner)?;
    let like = &set.stats()?[0];
    let size = size(runtime, manifest, owner)?;
    let _acting = act_as(Some(owner));
    let temporary = path.with_file_name(temporary_name(manifest.id));
    let _ = sys.unlink(None, &temporary);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let new = sys.open(None, &temporary, flags, Mode::RUSR | Mode::WUSR);
    let new = new.map_err(io("write the manifest beside"))?;
    let made = || {
        let anchor = sys.identity(new.as_fd()).map_err(io("restore"))?;
        let text = Manifest { anchor, pending_truncate: None, ..manifest.clone() }.format()?;
        write_anchor(sys, new.as_fd(), &text, size, like).map_err(io("restore"))?;
        // It says which anchor is the file's: before the new one has the name.
        write_copy(&set, like, &text)?;
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

/// Text, size and access of a new anchor; mode and group are the components'.
fn write_anchor(sys: &SysRef, new: BorrowedFd<'_>, text: &str, size: u64, like: &Stat) -> Result<(), Errno> {
    sys.write_all_at(new, text.as_bytes(), 0)?;
    sys.truncate(new, size.max(text.len() as u64))?;
    // Not permitted for groups that the owner is not in.
    let _ = sys.set_owner(Kind::Open(new), None, Some(like.st_gid));
    sys.set_mode(Kind::Open(new), Mode::from_raw_mode(like.st_mode & 0o7777))?;
    sys.sync(new)
}

fn write_copy(set: &ComponentSet, like: &Stat, text: &str) -> Result<(), TargetError> {
    let access =
        Access { group: Some(like.st_gid), ..Access::of_mode(Mode::from_raw_mode(like.st_mode & 0o777)) };
    set.remove_manifest()?;
    set.create_manifest(text.as_bytes(), &access)?;
    set.sync_names()
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

/// Whether components of the file are not there any more, though their targets are.
pub(super) fn has_lost_components(runtime: &Runtime, manifest: &Manifest, owner: u32) -> bool {
    matches!(open(runtime, manifest, owner), Err(Trouble::Target(TargetError::Io { errno: Errno::NOENT, .. })))
}

/// Writes the copy of the manifest anew.
pub(super) fn copy(runtime: &Runtime, manifest: &Manifest, owner: u32) -> Result<(), Trouble> {
    let set = open(runtime, manifest, owner)?;
    let like = set.stats()?[0];
    let access =
        Access { group: Some(like.st_gid), ..Access::of_mode(Mode::from_raw_mode(like.st_mode & 0o777)) };
    let text = Manifest { pending_truncate: None, ..manifest.clone() }.format()?;
    match set.create_manifest(text.as_bytes(), &access) {
        Err(TargetError::Io { errno: Errno::EXIST, path, .. }) => rewrite(runtime, &set, &path, &text)?,
        created => created?,
    }
    Ok(set.sync_names()?)
}

/// In place: whoever uses the file holds its lock on this one.
fn rewrite(runtime: &Runtime, set: &ComponentSet, path: &Path, text: &str) -> Result<(), Trouble> {
    let sys = runtime.sys();
    let io = |what| Trouble::io(path, what);
    let file = set.open_manifest(OFlags::RDWR)?;
    let there = sys.read_start(file.as_fd(), TEXT_BYTES_MAX).map_err(io("read"))?;
    if Manifest::parse(&there, "copy").is_ok() {
        // Of another layout, whole: somebody meant it.
        return Err(io("says something else; remove it when no program uses the file")(Errno::EXIST));
    }
    sys.write_all_at(file.as_fd(), text.as_bytes(), 0).map_err(io("write"))?;
    sys.truncate(file.as_fd(), text.len() as u64).map_err(io("write"))
}

/// The size that the copies of the file give which are there; the original must be.
fn size(runtime: &Runtime, manifest: &Manifest, owner: u32) -> Result<u64, Trouble> {
    let mut size = 0;
    for (number, copy) in manifest.all_copies().enumerate() {
        match open_copy(runtime, copy, owner).and_then(|set| Ok(set.sizes()?)) {
            Ok(sizes) => size = size.max(copy.layout.file_size(&sizes)),
            Err(error) if number == 0 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(size)
}

/// The original.
fn open(runtime: &Runtime, manifest: &Manifest, owner: u32) -> Result<ComponentSet, Trouble> {
    let original = CopyRef { id: manifest.id, targets: &manifest.targets, layout: &manifest.layout };
    open_copy(runtime, original, owner)
}

fn open_copy(runtime: &Runtime, copy: CopyRef<'_>, owner: u32) -> Result<ComponentSet, Trouble> {
    let targets = runtime.targets_of(copy.targets)?;
    let opening = Opening { read_only: true, flags: OFlags::empty() };
    Ok(ComponentSet::open(runtime.sys(), targets, copy.objects(owner), opening)?)
}
