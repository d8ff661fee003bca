//! What a run took.

/// What one server did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ServerUse {
    /// Seconds that it was busy.
    pub busy_s: f64,
    /// Sub-requests that it served, background copying included.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// What happened to files with several copies; all 0 for others. As `stripewise status` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Bytes read from every copy.
    pub read_bytes: [u64; 8],
    /// Bytes written to every copy.
    pub written_bytes: [u64; 8],
    /// Requests that caches served alone.
    pub hits: u64,
    /// Requests that caches had a part in.
    pub partial_hits: u64,
    /// Requests that were found to be performance-critical.
    pub critical: u64,
    /// Bytes that were admitted to caches by writes.
    pub admitted_bytes: u64,
    /// Bytes of clean data that were given up.
    pub evicted_bytes: u64,
    /// Bytes that were written back to the original, or copied from one replica to another.
    pub copied_bytes: u64,
    /// Bytes that were fetched into caches.
    pub fetched_bytes: u64,
}

/// What a run took.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// From the first request to the end of the last process, seconds.
    pub elapsed_s: f64,
    /// Requests of the processes.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What they became on the servers.
    pub sub_requests: u64,
    /// Per server.
    pub servers: Vec<ServerUse>,
    /// When every process ended, seconds from the start of the run.
    pub ends_s: Vec<f64>,
    /// Of files with several copies.
    pub counters: Counters,
}

impl Outcome {
    /// Bytes per second of the processes; 0 where nothing took time.
    pub fn bytes_per_s(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.bytes as f64 / self.elapsed_s } else { 0.0 }
    }

    /// The server that was busy longest, and the part of the run that it was.
    pub fn busiest(&self) -> Option<(usize, f64)> {
        let longest = (self.servers.iter().enumerate())
            .max_by(|a, b| a.1.busy_s.total_cmp(&b.1.busy_s).then(b.0.cmp(&a.0)))?;
        Some((longest.0, if self.elapsed_s > 0.0 { longest.1.busy_s / self.elapsed_s } else { 0.0 }))
    }
}
