//! The representation of a layout, and the conditions of a valid one.

use std::sync::Arc;

use crate::prepared::{Part, PreparedRegion, prepare};
use crate::region::{MAX_OFFSET, MAX_TARGETS, Region, Stripe};

/// Why a list of regions is not a valid layout: one line that names the region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(pub(crate) String);

/// The placement of a file's bytes on targets; the [crate] documentation describes the model.
///
/// Equality compares the regions. Clones share the memory, some 100 bytes per stripe: a plan for
/// many files has few layouts.
#[derive(Clone, Debug)]
pub struct Layout {
    regions: Arc<[Region]>,
    /// The regions with their prefix sums.
    pub(crate) prepared: Arc<[PreparedRegion]>,
    /// The smallest target index used.
    pub(crate) first_target: u32,
    /// Per target index from `first_target` on, the regions whose cycle names the target, in
    /// ascending order.
    pub(crate) parts: Arc<[Vec<Part>]>,
}

impl Layout {
    /// Creates a layout from regions that follow one another from byte 0; the last one has no end.
    ///
    /// # Errors
    /// Any [`LayoutError`]. The layout does not know which targets exist, so the caller has to
    /// check that.
    pub fn new(regions: Vec<Region>) -> Result<Self, LayoutError> {
        check(&regions).map_err(LayoutError)?;
        let (prepared, first_target, parts) = prepare(&regions);
        Ok(Self { regions: regions.into(), prepared: prepared.into(), first_target, parts: parts.into() })
    }

    /// Creates a layout of one region that covers the whole file.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn single(cycle: Vec<Stripe>) -> Result<Self, LayoutError> {
        Self::new(vec![Region { start: 0, end: None, cycle }])
    }

    /// The regions, in file order.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The same layout with other target numbers.
    ///
    /// # Errors
    /// A number of [`MAX_TARGETS`] or more.
    pub fn renumbered(&self, number: impl Fn(u32) -> u32) -> Result<Self, LayoutError> {
        let stripe = |stripe: &Stripe| Stripe { target: number(stripe.target), width: stripe.width };
        let region = |region: &Region| Region {
            start: region.start,
            end: region.end,
            cycle: region.cycle.iter().map(stripe).collect(),
        };
        Self::new(self.regions.iter().map(region).collect())
    }

    /// The same layout over targets 0, 1, ..., and the previous numbers of these targets, which
    /// keep their order.
    pub fn compacted(&self) -> (Self, Vec<u32>) {
        let used: Vec<u32> = self.targets().collect();
        let number = |target| used.partition_point(|&used| used < target) as u32;
        // No number grows, so the layout stays valid.
        (self.renumbered(number).unwrap_or_else(|_| self.clone()), used)
    }

    /// One more than the largest target index used; per-target slices need this length.
    pub fn target_count(&self) -> usize {
        self.first_target as usize + self.parts.len()
    }

    /// The targets used, in ascending order, each once.
    pub fn targets(&self) -> impl Iterator<Item = u32> + '_ {
        (self.first_target..)
            .zip(self.parts.iter())
            .filter(|(_, parts)| !parts.is_empty())
            .map(|(target, _)| target)
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.regions == other.regions
    }
}

impl Eq for Layout {}

fn check(regions: &[Region]) -> Result<(), String> {
    let last = regions.len().checked_sub(1).ok_or("a layout needs at least one region")?;
    let mut next = 0;
    for (index, Region { start, end, cycle }) in regions.iter().enumerate() {
        if *start != next {
            return Err(format!("region {index} starts at byte {start}, but byte {next} comes next"));
        }
        if end.is_none() != (index == last) {
            let rule = "every region but the last has an end, and the last has none";
            return Err(format!("region {index}: {rule}"));
        }
        if let Some(end) = *end {
            if end <= *start || end > MAX_OFFSET {
                return Err(format!(
                    "region {index} ends at byte {end}, which must lie between its start and 2^63"
                ));
            }
            next = end;
        }
        check_cycle(index, cycle)?;
    }
    Ok(())
}

fn check_cycle(region: usize, cycle: &[Stripe]) -> Result<(), String> {
    if cycle.is_empty() {
        return Err(format!("region {region} has no stripes; it needs at least one (target, width)"));
    }
    let mut sum = 0u64;
    for &Stripe { target, width } in cycle {
        if target >= MAX_TARGETS {
            let largest = MAX_TARGETS - 1;
            return Err(format!("region {region}: target {target}; the largest target number is {largest}"));
        }
        if width == 0 {
            let remedy = "leave the target out instead";
            return Err(format!("region {region}: the stripe on target {target} is 0 bytes wide; {remedy}"));
        }
        sum = sum.checked_add(width).filter(|&sum| sum <= MAX_OFFSET).ok_or_else(|| {
            format!("region {region}: the stripes of one cycle add up to more than 2^63 bytes")
        })?;
    }
    Ok(())
}
