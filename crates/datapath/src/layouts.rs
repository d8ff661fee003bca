//! The same layout over targets with other numbers.

use stripewise_layout::{Layout, Region, Stripe};

/// Replaces each target's number. Different targets must stay different.
pub(crate) fn renumbered(layout: &Layout, number: impl Fn(u32) -> u32) -> Layout {
    let stripe = |stripe: &Stripe| Stripe { target: number(stripe.target), width: stripe.width };
    let regions = layout.regions().iter().map(|region| Region {
        start: region.start,
        end: region.end,
        cycle: region.cycle.iter().map(stripe).collect(),
    });
    // Renumbering targets keeps a layout valid.
    Layout::new(regions.collect()).unwrap_or_else(|_| layout.clone())
}

/// Restricts a layout to the targets it uses. Returns it with their old numbers.
pub(crate) fn compact(layout: &Layout) -> (Layout, Vec<u32>) {
    let used: Vec<u32> = layout.targets().collect();
    let renumber = |target| used.partition_point(|&other| other < target) as u32;
    (renumbered(layout, renumber), used)
}

#[cfg(test)]
mod tests {
    use stripewise_layout::constructors::two_part;

    use super::*;

    #[test]
    fn a_layout_keeps_only_its_own_targets() {
        let (layout, used) = compact(&two_part(&[(7, 10), (3, 20)], 90, &[(5, 1)]).unwrap());
        assert_eq!(used, [3, 5, 7]);
        assert_eq!(layout, two_part(&[(2, 10), (0, 20)], 90, &[(1, 1)]).unwrap());
    }
}
