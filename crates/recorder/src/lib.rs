//! In-process trace buffers: records the calls of the process that this library is loaded into.
//!
//! ```text
//! let recorder = Recorder::start(&Settings::from_env()?)?;
//! let file = recorder.file_id(b"/data/out.h5");              // at open; NOT_RECORDED if a filter says so
//! let start = recorder.now();
//! let result = pwrite(..);
//! recorder.record(&Event { file, op: Op::Write, flags: Flags::POSITIONAL, offset, size, start,
//!                          end: recorder.now(), result });
//! ```
//!
//! - **Nothing is lost** when the process ends, however it ends: records lie in memory shared with a file.
//! - **Signals**: every function may be called in a signal handler, also in one that interrupted another of
//!   them on the same thread.
//! - **Fork**: a child notices by itself that it is one (a page that the kernel wipes) and opens a spool of its
//!   own at its first record; [`Recorder::after_fork_child`] only does it earlier. File ids stay valid in
//!   the child. A **vfork** child shares its parent's memory and is recorded as its parent; do not call
//!   `after_fork_child` there.
//! - **Exec**: the new image starts a recorder, hence a spool, of its own.
//! - **Descriptors**: none is held open between calls, so there is none to protect.
//! - **Errors** never reach the caller: what cannot be recorded is counted, and the merged trace says that it is
//!   incomplete. `errno` is left as it was.
//! - No allocation with `malloc`, no locks; thread-local data has no destructor.

mod clock;
mod environment;
mod filter;
mod memory;
mod names;
mod spool_file;
mod state;
mod thread;

use std::sync::atomic::Ordering;

use stripewise_trace::spool::{BLOCK_MAGIC, BLOCK_NAME, BlockHeader, Instant};

pub use clock::Ticks;
pub use environment::rank as launcher_rank;
pub use state::TEXT_BYTES;
pub use stripewise_trace::mark::MpiCall;
pub use stripewise_trace::record::{Flags, Op};

/// The environment variable with the spool's directory: `stripewise trace` sets it; without it nothing is recorded.
pub const ENV_DIR: &str = "STRIPEWISE_TRACE_DIR";
/// The environment variable with the patterns of the files to record (`:` between them).
pub const ENV_ONLY: &str = "STRIPEWISE_TRACE_ONLY";
/// The environment variable with the patterns of the files not to record (`:` between them).
pub const ENV_EXCLUDE: &str = "STRIPEWISE_TRACE_EXCLUDE";
/// The environment variable with the most bytes that one process may spool, such as `1G`; what is no size counts as the
/// default.
pub const ENV_LIMIT: &str = "STRIPEWISE_TRACE_LIMIT";
/// The most bytes that one process may spool if nothing else is said: some 20 million calls.
pub const DEFAULT_LIMIT_BYTES: u64 = 1 << 30;

/// A file's number in the spool of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// A file that the filters leave out: [`Recorder::record`] ignores it; callers may skip even asking the time.
    pub const NOT_RECORDED: FileId = FileId(0);
}

/// What to record, where.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The spool's directory, absolute; it must exist.
    pub dir: &'a [u8],
    /// Patterns of the files to record, `:` between them; empty: all but the default excludes.
    pub only: &'a [u8],
    /// Patterns of further files not to record, `:` between them.
    pub exclude: &'a [u8],
    /// The most bytes that one process may spool.
    pub limit_bytes: u64,
}

impl Settings<'static> {
    /// From the environment; `None` when [`ENV_DIR`] is not set: nothing is to be recorded.
    pub fn from_env() -> Option<Self> {
        let dir = environment::variable(c"STRIPEWISE_TRACE_DIR").filter(|dir| !dir.is_empty())?;
        let limit = environment::variable(c"STRIPEWISE_TRACE_LIMIT").and_then(environment::size);
        Some(Settings {
            dir,
            only: environment::variable(c"STRIPEWISE_TRACE_ONLY").unwrap_or_default(),
            exclude: environment::variable(c"STRIPEWISE_TRACE_EXCLUDE").unwrap_or_default(),
            limit_bytes: limit.unwrap_or(DEFAULT_LIMIT_BYTES),
        })
    }
}

/// One call to record.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Which file, from [`Recorder::file_id`].
    pub file: FileId,
    /// What was done.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Where, bytes.
    pub offset: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Before the call.
    pub start: Ticks,
    /// After the call.
    pub end: Ticks,
    /// Bytes moved, 0, or minus an errno.
    pub result: i64,
}

/// The recorder of this process; a handle, free to copy, valid until the process ends. Thread-safe.
#[derive(Clone, Copy)]
pub struct Recorder {
    state: &'static state::State,
}

impl Recorder {
    /// Opens this process's spool. `None` when that is not possible (no such directory, disk full): then nothing is
    /// recorded, and the merged trace cannot know it; say it on stderr.
    pub fn start(settings: &Settings) -> Option<Recorder> {
        let clock = clock::Clock::detect();
        let fixed = state::Fixed {
            clock,
            started: clock.now(),
            limit_bytes: settings.limit_bytes,
            dir: memory::Bytes::new(settings.dir)?,
            only: memory::Bytes::new(settings.only)?,
            exclude: memory::Bytes::new(settings.exclude)?,
            // Longer ones than a path can be are none.
            temporary: memory::Bytes::new(environment::variable(c"TMPDIR").unwrap_or_default())
                .unwrap_or(memory::Bytes::EMPTY),
            host: environment::host(),
            program: environment::program(),
        };
        state::State::start(fixed, environment::rank()).ok().map(|state| Recorder { state })
    }

    /// The present time, in the unit of the spool's clock.
    #[inline]
    pub fn now(&self) -> Ticks {
        self.state.fixed.clock.now()
    }

    /// Whether this process still needs a spool: a forked child. [`Recorder::prepare`] makes it, else the first record does.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.state.is_new()
    }

    /// Makes the spool of a forked child. Takes some 30 KB of stack, which a first record may not have.
    pub fn prepare(&self) {
        thread::busy(|reentrant| {
            let _ = self.state.spool(reentrant);
        });
    }

    /// The number of the file with this absolute path (resolved by the caller; not necessarily free of symbolic
    /// links). To be called at open: it may write to the spool.
    pub fn file_id(&self, path: &[u8]) -> FileId {
        let fixed = &self.state.fixed;
        let filter = filter::Filter {
            only: fixed.only.get(),
            exclude: fixed.exclude.get(),
            spool: fixed.dir.get(),
            temporary: fixed.temporary.get(),
        };
        if !filter.wants(path) {
            return FileId::NOT_RECORDED;
        }
        thread::busy(|reentrant| self.number_of(path, reentrant))
    }

    fn number_of(&self, path: &[u8], reentrant: bool) -> FileId {
        let hash = names::hash(path);
        if let Some(id) = self.state.names.get(hash) {
            return FileId(id);
        }
        let Some(spool) = self.state.spool(reentrant) else { return FileId::NOT_RECORDED };
        let id = self.state.last_file.fetch_add(1, Ordering::Relaxed) + 1;
        let header = BlockHeader {
            magic: BLOCK_MAGIC,
            kind: BLOCK_NAME,
            payload_bytes: path.len() as u32,
            number: id,
            first: 0,
            moment: Instant::default(),
            tid: 0,
            reserved: 0,
        };
        match spool.append(&header, path) {
            Ok(()) => {
                self.state.names.set(hash, id);
                FileId(id)
            }
            Err(refused) => {
                // How many calls on the file will be missing nobody knows; that some are is what counts.
                spool.count_dropped(1, refused);
                FileId::NOT_RECORDED
            }
        }
    }

    /// Records one call. Costs some 10 ns.
    #[inline]
    pub fn record(&self, event: &Event) {
        if event.file != FileId::NOT_RECORDED {
            thread::record(self.state, event);
        }
    }

    /// What the process's MPI library says of its place in the job: its rank, the number of ranks, and the number of its
    /// node, if that is known. Until then the rank is what the launcher's environment says.
    pub fn set_job(&self, rank: u32, ranks: u32, node: Option<u32>) {
        let rank = i32::try_from(rank).unwrap_or(-1);
        let node = node.map_or(0, |node| node.saturating_add(1));
        self.state.set_job(state::Job { rank, ranks, node });
    }

    /// Whether the calling thread is inside a collective call of MPI-IO from now on: what it records gets
    /// [`Flags::COLLECTIVE`], but for asynchronous calls, which count by where they were submitted ([`Recorder::collective`]).
    pub fn set_collective(&self, inside: bool) {
        thread::set_collective(inside);
    }

    /// [`Flags::COLLECTIVE`] if the calling thread is inside a collective call, else nothing.
    pub fn collective(&self) -> Flags {
        thread::collective()
    }

    /// To be called in the child after `fork` (optional: the recorder notices by itself on kernels from 4.14 on). Never in a
    /// `vfork` child.
    pub fn after_fork_child(&self) {
        self.state.after_fork_child();
    }
}
