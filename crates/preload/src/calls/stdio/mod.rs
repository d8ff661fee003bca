//! `FILE` streams on managed and recorded files.
//!
//! libc reads and writes its streams with internal calls that cannot be interposed. So a stream on
//! such a file is made with `fopencookie`: libc does the buffering, and gets the bytes from this
//! library. The descriptor is stored in the stream's structure, because programs (libstdc++, for
//! example) take `fileno` and use it directly.

mod cookie;
mod standard;

use std::ffi::{CStr, c_char, c_int};

use libc::FILE;
use stripewise_datapath::notice;
use stripewise_sys::{Errno, OFlags, Result};

use crate::calls::close;
use crate::calls::open::{self, open_any};
use crate::descriptors::{FdPath, Known, Subject, table};
use crate::process::{At, answer, errno, fail, identity, kernel, serve};

use cookie::Access;

pub use standard::{at_start, descriptor_replaced};

unsafe fn access_of(mode: *const c_char) -> Option<Access> {
    // SAFETY: the application passes a terminated string.
    Access::parse(unsafe { CStr::from_ptr(mode) })
}

interpose!(
    fopen | fopen64 | _IO_fopen = |real, path: *const c_char, mode: *const c_char| -> *mut FILE {
        let ours = match unsafe { access_of(mode) } {
            Some(access) => match open::wants_stream(path, access.flags) {
                Ok(wanted) => wanted.then_some(access),
                Err(error) => return fail(error),
            },
            None => None,
        };
        let Some(access) = ours else {
            let stream = real();
            if !stream.is_null() && !identity::is_vfork_child() {
                // Opened inside libc: an older entry of this number is stale.
                table::set(unsafe { cookie::descriptor(stream) }, Known::Unknown);
            }
            return stream;
        };
        let fd = open_stream(path, access);
        if fd < 0 {
            return std::ptr::null_mut();
        }
        serve(|| cookie::open(fd, access).inspect_err(|_| kernel::close(fd)))
    },
    fdopen | _IO_fdopen = |real, fd: c_int, mode: *const c_char| -> *mut FILE {
        let ours = !identity::is_vfork_child() && !matches!(Subject::of(fd), Subject::Plain);
        match unsafe { access_of(mode) } {
            Some(access) if ours => serve(|| {
                permit(fd, access)?;
                cookie::open(fd, access)
            }),
            _ => real(),
        }
    },
    fclose | _IO_fclose = |real, stream: *mut FILE| -> c_int {
        // A stream of this library closes its descriptor through `cookie`; libc closes others
        // internally.
        if stream.is_null() || unsafe { cookie::is_ours(stream) } {
            return real();
        }
        match table::forget(unsafe { cookie::descriptor(stream) }) {
            Some(entry) => close::leave(&entry, real),
            None => real(),
        }
    },
    freopen | freopen64 = |real, path: *const c_char, mode: *const c_char, stream: *mut FILE| -> *mut FILE {
        let Some(access) = (unsafe { access_of(mode) }) else { return real() };
        let fd = unsafe { cookie::descriptor(stream) };
        let ours = unsafe { cookie::is_ours(stream) };
        let itself = FdPath::new(fd);
        let name = if path.is_null() { itself.as_c_str().as_ptr() } else { path };
        let managed = if ours { Ok(true) } else { open::is_managed_name(name, access.flags) };
        if managed == Ok(false) {
            drop(table::forget(fd));
            return real();
        }
        unsafe { cookie::flush(stream) };
        if let Err(error) = managed {
            // The stream is closed, as when the file cannot be opened.
            unsafe { libc::fclose(stream) };
            return fail(error);
        }
        let new = open_stream(name, access);
        if new < 0 || !(ours || standard::is_standard(stream)) {
            let error = if new < 0 { errno::get() } else { libc::ENOTSUP };
            if new >= 0 {
                notice::warn_once(
                    "freopen of a stream on a file in a planned layout is not supported; use fopen",
                );
                unsafe { libc::close(new) };
            }
            unsafe { libc::fclose(stream) };
            errno::set(error);
            return std::ptr::null_mut();
        }
        // The stream keeps its descriptor number, which then refers to the new file.
        let moved = unsafe { libc::dup2(new, fd) };
        unsafe { libc::close(new) };
        if moved < 0 {
            return std::ptr::null_mut();
        }
        if ours {
            unsafe { cookie::reopen(stream, access) };
            return stream;
        }
        // dup2 has stored a stream of this library in the variable.
        standard::of_descriptor(fd)
    },
);

fn open_stream(path: *const c_char, access: Access) -> c_int {
    /// The mode of files that `fopen` creates, before the umask.
    const MODE: libc::mode_t = 0o666;
    let at = At::cwd(path);
    open_any(at, access.flags, MODE, || answer(|| at.open(access.flags, MODE)))
}

/// Checks that the descriptor's access mode permits the stream's, and sets append mode if the
/// stream has it.
fn permit(fd: c_int, access: Access) -> Result<()> {
    let managed = Subject::managed(fd);
    let fd = kernel::borrow(fd);
    let has = managed.map_or_else(|| rustix::fs::fcntl_getfl(fd), |managed| managed.flags())?;
    let wants = OFlags::from_bits_retain(access.flags.cast_unsigned());
    if has & OFlags::RWMODE != OFlags::RDWR && has & OFlags::RWMODE != wants & OFlags::RWMODE {
        return Err(Errno::INVAL);
    }
    if wants.contains(OFlags::APPEND) && !has.contains(OFlags::APPEND) {
        rustix::fs::fcntl_setfl(fd, has | OFlags::APPEND)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_mean_what_glibc_means() {
        let flags = |mode: &CStr| Access::parse(mode).map(|access| access.flags);
        assert_eq!(flags(c"r"), Some(libc::O_RDONLY));
        assert_eq!(flags(c"rb+"), Some(libc::O_RDWR));
        assert_eq!(flags(c"wx"), Some(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_EXCL));
        assert_eq!(flags(c"a+e"), Some(libc::O_RDWR | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC));
        assert_eq!(flags(c"r,ccs=UTF-8+"), Some(libc::O_RDONLY));
        assert_eq!(flags(c""), None);
        assert_eq!(flags(c"+r"), None);
    }
}
