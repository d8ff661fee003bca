//! Definitions of the published experiments.

pub mod cil;
mod devices;
mod making;
mod psa;
mod sla;
mod sweep;

use crate::claim::Experiment;

/// Returns all experiments: C1 to S7 in the papers' order, then this project's X1 and X2.
pub fn all() -> Vec<Experiment> {
    [cil::all(), psa::all(), sla::all(), vec![sweep::x1(), psa::x2()]].concat()
}
