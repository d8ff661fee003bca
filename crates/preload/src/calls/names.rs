//! Calls that remove or rename files, ask for permissions, or change attributes.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::Path;

use libc::{gid_t, mode_t, timespec, timeval, uid_t, utimbuf};
use stripewise_datapath::Change;
use stripewise_sys::{Errno, Kind, Mode, Result, Timespec, Timestamps};

use crate::descriptors::{borrow_dir, follows, on_managed, record, sniff, to_path};
use crate::process::{At, errno, fail, identity, serve, state};

/// A name of the application that belongs to a managed file, or to a file that this process may not
/// read.
#[derive(Clone, Copy)]
struct Name {
    path: &'static Path,
    /// Whether the file is known to be managed. If the process may not read it, it may be a plain
    /// one.
    certain: bool,
}

/// Serves a call on a name: by `ours` if [`Name`] says so, else by `real`.
fn on_name(at: At, flags: c_int, real: impl FnOnce() -> c_int, ours: impl FnOnce(Name) -> c_int) -> c_int {
    let name = |path: &'static CStr, certain| Name { path: to_path(path.to_bytes()), certain };
    let found = match sniff::anchor(at, follows(flags)) {
        // The kernel will refuse the path with the same error.
        Err(Errno::FAULT | Errno::BADF | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => None,
        // SAFETY: the kernel could read the path.
        Err(Errno::ACCESS) => Some(name(unsafe { at.name() }, false)),
        Err(error) => return fail(error),
        Ok(anchor) => anchor.map(|path| name(path, true)),
    };
    match found.filter(|_| !identity::is_vfork_child()) {
        Some(name) => ours(name),
        None => real(),
    }
}

/// As [`on_name`], for names that a call removes. A file that may not be read counts as plain: the
/// kernel does the same with the name, and `fsck` finds objects that are left behind.
fn on_removed(at: At, real: impl Fn() -> c_int, ours: impl FnOnce(&Path) -> c_int) -> c_int {
    let ours = |name: Name| if name.certain { ours(name.path) } else { real() };
    on_name(at, libc::AT_SYMLINK_NOFOLLOW, &real, ours)
}

interpose!(
    unlink = |real, path: *const c_char| -> c_int { unlink_any(At::cwd(path), real) },
    unlinkat = |real, dir: c_int, path: *const c_char, flags: c_int| -> c_int {
        if flags & libc::AT_REMOVEDIR != 0 {
            return real();
        }
        unlink_any(At { dir, path }, real)
    },
    remove = |real, path: *const c_char| -> c_int { unlink_any(At::cwd(path), real) },
    rename = |real, old: *const c_char, new: *const c_char| -> c_int {
        rename_any(At::cwd(old), At::cwd(new), 0, real)
    },
    renameat = |real, old_dir: c_int, old: *const c_char, new_dir: c_int, new: *const c_char| -> c_int {
        rename_any(At { dir: old_dir, path: old }, At { dir: new_dir, path: new }, 0, real)
    },
    renameat2 = |real,
                 old_dir: c_int,
                 old: *const c_char,
                 new_dir: c_int,
                 new: *const c_char,
                 flags: c_uint|
     -> c_int {
        rename_any(At { dir: old_dir, path: old }, At { dir: new_dir, path: new }, flags, real)
    },
    chmod = |real, path: *const c_char, mode: mode_t| -> c_int {
        change_named(At::cwd(path), 0, || to_mode(mode), real)
    },
    fchmod = |real, fd: c_int, mode: mode_t| -> c_int { change_opened(fd, || to_mode(mode), real) },
    fchmodat = |&real, dir: c_int, path: *const c_char, mode: mode_t, flags: c_int| -> c_int {
        let change = || if is_refused(flags, real) { None } else { to_mode(mode) };
        change_at(At { dir, path }, flags, change, || unsafe { real(dir, path, mode, flags) })
    },
    chown = |real, path: *const c_char, user: uid_t, group: gid_t| -> c_int {
        change_named(At::cwd(path), 0, || to_owner(user, group), real)
    },
    lchown = |real, path: *const c_char, user: uid_t, group: gid_t| -> c_int {
        change_named(At::cwd(path), libc::AT_SYMLINK_NOFOLLOW, || to_owner(user, group), real)
    },
    fchown = |real, fd: c_int, user: uid_t, group: gid_t| -> c_int {
        change_opened(fd, || to_owner(user, group), real)
    },
    fchownat = |real, dir: c_int, path: *const c_char, user: uid_t, group: gid_t, flags: c_int| -> c_int {
        change_at(At { dir, path }, flags, || to_owner(user, group), real)
    },
    utime = |real, path: *const c_char, times: *const utimbuf| -> c_int {
        change_named(At::cwd(path), 0, || unsafe { of_seconds(times) }, real)
    },
    utimes = |real, path: *const c_char, times: *const timeval| -> c_int {
        change_named(At::cwd(path), 0, || unsafe { of_timevals(times) }, real)
    },
    lutimes = |real, path: *const c_char, times: *const timeval| -> c_int {
        change_named(At::cwd(path), libc::AT_SYMLINK_NOFOLLOW, || unsafe { of_timevals(times) }, real)
    },
    futimes = |real, fd: c_int, times: *const timeval| -> c_int {
        change_opened(fd, || unsafe { of_timevals(times) }, real)
    },
    futimesat = |real, dir: c_int, path: *const c_char, times: *const timeval| -> c_int {
        if path.is_null() {
            return change_opened(dir, || unsafe { of_timevals(times) }, real);
        }
        change_named(At { dir, path }, 0, || unsafe { of_timevals(times) }, real)
    },
    futimens = |real, fd: c_int, times: *const timespec| -> c_int {
        change_opened(fd, || unsafe { of_timespecs(times) }, real)
    },
    utimensat = |real, dir: c_int, path: *const c_char, times: *const timespec, flags: c_int| -> c_int {
        change_at(At { dir, path }, flags, || unsafe { of_timespecs(times) }, real)
    },
    access = |&real, path: *const c_char, mode: c_int| -> c_int {
        asked(At::cwd(path), mode, 0, |mode| unsafe { real(path, mode) })
    },
    euidaccess | eaccess = |&real, path: *const c_char, mode: c_int| -> c_int {
        asked(At::cwd(path), mode, libc::AT_EACCESS, |mode| unsafe { real(path, mode) })
    },
    faccessat = |&real, dir: c_int, path: *const c_char, mode: c_int, flags: c_int| -> c_int {
        asked(At { dir, path }, mode, flags, |mode| unsafe { real(dir, path, mode, flags) })
    },
);

fn unlink_any(at: At, real: impl Fn() -> c_int) -> c_int {
    let ours = |path: &Path| serve(|| state::runtime()?.unlink(borrow_dir(at.dir), path).map(|()| 0));
    record::timed_removal(at, || on_removed(at, real, ours))
}

/// A managed file moves with its anchor. The data path is needed only where the rename replaces a
/// managed file.
fn rename_any(from: At, to: At, flags: c_uint, real: impl Fn() -> c_int) -> c_int {
    if flags & (libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE) != 0 {
        return real();
    }
    on_removed(to, real, |new| {
        if let Err(error) = from.stat(false) {
            // The source does not exist, so the rename fails.
            return fail(error);
        }
        // SAFETY: the kernel could read the path.
        let old = to_path(unsafe { from.name() }.to_bytes());
        let (old_dir, new_dir) = (borrow_dir(from.dir), borrow_dir(to.dir));
        serve(|| state::runtime()?.rename(old_dir, old, new_dir, new, flags).map(|()| 0))
    })
}

/// Changes attributes by name; those of anchor and objects if the file is managed.
fn change_named(
    at: At,
    flags: c_int,
    change: impl FnOnce() -> Option<Change>,
    real: impl Fn() -> c_int,
) -> c_int {
    on_name(at, flags, &real, |Name { path, certain }| {
        let Some(change) = change() else { return real() };
        // For a file that this process may not read, the data path is needed only to change the
        // mode: the new mode may make the file readable to its owner, and the data path then
        // examines it.
        if !certain && !matches!(change, Change::Mode(_)) {
            return real();
        }
        let mut done = false;
        let result = serve(|| {
            done = state::runtime()?.change(Kind::Named(borrow_dir(at.dir), path), &change)?;
            if done || !certain { Ok(0) } else { Err(Errno::STALE) }
        });
        if result == 0 && !done { real() } else { result }
    })
}

/// As [`change_named`], by descriptor.
fn change_opened(fd: c_int, change: impl FnOnce() -> Option<Change>, real: impl Fn() -> c_int) -> c_int {
    on_managed(fd, &real, |managed| {
        let Some(change) = change() else { return real() };
        serve(|| {
            managed.flags()?;
            managed.file()?.change(&change).map(|()| 0)
        })
    })
}

/// Whether libc, or its kernel, refuses these flags of fchmodat: AT_EMPTY_PATH is refused by glibc
/// before 2.39 and Linux before 6.6. Descriptor -1 tells which, because it has no file.
fn is_refused(
    flags: c_int,
    fchmodat: unsafe extern "C" fn(c_int, *const c_char, mode_t, c_int) -> c_int,
) -> bool {
    // SAFETY: the path is an empty string.
    let answer = || unsafe { fchmodat(-1, c"".as_ptr(), 0, flags) };
    flags & libc::AT_EMPTY_PATH != 0 && errno::quietly(|| answer() == -1 && errno::get() != libc::EBADF)
}

fn to_mode(mode: mode_t) -> Option<Change> {
    Some(Change::Mode(Mode::from_raw_mode(mode & 0o7777)))
}

fn to_owner(user: uid_t, group: gid_t) -> Option<Change> {
    let given = |id: u32| (id != u32::MAX).then_some(id);
    Some(Change::Owner(given(user), given(group)))
}

/// As [`change_named`], where an empty path may stand for the descriptor `dir`.
fn change_at(at: At, flags: c_int, change: impl FnOnce() -> Option<Change>, real: impl Fn() -> c_int) -> c_int {
    match stands_for_descriptor(at.path, flags) {
        Ok(false) => change_named(at, flags, change, real),
        Ok(true) => change_opened(at.dir, change, real),
        Err(error) => fail(error),
    }
}

/// Whether a path is empty and so stands for the descriptor `dir`. A stat by the kernel detects an
/// invalid pointer before this function reads the path; the kernel then refuses it in the real
/// call, too.
fn stands_for_descriptor(path: *const c_char, flags: c_int) -> Result<bool> {
    if flags & libc::AT_EMPTY_PATH == 0 {
        return Ok(false);
    }
    match At::cwd(path).stat(true) {
        Ok(_) | Err(Errno::FAULT) => Ok(false),
        Err(Errno::NOMEM) => Err(Errno::NOMEM),
        // SAFETY: the kernel could read the path.
        Err(_) => Ok(unsafe { *path } == 0),
    }
}

/// The change to two times at this address, which may be null: now. `None` for times that the
/// kernel refuses.
/// Safety: the application passes two, unless the pointer is null.
unsafe fn to_times<T: Copy>(times: *const T, to: impl Fn(T) -> Option<Timespec>) -> Option<Change> {
    // SAFETY: as the caller promises.
    let [last_access, last_modification] = match unsafe { times.cast::<[T; 2]>().as_ref() } {
        None => [Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW }; 2],
        Some(&[access, modification]) => [to(access)?, to(modification)?],
    };
    Some(Change::Times(Timestamps { last_access, last_modification }))
}

unsafe fn of_seconds(times: *const utimbuf) -> Option<Change> {
    // SAFETY: the structure consists of two numbers of seconds.
    unsafe { to_times(times.cast::<i64>(), |tv_sec| Some(Timespec { tv_sec, tv_nsec: 0 })) }
}

unsafe fn of_timevals(times: *const timeval) -> Option<Change> {
    let to = |time: timeval| Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1000 };
    // SAFETY: as the caller promises.
    unsafe { to_times(times, |time| (0..1_000_000).contains(&time.tv_usec).then(|| to(time))) }
}

unsafe fn of_timespecs(times: *const timespec) -> Option<Change> {
    // SAFETY: as the caller promises.
    unsafe { to_times(times, |time| Some(Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec })) }
}

/// The kernel's answer. For an anchor that refuses writing, the answer of the data path.
fn asked(at: At, mode: c_int, flags: c_int, real: impl Fn(c_int) -> c_int) -> c_int {
    let answer = real(mode);
    if answer == 0 || mode & libc::W_OK == 0 || errno::get() != libc::EACCES || identity::is_vfork_child() {
        return answer;
    }
    let path = match sniff::anchor(at, follows(flags)) {
        Ok(Some(path)) => path,
        Ok(None) => return fail(Errno::ACCESS),
        Err(error) => return fail(error),
    };
    // The anchor has the permissions of the file, except to write.
    match real(mode & !libc::W_OK) {
        0 => serve(|| {
            let (path, effective) = (to_path(path.to_bytes()), flags & libc::AT_EACCESS != 0);
            state::runtime()?.may_write_named(borrow_dir(at.dir), path, follows(flags), effective)?;
            Ok(0)
        }),
        refused => refused,
    }
}
