//! C code's memory: where the C code that is linked into the library calls `malloc` and its like,
//! the linker puts these (`--wrap`, see build.rs). Their names are known in the library only; the
//! program's own `malloc` is another.
//!
//! A block that comes from libc itself (`vasprintf`) goes back to libc: those of the heaps are
//! marked.

use std::arch::global_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use super::{HEADER, Header, MARK, Place, allocate, allocate_zeros, reallocate, release};

/// A block never begins a page: so one that does is another's, whatever lies before it (or
/// nothing).
const PLACE: Place = Place { align: 32, before: 16 };
const _: () = assert!(PLACE.before >= HEADER && PLACE.align > PLACE.before);

unsafe extern "C" {
    // libc's.
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
    // SAFETY: a terminated string, which is copied with its end.
    unsafe {
        let bytes = CStr::from_ptr(text).to_bytes_with_nul();
        let copy = malloc(bytes.len()).cast::<c_char>();
        if !copy.is_null() {
            ptr::copy_nonoverlapping(text, copy, bytes.len());
        }
        copy
    }
}

/// Whether the block is of a heap of ours.
unsafe fn is_own(block: *mut c_void) -> bool {
    // SAFETY: the header is in the page in which the block begins.
    (block as usize).is_multiple_of(HEADER)
        && !(block as usize).is_multiple_of(PLACE.align)
        && unsafe { (*Header::of(block.cast())).mark } == MARK ^ block as usize
}

/// A name for the linker that is in no symbol table of the finished library.
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
