//! One traced call, and the process that made it.

/// What a call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "files", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum Op {
    /// A descriptor of the file came to be; `size` is the file's size then, if known, else 0.
    Open = 1,
    /// A descriptor of the file went.
    Close = 2,
    /// Data from the file.
    Read = 3,
    /// Data to the file.
    Write = 4,
    /// fsync, fdatasync, sync_file_range, msync.
    Sync = 5,
    /// The size was set (truncate, fallocate, O_TRUNC): `size` is the new size.
    Resize = 6,
    /// The descriptor's offset was set: `offset` is the result.
    Seek = 7,
    /// The size or other attributes were asked for.
    Stat = 8,
    /// A range of the file was mapped: the accesses through the mapping are not seen.
    Map = 9,
    /// A collective call of MPI-IO on the file, from its begin to its end: `offset` is the number
    /// of the call ([`crate::MpiCall`]), `size` the number of processes that opened the file
    /// together, the result the bytes that this process asked for. What it did in between has rows
    /// of its own, with [`Flags::COLLECTIVE`].
    Mark = 10,
}

impl Op {
    /// Every operation, in the order of their codes.
    pub const ALL: [Op; 10] =
        [Op::Open, Op::Close, Op::Read, Op::Write, Op::Sync, Op::Resize, Op::Seek, Op::Stat, Op::Map, Op::Mark];

    /// The operation with this code.
    pub fn from_code(code: u8) -> Option<Op> {
        Op::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// The name in trace files: `open`, `read`, ...
    pub fn name(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Close => "close",
            Op::Read => "read",
            Op::Write => "write",
            Op::Sync => "sync",
            Op::Resize => "resize",
            Op::Seek => "seek",
            Op::Stat => "stat",
            Op::Map => "map",
            Op::Mark => "mark",
        }
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether data moves: reads and writes.
    pub fn is_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

/// How a call was made; a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// The call named its offset (pread, pwrite, aio); without it the descriptor's offset was used.
    pub const POSITIONAL: Flags = Flags(1);
    /// The descriptor appends: `offset` is where the data went, if that is known, else the size at
    /// open.
    pub const APPEND: Flags = Flags(2);
    /// Asynchronous: `start` is the submission, `end` when the completion was seen.
    pub const ASYNC: Flags = Flags(4);
    /// Made inside a collective call of MPI-IO, by the thread that is in it.
    pub const COLLECTIVE: Flags = Flags(8);
    /// Several buffers (readv, writev, ...), one extent of the file.
    pub const VECTOR: Flags = Flags(16);

    /// Both sets together.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all of `other` are set.
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
    /// What was done.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Where in the file, bytes.
    pub offset: u64,
    /// Bytes asked for (see [`Op`] for calls other than reads and writes).
    pub size: u64,
    /// What the call returned: bytes moved, 0, or minus an errno.
    pub result: i64,
    /// When it was called, nanoseconds since the start of the trace.
    pub start_ns: u64,
    /// When it returned, nanoseconds since the start of the trace.
    pub end_ns: u64,
}

impl Request {
    /// Bytes that were read or written; 0 for other calls and for those that failed.
    pub fn bytes(&self) -> u64 {
        if self.op.is_data() { u64::try_from(self.result).unwrap_or(0) } else { 0 }
    }
}

/// A process of the traced job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcessInfo {
    /// Host name (with `#` and a number where nodes of the job have the same one).
    pub node: String,
    /// Process id on that node.
    pub pid: u32,
    /// Rank in the job, from the MPI library or the launcher's environment; -1 if there is none.
    pub rank: i32,
    /// The program: argv\[0\].
    pub program: String,
}
