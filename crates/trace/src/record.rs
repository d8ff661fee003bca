//! One traced call, and the process that made it.

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "files", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum Op {
    /// A descriptor of the file was created. `size` is the file's size at that time, or 0 if
    /// unknown.
    Open = 1,
    /// A descriptor of the file was closed.
    Close = 2,
    /// Data was read from the file.
    Read = 3,
    /// Data was written to the file.
    Write = 4,
    /// fsync, fdatasync, sync_file_range, msync.
    Sync = 5,
    /// The size was set (truncate, fallocate, O_TRUNC). `size` is the new size.
    Resize = 6,
    /// The descriptor's offset was set. `offset` is the result.
    Seek = 7,
    /// The size or other attributes were queried.
    Stat = 8,
    /// A range of the file was mapped. Accesses through the mapping are not traced.
    Map = 9,
    /// A collective call of MPI-IO on the file, from begin to end. `offset` is the number of the
    /// call ([`crate::MpiCall`]), `size` the number of processes that opened the file together, and
    /// the result the bytes that this process requested. The calls made in between have rows of
    /// their own, with [`Flags::COLLECTIVE`].
    Mark = 10,
    /// A name of the file was removed.
    Unlink = 11,
}

impl Op {
    /// Every operation, in the order of their codes.
    pub const ALL: [Op; 11] = [
        Op::Open,
        Op::Close,
        Op::Read,
        Op::Write,
        Op::Sync,
        Op::Resize,
        Op::Seek,
        Op::Stat,
        Op::Map,
        Op::Mark,
        Op::Unlink,
    ];

    /// The operation with this code.
    pub fn from_code(code: u8) -> Option<Op> {
        Op::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// The name in trace files: `open`, `read`, ...
    pub fn name(self) -> &'static str {
        const NAMES: [&str; Op::ALL.len()] =
            ["open", "close", "read", "write", "sync", "resize", "seek", "stat", "map", "mark", "unlink"];
        NAMES[self as usize - 1]
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether the operation moves data: reads and writes.
    #[inline]
    pub fn is_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

/// Bit set that tells how a call was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// The call passed an explicit offset (pread, pwrite, aio); without this flag it used the
    /// descriptor's offset.
    pub const POSITIONAL: Flags = Flags(1);
    /// The descriptor appends. `offset` is where the data went if that is known, else the size at
    /// open.
    pub const APPEND: Flags = Flags(2);
    /// Asynchronous: `start` is the submission, `end` the time when the completion was seen.
    pub const ASYNC: Flags = Flags(4);
    /// Made during a collective call of MPI-IO, by the thread that made that call.
    pub const COLLECTIVE: Flags = Flags(8);
    /// Several buffers (readv, writev, ...) for one extent of the file.
    pub const VECTOR: Flags = Flags(16);
    /// A write to standard output or standard error: descriptor 1 or 2.
    pub const OUTPUT: Flags = Flags(32);

    /// The union of both sets.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One traced call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index into the trace's processes ([`ProcessInfo`]).
    pub process: u32,
    /// The kernel's thread id.
    pub tid: u32,
    /// Index into the trace's file names.
    pub file: u32,
    /// The operation.
    pub op: Op,
    /// How the call was made.
    pub flags: Flags,
    /// File offset, bytes.
    pub offset: u64,
    /// Requested bytes (see [`Op`] for calls other than reads and writes).
    pub size: u64,
    /// The return value of the call: bytes moved, 0, or minus an errno.
    pub result: i64,
    /// Time of the call, nanoseconds since the start of the trace.
    pub start_ns: u64,
    /// Time of the return, nanoseconds since the start of the trace.
    pub end_ns: u64,
}

impl Request {
    /// Bytes that were read or written; 0 for other calls and for failed ones.
    #[inline]
    pub fn bytes(&self) -> u64 {
        if self.op.is_data() { u64::try_from(self.result).unwrap_or(0) } else { 0 }
    }
}

/// A process of the traced job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcessInfo {
    /// Host name, followed by `#` and a number if several nodes of the job have the same one.
    pub node: String,
    /// Process id on that node.
    pub pid: u32,
    /// Rank in the job, from the MPI library or the launcher's environment; -1 if there is none.
    pub rank: i32,
    /// The program: argv\[0\].
    pub program: String,
}
