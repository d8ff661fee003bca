//! The system-call layer of the runtime: an interface ([`Sys`]) whose methods are the kernel's
//! calls ([`Real`]), and which tests override (`tests/faulty`).
//!
//! The runtime runs inside the processes of applications, below a library that interposes `open`,
//! `close`, `read` and similar functions. So nothing here calls a libc symbol of that list. Calls
//! go to the kernel through `rustix` (raw system calls) or through [`call`], descriptors are closed
//! by [`Fd`] and never by `std`, and `errno` is left unchanged.
//!
//! Errors are [`Errno`]s. Nothing here panics, prints, or reads the environment.

pub mod asking;
mod beneath;
mod call;
pub mod fd;
mod fork_lock;
mod holders;
mod identity;
mod interface;
mod map;
pub mod process;
pub mod raw;
mod ring;
pub mod thread;
mod types;
pub mod user;
mod xattr;

pub use beneath::stepwise;
pub use call::call;
pub use fd::Fd;
pub use fork_lock::ForkLock;
pub use identity::{Handle, Identity};
pub use interface::{Real, Sys, SysRef};
pub use map::SharedMap;
pub use ring::{Action, Completion, Entry, Ring};
pub use types::{DIRECT_ALIGNMENT_MOST, Dir, IoVec, Kind, Listed, LockKind};

pub use rustix::fs::{
    FileType, Mode, OFlags, SeekFrom, Stat, StatVfs, StatVfsMountFlags, Timespec, Timestamps,
};
pub use rustix::io::Errno;

/// The result of the calls of this crate.
pub type Result<T> = std::result::Result<T, Errno>;

/// The name of an open file, for messages.
fn path_of(fd: std::os::fd::RawFd) -> String {
    let name = rustix::fs::readlinkat(rustix::fs::CWD, format!("/proc/self/fd/{fd}"), Vec::new());
    name.map_or_else(|_| format!("descriptor {fd}"), |name| name.to_string_lossy().into_owned())
}
