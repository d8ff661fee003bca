//! Denies io_uring to the application, whose requests would bypass the library and reach the
//! anchors of managed files.
//!
//! A seccomp filter answers `io_uring_setup` with ENOSYS, like a kernel without io_uring. Programs
//! then use other calls, or report an error. The library's data path cannot use io_uring either,
//! and uses threads. The filter can never be removed, and stays in force after exec.

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};
use stripewise_datapath::notice;

use crate::process::kernel;

/// If the instruction is a comparison that fails, the next `skip` ones are skipped.
const fn instruction(code: u32, k: u32, skip: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: skip, k }
}

/// AUDIT_ARCH_*: the filter compares the call numbers of this architecture only.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

static FILTER: [sock_filter; 6] = [
    instruction(BPF_LD | BPF_W | BPF_ABS, ARCHITECTURE_AT, 0),
    instruction(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 3),
    instruction(BPF_LD | BPF_W | BPF_ABS, NUMBER_AT, 0),
    instruction(BPF_JMP | BPF_JEQ | BPF_K, libc::SYS_io_uring_setup as u32, 1),
    instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, 0),
    instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0),
];

/// Installs the filter; logs a warning if that is not possible.
pub fn deny_io_uring() {
    let program = sock_fprog { len: FILTER.len() as u16, filter: FILTER.as_ptr().cast_mut() };
    let installed = || {
        // SAFETY: the kernel copies the program.
        unsafe {
            // Unprivileged filters require this: exec grants no further privileges from now on.
            kernel::call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1])?;
            let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
            let flags = libc::SECCOMP_FILTER_FLAG_TSYNC as usize;
            kernel::call(libc::SYS_seccomp, [mode, flags, std::ptr::from_ref(&program) as usize])
        }
    };
    if let Err(error) = installed() {
        notice::warn_once(&format!("STRIPEWISE_DENY_IO_URING=1: the kernel takes no filter ({error})"));
    }
}
