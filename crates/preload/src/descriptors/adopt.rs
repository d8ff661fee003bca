//! Determines the kind of a descriptor that the library sees for the first time.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fs::fcntl_getfl;
use stripewise_datapath::{LogicalFile, notice};
use stripewise_recorder::FileId;
use stripewise_sys::fd::is_private;
use stripewise_sys::{Errno, OFlags, Result, Stat};

use crate::descriptors::{Absolute, Entry, EntryRef, Found, Known, access, seen, sniff, table};
use crate::process::{borrow, errno, identity, kernel, stack, state};

/// The entry of a descriptor that is managed or recorded. `None` for all others, at the cost of two
/// loads.
#[inline]
pub fn tracked(fd: c_int) -> Option<EntryRef> {
    if table::is_plain(fd) { None } else { look_up(fd) }
}

#[cold]
fn look_up(fd: c_int) -> Option<EntryRef> {
    match table::known(fd) {
        Known::Plain => None,
        Known::Entry(entry) => Some(entry),
        Known::Unknown => on_first_use(fd),
    }
}

/// Examines a descriptor that the table does not know, and enters its kind. A kind that could not
/// be determined is not entered, so the next call examines the descriptor again.
fn on_first_use(fd: c_int) -> Option<EntryRef> {
    if identity::is_vfork_child() {
        return None;
    }
    if is_private(fd) {
        // Some programs try all numbers: their calls must not reach an object.
        return Some(EntryRef::failed(Errno::BADF));
    }
    let mut stat = MaybeUninit::uninit();
    let looked = match kernel::stat_of(fd, &mut stat) {
        Err(Errno::BADF) => return None,
        Ok(stat) if sniff::is_regular(stat) => look(fd, stat, None),
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    };
    match looked.and_then(|entry| enter(fd, entry)) {
        Ok(entry) => entry,
        // It could be an anchor: every call on it fails, because it might otherwise reach the
        // manifest.
        Err(error) => Some(EntryRef::failed(error)),
    }
}

/// Examines a descriptor that was just opened with these flags under this name. Returns that
/// descriptor, or the one that it was exchanged for.
/// Errors: the file is managed and cannot be served, or its kind could not be determined. The
/// descriptor is closed.
pub fn opened(fd: c_int, flags: OFlags, name: &CStr) -> Result<(c_int, Option<EntryRef>)> {
    let mut stat = MaybeUninit::uninit();
    let stat = kernel::stat_of(fd, &mut stat).inspect_err(|_| kernel::close(fd))?;
    if identity::is_vfork_child() {
        let exchanged = sniff::is_regular(stat) && access::writes(flags);
        return Ok((if exchanged { access::exchange_in_vfork_child(fd, flags) } else { fd }, None));
    }
    let (fd, entry) = enter_opened(fd, stat, flags)?;
    let is_plain = entry.as_ref().is_none_or(|entry| entry.is_plain());
    let may_be_planned = flags.intersects(OFlags::CREATE | OFlags::WRONLY | OFlags::RDWR) && state::has_plan();
    if is_plain && may_be_planned && sniff::is_regular(stat) && !seen::is_decided(stat, name) {
        say_if_not_placed(fd);
    }
    Ok((fd, entry))
}

/// As [`opened`], for a file with these attributes that is where the plan wants it. The descriptor
/// is exchanged if the file is managed and open for writing.
#[inline]
pub fn enter_opened(fd: c_int, stat: &Stat, flags: OFlags) -> Result<(c_int, Option<EntryRef>)> {
    let entry = if sniff::is_regular(stat) { look(fd, stat, Some(flags)) } else { Ok(None) };
    let entry = entry.inspect_err(|_| kernel::close(fd))?;
    let fd = match &entry {
        Some(entry) if access::writes(flags) => match entry.file()? {
            Some(file) => access::exchange(fd, file, flags)?,
            None => fd,
        },
        _ => fd,
    };
    Ok((fd, enter(fd, entry).inspect_err(|_| kernel::close(fd))?))
}

/// Enters a descriptor that the data path opened. `flags` are those of the program's open.
/// After an error the descriptor is closed.
pub fn managed(fd: c_int, file: Arc<LogicalFile>, flags: OFlags) -> Result<Option<EntryRef>> {
    let entry = || {
        access::note(fd, flags)?;
        let mut stat = MaybeUninit::uninit();
        let stat = kernel::stat_of(fd, &mut stat)?;
        let entry = EntryRef::new(describe(fd, stat, Some(file), flags))?;
        enter(fd, Some(entry))
    };
    entry().inspect_err(|_| kernel::close(fd))
}

fn enter(fd: c_int, entry: Option<EntryRef>) -> Result<Option<EntryRef>> {
    if !table::has_slot(fd) && entry.as_ref().is_some_and(|entry| !entry.is_plain()) {
        // A managed file with a number that the table cannot have would count as plain. Where only
        // memory is missing, its locks and its access mode would be forgotten between calls.
        return Err(if fd as usize >= table::LIMIT { Errno::MFILE } else { Errno::NOMEM });
    }
    table::set(fd, entry.clone().map_or(Known::Plain, Known::Entry));
    Ok(entry)
}

/// The entry of a regular file; `None` if it is neither managed nor recorded.
fn look(fd: c_int, stat: &Stat, flags: Option<OFlags>) -> Result<Option<EntryRef>> {
    let found = match sniff::descriptor(borrow(fd), stat, flags) {
        // A process with more rights passed it to this one (a job's output, for example), or it was
        // opened with O_PATH and cannot transfer data.
        Err(Errno::ACCESS) if flags.is_none_or(|flags| flags.contains(OFlags::PATH)) => Found::Plain,
        found => found?,
    };
    let file = match found {
        Found::Anchor => attach(fd)?,
        Found::Plain => None,
    };
    if file.is_none() && state::recorder().is_none() {
        return Ok(None);
    }
    let access = flags.map_or_else(|| access::inherited(fd, stat), Ok)?;
    let entry = describe(fd, stat, file, access);
    let of_interest = !entry.is_plain() || entry.record_as != FileId::NOT_RECORDED;
    of_interest.then(|| EntryRef::new(entry)).transpose()
}

#[inline(never)]
fn attach(fd: c_int) -> Result<Option<Arc<LogicalFile>>> {
    errno::guarded(|| stack::on_own(|| state::runtime()?.attach(borrow(fd))))
}

#[inline(never)]
fn describe(fd: c_int, stat: &Stat, file: Option<Arc<LogicalFile>>, access: OFlags) -> Entry {
    let record_as = state::recorder().map_or(FileId::NOT_RECORDED, |recorder| {
        Absolute::of(fd).map_or(FileId::NOT_RECORDED, |path| recorder.file_id(path.as_bytes()))
    });
    Entry {
        record_as,
        // With O_PATH every transfer asks the kernel.
        status: fcntl_getfl(borrow(fd)).unwrap_or(OFlags::PATH).bits().into(),
        access: access & OFlags::RWMODE,
        opened_size: stat.st_size as u64,
        ..Entry::new(Ok(file), (stat.st_dev, stat.st_ino))
    }
}

#[cold]
#[inline(never)]
fn say_if_not_placed(fd: c_int) {
    let _ = errno::guarded(|| {
        stack::on_own(|| {
            let (runtime, path) = (state::runtime()?, Absolute::of(fd)?);
            let path = path.as_path();
            if runtime.shape_for(path).is_some() {
                let remedy = "it stays as it is; `stripewise place` moves it";
                notice::warn_once(&format!(
                    "{}: exists and is not in the planned layout; {remedy}",
                    path.display()
                ));
            }
            Ok(())
        })
    });
}
