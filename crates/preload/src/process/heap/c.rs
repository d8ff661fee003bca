//! Memory of C code. Where C code that is linked into the library calls `malloc` and related
//! functions, the linker redirects the call here (`--wrap`, see build.rs). These names are not
//! visible outside the library; the program's own `malloc` is not affected.
//!
//! A block that comes from libc itself (`vasprintf`) is returned to libc. The headers of the heaps'
//! blocks tell the two apart.

use std::arch::global_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use super::{HEADER, Header, MARK, Place, allocate, allocate_zeros, reallocate, release};

/// A block never begins at a page boundary. So a block that does is libc's, and the memory in front
/// of it need not be read: it may not be mapped.
const PLACE: Place = Place { align: 32, before: 16 };
const _: () = assert!(PLACE.before >= HEADER && PLACE.align > PLACE.before);

unsafe extern "C" {
    // libc's functions.
    fn __real_free(block: *mut c_void);
    fn __real_realloc(block: *mut c_void, size: usize) -> *mut c_void;
}

extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate(size, PLACE).cast()
}

extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return ptr::null_mut() };
    allocate_zeros(size, PLACE).cast()
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(size);
    }
    // SAFETY: the caller's promise.
    unsafe {
        if !is_own(block) {
            return __real_realloc(block, size);
        }
        reallocate(block.cast(), size, PLACE).cast()
    }
}

unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { if is_own(block) { release(block.cast()) } else { __real_free(block) } }
}

unsafe extern "C" fn strdup(text: *const c_char) -> *mut c_char {
    // SAFETY: a terminated string, which is copied with its terminator.
    unsafe {
        let bytes = CStr::from_ptr(text).to_bytes_with_nul();
        let copy = malloc(bytes.len()).cast::<c_char>();
        if !copy.is_null() {
            ptr::copy_nonoverlapping(text, copy, bytes.len());
        }
        copy
    }
}

/// Whether the block came from a heap of this library.
unsafe fn is_own(block: *mut c_void) -> bool {
    // SAFETY: a block that is not at a page boundary has its header in the same page.
    (block as usize).is_multiple_of(HEADER)
        && !(block as usize).is_multiple_of(PLACE.align)
        && unsafe { (*Header::of(block.cast())).mark } == MARK ^ block as usize
}

/// Defines a symbol for the linker that is not exported by the finished library.
macro_rules! wrap {
    ($($name:literal => $function:path;)+) => {
        $(global_asm!(
            concat!(".globl __wrap_", $name),
            concat!(".hidden __wrap_", $name),
            concat!(".type __wrap_", $name, ", @function"),
            concat!("__wrap_", $name, ":"),
            concat!(jump!(), " {function}"),
            function = sym $function,
        );)+
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b"
    };
}

wrap! {
    "malloc" => malloc;
    "calloc" => calloc;
    "realloc" => realloc;
    "free" => free;
    "strdup" => strdup;
}
