//! The `stat` family: the kernel's attributes of an anchor, with the permissions, size, blocks and
//! times of the file.

use std::ffi::{CStr, c_char, c_int, c_uint};

use libc::{stat as Stat, statx as Statx};
use rustix::io::retry_on_intr;
use stripewise_recorder::Op;
use stripewise_sys::{Errno, Result};

use crate::descriptors::{Call, Found, Subject, borrow_dir, follows, on_recorded, sniff, to_path};
use crate::process::{At, errno, state};

interpose!(
    stat | stat64 =
        |real, path: *const c_char, out: *mut Stat| -> c_int { unsafe { named(At::cwd(path), 0, out, real) } },
    lstat | lstat64 = |real, path: *const c_char, out: *mut Stat| -> c_int {
        unsafe { named(At::cwd(path), libc::AT_SYMLINK_NOFOLLOW, out, real) }
    },
    fstat | fstat64 = |real, fd: c_int, out: *mut Stat| -> c_int { unsafe { opened(fd, out, real) } },
    fstatat | fstatat64 = |real, dir: c_int, path: *const c_char, out: *mut Stat, flags: c_int| -> c_int {
        unsafe { named(At { dir, path }, flags, out, real) }
    },
    // Programs built before glibc 2.33 call these.
    __xstat | __xstat64 = |real, version: c_int, path: *const c_char, out: *mut Stat| -> c_int {
        unsafe { named(At::cwd(path), 0, out, real) }
    },
    __lxstat | __lxstat64 = |real, version: c_int, path: *const c_char, out: *mut Stat| -> c_int {
        unsafe { named(At::cwd(path), libc::AT_SYMLINK_NOFOLLOW, out, real) }
    },
    __fxstat | __fxstat64 =
        |real, version: c_int, fd: c_int, out: *mut Stat| -> c_int { unsafe { opened(fd, out, real) } },
    __fxstatat | __fxstatat64 =
        |real, version: c_int, dir: c_int, path: *const c_char, out: *mut Stat, flags: c_int| -> c_int {
            unsafe { named(At { dir, path }, flags, out, real) }
        },
    statx = |real, dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut Statx| -> c_int {
        corrected(real, || {
            // SAFETY: the call filled it, and could read the path.
            let (statx, name) = unsafe { (&mut *out, path_of(path)) };
            if may_be_anchor(statx)
                && let Some(stat) = stat_for(dir, name, flags)?
            {
                copy_to_statx(&stat, statx);
            }
            Ok(())
        })
    },
);

/// Makes a call on a path, and corrects what it has filled in. If the name is replaced meanwhile,
/// the call is made again.
fn corrected(real: impl Fn() -> c_int, correct: impl Fn() -> Result<()>) -> c_int {
    for _ in 0..sniff::TRIES {
        let result = real();
        if result != 0 {
            return result;
        }
        match correct() {
            Ok(()) => return 0,
            Err(error) if sniff::is_replaced(error) => {}
            Err(error) => return errno::fail(error),
        }
    }
    errno::fail(Errno::STALE)
}

/// Serves a call on a descriptor.
unsafe fn opened(fd: c_int, out: *mut Stat, real: impl Fn() -> c_int) -> c_int {
    on_recorded(
        fd,
        || Call::plain(Op::Stat),
        &real,
        |managed| {
            let result = real();
            if result != 0 {
                return result;
            }
            // SAFETY: the call filled it; on 64-bit Linux the kernel's structure is C's.
            errno::serve(|| managed.file()?.correct_stat(unsafe { &mut *out.cast() }).map(|()| 0))
        },
    )
}

/// Serves a call on a path.
unsafe fn named(at: At, flags: c_int, out: *mut Stat, real: impl Fn() -> c_int) -> c_int {
    corrected(real, || {
        // SAFETY: the call filled it, and could read the path.
        let (stat, name) = unsafe { (&mut *out.cast::<stripewise_sys::Stat>(), path_of(at.path)) };
        if !sniff::possible(stat) {
            Ok(())
        } else if !name.is_empty() {
            correct_named(at.dir, name, flags, stat).map(drop)
        } else if unsafe { opened(at.dir, out, || 0) } == 0 {
            Ok(())
        } else {
            Err(Errno::from_raw_os_error(errno::get()))
        }
    })
}

/// Corrects `stat` if the file is managed, and returns whether it is. A file that may not be read
/// keeps the kernel's attributes, whatever its kind: `ls -l` lists files of other users.
fn correct_named(dir: c_int, name: &CStr, flags: c_int, stat: &mut stripewise_sys::Stat) -> Result<bool> {
    let follow = follows(flags);
    match sniff::likely_name(dir, name, follow, stat) {
        Ok(Found::Anchor) => {}
        // EAGAIN: another process has a lease on the file.
        Ok(Found::Plain) | Err(Errno::ACCESS | Errno::AGAIN) => return Ok(false),
        Err(error) => return Err(error),
    }
    errno::guarded(|| state::runtime()?.correct_stat(borrow_dir(dir), to_path(name.to_bytes()), follow, stat))
}

/// The path, which may be a null pointer with AT_EMPTY_PATH.
unsafe fn path_of<'a>(path: *const c_char) -> &'a CStr {
    if path.is_null() { c"" } else { unsafe { CStr::from_ptr(path) } }
}

/// The attributes of a managed file for `statx`; `None` if the file is not managed. The data path
/// fills a `stat` structure, and the caller copies its fields.
fn stat_for(dir: c_int, name: &CStr, flags: c_int) -> Result<Option<stripewise_sys::Stat>> {
    if name.is_empty() {
        let Some(managed) = Subject::managed(dir) else { return Ok(None) };
        let mut stat = managed.anchor()?;
        errno::guarded(|| managed.file()?.correct_stat(&mut stat))?;
        return Ok(Some(stat));
    }
    let mut stat = retry_on_intr(|| At { dir, path: name.as_ptr() }.stat(follows(flags)))?;
    Ok(correct_named(dir, name, flags, &mut stat)?.then_some(stat))
}

fn may_be_anchor(statx: &Statx) -> bool {
    // A field that was not asked for may be missing, and then says nothing.
    let typed = statx.stx_mask & libc::STATX_TYPE != 0;
    let regular = libc::mode_t::from(statx.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    (regular || !typed)
        && statx.stx_mask & (libc::STATX_SIZE | libc::STATX_BLOCKS | libc::STATX_MTIME | libc::STATX_MODE) != 0
}

fn copy_to_statx(stat: &stripewise_sys::Stat, statx: &mut Statx) {
    statx.stx_mode = stat.st_mode as u16;
    statx.stx_size = stat.st_size as u64;
    statx.stx_blocks = stat.st_blocks as u64;
    let time = |to: &mut libc::statx_timestamp, seconds: i64, nanoseconds: u64| {
        to.tv_sec = seconds;
        to.tv_nsec = nanoseconds as u32;
    };
    time(&mut statx.stx_atime, stat.st_atime, stat.st_atime_nsec);
    time(&mut statx.stx_mtime, stat.st_mtime, stat.st_mtime_nsec);
    time(&mut statx.stx_ctime, stat.st_ctime, stat.st_ctime_nsec);
}
