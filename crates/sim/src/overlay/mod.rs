//! Files with several copies: which copies are valid where, how one is chosen, and what is copied
//! in the background.

mod background;
mod closing;
mod map;
mod request;
mod space;

use std::ops::Range;
use std::rc::Rc;

use stripewise_cluster::{CopySpec, Overlay as Spec, OverlayKind, Plan};
use stripewise_model::ModelError;
use stripewise_policy::background::{POLL_NS, Pace, Pauses};
use stripewise_policy::{CopyView, Part, Rule, Span};

use crate::placed::Placed;
use crate::process::Handle;
use map::Map;

pub(crate) use space::Spaces;

/// The copies of one file.
#[derive(Debug)]
pub(crate) struct Overlay {
    pub map: Map,
    pub by: Rc<Decider>,
    pub kind: OverlayKind,
    /// Bytes that cached data may use on each server; `None` for replicas.
    pub capacity: Option<u64>,
    pub lazy_close: bool,
    pub pace: Pace,
    /// Number of processes that have the file open.
    pub procs: u32,
    /// Number of requests in the network.
    pub under_way: u32,
    /// Duration of recent requests, ns.
    pub took_ns: u64,
    pub copying: Option<CopyOperation>,
    /// Time of the next check whether there is something to copy, ns.
    pub look_ns: Option<u64>,
    pub rest_ns: u64,
    /// Times before which nothing is copied.
    pub pauses: Pauses,
    /// Bytes written to caches in total, now and at the last check.
    pub written: u64,
    pub written_then: u64,
    /// Per copy, the offset where copying continues.
    pub at: [u64; 8],
    /// Processes that wait while closing the file, each with the bytes that it waits for.
    pub closing: Vec<(u32, u64)>,
    /// Handle of the background copying.
    pub handle: Option<Handle>,
}

/// A copy operation in progress.
#[derive(Debug)]
pub(crate) struct CopyOperation {
    pub to: usize,
    /// The ranges being copied, with their valid copies at the start.
    pub spans: Vec<Span>,
    pub began_ns: u64,
    /// The data has been read and is being written.
    pub is_read: bool,
    /// A process has written to one of the ranges meanwhile, so the operation will be discarded.
    pub disturbed: bool,
    /// Space was taken for the operation.
    pub fetches: bool,
    /// Applications were using the servers at the start.
    pub under_load: bool,
}

impl CopyOperation {
    /// The ranges being copied that overlap `range`, cut to it.
    pub fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        let cut = |span: &Span| (span.start.max(range.start), span.end.min(range.end));
        self.spans.iter().map(cut).filter(|(start, end)| start < end)
    }

    pub fn parts(&self, copy: usize) -> Vec<Part> {
        self.spans.iter().map(|span| span.by(copy)).collect()
    }
}

/// Decides which copy serves a request, with the data path's policy. Files with the same placement
/// share it.
#[derive(Debug)]
pub(crate) struct Decider {
    pub rule: Rule,
    /// The placement of each copy, the original first.
    pub placed: Vec<Placed>,
    /// Per copy, the number of objects of the copies before it. The policy counts the targets of
    /// all copies together.
    pub first_target: Vec<usize>,
    /// Number of objects of all copies.
    pub objects: usize,
}

impl Overlay {
    pub fn new(spec: &Spec, by: Rc<Decider>, procs: u32) -> Self {
        let all = by.all();
        let (map, capacity) = match spec.kind {
            OverlayKind::Replicas => (Map::new(all, all), None),
            OverlayKind::Cache { capacity_per_server, .. } => (Map::new(1, 1), Some(capacity_per_server)),
        };
        Self {
            map,
            by,
            kind: spec.kind,
            capacity,
            lazy_close: spec.lazy_close,
            pace: Pace::new(spec.background, 1),
            procs,
            under_way: 0,
            took_ns: 0,
            copying: None,
            look_ns: None,
            rest_ns: POLL_NS,
            pauses: Pauses::default(),
            written: 0,
            written_then: 0,
            at: [0; 8],
            closing: Vec::new(),
            handle: None,
        }
    }

    /// The cache copies.
    pub fn caches(&self) -> Range<usize> {
        if self.capacity.is_some() { 1..self.by.placed.len() } else { 0..0 }
    }

    /// Whether there is something to do in the background.
    pub fn has_work(&self) -> bool {
        self.map.all_missing() > 0 || self.map.wants()
    }

    /// The copies that should have everything.
    pub fn whole(&self) -> Range<usize> {
        if self.capacity.is_some() { 0..1 } else { 0..self.by.placed.len() }
    }
}

impl Decider {
    /// For a file whose copies are `placed`; `copies` are all but the original. `original_servers`
    /// is the number of servers over which the originals of such files are spread.
    ///
    /// # Errors
    /// Invalid parameters.
    pub fn new(
        plan: &Plan,
        spec: &Spec,
        placed: Vec<Placed>,
        copies: &[&CopySpec],
        original_servers: usize,
        procs: (u32, u32),
    ) -> Result<Self, ModelError> {
        let (mut classes, mut layouts, mut first_target) = (Vec::new(), Vec::new(), Vec::new());
        for placed in &placed {
            let base = classes.len();
            first_target.push(base);
            let layout = placed.layout.renumbered(|target| target + base as u32);
            layouts.push(layout.unwrap_or_else(|_| placed.layout.clone()));
            let class = |&server: &u32| plan.cluster.class_of(server).copied().unwrap_or_default();
            classes.extend(placed.servers.iter().map(class));
        }
        let extra = copies.iter().zip(&placed[1..]);
        let extra = extra
            .map(|(copy, placed)| (copy.targets().len(), copy.groups.clamp(1, placed.servers.len() as u32)));
        let figures = std::iter::once((original_servers, 1)).chain(extra);
        let copy = |(layout, (spread_over, groups))| CopyView { layout, spread_over, groups };
        let views: Vec<_> = layouts.iter().zip(figures).map(copy).collect();
        let rule = Rule::new(spec.kind, &views, &classes, plan.cluster.network, procs)?;
        Ok(Self { rule, placed, first_target, objects: classes.len() })
    }

    /// The mask of all copies.
    pub fn all(&self) -> u8 {
        ((1u16 << self.placed.len()) - 1) as u8
    }

    /// The best copy to copy a span from.
    fn source(&self, span: &Span) -> Option<usize> {
        self.rule.source(span.start, span.end - span.start, span.mask)
    }
}
