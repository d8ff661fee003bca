//! The spool: what a traced process leaves on disk (`docs/formats/trace.md`).
//!
//! Every process has two files, `STEM.live` and `STEM.log`, where STEM is `HOST-PID-STARTTIME`:
//!
//! - `.live` is memory that the process maps shared: a [`Header`], then [`Window`]s, in which
//!   records are collected, one window per thread at a time. It survives the process, however that
//!   ends.
//! - `.log` is append-only. It is a sequence of blocks, each a [`BlockHeader`] and a payload. A
//!   full window becomes a block of records; a file name becomes a block when the file is first
//!   opened.
//!
//! Numbers are in the byte order of the machine, which the magic number identifies. All structs are
//! plain bytes without padding. Changing any of them changes [`MAGIC`].

/// The first eight bytes of a `.live` file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SWSPOOL1");

/// The first four bytes of a block.
pub const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"SWB1");

/// File name extension of the shared memory.
pub const LIVE: &str = "live";
/// File name extension of the log.
pub const LOG: &str = "log";

/// Size of [`Header`]: one page, bytes.
pub const HEADER_BYTES: usize = 4096;
/// Size of a window including its header, bytes.
pub const WINDOW_BYTES: usize = 64 * 1024;
/// Number of records that fit into a window.
pub const WINDOW_RECORDS: usize = (WINDOW_BYTES - size_of::<WindowHeader>()) / size_of::<Record>();
/// The window number of records that were never in a window.
pub const NO_WINDOW: u32 = u32::MAX;

/// Maximum length of the stored host name, bytes.
pub const HOST_BYTES: usize = 256;
/// Maximum length of the stored program name, bytes.
pub const PROGRAM_BYTES: usize = 1024;
/// Maximum length of a stem, bytes: host name and two numbers.
pub const STEM_BYTES: usize = HOST_BYTES + 64;

/// Maximum length of a file name in a log, bytes; a longer one is damage.
pub const NAME_BYTES_MAX: usize = 64 * 1024;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(zerocopy::FromBytes))]
#[repr(C)]
pub struct Record {
    /// Ticks before the call.
    pub start: u64,
    /// Ticks after the call.
    pub end: u64,
    /// File offset, bytes.
    pub offset: u64,
    /// Requested bytes.
    pub size: u64,
    /// Bytes moved, 0, or minus an errno.
    pub result: i64,
    /// Number of the file's name in the log.
    pub file: u32,
    /// Code of the [`crate::Op`].
    pub op: u8,
    /// Bits of the [`crate::Flags`].
    pub flags: u8,
    /// Always 0.
    pub reserved: u16,
}

/// One moment, read from two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(zerocopy::FromBytes))]
#[repr(C)]
pub struct Instant {
    /// The clock of the records (see [`Header::clock`]).
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub monotonic_ns: u64,
}

/// The start of a `.live` file.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "files", derive(zerocopy::FromBytes))]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// Process id.
    pub pid: u32,
    /// Rank in the job, or -1.
    pub rank: i32,
    /// 1: ticks are those of the time stamp counter. 0: ticks are nanoseconds of `CLOCK_MONOTONIC`.
    pub clock: u32,
    /// Number of processes of the job according to its MPI library; 0: unknown.
    pub ranks: u32,
    /// The moment when the spool was opened.
    pub start: Instant,
    /// The same moment on `CLOCK_REALTIME`, nanoseconds since 1970.
    pub start_realtime_ns: u64,
    /// Size of the log and the windows, bytes.
    pub spooled_bytes: u64,
    /// Number of records that were dropped because the spool had reached its limit.
    pub dropped_limit: u64,
    /// Number of records and names that were dropped because they could not be written.
    pub dropped_failed: u64,
    /// The errno of the last such failure. With `dropped_failed` = 0: why the process could not be
    /// recorded at all.
    pub failure: u32,
    /// Number of child processes for which some or all calls are in no spool.
    pub lost_children: u32,
    /// Length of `host`, bytes.
    pub host_len: u32,
    /// Length of `program`, bytes.
    pub program_len: u32,
    /// Length of `parent`, bytes; 0: no parent.
    pub parent_len: u32,
    /// 1 + the number of the node in the job according to its MPI library; 0: unknown.
    pub node: u32,
    /// Host name.
    pub host: [u8; HOST_BYTES],
    /// argv\[0\].
    pub program: [u8; PROGRAM_BYTES],
    /// Stem of the process that forked this one. Its spool has the file names for the numbers that
    /// are missing in this process's log.
    pub parent: [u8; STEM_BYTES],
}

/// The start of a window.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "files", derive(zerocopy::FromBytes))]
#[repr(C)]
pub struct WindowHeader {
    /// Number of the first record in the window, counted over the life of the window: as many
    /// records have moved to the log or were dropped.
    pub first: u64,
    /// Number of records in the window. It is increased after the record is written, so that every
    /// counted record is complete.
    pub len: u64,
    /// Two slots for the latest known moment; `latest` is the index of the complete one.
    pub moments: [Instant; 2],
    /// 0 or 1.
    pub latest: u32,
    /// The thread that writes into the window.
    pub tid: u32,
    /// Always 0.
    pub reserved: u64,
}

/// A buffer of one thread's records.
#[repr(C)]
pub struct Window {
    /// State of the window.
    pub header: WindowHeader,
    /// The records; the first `header.len` are valid.
    pub records: [Record; WINDOW_RECORDS],
}

/// Kind of a block of records.
pub const BLOCK_RECORDS: u32 = 1;
/// Kind of a block with a file name.
pub const BLOCK_NAME: u32 = 2;

/// The start of a block in the log.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "files", derive(zerocopy::FromBytes))]
#[repr(C)]
pub struct BlockHeader {
    /// [`BLOCK_MAGIC`].
    pub magic: u32,
    /// [`BLOCK_RECORDS`] or [`BLOCK_NAME`].
    pub kind: u32,
    /// Size of the payload, bytes: records, or the name.
    pub payload_bytes: u32,
    /// For a name: the file's number. For records: the number of their window, or [`NO_WINDOW`].
    pub number: u32,
    /// For records: the number of the first one in its window.
    pub first: u64,
    /// For records: a moment on both clocks.
    pub moment: Instant,
    /// For records: the thread.
    pub tid: u32,
    /// Always 0.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<Record>() == 48);
    assert!(size_of::<WindowHeader>() == 64);
    assert!(size_of::<Window>() == WINDOW_BYTES);
    assert!(size_of::<BlockHeader>() == 48);
    assert!(size_of::<Header>() <= HEADER_BYTES);
};
