//! What the recorder learns from its process's environment.

use std::ffi::{CStr, c_char};

use rustix::fs::{Mode, OFlags};
use stripewise_trace::spool::{HOST_BYTES, PROGRAM_BYTES};

use crate::memory::Bytes;

/// Where launchers say which rank a process is; the first that is set counts. Slurm's last: under `mpirun` inside a
/// Slurm job it is that of the batch script, 0 in all processes.
const RANK_VARIABLES: [&CStr; 5] =
    [c"PMIX_RANK", c"PMI_RANK", c"OMPI_COMM_WORLD_RANK", c"MV2_COMM_WORLD_RANK", c"SLURM_PROCID"];

unsafe extern "C" {
    /// Nothing in a program that has more rights than its caller: what the caller wants must not
    /// direct it.
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// A variable of the environment, not copied. (The standard library's way would allocate.)
pub fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the string stays until somebody changes the environment; the callers copy it at once.
    unsafe {
        let value: *const c_char = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// A decimal number, with a sign or without.
fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Bytes: a number, then optionally K, M, G or T (binary).
pub fn size(text: &[u8]) -> Option<u64> {
    let (digits, shift) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 10),
        (b'M' | b'm', digits) => (digits, 20),
        (b'G' | b'g', digits) => (digits, 30),
        (b'T' | b't', digits) => (digits, 40),
        _ => (text, 0),
    };
    u64::try_from(number(digits)?).ok()?.checked_mul(1 << shift)
}

/// This process's rank in its job as far as the launcher says, or -1.
pub fn rank() -> i32 {
    RANK_VARIABLES
        .iter()
        .find_map(|name| i32::try_from(number(variable(name)?)?).ok())
        .filter(|rank| *rank >= 0)
        .unwrap_or(-1)
}

/// The host's name, without characters that would not do in a file name.
pub fn host() -> Bytes<HOST_BYTES> {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_bytes();
    let end = name.iter().position(|byte| *byte == b'/').unwrap_or(name.len());
    Bytes::cut(&name[..end])
}

/// argv\[0\].
pub fn program() -> Bytes<PROGRAM_BYTES> {
    let read = || {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = stripewise_sys::Fd::adopt(rustix::fs::open(c"/proc/self/cmdline", flags, Mode::empty())?)?;
        let mut buffer = [0; PROGRAM_BYTES];
        let len = rustix::io::read(&fd, &mut buffer)?;
        let end = buffer[..len].iter().position(|byte| *byte == 0).unwrap_or(len);
        rustix::io::Result::Ok(Bytes::cut(&buffer[..end]))
    };
    read().unwrap_or(Bytes::EMPTY)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes() {
        for (text, bytes) in [("7", 7), ("0", 0), ("64K", 65536), ("1g", 1 << 30), ("2T", 2 << 40)] {
            assert_eq!(size(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1X", "1.5M", "99999999999T", "1KK"] {
            assert_eq!(size(text.as_bytes()), None, "{text}");
        }
    }
}
