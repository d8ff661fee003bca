//! Bringing back anchors, and copies of their manifests.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use stripewise_sys::{Kind, Mode, OFlags};
use stripewise_target::{ComponentSet, Opening, TargetError};

use crate::Errno;
use crate::file::sync_directory;
use crate::manifest::{CopyRef, Manifest, TEXT_BYTES_MAX};
use crate::runtime::{Runtime, temporary_name};
use crate::trouble::Trouble;

/// What is appended to the name of a file that is set aside.
pub(super) const ASIDE: &str = ".stripewise-aside";

/// Makes the anchor that `manifest` (of the copy) describes anew at `path`. What is there now is renamed to
/// `PATH.stripewise-aside`, or with a number if that exists.
pub(super) fn anchor(runtime: &Runtime, path: &Path, manifest: &Manifest) -> Result<(), Trouble> {
    let sys = runtime.sys();
    let io = |what| Trouble::io(path, what);
    let stats = open(runtime, manifest)?.stats()?;
    let text = manifest.format()?;
    let size = size(runtime, manifest)?.max(text.len() as u64);
    // Mode and owner are the components'.
    let like = &stats[0];
    let temporary = path.with_file_name(temporary_name(manifest.id));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
    let new =
        sys.open(None, &temporary, flags, Mode::RUSR | Mode::WUSR).map_err(io("write the manifest beside"))?;
    let fill = || {
        sys.write_all_at(new.as_fd(), text.as_bytes(), 0)?;
        sys.truncate(new.as_fd(), size)?;
        // Not permitted for others' files: then it is ours.
        let _ = sys.set_owner(Kind::Open(new.as_fd()), Some(like.st_uid), Some(like.st_gid));
        sys.set_mode(Kind::Open(new.as_fd()), Mode::from_raw_mode(like.st_mode & 0o7777))?;
        sys.sync(new.as_fd())?;
        set_aside(runtime, path)?;
        sys.rename_noreplace(None, &temporary, None, path)?;
        sync_directory(sys, None, path)
    };
    fill().map_err(io("restore")).inspect_err(|_| {
        let _ = sys.unlink(None, &temporary);
    })
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
pub(super) fn has_lost_components(runtime: &Runtime, manifest: &Manifest) -> bool {
    matches!(open(runtime, manifest), Err(Trouble::Target(TargetError::Io { errno: Errno::NOENT, .. })))
}

/// Writes the copy of the manifest anew.
pub(super) fn copy(runtime: &Runtime, manifest: &Manifest) -> Result<(), Trouble> {
    let set = open(runtime, manifest)?;
    let mode = Mode::from_raw_mode(set.stats()?[0].st_mode & 0o777);
    let text = Manifest { pending_truncate: None, ..manifest.clone() }.format()?;
    match set.create_manifest(text.as_bytes(), mode | Mode::RUSR | Mode::WUSR) {
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
fn size(runtime: &Runtime, manifest: &Manifest) -> Result<u64, Trouble> {
    let mut size = 0;
    for (number, copy) in manifest.all_copies().enumerate() {
        match open_copy(runtime, copy).and_then(|set| Ok(set.sizes()?)) {
            Ok(sizes) => size = size.max(copy.layout.file_size(&sizes)),
            Err(error) if number == 0 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(size)
}

/// The original.
fn open(runtime: &Runtime, manifest: &Manifest) -> Result<ComponentSet, Trouble> {
    let original = CopyRef { id: manifest.id, targets: &manifest.targets, layout: &manifest.layout };
    open_copy(runtime, original)
}

fn open_copy(runtime: &Runtime, copy: CopyRef<'_>) -> Result<ComponentSet, Trouble> {
    let targets = runtime.targets_of(copy.targets)?;
    let opening = Opening { read_only: true, flags: OFlags::empty() };
    Ok(ComponentSet::open(runtime.sys(), targets, copy.id, opening)?)
}
