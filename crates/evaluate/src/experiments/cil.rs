//! Experiments on layouts and replicas (CIL §6).
//!
//! In the simulator: 16 servers on Ethernet with 48 client nodes, and 8 servers on InfiniBand with
//! 8 client nodes, with the values of CIL's Table 4. Measured: 8 servers without a network. They
//! are slowed by a factor that is the same for all schemes of a cell, so that the time is spent in
//! the servers and not in the programs.

mod accuracy;
mod mixes;
mod replicas;
mod setting;
mod tiles;

use crate::claim::Experiment;

/// Returns C1 to C4.
pub fn all() -> Vec<Experiment> {
    vec![accuracy::c1(), mixes::c2(), replicas::c3(), tiles::c4()]
}
