//! Experiments on the cache (SLA §5): S1 to S7.
//!
//! There are 32 client nodes, eight HServers and four SServers. The files lie on the HServers in
//! stripes of 64 KiB, and the SServers may hold 30 % of them. Writes are a first run. Reads are a
//! second run, after the prefetch queue of the first run has been worked off.
//!
//! NSCA, SCA and LCP admit as SLA's Algorithm 1 is printed. `LCP balanced` is an addition: it
//! admits the requests that keep both kinds of servers busy
//! (`docs/decisions/0008-balanced-admission.md`).
//!
//! Simulated cells have Ethernet's bandwidth and persistent connections; SLA's model has no
//! network.
//!
//! **Scaled down** as in the experiments on varied stripes ([`super::psa`]).

mod benchmarks;
mod ior;
mod miss;
mod placed;
mod setting;

use crate::claim::Experiment;

/// Returns S1 to S7.
pub fn all() -> Vec<Experiment> {
    let s6 = Experiment { cells: benchmarks::s6_cells, ..placed::s6() };
    vec![ior::s1(), ior::s2(), ior::s3(), benchmarks::s4(), benchmarks::s5(), s6, miss::s7()]
}
