//! Decides which copy serves which range of a request: by the policy, or by a fixed rule if the
//! costs of the copies are unknown.

use std::sync::Arc;

use stripewise_cluster::{CacheAdmission, Cluster, OverlayKind, Plan};
use stripewise_extents::Span as Known;
use stripewise_layout::Layout;
use stripewise_model::{Access, ClassParams, Op};
use stripewise_policy::{
    Balance, CacheView, Cdt, CopyView, Costs, Identifier, Kind, Redirected, Request, Sent, Span,
};
use stripewise_target::Few;

use super::space::Reservation;
use super::{CopySet, Overlay};
use crate::forked::ForkSafe;
use crate::layouts::{compact, renumbered};
use crate::manifest::{Copies, Manifest};

/// Maximum entries of the table of critical data of a process, about 100 bytes each.
const CRITICAL_MAX: usize = 1 << 16;

/// The recently seen critical data of all files of a process.
#[derive(Default)]
pub(crate) struct CriticalData(ForkSafe<Table>);

struct Table(Cdt);

impl Default for Table {
    fn default() -> Self {
        Self(Cdt::new(CRITICAL_MAX))
    }
}

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
    by: By,
}

enum By {
    Replicas(Costs),
    /// The second field is what this process has sent to the file.
    Cache(Identifier, Sent),
    /// The plan has no costs for these servers: use the lowest valid copy, and put nothing new into
    /// a cache.
    Number,
}

/// A range of a request, and the copy that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub start: u64,
    pub end: u64,
    pub copy: usize,
}

impl CopySet<'_> {
    pub(super) fn choice(&self) -> Arc<Choice> {
        let procs = self.procs();
        let Overlay { manifest, copies, rates, choice, .. } = self.overlay;
        let current = choice.lock().clone();
        if let Some(current) = current.filter(|current| current.procs == procs) {
            return current;
        }
        let by = rates.as_ref().and_then(|rates| decide(manifest, copies, rates, procs));
        let new = Arc::new(Choice { procs, by: by.unwrap_or(By::Number) });
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
fn decide(manifest: &Manifest, copies: &Copies, rates: &Rates, procs: (u32, u32)) -> Option<By> {
    let Rates { plan, targets } = rates;
    let Modelled { layouts, classes } = Modelled::of(manifest, &plan.cluster, targets)?;
    let network = plan.cluster.network;
    let servers = std::iter::once(copies.servers).chain(copies.list.iter().map(|copy| copy.servers));
    // Older manifests count a target that is striped over several servers as one server.
    let spread = layouts.iter().zip(servers);
    let spread = spread.map(|(layout, servers)| (layout, layout.targets().count().max(servers as usize)));
    match copies.kind {
        OverlayKind::Replicas => {
            let views: Vec<_> = spread.map(|(layout, spread_over)| CopyView { layout, spread_over }).collect();
            Some(By::Replicas(Costs::new(&views, &classes, network, procs).ok()?))
        }
        OverlayKind::Cache { mode, admission, .. } => {
            let caches = layouts.iter().skip(1).zip(&copies.list);
            let views: Vec<_> =
                caches.map(|(layout, copy)| CacheView { layout, groups: copy.groups }).collect();
            let mut identifier = Identifier::new(mode, &layouts[0], &views, &classes, procs.0).ok()?;
            if admission == CacheAdmission::Balanced {
                let spread: Vec<_> = spread.collect();
                identifier = identifier.balanced(Balance::new(&spread, &classes, procs.0).ok()?.over(network));
            }
            Some(By::Cache(identifier, Sent::default()))
        }
    }
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
            let (layout, servers) = compact(&cluster.unfold(&planned, 0));
            let base = modelled.classes.len() as u32;
            modelled.layouts.push(renumbered(&layout, |server| base + server));
            for server in servers {
                modelled.classes.push(*cluster.class_of(server)?);
            }
        }
        Some(modelled)
    }
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
        match &self.by {
            By::Replicas(costs) => {
                let mut chosen = Vec::new();
                costs.read(request.kind, spans, &mut chosen);
                let part = |part: stripewise_policy::ReadPart| (part.start, part.end, part.copy);
                parts.extend(joined(chosen.into_iter().map(part)));
                Redirected::default()
            }
            By::Cache(identifier, sent) => {
                redirect(identifier, sent, data, request, spans, &mut Reservation::none(), parts)
            }
            By::Number => {
                parts.extend(joined(spans.iter().map(|span| (span.start, span.end, lowest(span.mask)))));
                Redirected::default()
            }
        }
    }

    /// The best copy among `copies` from which to copy a range in the background.
    pub fn source(&self, start: u64, len: u64, copies: u8) -> Option<usize> {
        const KIND: Kind = Kind { op: Op::Read, access: Access::Sequential };
        let cheapest = match &self.by {
            By::Replicas(costs) => costs.cheapest(KIND, start, len, copies),
            By::Cache(..) | By::Number => None,
        };
        (copies != 0).then(|| usize::from(cheapest.unwrap_or(lowest(copies))))
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
        match &self.by {
            By::Replicas(costs) => {
                let copy = costs.write(request.kind, request.offset, request.len, allowed);
                let (start, end) = (request.offset, request.offset + request.len);
                parts.push(Part { start, end, copy: usize::from(copy.unwrap_or(0)) });
                Redirected::default()
            }
            By::Cache(identifier, sent) => redirect(identifier, sent, data, request, spans, reservation, parts),
            By::Number => {
                parts.extend(joined(spans.iter().map(|span| (span.start, span.end, lowest(span.mask)))));
                Redirected::default()
            }
        }
    }
}

fn redirect(
    identifier: &Identifier,
    sent: &Sent,
    data: &CriticalData,
    request: &Request,
    spans: &[Span],
    reservation: &mut Reservation<'_>,
    parts: &mut Few<Part>,
) -> Redirected {
    let mut chosen = Vec::new();
    let redirected = identifier.redirect(&mut data.0.lock().0, sent, request, spans, reservation, &mut chosen);
    parts.extend(joined(chosen.into_iter().map(|part| (part.start, part.end, part.copy))));
    redirected
}

/// Joins adjacent ranges on the same copy.
fn joined(parts: impl IntoIterator<Item = (u64, u64, u8)>) -> impl Iterator<Item = Part> {
    let part = |(start, end, copy)| Part { start, end, copy: usize::from(copy) };
    stripewise_policy::runs(parts).map(part)
}

fn lowest(mask: u8) -> u8 {
    if mask == 0 { 0 } else { mask.trailing_zeros() as u8 }
}

/// Converts the map's spans for the policy, with the mask of each limited by `usable`.
pub(super) fn spans_of(known: &[Known], usable: impl Fn(&Known) -> u8) -> Few<Span> {
    known.iter().map(|span| Span { start: span.start, end: span.end, mask: usable(span) }).collect()
}

#[cfg(test)]
mod tests;
