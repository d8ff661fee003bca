//! Which critical writes a cache takes while it has space, so that both tiers are busy at once. Ours, not SLA's: Algorithm 1 is what
//! it does without a balance.
//!
//! Algorithm 1 takes every critical write until the space is full. Many processes that write random data thus keep first the
//! cache's servers busy and then those of the original: with h and s, the seconds that a request keeps either tier busy,
//! and a share x of the data in the cache, the run takes `x·s + (1-x)·h` a request. No order of the same requests takes
//! less than `max(x·s, (1-x)·h)`, and it is reached by one in which both tiers have work until the end. Which requests
//! come, and how many, is not known; but if, while there is space, the two tiers get their work at the same pace, then the
//! original's servers are never idle, and have (1-x)·h a request to do in all: the bound, whenever they are what is slow in it.
//!
//! So a process takes a write into the cache only if that leaves the work that it has sent to either tier for the file ([`Sent`]) closer
//! together than sending it to the original would: `lead + s <= h - lead`.
//!
//! Few processes cannot keep both tiers busy, and what counts is how long each request takes. All in the cache they are served
//! at a rate of `min(p/t_s, 1/s)`, where t is the time of one request and `m = t/h` or `t/s` says how many of them a
//! tier serves at once; balanced (a share `y = h/(h+s)` in the cache) at `min(p/(y·t_s + (1-y)·t_h), 1/(y·s))`. The second is
//! larger exactly when `p > y·(m_s + m_h)`: else, and by one process, everything is taken, as by Algorithm 1.

use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_layout::Layout;
use stripewise_model::{ClassParams, ModelError, Network, Service};

use crate::costs::{Kind, try_all_kinds};
use crate::span::ORIGINAL;

/// Targets of a copy whose bytes fit on the stack.
const TARGETS_ON_STACK: usize = 64;
/// Of what was sent, one part of so many is forgotten with every request: an hour with nothing to balance must not decide what
/// becomes of the next.
const REMEMBERED: f64 = 64.0;

/// How far a process has got ahead with the cache's servers of one file: seconds of work sent to them, less those sent to
/// the original's; what was long ago counts less. May be shared by threads: an update that is lost is one request.
#[derive(Debug, Default)]
pub struct Sent(AtomicU64);

impl Sent {
    /// Seconds; negative: the original's servers have got more.
    pub fn lead_s(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, lead_s: f64) {
        self.0.store(lead_s.to_bits(), Ordering::Relaxed);
    }
}

/// What requests on a file keep the tiers busy with.
#[derive(Clone, Debug)]
pub struct Balance {
    /// Copy 0 is the original.
    copies: Vec<Work>,
    procs: f64,
    network: Network,
}

/// Of one copy.
#[derive(Clone, Debug)]
struct Work {
    layout: Layout,
    /// Per target, by [`Kind::index`].
    services: [Vec<Service>; 4],
    /// Of the tier.
    servers: f64,
}

/// What one request does to a tier.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    /// Seconds that it keeps the tier's servers busy, all of them taken together.
    tier_s: f64,
    /// Requests like it that the tier serves at once.
    at_once: f64,
}

impl Balance {
    /// For a file whose original and cache copies have these layouts, on targets that `classes` describes by index, each
    /// with the servers over which this copy of the processes' files is spread (its own targets at least); `procs` is p.
    ///
    /// # Errors
    /// A target without a class; p of 0.
    pub fn new(copies: &[(&Layout, usize)], classes: &[ClassParams], procs: u32) -> Result<Self, ModelError> {
        if procs == 0 {
            return Err(ModelError::Zero { name: "the number of processes" });
        }
        let work = |&(layout, servers): &(&Layout, usize)| {
            if let Some(target) = layout.targets().find(|&target| target as usize >= classes.len()) {
                return Err(ModelError::UnknownTarget { target, known: classes.len() });
            }
            let services =
                |kind: Kind| Ok(classes.iter().map(|class| class.service(kind.op, kind.access)).collect());
            let servers = servers.max(layout.targets().count()) as f64;
            Ok(Work { layout: layout.clone(), services: try_all_kinds(services)?, servers })
        };
        let copies = copies.iter().map(work).collect::<Result<_, ModelError>>()?;
        Ok(Self { copies, procs: f64::from(procs), network: Network::default() })
    }

    /// The same with servers that are reached over a network: a link and the device behind it work on different requests at the
    /// same time, so what keeps a server busy is the slower of them.
    #[must_use]
    pub fn over(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// Seconds that a request keeps the servers of a copy busy, all of those of its tier taken together.
    ///
    /// # Panics
    /// There is no such copy.
    pub fn tier_s(&self, copy: u8, kind: Kind, offset: u64, len: u64) -> f64 {
        self.load(copy, kind, offset, len).tier_s
    }

    /// Whether a critical write is to be taken into a cache copy, after what was `sent`.
    ///
    /// # Panics
    /// There is no such copy.
    pub fn takes(&self, sent: &Sent, copy: u8, kind: Kind, offset: u64, len: u64) -> bool {
        let (fast, slow) = (self.load(copy, kind, offset, len), self.load(ORIGINAL, kind, offset, len));
        self.is_too_few(fast, slow) || sent.lead_s() + fast.tier_s <= slow.tier_s - sent.lead_s()
    }

    /// Counts what was sent to a copy.
    ///
    /// # Panics
    /// There is no such copy.
    pub fn send(&self, sent: &Sent, copy: u8, kind: Kind, offset: u64, len: u64) {
        let tier_s = self.tier_s(copy, kind, offset, len);
        let more_s = if copy == ORIGINAL { -tier_s } else { tier_s };
        sent.set((sent.lead_s() + more_s) * (1.0 - 1.0 / REMEMBERED));
    }

    /// Whether the processes are too few to keep both tiers busy with such requests.
    fn is_too_few(&self, fast: Load, slow: Load) -> bool {
        let share = slow.tier_s / (slow.tier_s + fast.tier_s);
        // Not a number where nothing takes time: nothing to balance then.
        !(self.procs > 1.0 && self.procs > share * (fast.at_once + slow.at_once))
    }

    fn load(&self, copy: u8, kind: Kind, offset: u64, len: u64) -> Load {
        let work = &self.copies[usize::from(copy)];
        match work.layout.target_count() {
            count @ 0..=TARGETS_ON_STACK => {
                work.load(&self.network, kind, (offset, len), &mut [0; TARGETS_ON_STACK][..count])
            }
            many => work.load(&self.network, kind, (offset, len), &mut vec![0; many]),
        }
    }
}

impl Work {
    fn load(&self, network: &Network, kind: Kind, (offset, len): (u64, u64), bytes: &mut [u64]) -> Load {
        self.layout.bytes_per_target(offset, len, bytes);
        let (mut busy_s, mut touched) = (0.0, 0.0);
        for (&bytes, service) in bytes.iter().zip(&self.services[kind.index()]).filter(|(bytes, _)| **bytes > 0)
        {
            let link_s = network.establish_s + bytes as f64 * network.per_byte_s;
            busy_s += service.busy_s(bytes).max(link_s);
            touched += 1.0;
        }
        Load { tier_s: busy_s / self.servers, at_once: self.servers / f64::max(touched, 1.0) }
    }
}
