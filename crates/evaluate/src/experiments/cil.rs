//! The experiments on layouts and replicas (CIL §6).

use crate::claim::Experiment;

/// C1 to C4.
pub fn all() -> Vec<Experiment> {
    Vec::new()
}
