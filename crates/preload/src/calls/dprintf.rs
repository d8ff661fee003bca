//! `dprintf` and `vdprintf`, whose writes inside libc cannot be interposed.

use std::ffi::{c_char, c_int, c_void};

use crate::descriptors::Subject;

// C's va_list is passed as a pointer on x86-64 (an array) and on AArch64 (a large structure).
unsafe extern "C" {
    // These two names resolve to this library.
    fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn vasprintf(text: *mut *mut c_char, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn __vasprintf_chk(
        text: *mut *mut c_char,
        flag: c_int,
        format: *const c_char,
        arguments: *mut c_void,
    ) -> c_int;
}

interpose!(
    vdprintf = |real, fd: c_int, format: *const c_char, arguments: *mut c_void| -> c_int {
        print(fd, real, |text| unsafe { vasprintf(text, format, arguments) })
    },
    __vdprintf_chk = |real, fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void| -> c_int {
        print(fd, real, |text| unsafe { __vasprintf_chk(text, flag, format, arguments) })
    },
);

/// Prints to a plain file by `real`, to any other by this library's `write`, which interposes.
fn print(fd: c_int, real: impl FnOnce() -> c_int, text: impl FnOnce(*mut *mut c_char) -> c_int) -> c_int {
    match Subject::of(fd) {
        Subject::Plain => real(),
        _ => unsafe { write_text(fd, text) },
    }
}

unsafe fn write_text(fd: c_int, print: impl FnOnce(*mut *mut c_char) -> c_int) -> c_int {
    let mut text = std::ptr::null_mut();
    let len = print(&mut text);
    let mut done = 0;
    while done < len {
        // SAFETY: `len` characters; this library's own `write`.
        match unsafe { libc::write(fd, text.add(done as usize).cast(), (len - done) as usize) } {
            ..0 => break,
            more => done += more as c_int,
        }
    }
    if len >= 0 {
        // SAFETY: allocated by vasprintf.
        unsafe { libc::free(text.cast()) };
    }
    if done == len { len } else { -1 }
}

/// Defines a function with a variable number of arguments, which Rust cannot do. It stores the
/// argument registers where C's va_list expects them, and calls `target` with the list in the
/// register `$list`. `$fixed` is the number of bytes of the named arguments.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($name:ident, $target:ident, $list:literal, $fixed:literal) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 0xd8",
                ".cfi_adjust_cfa_offset 0xd8",
                "mov [rsp + 0x20], rdi",
                "mov [rsp + 0x28], rsi",
                "mov [rsp + 0x30], rdx",
                "mov [rsp + 0x38], rcx",
                "mov [rsp + 0x40], r8",
                "mov [rsp + 0x48], r9",
                "test al, al",
                "je 2f",
                ".irp i, 0, 1, 2, 3, 4, 5, 6, 7",
                "movaps [rsp + 0x50 + 0x10 * \\i], xmm\\i",
                ".endr",
                "2:",
                // struct __va_list_tag: gp_offset, fp_offset, overflow_arg_area, reg_save_area
                concat!("mov dword ptr [rsp], ", $fixed),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 0xe0]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 0x20]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list, ", rsp"),
                "call {target}",
                "add rsp, 0xd8",
                ".cfi_adjust_cfa_offset -0xd8",
                "ret",
                ".cfi_endproc",
                target = sym $target,
            )
        }
    };
}

#[cfg(target_arch = "x86_64")]
variadic!(dprintf, vdprintf, "rdx", 16);
#[cfg(target_arch = "x86_64")]
variadic!(__dprintf_chk, __vdprintf_chk, "rcx", 24);
