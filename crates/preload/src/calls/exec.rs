//! The `exec` family, which ends the program but not the process.

use std::ffi::{c_char, c_int};

use crate::calls::exit;
use crate::process::Real;

type Strings = *const *const c_char;

interpose!(
    execve | execvpe = |real, path: *const c_char, argv: Strings, environment: Strings| -> c_int {
        exit::settle_all();
        real()
    },
    execv | execvp = |real, path: *const c_char, argv: Strings| -> c_int {
        exit::settle_all();
        real()
    },
    fexecve = |real, fd: c_int, argv: Strings, environment: Strings| -> c_int {
        exit::settle_all();
        real()
    },
    execveat =
        |real, dir: c_int, path: *const c_char, argv: Strings, environment: Strings, flags: c_int| -> c_int {
            exit::settle_all();
            real()
        },
);

/// Defines a function with a variable number of arguments, which Rust cannot do. `$target` returns
/// the address of the real function, which then finds registers and stack as the caller left them.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($name:ident, $target:ident, $text:literal) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 0x38",
                ".cfi_adjust_cfa_offset 0x38",
                "mov [rsp], rdi",
                "mov [rsp + 0x8], rsi",
                "mov [rsp + 0x10], rdx",
                "mov [rsp + 0x18], rcx",
                "mov [rsp + 0x20], r8",
                "mov [rsp + 0x28], r9",
                "call {target}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 0x8]",
                "mov rdx, [rsp + 0x10]",
                "mov rcx, [rsp + 0x18]",
                "mov r8, [rsp + 0x20]",
                "mov r9, [rsp + 0x28]",
                "add rsp, 0x38",
                ".cfi_adjust_cfa_offset -0x38",
                "mov r11, rax",
                // All arguments are pointers, so no vector registers are used.
                "xor eax, eax",
                "jmp r11",
                ".cfi_endproc",
                target = sym $target,
            )
        }

        #[cfg(target_arch = "x86_64")]
        extern "C" fn $target() -> unsafe extern "C" fn() -> c_int {
            // SAFETY: called with the caller's arguments, unchanged.
            static REAL: Real<unsafe extern "C" fn() -> c_int> = unsafe { Real::new($text) };
            exit::settle_all();
            REAL.get()
        }
    };
}

#[cfg(target_arch = "x86_64")]
variadic!(execl, real_execl, c"execl");
#[cfg(target_arch = "x86_64")]
variadic!(execlp, real_execlp, c"execlp");
#[cfg(target_arch = "x86_64")]
variadic!(execle, real_execle, c"execle");
