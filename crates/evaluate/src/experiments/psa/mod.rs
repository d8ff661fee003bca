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

use stripewise_model::{Network, Op};
use stripewise_trace::synth::Access;

use super::making::{gain, labels, largest, name, slowing};
use super::{devices, making};
use crate::cell::{Cell, Part, Scheme};
use crate::claim::{Claim, Experiment, Scale};
use crate::record::{Labels, Place};

/// Number of client nodes.
const NODES: u32 = 8;

/// The schemes that are compared.
const SCHEMES: [&str; 5] = ["DEF", "PA", "PSA", "whole requests", "auto"];

/// Experiment on the causes of P6's results, an addition to the papers'.
pub use rounds::x2;

/// Returns P1 to P7.
pub fn all() -> Vec<Experiment> {
    vec![ior::p1(), ior::p2(), ior::p3(), ior::p4(), hpio::p5(), collective::p6(), collective::p7()]
}

/// Parameters in which the cells of these experiments differ.
struct Of<'a> {
    experiment: &'static str,
    labels: Labels,
    scale: Scale,
    /// Numbers of HServers and SServers.
    servers: (u32, u32),
    /// Space for the file on each SServer, in bytes.
    space: u64,
    /// The timed runs, one after the other.
    parts: Vec<Part>,
    /// Bytes of all parts together.
    bytes: u64,
    /// Bytes per request.
    request: u64,
    /// Whether the servers get random or sequential requests.
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

/// Returns the scheme with this name in records.
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

/// Returns the number of processes per node, if the experiment ran on several nodes.
fn per_node(scale: Scale, processes: u32) -> u32 {
    match scale.place {
        Place::Simulated => processes.div_ceil(NODES),
        _ => processes,
    }
}

/// Returns two claims for a value of a label: gains over DEF and over PA.
fn gains(key: &str, value: &str, op: Op, over_def: f64, over_pa: Option<f64>) -> Vec<Claim> {
    let of = labels([(key, value), ("op", name(op))]);
    let what = format!("{key} {value}, {}s", name(op));
    let mut claims = vec![gain(&what, of.clone(), "PSA", "DEF", (over_def, over_def))];
    claims.extend(over_pa.map(|over_pa| gain(&what, of, "PSA", "PA", (over_pa, over_pa))));
    claims
}

/// Returns two claims on the largest gain ("up to").
fn up_to(of: Labels, op: Op, over_def: f64, over_pa: f64) -> [Claim; 2] {
    let what = format!("{}s, up to", name(op));
    let of = making::and(of, "op", name(op));
    [largest(&what, of.clone(), "PSA", "DEF", over_def), largest(&what, of, "PSA", "PA", over_pa)]
}
