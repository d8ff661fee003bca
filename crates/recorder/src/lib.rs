//! In-process trace buffers: records the calls of the process that the library is loaded into.
//!
//! ```text
//! let recorder = Recorder::start(&Settings::from_env()?)?;
//! // At open. NOT_RECORDED if the filters exclude the file.
//! let file = recorder.file_id(b"/data/out.h5");
//! let start = recorder.now();
//! let result = pwrite(..);
//! recorder.record(&Event { file, op: Op::Write, flags: Flags::POSITIONAL, offset, size, start,
//!                          end: recorder.now(), result });
//! ```
//!
//! - **Crash safety**: no record is lost when the process ends, however it ends, because records
//!   are stored in memory shared with a file.
//! - **Signals**: every function may be called in a signal handler, even in one that interrupted
//!   another of these functions on the same thread.
//! - **Fork**: a child detects by itself that it is new (by a page that kernels from 4.14 on
//!   clear), and opens a spool of its own at its first record. File ids stay valid in the child. A
//!   **vfork** child shares its parent's memory and is recorded as its parent.
//! - **Exec**: the new program starts a recorder, and hence a spool, of its own.
//! - **Descriptors**: none is held open between calls, so none has to be protected.
//! - **Errors** never reach the caller. Calls that cannot be recorded are counted, and the merged
//!   trace is marked as incomplete. `errno` is left unchanged.
//! - No allocation with `malloc`, no locks; thread-local data has no destructor.

mod clock;
mod environment;
mod filter;
mod memory;
mod names;
mod spool_file;
mod state;
mod thread;

use std::path::Path;
use std::sync::atomic::Ordering;

use stripewise_trace::spool::BLOCK_NAME;

pub use clock::Ticks;
pub use environment::{rank as launcher_rank, variable};
pub use spool_file::TEXT_BYTES;
pub use stripewise_trace::mark::MpiCall;
pub use stripewise_trace::record::{Flags, Op};
pub use thread::{Event, FileId, collective, set_collective};

/// The environment variable with the spool's directory, set by `stripewise trace`. Without it
/// nothing is recorded.
pub const ENV_DIR: &str = "STRIPEWISE_TRACE_DIR";
/// The environment variable with the patterns of files to record, separated by `:`.
pub const ENV_ONLY: &str = "STRIPEWISE_TRACE_ONLY";
/// The environment variable with the patterns of files not to record, separated by `:`.
pub const ENV_EXCLUDE: &str = "STRIPEWISE_TRACE_EXCLUDE";
/// The environment variable with the limit of bytes that one process may spool, such as `1G`. An
/// invalid size counts as [`DEFAULT_LIMIT_BYTES`].
pub const ENV_LIMIT: &str = "STRIPEWISE_TRACE_LIMIT";
/// Default limit of bytes that one process may spool: some 20 million calls.
pub const DEFAULT_LIMIT_BYTES: u64 = 1 << 30;

/// The settings of a recorder.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The spool's directory, absolute. It must exist.
    pub dir: &'a [u8],
    /// Patterns of files to record, separated by `:`. Empty: all files except the default excludes.
    pub only: &'a [u8],
    /// Patterns of additional files not to record, separated by `:`.
    pub exclude: &'a [u8],
    /// Limit of bytes that one process may spool.
    pub limit_bytes: u64,
}

impl Settings<'static> {
    /// Reads the settings from the environment. `None` if [`ENV_DIR`] is not set: nothing is
    /// recorded.
    pub fn from_env() -> Option<Self> {
        let dir = variable(c"STRIPEWISE_TRACE_DIR")?;
        let limit = variable(c"STRIPEWISE_TRACE_LIMIT").and_then(environment::size);
        Some(Settings {
            dir,
            only: variable(c"STRIPEWISE_TRACE_ONLY").unwrap_or_default(),
            exclude: variable(c"STRIPEWISE_TRACE_EXCLUDE").unwrap_or_default(),
            limit_bytes: limit.unwrap_or(DEFAULT_LIMIT_BYTES),
        })
    }
}

/// Tries whether processes can spool their records in this directory.
///
/// # Errors
/// As open(2), pwrite(2) and mmap(2): ENODEV on a file system that cannot map files shared.
pub fn probe(dir: &Path) -> std::io::Result<()> {
    Ok(spool_file::probe(dir)?)
}

/// A handle of this process's recorder: copyable, thread-safe, and valid until the process ends.
#[derive(Clone, Copy)]
pub struct Recorder {
    state: &'static state::State,
}

impl Recorder {
    /// Opens this process's spool. `None` if that is not possible (no such directory, disk full, a
    /// file system that cannot map files shared). Nothing is recorded then, and the merged trace
    /// shows it only if the process could make a file, so the caller should log it to stderr.
    pub fn start(settings: &Settings) -> Option<Recorder> {
        let clock = clock::Clock::detect();
        let fixed = spool_file::Fixed {
            clock,
            started: clock.now(),
            limit_bytes: settings.limit_bytes,
            dir: memory::Bytes::new(settings.dir)?,
            only: memory::Bytes::new(settings.only)?,
            exclude: memory::Bytes::new(settings.exclude)?,
            // A longer value cannot be a path and is ignored.
            temporary: memory::Bytes::new(variable(c"TMPDIR").unwrap_or_default())
                .unwrap_or(memory::Bytes::EMPTY),
            host: environment::host(),
            program: environment::program(),
        };
        state::State::start(fixed, environment::rank()).ok().map(|state| Recorder { state })
    }

    /// The current time in the unit of the spool's clock.
    #[inline]
    pub fn now(&self) -> Ticks {
        self.state.fixed.clock.now()
    }

    /// Whether this is a forked child without a spool. [`Recorder::prepare`] makes one, or else the
    /// first record does.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.state.is_new()
    }

    /// Makes the spool of a forked child. Needs some 30 KB of stack, which the caller of a first
    /// record may not have.
    pub fn prepare(&self) {
        thread::busy(|reentrant| self.state.spool(reentrant).is_some());
    }

    /// The number of the file with this absolute path, which the caller has resolved (it may
    /// contain symbolic links). Called at open, because it may write to the spool.
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
        // The number of calls on a file without a name in the spool is unknown; the count of 1
        // marks the trace as incomplete.
        if !spool.append_or_count(&spool_file::block(BLOCK_NAME, id, path), path, 1) {
            return FileId::NOT_RECORDED;
        }
        self.state.names.set(hash, id);
        FileId(id)
    }

    /// Records one call. Takes some 10 ns.
    #[inline]
    pub fn record(&self, event: &Event) {
        if event.file != FileId::NOT_RECORDED {
            thread::record(self.state, event);
        }
    }

    /// Sets the process's place in its job, from its MPI library: its rank, the number of ranks,
    /// and the index of its node, if known. Until then the rank is that of the launcher's
    /// environment.
    pub fn set_job(&self, rank: u32, ranks: u32, node: Option<u32>) {
        let rank = i32::try_from(rank).unwrap_or(-1);
        let node = node.map_or(0, |node| node.saturating_add(1));
        self.state.set_job(spool_file::Job { rank, ranks, node });
    }
}
