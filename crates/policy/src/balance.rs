//! Decides which critical writes a cache admits while it has space, so that both tiers are busy at
//! the same time. This goes beyond SLA: without a balance the Redirector follows Algorithm 1.
//!
//! Algorithm 1 admits every critical write until the space is full. Many processes that write
//! random data thus keep first the cache's servers busy, and then those of the original. Let h and
//! s be the seconds that a request keeps the original's and the cache's tier busy, and x the share
//! of the data in the cache. The run then takes `x·s + (1-x)·h` per request. No order of the same
//! requests takes less than `max(x·s, (1-x)·h)`, and an order in which both tiers have work until
//! the end reaches this bound. The requests to come, and their number, are unknown. However, if
//! both tiers receive work at the same pace while there is space, the original's servers are never
//! idle, and their total work is (1-x)·h per request. That is the bound whenever they are the
//! slower tier in it.
//!
//! Therefore a process admits a write into the cache only if that leaves the work that it has sent
//! to the two tiers for the file ([`Sent`]) closer together than sending it to the original would:
//! `lead + s <= h - lead`.
//!
//! A few processes cannot keep both tiers busy; then the time of each single request matters. Let t
//! be the time of one request, and `m = t/h` or `t/s` the number of requests that a tier serves at
//! once. With everything in the cache, requests are served at a rate of `min(p/t_s, 1/s)`.
//! Balanced, with a share `y = h/(h+s)` in the cache, the rate is
//! `min(p/(y·t_s + (1-y)·t_h), 1/(y·s))`. The second rate is larger exactly when
//! `p > y·(m_s + m_h)`. Otherwise, and with a single process, everything is admitted, as in
//! Algorithm 1.

use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_layout::Layout;
use stripewise_model::error::{at_least_1, targets_known};
use stripewise_model::{ClassParams, ModelError, Network, Service};

use crate::costs::{CopyView, try_all_kinds, with_bytes_per_target};
use crate::kind::Kind;
use crate::span::ORIGINAL;

/// The process forgets the fraction 1/`REMEMBERED` of its lead with every request. A long time with
/// nothing to balance must not determine what happens afterwards.
const REMEMBERED: f64 = 64.0;

/// A process's lead of the cache's servers of one file: the seconds of work sent to them, minus
/// those sent to the original's servers, where older work counts less. Threads may share it; a lost
/// update loses one request.
#[derive(Debug, Default)]
pub struct Sent(AtomicU64);

impl Sent {
    /// The lead in seconds; negative if the original's servers have received more work.
    pub fn lead_s(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, lead_s: f64) {
        self.0.store(lead_s.to_bits(), Ordering::Relaxed);
    }
}

/// The work that requests on a file cause on the two tiers. Its functions panic if the file has no
/// such copy.
#[derive(Clone, Debug)]
pub struct Balance {
    /// Copy 0 is the original.
    copies: Vec<Work>,
    procs: f64,
    network: Network,
}

/// The work that requests cause on one copy.
#[derive(Clone, Debug)]
struct Work {
    layout: Layout,
    /// Per target, by [`Kind::index`].
    services: [Vec<Service>; 4],
    /// Number of servers of the tier.
    servers: f64,
}

/// The load that one request puts on a tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// Seconds that the request keeps the tier busy, with the work divided over all of its servers.
    pub tier_s: f64,
    /// Number of such requests that the tier serves at once.
    at_once: f64,
}

impl Balance {
    /// For a file with these copies, the original first, on targets whose parameters are in
    /// `classes` by index; `procs` is p. A network link and the device behind it work on different
    /// requests at the same time, so the slower of the two determines how long a server is busy.
    ///
    /// # Errors
    /// A target without a class; p of 0.
    pub fn new(
        copies: &[CopyView<'_>],
        classes: &[ClassParams],
        network: Network,
        procs: u32,
    ) -> Result<Self, ModelError> {
        at_least_1("the number of processes", procs)?;
        let work = |&CopyView { layout, spread_over, .. }: &CopyView<'_>| {
            targets_known(layout, classes.len())?;
            let services =
                |kind: Kind| Ok(classes.iter().map(|class| class.service(kind.op, kind.access)).collect());
            let servers = spread_over.max(layout.targets().count()) as f64;
            Ok(Work { layout: layout.clone(), services: try_all_kinds(services)?, servers })
        };
        let copies = copies.iter().map(work).collect::<Result<_, ModelError>>()?;
        Ok(Self { copies, procs: f64::from(procs), network })
    }

    /// Whether to admit a critical write to a cache copy, given the work that was `sent`.
    pub fn takes(&self, sent: &Sent, copy: usize, kind: Kind, offset: u64, len: u64) -> bool {
        let (fast, slow) = (self.load(copy, kind, offset, len), self.load(ORIGINAL, kind, offset, len));
        self.is_too_few(fast, slow) || sent.lead_s() + fast.tier_s <= slow.tier_s - sent.lead_s()
    }

    /// Records a request sent to a copy.
    pub fn send(&self, sent: &Sent, copy: usize, kind: Kind, offset: u64, len: u64) {
        let tier_s = self.load(copy, kind, offset, len).tier_s;
        let more_s = if copy == ORIGINAL { -tier_s } else { tier_s };
        sent.set((sent.lead_s() + more_s) * (1.0 - 1.0 / REMEMBERED));
    }

    /// Whether there are too few processes to keep both tiers busy with such requests.
    fn is_too_few(&self, fast: Load, slow: Load) -> bool {
        let share = slow.tier_s / (slow.tier_s + fast.tier_s);
        // NaN if nothing takes time: there is nothing to balance then.
        !(self.procs > 1.0 && self.procs > share * (fast.at_once + slow.at_once))
    }

    /// The load that a request puts on the tier of a copy.
    pub(crate) fn load(&self, copy: usize, kind: Kind, offset: u64, len: u64) -> Load {
        let Work { layout, services, servers } = &self.copies[copy];
        with_bytes_per_target(layout, offset, len, |bytes| {
            let (mut busy_s, mut touched) = (0.0, 0.0);
            let touched_servers = bytes.iter().zip(&services[kind.index()]).filter(|(bytes, _)| **bytes > 0);
            for (&bytes, service) in touched_servers {
                let link_s = self.network.establish_s + bytes as f64 * self.network.per_byte_s;
                busy_s += service.busy_s(bytes).max(link_s);
                touched += 1.0;
            }
            Load { tier_s: busy_s / servers, at_once: servers / f64::max(touched, 1.0) }
        })
    }
}
