//! The spool: what a traced process leaves behind, as bytes on disk (described in
//! `docs/formats/trace.md`).
//!
//! Two files per process, `STEM.live` and `STEM.log`, STEM being `HOST-PID-STARTTIME`:
//!
//! - `.live` is memory that the process shares with the file: a [`Header`], then [`Window`]s, one
//!   per thread at a time, in which records are collected. It survives the process, however that
//!   ends.
//! - `.log` is only appended to: blocks, each a [`BlockHeader`] and a payload. A full window
//!   becomes a block of records; the name of a file becomes a block when the file is first opened.
//!
//! Numbers are in the byte order of the machine, which the magic number tells. All structs are
//! plain bytes without padding. Changing any of them changes [`MAGIC`].

use crate::Op;

/// The first eight bytes of a `.live` file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SWSPOOL1");

/// The first four bytes of a block.
pub const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"SWB1");

/// File name extension of the shared memory.
pub const LIVE: &str = "live";
/// File name extension of the log.
pub const LOG: &str = "log";

/// Bytes of [`Header`]: a page.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a window with its header.
pub const WINDOW_BYTES: usize = 64 * 1024;
/// Records that fit into a window.
pub const WINDOW_RECORDS: usize = (WINDOW_BYTES - size_of::<WindowHeader>()) / size_of::<Record>();
/// The window number of records that never were in a window.
pub const NO_WINDOW: u32 = u32::MAX;

/// Longest host name, in bytes, that is kept.
pub const HOST_BYTES: usize = 256;
/// Longest program name, in bytes, that is kept.
pub const PROGRAM_BYTES: usize = 1024;
/// Longest stem, in bytes: host name and two numbers.
pub const STEM_BYTES: usize = HOST_BYTES + 64;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Ticks before the call.
    pub start: u64,
    /// Ticks after the call.
    pub end: u64,
    /// Bytes.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes moved, 0, or minus an errno.
    pub result: i64,
    /// Number of the file's name.
    pub file: u32,
    /// [`Op`] as its code.
    pub op: u8,
    /// [`crate::Flags`].
    pub flags: u8,
    /// 0.
    pub reserved: u16,
}

impl Record {
    /// The operation, if the code is one.
    pub fn op(&self) -> Option<Op> {
        Op::from_code(self.op)
    }
}

/// The same moment on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Instant {
    /// The clock of the records.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub monotonic_ns: u64,
}

/// The start of a `.live` file.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// The process.
    pub pid: u32,
    /// Its rank in the job, or -1.
    pub rank: i32,
    /// 1: ticks are of the time stamp counter; 0: they are nanoseconds of `CLOCK_MONOTONIC`.
    pub clock: u32,
    /// Processes of the job, as its MPI library says; 0: not known.
    pub ranks: u32,
    /// When the spool was opened.
    pub start: Instant,
    /// The same moment, `CLOCK_REALTIME`, nanoseconds.
    pub start_realtime_ns: u64,
    /// Bytes of the log and the windows.
    pub spooled_bytes: u64,
    /// Records that were dropped because the spool had reached its limit.
    pub dropped_limit: u64,
    /// Records and names that were dropped because they could not be written.
    pub dropped_failed: u64,
    /// The errno of the last such failure.
    pub failure: u32,
    /// Children whose calls, or some of them, have no spool.
    pub lost_children: u32,
    /// Lengths of the names that follow.
    pub host_len: u32,
    /// Length of `program`.
    pub program_len: u32,
    /// Length of `parent`; 0: none.
    pub parent_len: u32,
    /// 1 + the number of the node in the job, as its MPI library says; 0: not known.
    pub node: u32,
    /// Host name.
    pub host: [u8; HOST_BYTES],
    /// argv\[0\].
    pub program: [u8; PROGRAM_BYTES],
    /// Stem of the process that forked this one: it knows the names of the files whose numbers this
    /// one's log lacks.
    pub parent: [u8; STEM_BYTES],
}

/// The start of a window.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct WindowHeader {
    /// Records of this window that went to the log already, or were dropped: the number of its
    /// first one.
    pub first: u64,
    /// Records in it. Written after the record, so that a record that counts is complete.
    pub len: u64,
    /// Two places for the latest known moment; `latest` says which one is whole.
    pub moments: [Instant; 2],
    /// 0 or 1.
    pub latest: u32,
    /// The thread that writes it.
    pub tid: u32,
    /// 0.
    pub reserved: u64,
}

/// A window.
#[repr(C)]
pub struct Window {
    /// What it holds.
    pub header: WindowHeader,
    /// The records, `header.len` of them.
    pub records: [Record; WINDOW_RECORDS],
}

/// The kind of a block of records.
pub const BLOCK_RECORDS: u32 = 1;
/// The kind of a block with a file name.
pub const BLOCK_NAME: u32 = 2;

/// The start of a block in the log.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BlockHeader {
    /// [`BLOCK_MAGIC`].
    pub magic: u32,
    /// [`BLOCK_RECORDS`] or [`BLOCK_NAME`].
    pub kind: u32,
    /// Bytes that follow: records, or the name.
    pub payload_bytes: u32,
    /// Of a name: the file's number. Of records: the number of their window, or [`NO_WINDOW`].
    pub number: u32,
    /// Of records: the number of the first one in its window.
    pub first: u64,
    /// Of records: a moment on both clocks.
    pub moment: Instant,
    /// Of records: the thread.
    pub tid: u32,
    /// 0.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<Record>() == 48);
    assert!(size_of::<WindowHeader>() == 64);
    assert!(size_of::<Window>() == WINDOW_BYTES);
    assert!(size_of::<BlockHeader>() == 48);
    assert!(size_of::<Header>() <= HEADER_BYTES);
};
