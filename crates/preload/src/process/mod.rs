//! The library's part of this process: its state, memory, stacks, locks and messages, and how it
//! calls the C library and the kernel.

pub mod errno;
pub mod filter;
pub mod guard;
pub mod handler;
pub mod heap;
pub mod identity;
pub mod job;
pub mod kernel;
pub mod lock;
pub mod memory;
pub mod messages;
#[cfg(target_arch = "x86_64")]
pub mod patched;
#[macro_use]
pub mod real;
pub mod stack;
pub mod state;
pub mod statistics;

pub use errno::{answer, fail, guarded, serve, serve_code, serve_interruptible};
pub use guard::{Blocked, NoCancellation, SignalForkGuard};
pub use job::Job;
pub use kernel::{At, Closing, borrow};
pub use memory::{Chunks, Scratch};
pub use real::{MmapFn, Real};
