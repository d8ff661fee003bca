//! Finding out what a descriptor is that the library sees for the first time.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::{FileType, fstat};
use stripewise_datapath::{LogicalFile, notice};
use stripewise_recorder::FileId;
use stripewise_sys::fd::is_private;
use stripewise_sys::{Errno, OFlags, Result, Stat};

use crate::entry::{Description, EntryRef};
use crate::inside::Inside;
use crate::paths::Absolute;
use crate::table::{self, Known};
use crate::{access, errno, kernel, process, record, sniff, state};

/// Looks at a descriptor that the table does not know, and enters what it is.
pub fn on_first_use(fd: c_int) -> Option<EntryRef> {
    if process::is_vfork_child() {
        return None;
    }
    // SAFETY: borrowed for the call.
    let stat = fstat(unsafe { BorrowedFd::borrow_raw(fd) }).ok()?;
    if is_private(fd) {
        // Programs that try all numbers: what they ask for must not reach a component.
        return enter(fd, EntryRef::new(describe(fd, &stat, Err(Errno::BADF), OFlags::empty())).ok());
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        table::set(fd, Known::Plain);
        return None;
    }
    // An anchor whose file cannot be served: every call on it fails, rather than reach the manifest.
    let entry = look(fd, &stat, None)
        .unwrap_or_else(|error| EntryRef::new(describe(fd, &stat, Err(error), OFlags::empty())).ok());
    enter(fd, entry)
}

/// Looks at a descriptor that was just opened with these flags. Returns it, or the one that it was exchanged for.
///
/// # Errors
/// The file is managed and cannot be served; the descriptor is closed.
pub fn opened(fd: c_int, flags: OFlags) -> Result<(c_int, Option<EntryRef>)> {
    // SAFETY: borrowed for the call.
    let stat = fstat(unsafe { BorrowedFd::borrow_raw(fd) }).ok();
    let regular = stat.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if process::is_vfork_child() {
        let exchanged = regular.is_some() && access::writes(flags);
        return Ok((if exchanged { access::exchange_in_vfork_child(fd, flags) } else { fd }, None));
    }
    let entry = match regular {
        Some(stat) => look(fd, &stat, Some(flags)).inspect_err(|_| kernel::close(fd))?,
        None => None,
    };
    let fd = match &entry {
        Some(entry) if access::writes(flags) => match entry.file()? {
            Some(file) => access::exchange(fd, file, flags)?,
            None => fd,
        },
        _ => fd,
    };
    Ok((fd, enter(fd, entry)))
}

/// Enters a descriptor that the data path opened, as the program asked with these flags.
///
/// # Errors
/// ENFILE, ENOMEM; the descriptor is closed.
pub fn managed(fd: c_int, file: Arc<LogicalFile>, flags: OFlags) -> Result<Option<EntryRef>> {
    let entry = || {
        access::note(fd, flags)?;
        // SAFETY: borrowed for the call.
        let stat = fstat(unsafe { BorrowedFd::borrow_raw(fd) })?;
        EntryRef::new(describe(fd, &stat, Ok(Some(file)), flags))
    };
    let entry = entry().inspect_err(|_| kernel::close(fd))?;
    Ok(enter(fd, Some(entry)))
}

fn enter(fd: c_int, entry: Option<EntryRef>) -> Option<EntryRef> {
    let known = entry.clone().map_or(Known::Plain, Known::Entry);
    table::set(fd, known);
    entry
}

/// The entry for a regular file; `None`: none of our business.
fn look(fd: c_int, stat: &Stat, flags: Option<OFlags>) -> Result<Option<EntryRef>> {
    // SAFETY: borrowed for the calls here.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let file = if sniff::descriptor(borrowed, stat, flags) {
        errno::guarded(|| state::runtime()?.attach(borrowed))?
    } else {
        None
    };
    let writes = OFlags::CREATE | OFlags::WRONLY | OFlags::RDWR;
    if file.is_none() && flags.is_some_and(|flags| flags.intersects(writes)) {
        say_if_not_placed(fd);
    }
    if file.is_none() && state::recorder().is_none() {
        return Ok(None);
    }
    let access = flags.unwrap_or_else(|| access::inherited(fd, stat));
    let description = describe(fd, stat, Ok(file), access);
    if description.is_of_no_interest() {
        return Ok(None);
    }
    EntryRef::new(description).map(Some)
}

fn describe(fd: c_int, stat: &Stat, file: Result<Option<Arc<LogicalFile>>>, access: OFlags) -> Description {
    let record_as = state::recorder().map_or(FileId::NOT_RECORDED, |recorder| {
        Absolute::of(fd).map_or(FileId::NOT_RECORDED, |path| recorder.file_id(path.as_bytes()))
    });
    Description {
        file,
        key: (stat.st_dev, stat.st_ino),
        record_as,
        appends: record::appends(fd),
        access,
        opened_size: stat.st_size as u64,
    }
}

fn say_if_not_placed(fd: c_int) {
    if !state::has_plan() {
        return;
    }
    let _inside = Inside::new();
    let (Ok(runtime), Ok(path)) = (state::runtime(), Absolute::of(fd)) else { return };
    let path = path.as_path();
    if runtime.shape_for(path).is_some() {
        let remedy = "it stays as it is; `stripewise place` moves it";
        let said = format!("{}: exists and is not in the planned layout; {remedy}", path.display());
        notice::say(&said);
    }
}
