//! A stripe cycle in its shortest form.

use stripewise_layout::Region;

/// A region's cycle in its shortest form: neighboring stripes on the same target are joined, and no
/// shorter cycle describes the same region.
pub(crate) struct Cycle {
    /// First byte of the region.
    pub start: u64,
    /// One past the region's last byte; `None`: files do not reach its end.
    pub end: Option<u64>,
    /// (target, bytes), in order; not empty.
    pub stripes: Vec<(u32, u64)>,
}

/// A cycle of equal stripes in rounds over groups of targets.
pub(crate) struct Groups {
    pub width: u64,
    pub groups: usize,
    pub factor: usize,
}

impl Cycle {
    pub fn of(region: &Region) -> Self {
        let mut stripes: Vec<(u32, u64)> = Vec::with_capacity(region.cycle.len());
        for stripe in &region.cycle {
            match stripes.last_mut() {
                Some((target, width)) if *target == stripe.target => *width += stripe.width,
                _ => stripes.push((stripe.target, stripe.width)),
            }
        }
        let repeats = |period: &usize| {
            stripes.len().is_multiple_of(*period)
                && stripes.chunks(*period).all(|turn| turn == &stripes[..*period])
        };
        let period = (1..=stripes.len()).find(repeats).unwrap_or(stripes.len());
        stripes.truncate(period);
        Self { start: region.start, end: region.end, stripes }
    }

    /// The targets, each once, in the order of their first stripe in the cycle.
    pub fn targets(&self) -> Vec<u32> {
        let mut targets = Vec::new();
        for &(target, _) in &self.stripes {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets
    }

    /// The width of the stripes if all are equally wide and on different targets.
    pub fn even(&self) -> Option<u64> {
        let width = self.equal_widths()?;
        (self.targets().len() == self.stripes.len()).then_some(width)
    }

    /// The number of groups and rounds, if the cycle is several rounds over one group of targets
    /// after the other. Groups are cut as OrangeFS does: each has ⌊targets / groups⌋ members, and
    /// the last also the remainder.
    pub fn grouped(&self) -> Option<Groups> {
        let (width, targets) = (self.equal_widths()?, self.targets());
        let factor = self.stripes.len() / targets.len();
        let is_it = |groups: &usize| {
            let small = targets.len() / groups;
            let group = |index: usize| {
                let end = if index + 1 == *groups { targets.len() } else { (index + 1) * small };
                &targets[index * small..end]
            };
            let rounds = (0..*groups).flat_map(|index| group(index).repeat(factor));
            rounds.eq(self.stripes.iter().map(|stripe| stripe.0))
        };
        let groups = (1..=targets.len()).find(is_it)?;
        Some(Groups { width, groups, factor })
    }

    /// The largest number of bytes that divides all stripe widths.
    pub fn unit(&self) -> u64 {
        self.stripes.iter().fold(0, |unit, stripe| gcd(stripe.1, unit))
    }

    fn equal_widths(&self) -> Option<u64> {
        let width = self.stripes[0].1;
        self.stripes.iter().all(|stripe| stripe.1 == width).then_some(width)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
