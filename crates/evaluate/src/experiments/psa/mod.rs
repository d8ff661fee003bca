//! Experiments on varied stripes (PSA §4): P1 to P7.
//!
//! There are eight client nodes and, by default, four HServers and four SServers. Files do not fit
//! on the SServers, which have a fixed amount of space for them. DEF, PA and PSA are the paper's
//! schemes. Two schemes are additions: `whole requests` puts as many requests as fit on the
//! SServers alone, and `auto` is the planner's choice.
//!
//! **Scaled down** for programs on a machine with two cores, there are fewer requests and
//! processes. The space shrinks alike, so that the SServers hold the same fraction of the file;
//! requests have their published size. Servers are slowed, so that the time is spent in the servers
//! and not in the programs. Cells have the labels of the published case that they stand for, and
//! the label `ranks` if there are fewer processes.

mod collective;
mod hpio;
mod ior;
mod rounds;
mod setting;

use crate::claim::Experiment;

/// Experiment on the causes of P6's results, an addition to the papers'.
pub use rounds::x2;

/// Returns P1 to P7.
pub fn all() -> Vec<Experiment> {
    vec![ior::p1(), ior::p2(), ior::p3(), ior::p4(), hpio::p5(), collective::p6(), collective::p7()]
}
