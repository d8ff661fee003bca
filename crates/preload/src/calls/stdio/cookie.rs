//! Streams whose bytes go through this library.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use libc::FILE;
use stripewise_sys::{Errno, Result};

use super::file::{self, APPENDING, Access, EOF_SEEN, ERROR_SEEN, Functions, NO_READS, NO_WRITES, fopencookie};
use crate::process::borrow;

/// The state of such a stream.
struct Cookie {
    fd: c_int,
    stream: *mut FILE,
    /// A buffer of the size of a file system block, as libc gives to its own streams. A stream with
    /// a cookie would get another size.
    buffer: Vec<u8>,
}

const FUNCTIONS: Functions = Functions { read, write, seek, close };

/// The table of methods that libc gives to streams with cookies.
static METHODS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The address of [`close`] as libc stores it: mangled, in the same way for all streams of a
/// process.
static CLOSE: AtomicUsize = AtomicUsize::new(0);

/// The descriptor number that glibc stores in streams with cookies.
const NO_DESCRIPTOR: c_int = -2;

/// Makes a stream on a descriptor. Closing the stream closes the descriptor.
/// Errors: ENOMEM; ENOTSUP if libc's streams have an unknown layout.
pub fn open(fd: c_int, access: Access) -> Result<*mut FILE> {
    let block = rustix::fs::fstat(borrow(fd)).map_or(4096, |stat| stat.st_blksize.clamp(512, 1 << 20) as usize);
    let cookie = Box::into_raw(Box::new(Cookie { fd, stream: ptr::null_mut(), buffer: vec![0; block] }));
    let mode = [access.letter, if access.plus { b'+' } else { 0 }, 0];
    // SAFETY: the functions take the cookie; the mode is terminated.
    let stream = unsafe { fopencookie(cookie.cast(), mode.as_ptr().cast::<c_char>(), FUNCTIONS) };
    if stream.is_null() {
        drop(unsafe { Box::from_raw(cookie) });
        return Err(Errno::NOMEM);
    }
    // SAFETY: just made, and not yet visible to other threads.
    unsafe {
        let layout = file::layout(stream);
        if layout.fileno != NO_DESCRIPTOR {
            // Closing the stream frees the cookie, but not the descriptor.
            (*cookie).fd = -1;
            libc::fclose(stream);
            return Err(Errno::NOTSUP);
        }
        CLOSE.store(layout.mangled[3], Ordering::Relaxed);
        METHODS.store(layout.vtable.cast_mut(), Ordering::Release);
        layout.fileno = fd;
        (*cookie).stream = stream;
        libc::setvbuf(stream, (*cookie).buffer.as_mut_ptr().cast(), libc::_IOFBF, block);
    }
    access.place(fd);
    Ok(stream)
}

/// Whether the stream is one of this library.
/// Safety: the stream is open.
pub unsafe fn is_ours(stream: *mut FILE) -> bool {
    let methods = METHODS.load(Ordering::Acquire);
    // SAFETY: every stream has methods. The functions are read only if the methods are those of
    // streams with a cookie.
    unsafe {
        let stream = stream.cast::<file::Layout>();
        !methods.is_null()
            && ptr::eq((*stream).vtable, methods)
            && (*stream).mangled[3] == CLOSE.load(Ordering::Relaxed)
    }
}

/// Resets a stream whose descriptor has become another file's, as if it was just opened.
/// Safety: the stream is open, and one of this library.
pub unsafe fn reopen(stream: *mut FILE, access: Access) {
    let layout = unsafe { file::layout(stream) };
    layout.flags &= !(NO_READS | NO_WRITES | EOF_SEEN | ERROR_SEEN | APPENDING);
    match access.flags & libc::O_ACCMODE {
        libc::O_RDONLY => layout.flags |= NO_WRITES,
        libc::O_WRONLY => layout.flags |= NO_READS,
        _ => {}
    }
    if access.letter == b'a' {
        layout.flags |= APPENDING;
    }
    access.place(layout.fileno);
}

impl Access {
    /// Moves the descriptor's offset as libc does: to the end if the stream only appends.
    fn place(&self, fd: c_int) {
        if self.letter == b'a' && !self.plus {
            // SAFETY: this library's own `lseek`.
            unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
        }
    }
}

// In the functions below, libc's names resolve to this library.

unsafe extern "C" fn read(cookie: *mut c_void, buffer: *mut c_char, len: usize) -> isize {
    // SAFETY: libc passes the cookie that `open` gave it, and a buffer.
    unsafe { libc::read((*cookie.cast::<Cookie>()).fd, buffer.cast(), len) }
}

unsafe extern "C" fn write(cookie: *mut c_void, buffer: *const c_char, len: usize) -> isize {
    // SAFETY: as above.
    let cookie = unsafe { &*cookie.cast::<Cookie>() };
    let mut done = 0;
    while done < len {
        // SAFETY: as above.
        match unsafe { libc::write(cookie.fd, buffer.add(done).cast(), len - done) } {
            // libc treats fewer bytes than requested as an error, with the current errno.
            ..=0 => break,
            more => done += more as usize,
        }
    }
    // glibc advances the offset that it remembers after its own writes, but not after a cookie's
    // write. A later seek would go wrong.
    // SAFETY: libc is using this stream, under its lock.
    let known = unsafe { &mut file::layout(cookie.stream).offset };
    if *known >= 0 {
        *known += done as i64;
    }
    done as isize
}

unsafe extern "C" fn seek(cookie: *mut c_void, offset: *mut i64, whence: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        match libc::lseek((*cookie.cast::<Cookie>()).fd, *offset, whence) {
            -1 => -1,
            at => {
                *offset = at;
                0
            }
        }
    }
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: the last call with this cookie; libc does not touch the buffer after it.
    let cookie = unsafe { Box::from_raw(cookie.cast::<Cookie>()) };
    if cookie.fd < 0 { 0 } else { unsafe { libc::close(cookie.fd) } }
}
