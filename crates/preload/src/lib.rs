//! POSIX interposition: definitions of the C functions that programs call, in front of libc's.
//!
//! One file per family of calls. All calls have the same form. A descriptor or name that is not
//! managed goes to the real function ([`real`]) at once. A managed file is served by the data path.
//! A plain file of a traced job is timed around the real call ([`record`]). The descriptor table
//! ([`table`]) records the kind of each descriptor.
//!
//! Everything here may run before constructors and after destructors, in signal handlers, and in
//! forked and vforked children. A call on an unmanaged file allocates nothing and takes no lock.
//! While a call on a managed file runs, signals and forks wait ([`inside`]).

mod access;
mod adopt;
mod aio;
mod background;
mod bypass;
mod cancel;
mod chunks;
mod close;
mod closing;
mod copy;
mod data;
mod dprintf;
mod dup;
mod ends;
mod entry;
mod errno;
mod exec;
mod exit;
mod filter;
mod handler;
mod heap;
mod inside;
mod kernel;
mod launcher;
mod libaio;
mod lock;
mod locks;
mod messages;
mod mmap;
mod mpi;
mod names;
mod offset;
mod open;
#[cfg(target_arch = "x86_64")]
mod patched;
mod paths;
mod permission;
mod process;
mod real;
mod receive;
mod record;
mod scratch;
mod seen;
mod size;
mod sniff;
mod spawn;
mod splice;
mod stack;
mod stat;
mod state;
mod statistics;
mod stdio;
mod subject;
mod table;
mod transfer;
mod unplanned;
