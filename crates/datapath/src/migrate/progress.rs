//! The progress of migrations and copies.

/// The phase of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Resuming an earlier run, which has copied `done` bytes. Reported once, first.
    Found,
    /// Copying data.
    Copy,
    /// Reading back the copy.
    Verify,
}

/// The progress of a long operation.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Bytes done.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
}
