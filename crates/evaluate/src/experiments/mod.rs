//! The published experiments, one by one.

pub mod cil;

use crate::claim::Experiment;

/// All of them, C1 to S7, in the papers' order.
pub fn all() -> Vec<Experiment> {
    cil::all()
}
