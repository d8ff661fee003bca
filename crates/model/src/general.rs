//! The general cost formula, of which every model of the papers is a case.
//!
//! A request of `S` bytes that puts `b_i` bytes on server i, which `q_i` processes share, costs
//!
//! ```text
//! T = max(c·k, max q_i)·e + max(c·S, max q_i·b_i)·t + max_i q_i·(α_i + b_i·β_i)
//! ```
//!
//! where `k` is the number of servers that get any bytes. The other servers are not touched: they
//! cost no connection and no startup. The servers may belong to any number of classes.

use crate::cost::Cost;
use crate::error::ModelError;
use crate::params::{Network, Service};

/// How the startup times of the processes that share a server add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Startup {
    /// All `q` processes pay their own startup before the request is done. The storage time is
    /// `max_i q_i (α_i + b_i β_i)`, split into the two terms of the slowest server, the first one
    /// in a tie (CIL, PSA).
    #[default]
    EverySharer,
    /// The request's turn comes at a uniformly distributed time between `α_i` and `q_i·α_i`,
    /// independently on each of the `w` servers touched, and the request waits for the last one:
    /// `max_i α_i + w/(w+1)·(q_i - 1)·α_i`, then `max_i b_i β_i` (SLA Eq. 1-12, which has servers
    /// of one class only).
    Expected,
}

/// A server as the requests of one group see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    sharing: f64,
    startup_s: f64,
    per_byte_s: f64,
}

impl Server {
    /// A server with α and β that `sharing` processes (q, see [`sharing`]) use at a time. 0 counts
    /// as 1, because the request itself is always present.
    ///
    /// # Errors
    /// α or β negative, infinite or not a number.
    pub fn new(service: Service, sharing: u32) -> Result<Self, ModelError> {
        service.check()?;
        let Service { startup_s, per_byte_s } = service;
        Ok(Self { sharing: f64::from(sharing.max(1)), startup_s, per_byte_s })
    }

    /// The same server used by `sharing` processes at a time, a whole number of at least 1.
    #[inline]
    pub(crate) fn shared_by(self, sharing: f64) -> Self {
        Self { sharing, ..self }
    }
}

/// `count` equal servers that a request touches, of which the one with the most bytes gets `bytes`;
/// the bytes of the others do not matter. Bytes are real numbers, as `S/n` is in the papers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The server.
    pub server: Server,
    /// b, the bytes on that server.
    pub bytes: f64,
    /// Number of such servers.
    pub count: u32,
}

impl Share {
    fn is_touched(&self) -> bool {
        self.bytes > 0.0 && self.count > 0
    }
}

/// The cost of a request of `size` bytes that is divided into `shares`; `procs_per_node` is c.
///
/// `shares` is iterated once, or twice with [`Startup::Expected`]. Shares with 0 bytes or count 0
/// are ignored.
#[inline]
pub fn cost(
    startup: Startup,
    network: &Network,
    procs_per_node: u32,
    size: f64,
    shares: impl Iterator<Item = Share> + Clone,
) -> Cost {
    let mut touched = 0.0;
    let mut most_sharing = 0.0;
    let mut most_bytes = 0.0;
    let mut slowest = Busy::default();
    for Share { server, bytes, count } in shares.clone().filter(Share::is_touched) {
        let shared_bytes = server.sharing * bytes;
        touched += f64::from(count);
        most_sharing = larger(most_sharing, server.sharing);
        most_bytes = larger(most_bytes, shared_bytes);
        let startup_s = server.sharing * server.startup_s;
        slowest = slowest.or_slower(Busy { startup_s, io_s: shared_bytes * server.per_byte_s });
    }
    if startup == Startup::Expected {
        slowest = expected(touched, shares);
    }
    let per_node = f64::from(procs_per_node);
    Cost {
        establish_s: larger(per_node * touched, most_sharing) * network.establish_s,
        transfer_s: larger(per_node * size, most_bytes) * network.per_byte_s,
        startup_s: slowest.startup_s,
        io_s: slowest.io_s,
    }
}

/// The time that a server keeps a request waiting.
#[derive(Clone, Copy, Default)]
struct Busy {
    startup_s: f64,
    io_s: f64,
}

impl Busy {
    /// The slower of two servers; this one in a tie.
    fn or_slower(self, other: Self) -> Self {
        if other.startup_s + other.io_s > self.startup_s + self.io_s { other } else { self }
    }
}

/// The wait for the last of `touched` startups, and for the longest transfer.
fn expected(touched: f64, shares: impl Iterator<Item = Share>) -> Busy {
    let wait = touched / (touched + 1.0);
    let mut most = Busy::default();
    for Share { server, bytes, .. } in shares.filter(Share::is_touched) {
        let startup_s = server.startup_s * (1.0 + wait * (server.sharing - 1.0));
        most.startup_s = larger(most.startup_s, startup_s);
        most.io_s = larger(most.io_s, bytes * server.per_byte_s);
    }
    most
}

/// The larger of two numbers that are not NaN; cheaper than `f64::max`, which handles NaN.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The number of processes that share a server: `⌈p · touching / requests⌉`, where `touching` of a
/// group's `requests` touch the server and `procs` processes issue them. CIL's ⌈p/n⌉ and ⌈p/g⌉ are
/// the cases of equal stripes.
///
/// 0 for a server that no request touches.
pub fn sharing(procs: u32, touching: u64, requests: u64) -> u32 {
    if requests == 0 {
        return 0;
    }
    let shared = (u128::from(procs) * u128::from(touching.min(requests))).div_ceil(u128::from(requests));
    shared as u32 // at most `procs`
}
