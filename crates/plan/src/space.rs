//! Whether a candidate's files fit on the targets, and where the rest goes if they do not.

use stripewise_layout::{Layout, constructors};

use crate::candidate::Alike;
use crate::error::PlanError;
use crate::problem::{PAGE, Problem};

/// Makes layouts fit. If targets would hold more than the set's share of their space, the files get
/// a second region from the byte where the first of these targets is full, on the targets that are
/// not full. If the second region overfills some of those, only the remaining ones hold it.
/// `rest(targets, index)` gives the layout of the second region for the layout with this index.
/// Returns the layouts and the targets of the second region, which are empty if nothing changed.
///
/// `None` if the files do not fit that way either.
pub fn fit(
    problem: &Problem<'_>,
    layouts: Vec<Layout>,
    layout_of: &[u32],
    rest: impl Fn(&[u32], usize) -> Option<Layout>,
) -> Option<(Vec<Layout>, Vec<u32>)> {
    let use_of = Use::new(problem, layout_of);
    let full = use_of.overfull(&layouts, u64::MAX);
    if full.is_empty() {
        return Some((layouts, Vec::new()));
    }
    let boundary = use_of.largest_boundary_of(&layouts, &full);
    let boundary = if problem.is_mapped() { boundary / PAGE * PAGE } else { boundary };
    let pairs = |layout: &Layout| -> Vec<(u32, u64)> {
        layout.regions()[0].cycle.iter().map(|s| (s.target, s.width)).collect()
    };
    let second = |others: &[u32], index: usize, first: &Layout| {
        let cycle = first.regions().first()?.cycle.iter().map(|s| s.width).fold(0u64, u64::saturating_add);
        let boundary = if first.regions()[0].cycle.len() > 1 { boundary / cycle * cycle } else { boundary };
        constructors::two_part(&pairs(first), boundary, &pairs(&rest(others, index)?)).ok()
    };
    let mut others: Vec<u32> =
        (0..problem.servers.count() as u32).filter(|target| !full.contains(target)).collect();
    while !others.is_empty() {
        let two_parts = layouts.iter().enumerate().map(|(index, first)| second(&others, index, first));
        let two_parts: Vec<Layout> = two_parts.collect::<Option<_>>()?;
        let over = use_of.overfull(&two_parts, u64::MAX);
        if over.is_empty() {
            return Some((two_parts, others));
        }
        let before = others.len();
        others.retain(|target| !over.contains(target));
        if others.len() == before {
            return None;
        }
    }
    None
}

/// A layout of two regions, as in DEF, PA and PSA: `first` until one of the targets `bounding` is
/// full, then `second`.
///
/// A file may fill a share of a target's space in proportion to its size among all files of the
/// plan (`C_s`). If a set has files of several sizes and this is too much for the whole set, all
/// its files change to `second` at the byte where the set has filled its share.
pub fn two_part(
    problem: &Problem<'_>,
    first: &[(u32, u64)],
    bounding: &[u32],
    second: &[(u32, u64)],
) -> Result<Layout, PlanError> {
    let layout = constructors::until_full(first, &problem.space_for_file(bounding), second)?;
    let layout_of = vec![0; problem.set.files.len()];
    let use_of = Use::new(problem, &layout_of);
    let over = |layout: &Layout| use_of.overfull(std::slice::from_ref(layout), u64::MAX);
    if over(&layout).iter().all(|target| !bounding.contains(target)) {
        return fitting(layout, over);
    }
    let whole = constructors::varied(first)?;
    let cycle = first.iter().map(|stripe| stripe.1).fold(0u64, u64::saturating_add).max(1);
    let boundary = use_of.largest_boundary_of(std::slice::from_ref(&whole), bounding) / cycle * cycle;
    fitting(constructors::two_part(first, boundary, second)?, over)
}

fn fitting(layout: Layout, over: impl Fn(&Layout) -> Vec<u32>) -> Result<Layout, PlanError> {
    if over(&layout).is_empty() {
        return Ok(layout);
    }
    Err(PlanError::new("the files do not fit on the HServers; raise capacity_per_server"))
}

/// What a set's files need, and what they may fill.
struct Use {
    alike: Alike,
    /// Bytes that each target may hold.
    space: Vec<u64>,
    /// Size of the largest file, bytes.
    largest: u64,
}

impl Use {
    fn new(problem: &Problem<'_>, layout_of: &[u32]) -> Self {
        let set = problem.set;
        Self {
            alike: Alike::new(&set.files, layout_of),
            space: problem.space_for_set(),
            largest: set.largest(),
        }
    }

    /// Targets that would hold more than the set's share if every file ended at `boundary`.
    fn overfull(&self, layouts: &[Layout], boundary: u64) -> Vec<u32> {
        let bytes = self.alike.bytes_by_target(layouts, self.space.len(), boundary);
        let both = (0..).zip(bytes.into_iter().zip(&self.space));
        both.filter(|(_, (bytes, space))| bytes > space).map(|(target, _)| target).collect()
    }

    /// The largest offset up to which all files fit on the targets `bounding`.
    fn largest_boundary_of(&self, layouts: &[Layout], bounding: &[u32]) -> u64 {
        let (mut low, mut high) = (0, self.largest);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let full = self.overfull(layouts, middle);
            if full.iter().any(|target| bounding.contains(target)) { high = middle - 1 } else { low = middle }
        }
        low
    }
}
