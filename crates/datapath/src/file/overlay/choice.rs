//! Decides which copy serves which range of a request: by the policy, or by a fixed rule if the
//! costs of the copies are unknown.

use std::sync::Arc;

use stripewise_cluster::{Cluster, Plan};
use stripewise_extents::Span as Known;
use stripewise_layout::Layout;
use stripewise_model::ClassParams;
pub(crate) use stripewise_policy::Part;
use stripewise_policy::{Cdt, ORIGINAL, Redirected, Request, Rule, RuleCopy, Sent, Span, runs};
use stripewise_target::Few;

use super::space::Reservation;
use super::{CopySet, Overlay};
use crate::forked::ForkSafe;
use crate::manifest::{Copies, Manifest};

/// The recently seen critical data of all files of a process.
#[derive(Default)]
pub(crate) struct CriticalData(ForkSafe<Cdt>);

/// The cost data of the copies' servers, taken from the plan's cluster.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    pub plan: Arc<Plan>,
    /// Per copy and target of the copy, the target's number in the plan.
    pub targets: Vec<Vec<u32>>,
}

/// The decision rule for one concurrency (p, c).
pub(crate) struct Choice {
    procs: (u32, u32),
    /// `None` if the plan has no costs for these servers: use the lowest valid copy, and put
    /// nothing new into a cache.
    rule: Option<Rule>,
    /// What this process has sent to the file.
    sent: Sent,
}

impl CopySet<'_> {
    pub(super) fn choice(&self) -> Arc<Choice> {
        let procs = self.procs();
        let Overlay { manifest, copies, rates, choice, .. } = self.overlay;
        let current = choice.lock().clone();
        if let Some(current) = current.filter(|current| current.procs == procs) {
            return current;
        }
        let rule = rates.as_ref().and_then(|rates| decide(manifest, copies, rates, procs));
        let new = Arc::new(Choice { procs, rule, sent: Sent::default() });
        *choice.lock() = Some(new.clone());
        new
    }

    fn procs(&self) -> (u32, u32) {
        self.overlay.context.concurrency.get().unwrap_or_else(|| {
            let processes = self.overlay.measured.processes(&self.map);
            (processes, processes)
        })
    }
}

/// Builds the decision rule; `None` if the plan's figures cannot be used.
fn decide(manifest: &Manifest, copies: &Copies, rates: &Rates, procs: (u32, u32)) -> Option<Rule> {
    let Rates { plan, targets } = rates;
    let Modelled { layouts, classes } = Modelled::of(manifest, &plan.cluster, targets)?;
    let servers = std::iter::once((copies.servers, 1));
    let servers = servers.chain(copies.list.iter().map(|copy| (copy.servers, copy.groups)));
    let copy = |(layout, (servers, groups)): (_, (u32, _))| {
        let layout: &Layout = layout;
        // Older manifests count a target that is striped over several servers as one server.
        RuleCopy { layout, spread_over: layout.targets().count().max(servers as usize), groups }
    };
    let views: Vec<_> = layouts.iter().zip(servers).map(copy).collect();
    Rule::new(copies.kind, &views, &classes, plan.cluster.network, procs).ok()
}

/// The copies as the models expect them: laid out over individual servers, with the servers of a
/// pool listed one by one and numbered consecutively across all copies.
struct Modelled {
    /// The layout of each copy.
    layouts: Vec<Layout>,
    /// The class of each server.
    classes: Vec<ClassParams>,
}

impl Modelled {
    /// `targets` holds, per copy, the number in the cluster of each target. Returns `None` if the
    /// cluster has no class for a server.
    fn of(manifest: &Manifest, cluster: &Cluster, targets: &[Vec<u32>]) -> Option<Self> {
        let mut modelled = Self { layouts: Vec::new(), classes: Vec::new() };
        for (copy, targets) in manifest.all_copies().zip(targets) {
            let planned = renumbered(copy.layout, |target| targets[target as usize]);
            // The index of the file within its rule makes no difference: all servers of a pool are
            // alike.
            let (layout, servers) = cluster.unfold(&planned, 0).compacted();
            let base = modelled.classes.len() as u32;
            modelled.layouts.push(renumbered(&layout, |server| base + server));
            for server in servers {
                modelled.classes.push(*cluster.class_of(server)?);
            }
        }
        Some(modelled)
    }
}

/// The same layout with its targets renumbered.
fn renumbered(layout: &Layout, number: impl Fn(u32) -> u32) -> Layout {
    layout.renumbered(number).unwrap_or_else(|_| layout.clone())
}

impl Choice {
    /// Chooses the copies from which a read is served. `spans` cover the request, and their masks
    /// contain only usable copies.
    pub fn read(
        &self,
        data: &CriticalData,
        request: &Request,
        spans: &[Span],
        parts: &mut Few<Part>,
    ) -> Redirected {
        match &self.rule {
            Some(Rule::Replicas(costs)) => {
                costs.read(request.kind, spans, parts);
                Redirected::default()
            }
            Some(Rule::Cache(identifier)) => {
                let (cdt, room) = (&mut data.0.lock(), &mut Reservation::none());
                identifier.redirect(cdt, &self.sent, request, spans, room, parts)
            }
            None => by_number(spans, parts),
        }
    }

    /// The best copy among `copies` from which to copy a range in the background.
    pub fn source(&self, start: u64, len: u64, copies: u8) -> Option<usize> {
        match &self.rule {
            Some(rule) => rule.source(start, len, copies),
            None => (copies != 0).then(|| lowest(copies)),
        }
    }

    /// Chooses the copies to which a write goes, among those in `allowed`.
    pub fn write(
        &self,
        data: &CriticalData,
        request: &Request,
        spans: &[Span],
        allowed: u8,
        reservation: &mut Reservation<'_>,
        parts: &mut Few<Part>,
    ) -> Redirected {
        match &self.rule {
            Some(Rule::Replicas(costs)) => {
                let copy = costs.write(request.kind, request.offset, request.len, allowed);
                let (start, end) = (request.offset, request.offset + request.len);
                parts.push(Part { start, end, copy: copy.unwrap_or(ORIGINAL) });
                Redirected::default()
            }
            Some(Rule::Cache(identifier)) => {
                identifier.redirect(&mut data.0.lock(), &self.sent, request, spans, reservation, parts)
            }
            None => by_number(spans, parts),
        }
    }
}

fn by_number(spans: &[Span], parts: &mut Few<Part>) -> Redirected {
    parts.extend(runs(spans.iter().map(|span| span.by(lowest(span.mask)))));
    Redirected::default()
}

fn lowest(mask: u8) -> usize {
    if mask == 0 { ORIGINAL } else { mask.trailing_zeros() as usize }
}

/// Converts the map's spans for the policy, with the mask of each limited by `usable`.
pub(super) fn spans_of(known: &[Known], usable: impl Fn(&Known) -> u8) -> Few<Span> {
    known.iter().map(|span| Span { start: span.start, end: span.end, mask: usable(span) }).collect()
}

#[cfg(test)]
mod tests;
