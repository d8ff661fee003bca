//! The concurrency: p, the number of processes that use the file at once, and c, the number of them
//! on this node.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use stripewise_extents::Map;

/// p and c as given by the MPI library or its launcher, for all files of a process.
#[derive(Debug, Default)]
pub(crate) struct Concurrency(AtomicU64);

impl Concurrency {
    /// Sets p to `procs` and c to `procs_per_node`, adjusted so that both are at least 1 and c is
    /// at most p.
    pub fn set(&self, procs: u32, procs_per_node: u32) {
        let procs = procs.max(1);
        let per_node = procs_per_node.clamp(1, procs);
        self.0.store(u64::from(procs) << 32 | u64::from(per_node), Ordering::Relaxed);
    }

    /// (p, c), if known.
    pub fn get(&self) -> Option<(u32, u32)> {
        let both = self.0.load(Ordering::Relaxed);
        (both != 0).then_some(((both >> 32) as u32, both as u32))
    }
}

/// Number of requests between two counts of the processes that have the file open.
const REQUESTS: u32 = 1024;

/// The measured number of processes that have the file open.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    processes: AtomicU32,
    requests: AtomicU32,
}

impl Measured {
    /// The number of processes that have the file open, recounted every [`REQUESTS`] calls.
    pub fn processes(&self, map: &Map) -> u32 {
        if self.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(REQUESTS) {
            let now = map.processes().unwrap_or(1).max(1);
            self.processes.store(now as u32, Ordering::Relaxed);
        }
        self.processes.load(Ordering::Relaxed).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_is_at_most_p() {
        let concurrency = Concurrency::default();
        assert_eq!(concurrency.get(), None);
        concurrency.set(16, 4);
        assert_eq!(concurrency.get(), Some((16, 4)));
        concurrency.set(2, 4);
        assert_eq!(concurrency.get(), Some((2, 2)));
        concurrency.set(0, 0);
        assert_eq!(concurrency.get(), Some((1, 1)));
    }
}
