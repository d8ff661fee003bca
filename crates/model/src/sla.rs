//! SLA (Eq. 1-16): the expected cost of a request under contention, and the benefit of caching it.
//!
//! The network is left out, because only the servers differ. The startup is the slowest of `w` that
//! are uniform on [a, b]: `T = a + w/(w+1)·(b - a) + s_max·β`, with a = α and b = q·α
//! ([`Startup::Expected`]).

use stripewise_layout::MAX_OFFSET;

use crate::cost::Cost;
use crate::error::{self, ModelError};
use crate::general::{self, Server, Share, Startup};
use crate::params::{Network, Service};
use crate::striping::Striping;

/// One side (HServers or SServers) of a cached file; the parameters are checked on construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sla {
    service: Service,
    servers: u32,
    procs: u32,
    stripe: u64,
}

/// A layout as a request sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// w: the number of servers that the request touches.
    pub touched: u32,
    /// s_max: the size of its largest sub-request, bytes.
    pub largest: u64,
    /// b/α: the number of processes that may come first on a server, this one included.
    pub sharing: u32,
}

impl Sla {
    /// `servers` (M or N) with α and β, `procs` processes, stripes of `stripe` bytes.
    ///
    /// # Errors
    /// A count or the stripe is 0, or a time is invalid.
    pub fn new(service: Service, servers: u32, procs: u32, stripe: u64) -> Result<Self, ModelError> {
        service.check()?;
        error::at_least_1("the number of servers", servers)?;
        error::at_least_1("the number of processes", procs)?;
        error::at_least_1("the stripe", stripe)?;
        Ok(Self { service, servers, procs, stripe })
    }

    /// The (w, s_max, q) of the request of `size` bytes at `offset`; O(1).
    ///
    /// Where g does not divide the number of servers, 2-D touches up to ⌈n/g⌉ of them, and the
    /// largest sub-request is that on ⌊n/g⌋ servers, as in CIL (SLA does not treat this case).
    ///
    /// # Errors
    /// A request of 0 bytes or past 2^63; 2-D with no groups, or with more groups than servers.
    pub fn view(&self, striping: Striping, offset: u64, size: u64) -> Result<View, ModelError> {
        striping.check(self.servers)?;
        error::request_size(size as f64)?;
        if offset.checked_add(size).is_none_or(|end| end > MAX_OFFSET) {
            return Err(ModelError(format!("a request of {size} bytes at offset {offset} ends past 2^63")));
        }
        let (n, p) = (self.servers, self.procs);
        let (most, fewest, sharing) = match striping {
            Striping::OneDh => (n, n, p),
            // The request's stripe is on one server. ⌊p/N⌋ is 0 where there are more servers than
            // processes, but b is never below a.
            Striping::OneDv => (1, 1, (p / n).max(1)),
            Striping::TwoD { groups: g } => (n.div_ceil(g), n / g, (p / g).max(1)),
        };
        Ok(View {
            touched: servers_touched(offset, size, self.stripe, most),
            largest: largest_sub_request(offset, size, self.stripe, fewest),
            sharing,
        })
    }

    /// The cost of the request of `size` bytes at `offset`; the network terms are 0.
    ///
    /// # Errors
    /// As [`Sla::view`].
    pub fn cost(&self, striping: Striping, offset: u64, size: u64) -> Result<Cost, ModelError> {
        let view = self.view(striping, offset, size)?;
        let share = Share {
            server: Server::new(self.service, view.sharing)?,
            bytes: view.largest as f64,
            count: view.touched,
        };
        let shares = std::iter::once(share);
        Ok(general::cost(Startup::Expected, &Network::default(), 1, size as f64, shares))
    }
}

/// The number of servers that a request touches, of `servers` over which stripes of `stripe` bytes
/// are placed round-robin.
///
/// Eq. 5 counts one server too many for a request that ends on a stripe boundary; this function
/// counts by the last byte. `size`, `stripe` and `servers` are at least 1, and the request ends
/// before 2^63.
pub fn servers_touched(offset: u64, size: u64, stripe: u64, servers: u32) -> u32 {
    let stripes = (offset + size - 1) / stripe - offset / stripe + 1;
    stripes.min(u64::from(servers)) as u32
}

/// Bytes of a request on the server that gets the most of them; arguments as for
/// [`servers_touched`].
///
/// Table 2 is right except for a single server, whose sub-request is the whole request; this
/// function is exact in all cases.
pub fn largest_sub_request(offset: u64, size: u64, stripe: u64, servers: u32) -> u64 {
    let servers = u64::from(servers);
    let last = offset + size - 1;
    let after_first = last / stripe - offset / stripe;
    if after_first == 0 || servers == 1 {
        return size;
    }
    // Servers are counted from that of the first stripe: numbers 0..=end get `turns` + 1 stripes,
    // the others `turns`. All stripes are whole except the first, on number 0, and the last, on
    // number `end`.
    let (turns, end) = (after_first / servers, after_first % servers);
    let missing_first = offset % stripe;
    let missing_last = stripe - 1 - last % stripe;
    let longest = (turns + 1) * stripe;
    match end {
        0 => (longest - missing_first - missing_last).max(turns * stripe),
        1 => longest - missing_first.min(missing_last),
        _ => longest,
    }
}

/// The comparison of a request's cost on the HServers with that on the SServers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// T_H: the cost on the HServers, 1-DH.
    pub hservers: Cost,
    /// T_S under 1-DH, 1-DV and 2-D.
    pub sservers: [(Striping, Cost); 3],
    /// The layout with the largest benefit `B_l = T_H - T_S(l)`, and that benefit in seconds, if it
    /// is above 0; the request is then performance-critical.
    pub best: Option<(Striping, f64)>,
}

/// Decides whether a request is performance-critical, and which layout its cached copy should have
/// (Eq. 13-16).
///
/// In a tie the data stay on the HServers (B = 0 is not critical). Among layouts with the same
/// largest benefit, the first of 1-DH, 1-DV and 2-D is chosen.
///
/// # Errors
/// As [`Sla::view`]; `groups` is that of 2-D on the SServers.
pub fn verdict(
    hservers: &Sla,
    sservers: &Sla,
    groups: u32,
    offset: u64,
    size: u64,
) -> Result<Verdict, ModelError> {
    let on_hservers = hservers.cost(Striping::OneDh, offset, size)?;
    let on_sservers = |striping| Ok((striping, sservers.cost(striping, offset, size)?));
    let costs =
        [on_sservers(Striping::OneDh)?, on_sservers(Striping::OneDv)?, on_sservers(Striping::TwoD { groups })?];
    let mut best: Option<(Striping, f64)> = None;
    for (striping, cost) in costs {
        let benefit_s = on_hservers.total_s() - cost.total_s();
        if benefit_s > best.map_or(0.0, |(_, benefit_s)| benefit_s) {
            best = Some((striping, benefit_s));
        }
    }
    Ok(Verdict { hservers: on_hservers, sservers: costs, best })
}
