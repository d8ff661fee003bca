//! Values that the recorder takes from its process's environment.

use std::ffi::{CStr, c_char};

use rustix::fs::{Mode, OFlags};
use stripewise_trace::spool::{HOST_BYTES, PROGRAM_BYTES};

use crate::memory::Bytes;

/// Launchers' variables with the rank of a process; the first one that is set counts. Slurm's comes
/// last: under `mpirun` inside a Slurm job it is that of the batch script, 0 in all processes.
const RANK_VARIABLES: [&CStr; 5] =
    [c"PMIX_RANK", c"PMI_RANK", c"OMPI_COMM_WORLD_RANK", c"MV2_COMM_WORLD_RANK", c"SLURM_PROCID"];

unsafe extern "C" {
    /// As getenv(3), but null in a program with more rights than its caller (AT_SECURE): the
    /// caller's environment must not direct such a program.
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// The value of an environment variable, unless it is empty. It is not copied (the standard
/// library's function would allocate): read it before the program changes its environment, or copy
/// it at once.
pub fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: a terminated name; a value is terminated, too, and stays in place.
    unsafe {
        let value: *const c_char = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes()).filter(|value| !value.is_empty())
    }
}

/// Parses a decimal number with an optional sign.
fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses a number of bytes with an optional binary suffix K, M, G or T.
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

/// This process's rank in its job according to the launcher, or -1.
pub fn rank() -> i32 {
    RANK_VARIABLES
        .iter()
        .find_map(|name| i32::try_from(number(variable(name)?)?).ok())
        .filter(|rank| *rank >= 0)
        .unwrap_or(-1)
}

/// The host name up to a `/`, which a file name cannot contain.
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
