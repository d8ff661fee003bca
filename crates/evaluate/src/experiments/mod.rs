//! The published experiments, one by one.

pub mod cil;
mod devices;
mod making;
mod psa;
mod sla;
mod sweep;

use crate::claim::Experiment;

/// All of them, C1 to S7, in the papers' order, and ours.
pub fn all() -> Vec<Experiment> {
    [cil::all(), psa::all(), sla::all(), vec![sweep::x1(), psa::x2()]].concat()
}
