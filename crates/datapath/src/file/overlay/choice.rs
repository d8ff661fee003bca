//! Decides which copy serves which range of a request: by the policy, or by a fixed rule if the
//! costs of the copies are unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use stripewise_cluster::{Cluster, Plan};
use stripewise_extents::{CopyId, Map, Mask, Span as Known};
use stripewise_layout::Layout;
use stripewise_model::{ClassParams, Op};
use stripewise_policy::{Cdt, CopyView, ORIGINAL, Redirected, Request, Rule, Sent, Space, Span, runs};
use stripewise_sys::ForkLock;
use stripewise_target::Few;

use crate::manifest::{Copies, Manifest};

pub(crate) use stripewise_policy::Part;

/// The recently seen critical data of all files of a process.
#[derive(Default)]
pub(crate) struct CriticalData(ForkLock<Cdt>);

/// The cost data of the copies' servers, taken from the plan's cluster.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    pub plan: Arc<Plan>,
    /// Per copy and target of the copy, the target's number in the plan.
    pub targets: Vec<Vec<u32>>,
}

/// The decision rule for one concurrency (p, c).
pub(crate) struct Choice {
    pub procs: (u32, u32),
    /// `None` if the plan has no costs for these servers: use the lowest valid copy, and put
    /// nothing new into a cache.
    rule: Option<Rule>,
    /// What this process has sent to the file.
    sent: Sent,
}

/// Builds the decision rule; `None` if the plan's figures cannot be used.
fn decide(manifest: &Manifest, copies: &Copies, rates: &Rates, procs: (u32, u32)) -> Option<Rule> {
    let Rates { plan, targets } = rates;
    let (layouts, classes) = modelled(manifest, &plan.cluster, targets)?;
    let servers = std::iter::once((copies.servers, 1));
    let servers = servers.chain(copies.list.iter().map(|copy| (copy.servers, copy.groups)));
    let copy = |(layout, (servers, groups)): (_, (u32, _))| {
        let layout: &Layout = layout;
        // Older manifests count a target that is striped over several servers as one server.
        CopyView { layout, spread_over: layout.targets().count().max(servers as usize), groups }
    };
    let views: Vec<_> = layouts.iter().zip(servers).map(copy).collect();
    Rule::new(copies.kind, &views, &classes, plan.cluster.network, procs).ok()
}

/// The layouts and server classes of the copies as the models expect them: over individual servers,
/// with the servers of a pool listed one by one and numbered consecutively across all copies.
/// `targets` holds, per copy, the number in the cluster of each target. `None` if the cluster has
/// no class for a server.
fn modelled(
    manifest: &Manifest,
    cluster: &Cluster,
    targets: &[Vec<u32>],
) -> Option<(Vec<Layout>, Vec<ClassParams>)> {
    let (mut layouts, mut classes) = (Vec::new(), Vec::new());
    for (copy, targets) in manifest.all_copies().zip(targets) {
        let planned = renumbered(copy.layout, |target| targets[target as usize]);
        // The index of the file within its rule makes no difference: all servers of a pool are
        // alike.
        let (layout, servers) = cluster.unfold(&planned, 0).compacted();
        let base = classes.len() as u32;
        layouts.push(renumbered(&layout, |server| base + server));
        for server in servers {
            classes.push(*cluster.class_of(server)?);
        }
    }
    Some((layouts, classes))
}

fn renumbered(layout: &Layout, number: impl Fn(u32) -> u32) -> Layout {
    layout.renumbered(number).unwrap_or_else(|_| layout.clone())
}

impl Choice {
    /// The decision rule for a file; `rates` is `None` if its servers are in no plan.
    pub fn new(manifest: &Manifest, copies: &Copies, rates: Option<&Rates>, procs: (u32, u32)) -> Self {
        let rule = rates.and_then(|rates| decide(manifest, copies, rates, procs));
        Self { procs, rule, sent: Sent::default() }
    }

    /// The best copy among `copies` from which to copy a range in the background.
    pub fn source(&self, start: u64, len: u64, copies: Mask) -> Option<CopyId> {
        match &self.rule {
            Some(rule) => rule.source(start, len, copies.bits()).map(CopyId::new),
            None => copies.lowest(),
        }
    }

    /// Chooses the copies that serve a request. `spans` cover the request, and their masks contain
    /// only usable copies. A write goes to copies in `allowed`, and may take `space` in a cache.
    pub fn choose(
        &self,
        data: &CriticalData,
        request: &Request,
        spans: &[Span],
        allowed: Mask,
        space: &mut impl Space,
        parts: &mut Few<Part>,
    ) -> Redirected {
        match &self.rule {
            Some(Rule::Replicas(costs)) if request.kind.op == Op::Read => {
                costs.read(request.kind, spans, parts);
            }
            Some(Rule::Replicas(costs)) => {
                let copy = costs.cheapest(request.kind, request.offset, request.len, allowed.bits());
                let (start, end) = (request.offset, request.offset + request.len);
                parts.push(Part { start, end, copy: copy.unwrap_or(ORIGINAL) });
            }
            Some(Rule::Cache(identifier)) => {
                return identifier.redirect(&mut data.0.lock(), &self.sent, request, spans, space, parts);
            }
            None => {
                let lowest = |span: &Span| Mask::from_bits(span.mask).lowest().map_or(ORIGINAL, CopyId::index);
                parts.extend(runs(spans.iter().map(|span| span.by(lowest(span)))));
            }
        }
        Redirected::default()
    }
}

/// Converts the map's spans for the policy, with the mask of each limited by `usable`.
pub(super) fn spans_of(known: &[Known], usable: impl Fn(&Known) -> Mask) -> Few<Span> {
    known.iter().map(|span| Span { start: span.start, end: span.end, mask: usable(span).bits() }).collect()
}

/// p and c as given by the MPI library or its launcher, for all files of a process.
#[derive(Debug, Default)]
pub(crate) struct Concurrency(AtomicU64);

impl Concurrency {
    /// Sets p to `procs` and c to `procs_per_node`, adjusted so that both are at least 1 and c is
    /// at most p.
    pub fn set(&self, procs: u32, procs_per_node: u32) {
        let procs = procs.max(1);
        let per_node = procs_per_node.clamp(1, procs);
        self.0.store(u64::from(procs) << 32 | u64::from(per_node), Ordering::Relaxed);
    }

    /// (p, c), if known.
    pub fn get(&self) -> Option<(u32, u32)> {
        let both = self.0.load(Ordering::Relaxed);
        (both != 0).then_some(((both >> 32) as u32, both as u32))
    }
}

/// Number of requests between two counts of the processes that have the file open.
const REQUESTS: u32 = 1024;

/// The measured number of processes that have the file open.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    of_node: AtomicU32,
    nodes: AtomicU32,
    requests: AtomicU32,
}

impl Measured {
    /// The number of processes that have the file open, on all nodes and on this one, recounted
    /// every [`REQUESTS`] calls. How many another node has is not known, so each is taken to have
    /// as many as this one.
    pub fn processes(&self, map: &Map) -> (u32, u32) {
        if self.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(REQUESTS) {
            self.of_node.store(map.processes().unwrap_or(1) as u32, Ordering::Relaxed);
            self.nodes.store(map.nodes().unwrap_or(1) as u32, Ordering::Relaxed);
        }
        let load = |count: &AtomicU32| count.load(Ordering::Relaxed).max(1);
        (load(&self.of_node) * load(&self.nodes), load(&self.of_node))
    }
}

#[cfg(test)]
mod tests;
