//! Streams whose bytes go through this library, their modes, and the members of glibc's `FILE` that
//! are needed. All are part of glibc's ABI: programs have had them compiled in (by `getc` macros)
//! for decades.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use libc::FILE;
use stripewise_sys::{Errno, Result};

use crate::process::borrow;

/// `struct _IO_FILE` with the table of methods and the members of a stream with a cookie that
/// follow it.
#[repr(C)]
pub struct Layout {
    pub flags: c_int,
    _read: [*mut c_char; 3],
    pub write_base: *mut c_char,
    pub write_ptr: *mut c_char,
    _buffers: [*mut c_char; 8],
    pub fileno: c_int,
    _lock: [u64; 3],
    /// The descriptor's offset as far as libc knows it; negative if unknown.
    pub offset: i64,
    _rest: [u8; 64],
    pub vtable: *const c_void,
    /// Only in streams made by `fopencookie`.
    _cookie: *mut c_void,
    /// [`Functions`] as libc stores function pointers; only in streams made by `fopencookie`.
    pub mangled: [usize; 4],
}

/// `cookie_io_functions_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Functions {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize,
    write: unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize,
    seek: unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

const NO_READS: c_int = 0x4;
const NO_WRITES: c_int = 0x8;
const EOF_SEEN: c_int = 0x10;
const ERROR_SEEN: c_int = 0x20;
const APPENDING: c_int = 0x1000;

const _: () =
    assert!(std::mem::offset_of!(Layout, fileno) == 112 && std::mem::offset_of!(Layout, vtable) == 216);

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
    fn __fpurge(stream: *mut FILE);
}

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

/// The parsed second argument of `fopen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The flags for `open`.
    pub flags: c_int,
    /// The mode for `fopencookie`: its letter, and whether it has a plus.
    pub letter: u8,
    pub plus: bool,
}

impl Access {
    /// Parses the mode; `None` if glibc refuses it with EINVAL.
    pub fn parse(mode: &CStr) -> Option<Self> {
        let (&letter, options) = mode.to_bytes().split_first()?;
        // glibc reads the next six letters, up to a comma.
        let options = options.split(|&byte| byte == b',').next().unwrap_or_default();
        let options = &options[..options.len().min(6)];
        let plus = options.contains(&b'+');
        let create = match letter {
            b'r' => 0,
            b'w' => libc::O_CREAT | libc::O_TRUNC,
            b'a' => libc::O_CREAT | libc::O_APPEND,
            _ => return None,
        };
        let access = if plus {
            libc::O_RDWR
        } else if letter == b'r' {
            libc::O_RDONLY
        } else {
            libc::O_WRONLY
        };
        let exclusive = if options.contains(&b'x') { libc::O_EXCL } else { 0 };
        let on_exec = if options.contains(&b'e') { libc::O_CLOEXEC } else { 0 };
        Some(Self { flags: access | create | exclusive | on_exec, letter, plus })
    }

    /// Moves the descriptor's offset as libc does: to the end if the stream only appends.
    fn place(&self, fd: c_int) {
        if self.letter == b'a' && !self.plus {
            // SAFETY: this library's own `lseek`.
            unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
        }
    }
}

/// Safety: the stream is open.
pub unsafe fn layout<'a>(stream: *mut FILE) -> &'a mut Layout {
    // SAFETY: as the caller promises. Members behind the plain structure are read only in streams
    // with a cookie.
    unsafe { &mut *stream.cast() }
}

/// The stream's descriptor; negative if it has none.
/// Safety: the stream is open.
pub unsafe fn descriptor(stream: *mut FILE) -> c_int {
    unsafe { (*stream.cast::<Layout>()).fileno }
}

/// Writes buffered output, and discards read-ahead.
/// Safety: the stream is open.
pub unsafe fn flush(stream: *mut FILE) {
    unsafe {
        libc::fflush(stream);
        __fpurge(stream);
    }
}

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
        let layout = layout(stream);
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
        let stream = stream.cast::<Layout>();
        !methods.is_null()
            && ptr::eq((*stream).vtable, methods)
            && (*stream).mangled[3] == CLOSE.load(Ordering::Relaxed)
    }
}

/// Resets a stream whose descriptor has become another file's, as if it was just opened.
/// Safety: the stream is open, and one of this library.
pub unsafe fn reopen(stream: *mut FILE, access: Access) {
    let layout = unsafe { layout(stream) };
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
    let known = unsafe { &mut layout(cookie.stream).offset };
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
