//! How much of a trace is kept.

use stripewise_trace::summary::MAX_GROUPS;

/// Maximum number of sampled requests of all groups together (64 bytes each).
const SAMPLES: usize = 2 * 1024 * 1024;
/// Maximum number of groups of open phases, besides one in each set.
const OPEN_GROUPS: usize = 32 * 1024;
/// Maximum number of groups of closed phases, besides one in each set.
const GROUPS: usize = 4096;
/// The same and sampled requests for each set, if there are more than [`MAX_GROUPS`].
const OF_SET: usize = 4;
const SAMPLES_OF_SET: usize = 21;

/// Limits of what is kept of all file sets together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of sampled requests of all groups.
    pub(crate) samples: usize,
    /// Maximum number of groups of open phases, besides one in each set.
    pub(crate) open_groups: usize,
    /// Number of sampled requests that a group of an open phase always keeps.
    pub(crate) open_sample: usize,
    /// Maximum number of groups of closed phases, besides one in each set. Requests of further
    /// kinds join the nearest group of their set.
    pub(crate) groups: usize,
}

impl Limits {
    /// The limits for that many file sets.
    pub(crate) fn of(sets: usize) -> Self {
        let of_many = |least: usize, of_set: usize| match sets > MAX_GROUPS {
            true => least.max(of_set.saturating_mul(sets)),
            false => least,
        };
        let (samples, open_groups) = (of_many(SAMPLES, SAMPLES_OF_SET), of_many(OPEN_GROUPS, OF_SET));
        // Thinning all samples, of groups of open and of closed phases, then frees enough.
        let open_sample = (samples / 4 / open_groups).max(1);
        Self { samples, open_groups, open_sample, groups: of_many(GROUPS, OF_SET) }
    }
}
