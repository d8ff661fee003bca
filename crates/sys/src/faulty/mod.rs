//! A file system that fails on demand, for tests of everything above [`Sys`](crate::Sys).
//!
//! # Fault model
//!
//! [`Disk`] watches a directory tree on a real file system. [`Faulty`] is one process that uses it. The
//! kernel does the work, so offsets, locks and sizes behave as they do; the disk keeps beside it what would survive.
//!
//! **Errors.** Any call can be made to fail with any errno ([`Faulty::fail`]): it then does nothing. A failed fsync may have
//! thrown away what it should have written, and a later fsync that succeeds does not bring it back: each unsynced
//! change of the file is lost for good by the toss of a coin, though readers go on seeing it.
//!
//! **Short transfers.** Reads and writes may do any leading part of what was asked, at least one byte
//! ([`Faulty::shorten`]).
//!
//! **A process dies** (kill -9) before its `n`-th call ([`Faulty::crash_at`]); if that is a write, a leading part may have
//! been written. All later calls of that process fail with [`DEAD`]. What the kernel has, it keeps: other processes see
//! every call that returned. The test drops the dead process's descriptors, which frees its locks.
//!
//! **Power cut** ([`Disk::power_cut`]): all processes die, and of what was not synced any part may be left.
//! - *File content*: what was there at the last successful fsync or fdatasync of the file stays. Of each write since, any of
//!   its 4 KiB pages may have reached the disk; each truncate, fallocate and page of a punched hole since
//!   may have or not.
//! - *Names*: creating, linking, renaming, removing a name are atomic each. Those that were synced stay. With
//!   [`Journal::Posix`], fsync of a directory syncs what was done to its names, fsync of a file syncs no name (not even the
//!   file's own), and of the rest any subset may be left, in any combination. With [`Journal::Ordered`] (ext4),
//!   every fsync syncs all names of the file system, and of the rest a leading part is left.
//! - Mode, owner and times are not modelled: they stay as they are. Nor are extended attributes: all are lost.
//!
//! Everything random comes from the seeds given: the same calls with the same seeds end the same.
//!
//! **Not modelled**: memory mappings, symbolic links made while watching, O_TMPFILE, direct use of descriptors past the
//! interface, several file systems, damaged sectors, wrong bytes.

mod bytes;
mod disk;
mod process;
mod random;

pub use disk::{Disk, Journal};
pub use process::{DEAD, Faulty};

#[cfg(test)]
mod tests;
