//! Lower bound on the time of a cell, derived from the servers, the space and the requests alone.
//!
//! - **Work.** A request that HServers alone serve keeps them busy for at least one startup and its
//!   bytes, and likewise on SServers. A divided request keeps both kinds busy for a startup: it
//!   takes more of both than a mixture of whole requests with as many bytes on each kind. The best
//!   case therefore has some requests on SServers and the others on HServers, each on one server,
//!   with both kinds busy all the time. The SServers' space limits the number of requests on them
//!   ([`split::work_s`]).
//! - **Latency.** A process waits for its request, whose pieces are on different servers at best
//!   ([`split::latency_s`]).
//! - **Network.** The transfers of a node's processes share the node's network, and the transfers
//!   of a server share the server's.
//!
//! With a **cache** the file stays on all HServers in stripes: there, a request has as many
//! startups as the stripes that it touches. Otherwise the bound is the same: the data that fits
//! into the cache is on SServers. Writes may also be written back during the run to make space for
//! others. That costs the HServers as much as writing there at once, unless neighbors are written
//! back together ([`split::written_back_s`]).

mod requests;
mod split;

#[cfg(test)]
mod tests;

use stripewise_model::Op;

use crate::cell::{Cell, Part, Scheme, Servers, Storage};
use crate::claim::Measure;
use crate::record::{Place, Record};
use requests::Requests;
use split::{Latency, Work};

/// Key in [`Record::details`] of the cell's bound by [`least_s`].
pub const LEAST_S: &str = "least_s";

/// A cell's storage as the bound sees it.
struct Of<'a> {
    slow: &'a Servers,
    fast: Option<&'a Servers>,
    network_s: f64,
    /// Bytes on all SServers together.
    space: f64,
    /// Stripe size in bytes of the original, if the cell is about a cache.
    stripe: Option<u64>,
}

/// Returns a lower bound in seconds on the time of the cell under any layout. For a cell about a
/// cache it is one under any cache of that size; for a planned scheme of such a cell, one under any
/// layout that uses as much of the SServers.
pub fn least_s(cell: &Cell, scheme: &Scheme) -> f64 {
    let Storage { tiers, network } = &cell.storage;
    let Some(slow) = tiers.first() else { return 0.0 };
    let fast = tiers.get(1).filter(|tier| tier.count > 0);
    let cache = cell.cache();
    let each = cache.map_or(fast.map_or(0, |tier| tier.capacity_per_server), |(_, capacity)| capacity);
    let space = each as f64 * fast.map_or(0.0, |tier| f64::from(tier.count));
    let stripe = cache.filter(|_| !scheme.is_planned()).map(|(stripe, _)| stripe);
    let of = Of { slow, fast, network_s: network.per_byte_s, space, stripe };
    cell.parts.iter().map(|part| of.part_s(part)).sum()
}

impl Of<'_> {
    fn part_s(&self, part: &Part) -> f64 {
        let requests = Requests::of(part);
        let work: Vec<Work> =
            requests.sizes.iter().map(|&(size, count)| self.work(part, &requests, size, count)).collect();
        let mut busy_s = split::work_s(&work, self.space);
        if let (Some(stripe), Op::Write, [work]) = (self.stripe, part.op, &work[..]) {
            let slots = (stripe / work.size).max(1);
            busy_s = busy_s.min(split::written_back_s(work, self.space, slots, requests.random));
        }
        let latency: Vec<Latency> =
            requests.sizes.iter().map(|&(size, count)| self.latency(part, &requests, size, count)).collect();
        let waiting_s = split::latency_s(&latency, self.space) / f64::from(requests.chains);
        let clients_s = requests.bytes() * self.network_s / f64::from(requests.nodes);
        busy_s.max(waiting_s).max(clients_s)
    }

    /// Returns the time that requests of one size cost each kind of servers.
    fn work(&self, part: &Part, requests: &Requests, size: u64, count: u64) -> Work {
        let touched = self.stripe.map_or(1, |stripe| size.div_ceil(stripe).min(u64::from(self.slow.count)));
        let busy_s = |tier: &Servers, touched: u64| {
            let service = requests.service(&tier.class, part.op);
            let disk_s = touched as f64 * service.startup_s + size as f64 * service.per_byte_s;
            disk_s.max(size as f64 * self.network_s) / f64::from(tier.count)
        };
        Work {
            size,
            count,
            slow_s: busy_s(self.slow, touched),
            fast_s: self.fast.map_or(f64::INFINITY, |tier| busy_s(tier, 1)),
            slow_startups_s: touched as f64 * requests.service(&self.slow.class, part.op).startup_s
                / f64::from(self.slow.count),
        }
    }

    /// Returns the time of one request without any concurrent request.
    fn latency(&self, part: &Part, requests: &Requests, size: u64, count: u64) -> Latency {
        let per_server = |tier: &Servers| {
            let service = requests.service(&tier.class, part.op);
            (service.startup_s, service.per_byte_s / f64::from(tier.count))
        };
        Latency { size, count, slow: per_server(self.slow), fast: self.fast.map(per_server) }
    }
}

/// Returns the largest gain that [`least_s`] permits for a claim, relative to the measured time of
/// the scheme to which the claim compares; `None` if a value is missing. `records` are those of the
/// claim's cells at one place.
pub fn of(measure: &Measure, records: &[&Record]) -> Option<f64> {
    let (Measure::Gain { over, .. } | Measure::LargestGain { over, .. }) = measure else { return None };
    let over = records.iter().filter(|record| record.scheme == *over);
    let cells: Option<Vec<(f64, f64)>> =
        over.map(|record| Some((record.median_s()?, *record.details.get(LEAST_S)?))).collect();
    let cells = cells.filter(|cells| !cells.is_empty())?;
    let sum = |of: fn(&(f64, f64)) -> f64| cells.iter().map(of).sum::<f64>();
    let gain = match measure {
        Measure::LargestGain { .. } => {
            cells.iter().map(|(over_s, least_s)| over_s / least_s).fold(0.0, f64::max)
        }
        _ => sum(|cell| cell.0) / sum(|cell| cell.1),
    };
    (gain.is_finite()).then_some(gain - 1.0)
}

impl Record {
    /// Creates a record without results. Its details contain the cell's bound.
    pub fn of(place: Place, cell: &Cell, scheme: &Scheme) -> Self {
        Self {
            experiment: cell.experiment.to_owned(),
            place,
            labels: cell.labels.clone(),
            scheme: scheme.name(),
            parameters: cell.parameters(scheme),
            seconds: Vec::new(),
            bytes: 0,
            verified: None,
            failed: None,
            layout: String::new(),
            details: [(LEAST_S.to_owned(), least_s(cell, scheme))].into(),
        }
    }
}
