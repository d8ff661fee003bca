//! Why nothing was measured.

/// Why a measurement failed: one line that names the directory or host, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct CalibrateError {
    /// A directory or an address.
    pub place: String,
    /// The problem and the remedy.
    pub problem: String,
}

impl CalibrateError {
    pub(crate) fn new(place: impl ToString, problem: impl ToString) -> Self {
        Self { place: place.to_string(), problem: problem.to_string() }
    }
}
