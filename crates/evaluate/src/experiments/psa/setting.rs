//! Servers, schemes and claims that these experiments have in common.

use stripewise_model::{Network, Op};
use stripewise_trace::synth::Access;

use super::super::making::{gain, labels, largest, name, slowing};
use super::super::{devices, making};
use crate::cell::{Cell, Part, Scheme};
use crate::claim::{Claim, Scale};
use crate::record::{Labels, Place};

/// Number of client nodes.
pub const NODES: u32 = 8;

/// The schemes that are compared.
pub const SCHEMES: [&str; 5] = ["DEF", "PA", "PSA", "whole requests", "auto"];

/// Parameters in which the cells of these experiments differ.
pub struct Of<'a> {
    pub experiment: &'static str,
    pub labels: Labels,
    pub scale: Scale,
    /// Numbers of HServers and SServers.
    pub servers: (u32, u32),
    /// Space for the file on each SServer, in bytes.
    pub space: u64,
    /// The timed runs, one after the other.
    pub parts: Vec<Part>,
    /// Bytes of all parts together.
    pub bytes: u64,
    /// Bytes per request.
    pub request: u64,
    /// Whether the servers get random or sequential requests.
    pub access: Access,
    pub schemes: &'a [&'static str],
}

impl Of<'_> {
    pub fn cell(self) -> Cell {
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
pub fn by_name(scheme: &str, request: u64) -> Scheme {
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
pub fn per_node(scale: Scale, processes: u32) -> u32 {
    match scale.place {
        Place::Simulated => processes.div_ceil(NODES),
        _ => processes,
    }
}

/// Returns two claims for a value of a label: gains over DEF and over PA.
pub fn gains(key: &str, value: &str, op: Op, over_def: f64, over_pa: Option<f64>) -> Vec<Claim> {
    let of = labels([(key, value), ("op", name(op))]);
    let what = format!("{key} {value}, {}s", name(op));
    let mut claims = vec![gain(&what, of.clone(), "PSA", "DEF", (over_def, over_def))];
    claims.extend(over_pa.map(|over_pa| gain(&what, of, "PSA", "PA", (over_pa, over_pa))));
    claims
}

/// Returns two claims on the largest gain ("up to").
pub fn up_to(of: Labels, op: Op, over_def: f64, over_pa: f64) -> [Claim; 2] {
    let what = format!("{}s, up to", name(op));
    let of = making::and(of, "op", name(op));
    [largest(&what, of.clone(), "PSA", "DEF", over_def), largest(&what, of, "PSA", "PA", over_pa)]
}
