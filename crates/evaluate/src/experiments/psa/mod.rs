//! The experiments on varied stripes (PSA §4): P1 to P7.
//!
//! Eight client nodes; by default four HServers and four SServers; files do not fit on the SServers, of whose space a
//! fixed amount is theirs. DEF, PA and PSA are the paper's schemes. Two more are ours: `whole requests` puts as many
//! requests as fit on the SServers alone, and `auto` is what the planner chooses.
//!
//! **Scaled down** for programs on a machine with two cores: fewer requests and processes, and as much less space, so
//! that the SServers hold the same share of the file; requests have their published size. Servers are slowed
//! so that they, not the programs, take the time. Cells have the labels of what they stand for, and `ranks`, where
//! there are fewer processes.

mod collective;
mod hpio;
mod ior;
mod rounds;

use stripewise_model::{Network, Op};
use stripewise_trace::synth::Access;

use super::making::{gain, labels, largest, name, slowing};
use super::{devices, making};
use crate::cell::{Cell, Part, Scheme};
use crate::claim::{Claim, Experiment, Scale};
use crate::record::{Labels, Place};

/// Client nodes.
const NODES: u32 = 8;

/// What is compared.
const SCHEMES: [&str; 5] = ["DEF", "PA", "PSA", "whole requests", "auto"];

/// What decides P6, beside the papers.
pub use rounds::x2;

/// P1 to P7.
pub fn all() -> Vec<Experiment> {
    vec![ior::p1(), ior::p2(), ior::p3(), ior::p4(), hpio::p5(), collective::p6(), collective::p7()]
}

/// What the cells of these experiments differ in.
struct Of<'a> {
    experiment: &'static str,
    labels: Labels,
    scale: Scale,
    /// HServers and SServers.
    servers: (u32, u32),
    /// For the file on each SServer, bytes.
    space: u64,
    /// What is timed, one after the other.
    parts: Vec<Part>,
    /// All bytes of all parts.
    bytes: u64,
    /// Bytes of a request.
    request: u64,
    /// Whether the servers get requests in order.
    access: Access,
    schemes: &'a [&'static str],
}

impl Of<'_> {
    fn cell(self) -> Cell {
        let network = match self.scale.place {
            Place::Simulated => devices::ethernet(),
            _ => Network::default(),
        };
        let published = devices::storage(self.servers, self.space, network, 1.0);
        let requests = self.bytes.div_ceil(self.request);
        let op = self.parts[0].op;
        let factor = slowing(self.scale, &published.tiers[0], op, self.access, self.bytes, requests);
        Cell {
            waits: true,
            experiment: self.experiment,
            labels: self.labels,
            storage: devices::storage(self.servers, self.space, network, factor),
            parts: self.parts,
            schemes: self.schemes.iter().map(|scheme| by_name(scheme, self.request)).collect(),
        }
    }
}

/// The scheme that records call so.
fn by_name(scheme: &str, request: u64) -> Scheme {
    match scheme {
        "DEF" => Scheme::Planner("def"),
        "PA" => Scheme::Planner("pa"),
        "PSA" => Scheme::Planner("psa"),
        "whole requests" => Scheme::WholeRequests { request },
        "auto" => Scheme::Planner("auto"),
        other => Scheme::Candidate(other.to_owned()),
    }
}

/// Processes of each node, where the experiment ran on several.
fn per_node(scale: Scale, processes: u32) -> u32 {
    match scale.place {
        Place::Simulated => processes.div_ceil(NODES),
        _ => processes,
    }
}

/// Two claims for a value of a label: over DEF, over PA.
fn gains(key: &str, value: &str, op: Op, over_def: f64, over_pa: Option<f64>) -> Vec<Claim> {
    let of = labels([(key, value), ("op", name(op))]);
    let what = format!("{key} {value}, {}s", name(op));
    let mut claims = vec![gain(&what, of.clone(), "PSA", "DEF", (over_def, over_def))];
    claims.extend(over_pa.map(|over_pa| gain(&what, of, "PSA", "PA", (over_pa, over_pa))));
    claims
}

/// Two claims for "up to".
fn up_to(of: Labels, op: Op, over_def: f64, over_pa: f64) -> [Claim; 2] {
    let what = format!("{}s, up to", name(op));
    let of = making::and(of, "op", name(op));
    [largest(&what, of.clone(), "PSA", "DEF", over_def), largest(&what, of, "PSA", "PA", over_pa)]
}
