//! The library's part of this process: its state, memory, stacks, locks and messages, and how it
//! calls the C library and the kernel.

pub mod background;
pub mod cancel;
pub mod chunks;
pub mod closing;
pub mod errno;
pub mod filter;
pub mod guard;
pub mod handler;
pub mod heap;
pub mod identity;
pub mod kernel;
pub mod launcher;
pub mod lock;
pub mod messages;
pub mod mpi;
pub mod real;
pub mod record;
pub mod scratch;
pub mod stack;
pub mod state;
pub mod statistics;
