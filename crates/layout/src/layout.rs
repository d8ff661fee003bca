//! The representation of a layout, and the conditions of a valid one.

use crate::prepared::Prepared;
use crate::region::{MAX_OFFSET, MAX_TARGETS, Region, Stripe};

/// The reason why a list of regions is not a valid layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The list is empty.
    #[error("a layout needs at least one region")]
    NoRegion,
    /// The region does not start where the previous one ends, or the first one not at 0.
    #[error("region {region} starts at byte {start}, but byte {expected} comes next")]
    Gap {
        /// Index of the region.
        region: usize,
        /// The start given.
        start: u64,
        /// The required start.
        expected: u64,
    },
    /// The region ends at or before its start, or past [`MAX_OFFSET`].
    #[error("region {region} ends at byte {end}, which must lie between its start and 2^63")]
    BadEnd {
        /// Index of the region.
        region: usize,
        /// The end given.
        end: u64,
    },
    /// A region other than the last has no end, or the last one has an end.
    #[error("region {region}: every region but the last has an end, and the last has none")]
    OpenEnd {
        /// Index of the region.
        region: usize,
    },
    /// The region has an empty cycle.
    #[error("region {region} has no stripes; it needs at least one (target, width)")]
    EmptyCycle {
        /// Index of the region.
        region: usize,
    },
    /// A stripe of 0 bytes.
    #[error("region {region}: the stripe on target {target} is 0 bytes wide; leave the target out instead")]
    ZeroWidth {
        /// Index of the region.
        region: usize,
        /// Target of the stripe.
        target: u32,
    },
    /// A target index of [`MAX_TARGETS`] or more.
    #[error("region {region}: target {target}; the largest target number is {}", MAX_TARGETS - 1)]
    TargetTooLarge {
        /// Index of the region.
        region: usize,
        /// The target index.
        target: u32,
    },
    /// A 2-D layout with no groups, or with more groups than targets.
    #[error("{groups} groups of {targets} targets; 2-D needs 1 to {targets} groups")]
    Groups {
        /// Number of groups requested.
        groups: usize,
        /// Number of targets.
        targets: usize,
    },
    /// The widths of one cycle add up to more than [`MAX_OFFSET`].
    #[error("region {region}: the stripes of one cycle add up to more than 2^63 bytes")]
    CycleTooLong {
        /// Index of the region.
        region: usize,
    },
}

/// The placement of a file's bytes on targets; the [crate] documentation describes the model.
///
/// Equality compares the regions.
#[derive(Clone, Debug)]
pub struct Layout {
    regions: Vec<Region>,
    pub(crate) prepared: Prepared,
}

impl Layout {
    /// Creates a layout from regions that follow one another from byte 0; the last one has no end.
    ///
    /// # Errors
    /// Any [`LayoutError`]. The layout does not know which targets exist, so the caller has to
    /// check that.
    pub fn new(regions: Vec<Region>) -> Result<Self, LayoutError> {
        check(&regions)?;
        let prepared = Prepared::new(&regions);
        Ok(Self { regions, prepared })
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
    /// [`LayoutError::TargetTooLarge`].
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
        self.prepared.target_count()
    }

    /// The targets used, in ascending order, each once.
    pub fn targets(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.target_count() as u32).filter(|&target| self.prepared.uses(target))
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.regions == other.regions
    }
}

impl Eq for Layout {}

fn check(regions: &[Region]) -> Result<(), LayoutError> {
    let last = regions.len().checked_sub(1).ok_or(LayoutError::NoRegion)?;
    let mut expected = 0;
    for (index, region) in regions.iter().enumerate() {
        if region.start != expected {
            return Err(LayoutError::Gap { region: index, start: region.start, expected });
        }
        if region.end.is_none() != (index == last) {
            return Err(LayoutError::OpenEnd { region: index });
        }
        if let Some(end) = region.end {
            if end <= region.start || end > MAX_OFFSET {
                return Err(LayoutError::BadEnd { region: index, end });
            }
            expected = end;
        }
        check_cycle(index, &region.cycle)?;
    }
    Ok(())
}

fn check_cycle(region: usize, cycle: &[Stripe]) -> Result<(), LayoutError> {
    if cycle.is_empty() {
        return Err(LayoutError::EmptyCycle { region });
    }
    let mut sum = 0u64;
    for stripe in cycle {
        if stripe.target >= MAX_TARGETS {
            return Err(LayoutError::TargetTooLarge { region, target: stripe.target });
        }
        if stripe.width == 0 {
            return Err(LayoutError::ZeroWidth { region, target: stripe.target });
        }
        sum = sum
            .checked_add(stripe.width)
            .filter(|&sum| sum <= MAX_OFFSET)
            .ok_or(LayoutError::CycleTooLong { region })?;
    }
    Ok(())
}
