//! The layouts of a candidate, packed while nothing computes with them.

use stripewise_layout::{Layout, Region, Stripe};

/// The layouts of a candidate.
///
/// A [`Layout`] takes some 100 bytes per stripe, and over thousands of servers there are hundreds
/// of candidates. So candidates keep runs of equal stripes on consecutive targets, of which most
/// layouts have few, and build a layout when it is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layouts(Vec<Box<[Packed]>>);

/// A region and its cycle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Packed {
    start: u64,
    end: Option<u64>,
    runs: Box<[Run]>,
}

/// `count` stripes of `width` bytes on consecutive targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Run {
    target: u32,
    count: u32,
    width: u64,
}

impl Layouts {
    /// Builds all layouts.
    pub fn build(&self) -> Vec<Layout> {
        self.0.iter().map(|regions| built(regions)).collect()
    }

    /// Builds the first layout; `None` if there is none.
    pub fn first(&self) -> Option<Layout> {
        self.0.first().map(|regions| built(regions))
    }

    /// Number of layouts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no layout.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a layout has several regions.
    pub fn have_regions(&self) -> bool {
        self.0.iter().any(|regions| regions.len() > 1)
    }

    /// Width of the smallest stripe, bytes; 0 if there is no layout.
    pub fn narrowest(&self) -> u64 {
        let regions = self.0.iter().flat_map(|regions| regions.iter());
        let widths = regions.flat_map(|region| region.runs.iter()).map(|run| run.width);
        widths.min().unwrap_or(0)
    }

    /// The targets of all layouts, in no order; a target may occur several times.
    pub fn targets(&self) -> impl Iterator<Item = u32> + '_ {
        let runs = self.0.iter().flat_map(|regions| regions.iter()).flat_map(|region| region.runs.iter());
        runs.flat_map(|run| run.target..run.target + run.count)
    }
}

impl From<&[Layout]> for Layouts {
    fn from(layouts: &[Layout]) -> Self {
        Self(layouts.iter().map(|layout| layout.regions().iter().map(Packed::from).collect()).collect())
    }
}

impl From<Vec<Layout>> for Layouts {
    fn from(layouts: Vec<Layout>) -> Self {
        Self::from(&layouts[..])
    }
}

impl From<&Region> for Packed {
    /// The same cycle always gives the same runs: each is as long as possible.
    fn from(region: &Region) -> Self {
        let follows = |one: &Stripe, next: &Stripe| {
            one.width == next.width && one.target.checked_add(1) == Some(next.target)
        };
        let run = |stripes: &[Stripe]| {
            let Stripe { target, width } = stripes[0];
            Run { target, count: stripes.len() as u32, width }
        };
        let runs = region.cycle.chunk_by(follows).map(run).collect();
        Self { start: region.start, end: region.end, runs }
    }
}

fn built(regions: &[Packed]) -> Layout {
    let stripes = |&Run { target, count, width }: &Run| {
        (target..target + count).map(move |target| Stripe { target, width })
    };
    let region = |&Packed { start, end, ref runs }: &Packed| Region {
        start,
        end,
        cycle: runs.iter().flat_map(stripes).collect(),
    };
    Layout::new(regions.iter().map(region).collect()).expect("it was packed from a valid layout")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::layouts;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn layouts_are_built_as_they_were_packed(layouts in prop::collection::vec(layouts(6), 1..4)) {
            let packed = Layouts::from(&layouts[..]);
            prop_assert_eq!(packed.build(), layouts.clone());
            prop_assert_eq!(packed.len(), layouts.len());
            let mut targets: Vec<u32> = packed.targets().collect();
            targets.sort_unstable();
            targets.dedup();
            let mut expected: Vec<u32> = layouts.iter().flat_map(Layout::targets).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(targets, expected);
        }
    }
}
