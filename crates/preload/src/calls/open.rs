//! The `open` family, and opens by children of `posix_spawn`.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libc::{mode_t, posix_spawn_file_actions_t};
use rustix::fs::{CWD, readlinkat};
use rustix::io::retry_on_intr;
use stripewise_datapath::Opened;
use stripewise_recorder::{Event, Flags, Op, Ticks};
use stripewise_sys::{Errno, Fd, Mode, OFlags, Result};

use crate::calls::unplanned;
use crate::descriptors::{EntryRef, Known, Named, access, adopt, borrow_dir, record, sniff, table, to_path};
use crate::process::{At, answer, borrow, errno, fail, guard, guarded, identity, kernel, serve, stack, state};

/// Descriptors that wait for children, each with the address of its file actions.
static OPEN: Mutex<Vec<(usize, Fd)>> = Mutex::new(Vec::new());

// The variable argument of C's `open` is passed like a third fixed one in the 64-bit calling
// conventions of Linux.

interpose!(
    open | open64 | __open | __open64 = |real, path: *const c_char, flags: c_int, mode: mode_t| -> c_int {
        open_any(At::cwd(path), flags, mode, real)
    },
    openat | openat64 = |real, dir: c_int, path: *const c_char, flags: c_int, mode: mode_t| -> c_int {
        open_any(At { dir, path }, flags, mode, real)
    },
    creat | creat64 = |real, path: *const c_char, mode: mode_t| -> c_int {
        let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
        open_any(At::cwd(path), flags, mode, real)
    },
    // These functions take no mode: glibc aborts a program that passes O_CREAT to them.
    __open_2 | __open64_2 = |real, path: *const c_char, flags: c_int| -> c_int {
        open_any(At::cwd(path), flags & !libc::O_CREAT, 0, real)
    },
    __openat_2 | __openat64_2 = |real, dir: c_int, path: *const c_char, flags: c_int| -> c_int {
        open_any(At { dir, path }, flags & !libc::O_CREAT, 0, real)
    },
    // libc opens the file in the child, where the library cannot intercept the open. So the file is
    // opened at once if the child's open would change a managed file, and the child duplicates that
    // descriptor. Two differences are visible: the file is opened even if the program never spawns,
    // and two children with the same actions share the offset.
    posix_spawn_file_actions_addopen = |real,
                                        actions: *mut posix_spawn_file_actions_t,
                                        fd: c_int,
                                        path: *const c_char,
                                        flags: c_int,
                                        mode: mode_t|
     -> c_int {
        let changes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
        let writes = access::writes(OFlags::from_bits_retain(flags.cast_unsigned()));
        let managed = if changes || writes { is_managed_name(path, flags) } else { Ok(false) };
        match managed {
            Ok(true) => {}
            // An invalid path fails in the child.
            Ok(false) | Err(Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::FAULT) => return real(),
            Err(error) => return error.raw_os_error(),
        }
        let before = errno::get();
        let (at, flags) = (At::cwd(path), flags | libc::O_CLOEXEC);
        let opened = open_any(at, flags, mode, || answer(|| at.open(flags, mode)));
        if opened < 0 {
            let failed = errno::get();
            errno::set(before);
            let fails_there_too = match failed {
                // EACCES may be a temporary error of a server, or concern an object only. The
                // kernel would then open the anchor for a child of root, and truncate it.
                libc::EACCES => !may_write(path),
                failed => matches!(failed, libc::EEXIST | libc::EISDIR | libc::EROFS),
            };
            // Otherwise the open might succeed in the child, bypassing the library.
            return if fails_there_too { real() } else { failed };
        }
        // SAFETY: just opened; closed by the library's own `close`.
        let kept = unsafe {
            let kept = Fd::duplicate(borrow(opened));
            libc::close(opened);
            kept
        };
        errno::set(before);
        let kept = match kept {
            Ok(kept) => kept,
            Err(error) => return error.raw_os_error(),
        };
        // SAFETY: the application's actions.
        let result = unsafe { libc::posix_spawn_file_actions_adddup2(actions, kept.as_raw_fd(), fd) };
        if result == 0 {
            OPEN.lock().unwrap_or_else(PoisonError::into_inner).push((actions as usize, kept));
        }
        result
    },
    posix_spawn_file_actions_destroy = |real, actions: *mut posix_spawn_file_actions_t| -> c_int {
        if let Ok(mut open) = OPEN.try_lock() {
            open.retain(|(of, _)| *of != actions as usize);
        }
        real()
    },
);

/// Opens a file for the application: through the data path where the open would create or truncate
/// a managed file, else through `real`. Returns the descriptor, or -1 with errno.
pub fn open_any(at: At, flags: c_int, mode: mode_t, real: impl FnOnce() -> c_int) -> c_int {
    if guard::active() {
        // A private descriptor: the lowest free numbers are the application's.
        let fd = real();
        return if fd >= 0 { stripewise_sys::fd::raise(fd) } else { fd };
    }
    let flags = OFlags::from_bits_retain(flags.cast_unsigned());
    let start = state::recorder().map(|recorder| recorder.now());
    if let Some(opened) = unplanned::open(at, flags, mode) {
        return answer(|| opened.map(|(fd, entry)| opened_at(start, fd, entry, flags)));
    }
    let mut opened = -1;
    let name = managed_name(at, flags).and_then(|name| match name {
        Some(name) => Ok(Some(name)),
        None => {
            opened = real();
            if opened < 0 { refused_name(at, flags, &mut opened) } else { Ok(None) }
        }
    });
    let record = |(fd, entry)| opened_at(start, fd, entry, flags);
    match name {
        Err(error) => fail(error),
        Ok(Some(name)) => serve(|| stack::on_own(|| open_managed(at.dir, name, flags, mode)).map(record)),
        Ok(None) if opened < 0 => opened,
        // SAFETY: the kernel could read the path.
        Ok(None) => answer(|| settle(opened, flags, unsafe { at.name() }).map(record)),
    }
}

/// Records an open that began at `start`, if the file is recorded. Returns the descriptor.
fn opened_at(start: Option<Ticks>, fd: c_int, entry: Option<EntryRef>, opened: OFlags) -> c_int {
    let (Some(start), Some(entry)) = (start, entry) else { return fd };
    let Some((recorder, file)) = record::wanted(&entry) else { return fd };
    let flags = if entry.status().contains(OFlags::APPEND) { Flags::APPEND } else { Flags::NONE };
    let logical = || entry.file()?.map(|file| file.size()).transpose();
    let size = guarded(logical).ok().flatten().unwrap_or(entry.opened_size);
    let event = Event { file, op: Op::Open, flags, offset: 0, size, start, end: recorder.now(), result: 0 };
    recorder.record(&event);
    if opened.contains(OFlags::TRUNC) {
        recorder.record(&Event { op: Op::Resize, flags: Flags::NONE, size: 0, ..event });
    }
    fd
}

/// The name, if the data path has to open it: the open would truncate a managed file or create one.
fn managed_name(at: At, flags: OFlags) -> Result<Option<&'static CStr>> {
    let creates = flags.contains(OFlags::CREATE) && state::has_plan() && !identity::is_vfork_child();
    if !(creates || flags.contains(OFlags::TRUNC)) || flags.intersects(OFlags::PATH | OFlags::DIRECTORY) {
        return Ok(None);
    }
    let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
    if exclusive || !flags.contains(OFlags::TRUNC) {
        // The open keeps an existing file's bytes: only the existence of the file matters.
        return match retry_on_intr(|| at.stat(!exclusive && follows_link(flags))) {
            // The data path finds out whether the plan has a layout for the path.
            // SAFETY: the kernel could read the path.
            Err(Errno::NOENT) => Ok(creates.then(|| unsafe { at.name() })),
            stat => stat.map(|_| None),
        };
    }
    Ok(match sniff::look_up(at, follows_link(flags))? {
        Named::Anchor(path) => Some(path),
        Named::Plain => None,
        Named::Missing(path) => creates.then_some(path),
    })
}

/// The name, if the kernel refused to open it for writing because it is an anchor: no user may
/// write to an anchor, and the data path decides who may write to the file. A vfork child must not
/// use the data path; for it, `opened` is set here.
/// Errors: the kind of the file could not be determined. Otherwise errno is unchanged.
fn refused_name(at: At, flags: OFlags, opened: &mut c_int) -> Result<Option<&'static CStr>> {
    if errno::get() != libc::EACCES || !access::writes(flags) {
        return Ok(None);
    }
    let found = if identity::is_vfork_child() {
        *opened = access::open_in_vfork_child(at, flags).unwrap_or(-1);
        None
    } else {
        sniff::anchor(at, follows_link(flags))?
    };
    errno::set(libc::EACCES);
    Ok(found)
}

fn follows_link(flags: OFlags) -> bool {
    !flags.contains(OFlags::NOFOLLOW)
}

/// Whether opening the path gives a managed file.
pub fn is_managed_name(path: *const c_char, flags: c_int) -> Result<bool> {
    let flags = OFlags::from_bits_retain(flags.cast_unsigned());
    let follow = follows_link(flags) && !flags.contains(OFlags::CREATE | OFlags::EXCL);
    Ok(match sniff::look_up(At::cwd(path), follow)? {
        Named::Anchor(_) => true,
        Named::Plain => false,
        Named::Missing(_) => flags.contains(OFlags::CREATE) && state::has_plan(),
    })
}

/// Whether a stream on the path has to go through the library: for a managed file and, in a traced
/// job, for any regular file.
pub fn wants_stream(path: *const c_char, flags: c_int) -> Result<bool> {
    if identity::is_vfork_child() {
        return Ok(false);
    }
    if state::recorder().is_none() {
        return is_managed_name(path, flags);
    }
    match retry_on_intr(|| At::cwd(path).stat(true)) {
        Ok(stat) => Ok(sniff::is_regular(&stat)),
        Err(Errno::NOENT) => Ok(flags & libc::O_CREAT != 0),
        Err(error) => Err(error),
    }
}

fn open_managed(dir: c_int, name: &CStr, flags: OFlags, mode: mode_t) -> Result<(c_int, Option<EntryRef>)> {
    if identity::is_vfork_child() {
        // A vfork child uses its parent's memory: it must not open files in there.
        return Err(Errno::IO);
    }
    let (path, mode) = (to_path(name.to_bytes()), Mode::from_raw_mode(mode));
    // With an absolute path the kernel ignores `dir`, which may be no descriptor at all.
    let dir = if path.is_absolute() { libc::AT_FDCWD } else { dir };
    let end = end_of_links(dir, name, flags)?;
    let path = end.as_deref().unwrap_or(path);
    match state::runtime()?.open(borrow_dir(dir), path, flags, mode)? {
        Opened::Plain(fd) => settle(fd, flags, name),
        Opened::Managed(fd, file) => Ok((fd, adopt::managed(fd, file, flags)?)),
    }
}

/// The end of a chain of symbolic links, for O_CREAT, which creates the file there. `None` if the
/// name is no link.
fn end_of_links(dir: c_int, name: &CStr, flags: OFlags) -> Result<Option<PathBuf>> {
    const LINKS_MAX: usize = 40;
    if !flags.contains(OFlags::CREATE) || flags.intersects(OFlags::EXCL | OFlags::NOFOLLOW) {
        return Ok(None);
    }
    let mut end: Option<PathBuf> = None;
    for _ in 0..LINKS_MAX {
        let path = end.as_deref().unwrap_or(to_path(name.to_bytes()));
        match readlinkat(borrow_dir(dir).unwrap_or(CWD), path, Vec::new()) {
            Ok(link) => {
                let beside = path.parent().unwrap_or(Path::new(""));
                end = Some(beside.join(to_path(link.as_bytes())));
            }
            // The path is no link, or does not exist.
            Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => return Ok(end),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP)
}

/// Determines the kind of an opened file, and returns the program's descriptor of it. An anchor
/// whose file cannot be served is closed again.
fn settle(fd: c_int, flags: OFlags, name: &CStr) -> Result<(c_int, Option<EntryRef>)> {
    if flags.contains(OFlags::DIRECTORY) {
        if !identity::is_vfork_child() {
            table::set(fd, Known::Plain);
        }
        return Ok((fd, None));
    }
    adopt::opened(fd, flags, name)
}

/// Whether the kernel would open this name for writing. For an anchor it does so only for root.
fn may_write(path: *const c_char) -> bool {
    let (mode, flags) = (libc::W_OK as usize, libc::AT_EACCESS as usize);
    let arguments = [libc::AT_FDCWD as usize, path as usize, mode, flags];
    // SAFETY: only the kernel reads the path.
    unsafe { kernel::call(libc::SYS_faccessat2, arguments) }.is_ok()
}
