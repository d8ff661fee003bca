//! Background work on a file with several copies: what is done next, how much of it at once, and
//! when.
//!
//! Replicas are brought in sync. For caches, dirty data is written back, some space is kept free,
//! and queued prefetch hints are fetched. All of this happens in small units, while no application
//! uses the servers of the file; a cache whose space is under [`Pressure`] is relieved earlier.

use stripewise_cluster::OverlayKind;

/// Maximum bytes copied at once. A process that writes there meanwhile writes to another copy or
/// waits.
pub const CHUNK_BYTES: u64 = 4 << 20;
/// Maximum ranges copied at once for a process that waits for it: each may be a separate request to
/// a server.
pub const PIECES_MAX: usize = 16;
/// Maximum ranges copied at once while no application uses the file's servers.
const PIECES_MAX_IDLE: usize = 4096;
/// Maximum ranges copied at once while applications use them: one, to stay below their load.
const PIECES_MAX_USED: usize = 1;
/// Minimum bytes copied at once under a bandwidth limit: smaller copies would be little but request
/// overhead.
const PIECE_BYTES_MIN: u64 = 4096;
/// Maximum queued prefetch hints of a copy considered in one unit of work.
pub const WANTED_MAX: usize = 16;

/// While applications use the file's servers, the processes take turns at write-back: after each
/// unit, a process pauses for this multiple of the time it took, times the number of processes.
/// Continuous write-back costs the slow servers 5 to 13 % of their time (measured), as much as it
/// saves them when they are the bottleneck.
const PAUSE_FACTOR: u64 = 16;

/// The watermark: if less than 1/`FREE_DIVISOR` of a cache server is free, that much is evicted.
const FREE_DIVISOR: u64 = 32;
/// Minimum bytes evicted at once, because each eviction syncs the journal. In a small cache the
/// minimum is 1/`BATCH_DIVISOR` of the cache, so that most of the data stays.
pub const BATCH_BYTES: u64 = 1 << 20;
const BATCH_DIVISOR: u64 = 8;

/// Pause between polls for background work while no file has any: the first, and the maximum, ns.
pub const POLL_NS: u64 = 1_000_000;
/// See [`POLL_NS`].
pub const POLL_NS_MAX: u64 = 32_000_000;

/// A server counts as used until no request has begun or ended there for this time, ns ...
pub const USED_NS: u64 = 20_000_000;
/// ... or for this multiple of the recent request duration, if that is longer: a queued request
/// neither begins nor ends.
const USED_REQUESTS: u64 = 2;
/// A server never counts as used for longer than this after a request, ns.
pub const USED_NS_MAX: u64 = 10_000_000_000;

/// The background work that a file permits now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Applications use the servers. A cache under [`Pressure`] evicts or writes back. No request
    /// waits for a prefetch, and replicas are brought in sync when the file is closed.
    Relieve,
    /// No application uses the servers: everything.
    Work,
}

/// A unit of background work. It may find nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Evict clean data from caches down to the watermark ([`lacks_space`]).
    KeepFree,
    /// Copy ranges that are missing in this copy, from where the last unit ended.
    Copy {
        /// The destination.
        to: usize,
    },
    /// Fetch one of the first [`WANTED_MAX`] queued prefetch hints of a cache copy.
    Fetch,
}

/// Times before which a file rests, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// The time before any file.
    pub next_ns: u64,
    /// The time before a file whose servers applications are using.
    pub next_under_load_ns: u64,
}

impl Step {
    /// The step at `now_ns`; `idle` tells that no application uses the servers of the file.
    pub fn at(now_ns: u64, pauses: Pauses, idle: bool) -> Self {
        match idle {
            _ if now_ns < pauses.next_ns => Self::Rest,
            true => Self::Work,
            false if now_ns < pauses.next_under_load_ns => Self::Rest,
            false => Self::Relieve,
        }
    }

    /// The units to try on a file of `copies` copies, in order, until one finds something to do.
    pub fn units(self, kind: OverlayKind, copies: usize) -> impl Iterator<Item = Unit> {
        let (keep_free, whole, fetch) = match (kind, self) {
            (_, Self::Rest) | (OverlayKind::Replicas, Self::Relieve) => (false, 0..0, false),
            (OverlayKind::Replicas, Self::Work) => (false, 0..copies, false),
            (OverlayKind::Cache { .. }, Self::Relieve) => (true, 0..1, false),
            (OverlayKind::Cache { .. }, Self::Work) => (true, 0..1, true),
        };
        let copies = whole.map(|to| Unit::Copy { to });
        keep_free.then_some(Unit::KeepFree).into_iter().chain(copies).chain(fetch.then_some(Unit::Fetch))
    }

    /// Maximum ranges that one unit copies.
    pub fn pieces_max(self) -> usize {
        if self == Self::Work { PIECES_MAX_IDLE } else { PIECES_MAX_USED }
    }
}

/// Pause after the begin of a unit of work that took `took_ns` while applications used the file's
/// servers, ns. `processes` have the file open.
pub fn pause_under_load_ns(took_ns: u64, processes: u32) -> u64 {
    took_ns.saturating_mul(PAUSE_FACTOR * u64::from(processes))
}

/// The pause between polls that follows a pause of `poll_ns`, ns.
pub fn longer_poll_ns(poll_ns: u64) -> u64 {
    (poll_ns * 2).min(POLL_NS_MAX)
}

/// Limits the background copying of one process, so that all copiers of a file together keep to the
/// file's limit.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Bytes per second; `None` for no limit.
    limit: Option<u64>,
    /// Maximum bytes copied at once.
    most: u64,
}

impl Pace {
    /// For copying as fast as possible.
    pub const UNLIMITED: Self = Self { limit: None, most: CHUNK_BYTES };

    /// The share of one of `copiers` in a limit of `limit` bytes per second.
    pub fn new(limit: Option<u64>, copiers: u64) -> Self {
        Self { limit: limit.map(|all| (all / copiers.max(1)).max(1)), ..Self::UNLIMITED }
    }

    /// With at most `bytes` (at least 1) copied at once.
    pub fn at_once(self, bytes: u64) -> Self {
        Self { most: bytes.clamp(1, CHUNK_BYTES), ..self }
    }

    /// The end of the range that is copied at once from `start` on: that of the chunk in which it
    /// starts, or less, as the limit allows in a second.
    pub fn piece_end(self, start: u64) -> u64 {
        let most = self.limit.map_or(self.most, |limit| limit.max(PIECE_BYTES_MIN).min(self.most));
        let chunk_end = (start + 1).checked_next_multiple_of(CHUNK_BYTES).unwrap_or(u64::MAX);
        chunk_end.min(start.saturating_add(most))
    }

    /// Time from the begin of a copy of `bytes` to the next one, ns; `None` without a limit.
    pub fn pause_ns(self, bytes: u64) -> Option<u64> {
        let pause_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.limit?);
        Some(u64::try_from(pause_ns).unwrap_or(u64::MAX))
    }
}

/// How full the cache copies of a file are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pressure {
    fullest_bytes: u64,
    clean_bytes: u64,
}

impl Pressure {
    /// Adds a cache copy whose fullest server holds `fullest_bytes`, of all files, and that has
    /// `clean_bytes` over `servers` servers.
    pub fn add(&mut self, fullest_bytes: u64, clean_bytes: u64, servers: u64) {
        self.fullest_bytes = self.fullest_bytes.max(fullest_bytes);
        self.clean_bytes += clean_bytes / servers.max(1);
    }

    /// Whether more than half of the space of `capacity` bytes per server may hold dirty data.
    pub fn is_high(self, capacity: u64) -> bool {
        self.fullest_bytes.saturating_sub(self.clean_bytes) > capacity / 2
    }
}

/// Bytes that are kept free on each cache server of `capacity` bytes.
pub fn free_bytes(capacity: u64) -> u64 {
    capacity / FREE_DIVISOR
}

/// Whether a cache server of `capacity` bytes that holds `used` has too little free space.
pub fn lacks_space(used: u64, capacity: u64) -> bool {
    used.saturating_add(free_bytes(capacity)) > capacity
}

/// Minimum bytes evicted at once from a cache copy on `servers` servers of `capacity` bytes each.
pub fn batch_bytes(capacity: u64, servers: u64) -> u64 {
    (capacity.saturating_mul(servers) / BATCH_DIVISOR).clamp(1, BATCH_BYTES)
}

/// The cache copies in the order in which clean data is evicted for a write to copy `to`: first
/// that copy, then the others, which may have data on the servers that are full. `copies` counts
/// the original, too.
pub fn eviction_order(to: usize, copies: usize) -> impl Iterator<Item = usize> {
    std::iter::once(to).chain((1..copies).filter(move |&other| other != to))
}

/// Time for which a server counts as used after a request has begun or ended there, ns. `took_ns`
/// is the recent request duration ([`recent_ns`]).
pub fn used_for_ns(took_ns: u64) -> u64 {
    took_ns.saturating_mul(USED_REQUESTS).clamp(USED_NS, USED_NS_MAX)
}

/// The recent request duration after a request of `took_ns`, ns: follows the longest request and
/// decays by at most 1/8 per request.
pub fn recent_ns(known_ns: u64, took_ns: u64) -> u64 {
    took_ns.max(known_ns - known_ns / 8)
}
