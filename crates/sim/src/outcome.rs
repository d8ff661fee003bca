//! Results of a run.

/// The work of one server in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ServerUse {
    /// Time that the server was busy, seconds.
    pub busy_s: f64,
    /// Number of sub-requests served, including background copying.
    pub requests: u64,
    /// Bytes of these sub-requests.
    pub bytes: u64,
}

/// Counters of files with several copies, as in `stripewise status`. They are 0 for other files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Bytes read from each copy.
    pub read_bytes: [u64; 8],
    /// Bytes written to each copy.
    pub written_bytes: [u64; 8],
    /// Requests served entirely by caches.
    pub hits: u64,
    /// Requests served partly by caches.
    pub partial_hits: u64,
    /// Requests classified as performance-critical.
    pub critical: u64,
    /// Bytes of writes admitted to caches.
    pub admitted_bytes: u64,
    /// Bytes of clean data evicted.
    pub evicted_bytes: u64,
    /// Bytes written back to the original, or copied from one replica to another.
    pub copied_bytes: u64,
    /// Bytes fetched into caches.
    pub fetched_bytes: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// Time from the first request to the end of the last process, seconds.
    pub elapsed_s: f64,
    /// Number of requests of the processes.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Number of sub-requests on the servers that these requests became.
    pub sub_requests: u64,
    /// The work of each server.
    pub servers: Vec<ServerUse>,
    /// The time when each process ended, seconds from the start of the run.
    pub ends_s: Vec<f64>,
    /// Counters of files with several copies.
    pub counters: Counters,
}

impl Outcome {
    /// Bandwidth of all processes together, bytes per second; 0 if nothing took time.
    pub fn bytes_per_s(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.bytes as f64 / self.elapsed_s } else { 0.0 }
    }

    /// The server that was busy for the longest time, and the fraction of the run during which it
    /// was.
    pub fn busiest(&self) -> Option<(usize, f64)> {
        let longest = (self.servers.iter().enumerate())
            .max_by(|a, b| a.1.busy_s.total_cmp(&b.1.busy_s).then(b.0.cmp(&a.0)))?;
        Some((longest.0, if self.elapsed_s > 0.0 { longest.1.busy_s / self.elapsed_s } else { 0.0 }))
    }
}
