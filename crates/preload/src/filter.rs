//! Denying io_uring to the application: its requests would pass by, and reach the anchors of managed files.
//!
//! A seccomp filter answers `io_uring_setup` with ENOSYS, as a kernel without it would; programs then take another way, or
//! say so. Our own data path cannot use it either, and takes threads. The filter stays for ever, also across exec.

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};
use stripewise_datapath::notice;

use crate::kernel;

const fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

const fn unless_equal_skip(k: u32, skip: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: 0, jf: skip, k }
}

/// AUDIT_ARCH_*: the call numbers below are this architecture's.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

static FILTER: [sock_filter; 6] = [
    statement(BPF_LD | BPF_W | BPF_ABS, ARCHITECTURE_AT),
    unless_equal_skip(ARCHITECTURE, 3),
    statement(BPF_LD | BPF_W | BPF_ABS, NUMBER_AT),
    unless_equal_skip(libc::SYS_io_uring_setup as u32, 1),
    statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW),
];

/// Installs the filter; says so if that is not possible.
pub fn deny_io_uring() {
    let program = sock_fprog { len: FILTER.len() as u16, filter: FILTER.as_ptr().cast_mut() };
    let installed = || {
        // SAFETY: the kernel copies the program.
        unsafe {
            // Without privileges a filter needs this: exec gives no more rights from now on.
            kernel::call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0])?;
            let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
            let flags = libc::SECCOMP_FILTER_FLAG_TSYNC as usize;
            kernel::call(libc::SYS_seccomp, [mode, flags, std::ptr::from_ref(&program) as usize, 0, 0, 0])
        }
    };
    if let Err(error) = installed() {
        notice::say(&format!("STRIPEWISE_DENY_IO_URING=1: the kernel takes no filter ({error})"));
    }
}
