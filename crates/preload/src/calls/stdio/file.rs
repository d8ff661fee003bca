//! The mode of a stream, and the members of glibc's `FILE` that are needed. All are part of glibc's
//! ABI: programs have had them compiled in (by `getc` macros) for decades.

use std::ffi::{CStr, c_char, c_int, c_void};

use libc::FILE;

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
pub struct Functions {
    pub read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize,
    pub write: unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize,
    pub seek: unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int,
    pub close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

pub const NO_READS: c_int = 0x4;
pub const NO_WRITES: c_int = 0x8;
pub const EOF_SEEN: c_int = 0x10;
pub const ERROR_SEEN: c_int = 0x20;
pub const APPENDING: c_int = 0x1000;

const _: () =
    assert!(std::mem::offset_of!(Layout, fileno) == 112 && std::mem::offset_of!(Layout, vtable) == 216);

unsafe extern "C" {
    pub fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
    fn __fpurge(stream: *mut FILE);
}

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
