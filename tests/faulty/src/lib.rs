//! A file system that fails on demand, for tests of the layers above [`Sys`](stripewise_sys::Sys).
//!
//! # Fault model
//!
//! [`Disk`] observes a directory tree on a real file system, and [`Faulty`] is one process that
//! uses it. The kernel does the work, so offsets, locks and sizes behave as they do in production.
//! In addition, the disk tracks the state that would survive a power cut.
//!
//! **Errors.** Any call can be made to fail with any errno ([`Faulty::fail`]); it then has no
//! effect. A failed fsync may lose data that it should have written, and a later successful fsync
//! does not restore it. For each unsynced change of the file (for a write or a hole: each of its
//! pages) a coin toss decides whether it is lost for good, although readers continue to see it.
//!
//! **Short transfers.** A read or write may transfer any number of leading bytes of the request, at
//! least one ([`Faulty::shorten`]).
//!
//! **Process death** (kill -9). A process dies before its `n`-th call ([`Faulty::crash_at`]). If
//! that call is a write, leading bytes of it may have been written. All later calls of that process
//! fail with [`DEAD`]. The kernel's state is kept: other processes see the effect of every call
//! that returned. The test drops the dead process's descriptors, which releases its locks.
//!
//! **Power cut** ([`Disk::power_cut`]). All processes die, and any subset of the unsynced changes
//! may survive.
//! - *File content*: the content at the last successful fsync or fdatasync of the file survives. Of
//!   each later write, any of its 4 KiB pages may have reached the disk. Each later truncate and
//!   fallocate, and each page of a hole punched later, may or may not have.
//! - *Names*: creating, linking, renaming and removing a name are atomic operations. Synced ones
//!   survive. With [`Journal::Posix`], fsync of a directory syncs the operations on its names,
//!   fsync of a file syncs no name (not even the file's own), and of the other operations any
//!   subset may survive. With [`Journal::Ordered`] (ext4), every fsync syncs all names of the file
//!   system, and of the other operations a leading sequence survives.
//! - Mode, owner and times are not modeled; they stay as they are. Extended attributes are not
//!   modeled either; all of them are lost.
//!
//! All randomness comes from the given seeds: the same calls with the same seeds have the same
//! outcome.
//!
//! **Not modeled**: memory mappings, symbolic links that are made while the disk is observed,
//! O_TMPFILE, use of descriptors that bypasses the interface, several file systems, damaged
//! sectors, wrong bytes.
//!
//! A test that only has to observe or fail some calls overrides them with [`delegate!`].

pub use stripewise_sys as sys;

mod bytes;
mod delegate;
mod disk;
mod kept;
mod process;

pub use disk::{Disk, Journal};
pub use process::{DEAD, Faulty};

#[cfg(test)]
mod tests;
