//! How the bytes of files divide over the tiers in a layout, and over its servers.

use stripewise_layout::{Layout, Region, Stripe};

use crate::workload::File;

/// A layout as runs of stripes on servers of one tier.
pub struct Division {
    regions: Vec<Part>,
}

/// A region of a file, as long as it is.
struct Part {
    start: u64,
    end: u64,
    /// Bytes of one cycle.
    cycle: u64,
    runs: Vec<Run>,
}

/// Neighboring stripes of a cycle on servers of one tier.
struct Run {
    tier: u32,
    /// Where the run begins and ends in the cycle, bytes.
    from: u64,
    to: u64,
}

impl Division {
    /// The division of a layout. `tier_of` has the tier of every server.
    pub fn new(layout: &Layout, tier_of: &[u32]) -> Self {
        let part = |region: &Region| {
            let mut runs: Vec<Run> = Vec::new();
            let mut from = 0;
            for &Stripe { target, width } in &region.cycle {
                let (tier, to) = (tier_of[target as usize], from + width);
                match runs.last_mut().filter(|run| run.tier == tier) {
                    Some(run) => run.to = to,
                    None => runs.push(Run { tier, from, to }),
                }
                from = to;
            }
            Part { start: region.start, end: region.end.unwrap_or(u64::MAX), cycle: from, runs }
        };
        Self { regions: layout.regions().iter().map(part).collect() }
    }

    /// Adds the bytes of a file, and of those that it stands for, to those of the tiers.
    pub fn add(&self, file: &File, tiers: &mut [u64]) {
        for part in &self.regions {
            let bytes = file.size.min(part.end).saturating_sub(part.start);
            let (turns, rest) = (bytes / part.cycle, bytes % part.cycle);
            for run in &part.runs {
                let here = turns * (run.to - run.from) + rest.clamp(run.from, run.to) - run.from;
                let sum = &mut tiers[run.tier as usize];
                *sum = sum.saturating_add(here.saturating_mul(file.count()));
            }
        }
    }
}

/// The bytes of many files on each server, if all of them have one layout.
pub struct Filled<'l> {
    layout: &'l Layout,
    /// One for each region.
    parts: Vec<FilledPart>,
}

/// What files have of one region.
struct FilledPart {
    /// Where each stripe ends in the cycle, bytes.
    ends: Vec<u64>,
    /// Number of whole cycles.
    turns: u64,
    /// By number of stripes: how many files have that many whole stripes of a last cycle.
    whole: Vec<u64>,
    /// By stripe: the bytes in it that are a part of it.
    partial: Vec<u64>,
}

impl<'l> Filled<'l> {
    /// A layout without files.
    pub fn new(layout: &'l Layout) -> Self {
        let part = |region: &Region| {
            let mut end = 0;
            let ends: Vec<u64> = (region.cycle.iter())
                .map(|stripe| {
                    end += stripe.width;
                    end
                })
                .collect();
            let stripes = ends.len();
            FilledPart { ends, turns: 0, whole: vec![0; stripes + 1], partial: vec![0; stripes] }
        };
        Self { layout, parts: layout.regions().iter().map(part).collect() }
    }

    /// Adds a file, and those that it stands for. Takes O(log servers).
    pub fn add(&mut self, file: &File) {
        let count = file.count();
        for (region, part) in self.layout.regions().iter().zip(&mut self.parts) {
            let bytes = file.size.min(region.end.unwrap_or(u64::MAX)).saturating_sub(region.start);
            let cycle = part.ends.last().copied().unwrap_or(1);
            let rest = bytes % cycle;
            let stripes = part.ends.partition_point(|&end| end <= rest);
            part.turns = part.turns.saturating_add((bytes / cycle).saturating_mul(count));
            part.whole[stripes] += count;
            let before = if stripes > 0 { part.ends[stripes - 1] } else { 0 };
            part.partial[stripes] = part.partial[stripes].saturating_add((rest - before).saturating_mul(count));
        }
    }

    /// Adds the bytes of all files to those of the servers.
    pub fn add_to(&self, servers: &mut [u64]) {
        for (region, part) in self.layout.regions().iter().zip(&self.parts) {
            // How many files have the stripe whole in their last cycle.
            let mut files = part.whole.iter().sum::<u64>();
            for (index, stripe) in region.cycle.iter().enumerate() {
                files -= part.whole[index];
                let whole = part.turns.saturating_add(files).saturating_mul(stripe.width);
                let sum = &mut servers[stripe.target as usize];
                *sum = sum.saturating_add(whole).saturating_add(part.partial[index]);
            }
        }
    }
}

/// The layout with each run of servers of one tier turned by `turn` of `turns`, so that files begin
/// at different servers of it. `None` if the servers of a run do not have stripes of one width.
pub fn turned(layout: &Layout, tier_of: &[u32], (turn, turns): (usize, usize)) -> Option<Layout> {
    let region = |region: &Region| {
        let mut cycle = region.cycle.clone();
        let are_alike =
            |one: &Stripe, next: &Stripe| tier_of[one.target as usize] == tier_of[next.target as usize];
        for run in cycle.chunk_by_mut(are_alike) {
            if run.iter().any(|stripe| stripe.width != run[0].width) {
                return None;
            }
            run.rotate_left(run.len() * turn / turns);
        }
        Some(Region { cycle, ..*region })
    };
    Layout::new(layout.regions().iter().map(region).collect::<Option<_>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::bytes_by_target;
    use crate::tests::layouts;
    use proptest::prelude::*;

    const SERVERS: u32 = 7;

    fn by_tier(bytes: &[u64], tier_of: &[u32]) -> [u64; 3] {
        let mut tiers = [0; 3];
        bytes.iter().zip(tier_of).for_each(|(bytes, &tier)| tiers[tier as usize] += bytes);
        tiers
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_the_objects(
            layout in layouts(SERVERS),
            sizes in prop::collection::vec((0u64..300, 0u32..3), 0..6),
            turn in 0usize..4,
        ) {
            let tier_of = [0, 0, 1, 1, 1, 2, 2];
            let file = |&(size, others)| File { size, others, ..File::default() };
            let files: Vec<File> = sizes.iter().map(file).collect();
            let each = |file: &File| vec![File { others: 0, ..file.clone() }; file.count() as usize];
            let each: Vec<File> = files.iter().flat_map(each).collect();
            let layout_of = vec![0; each.len()];
            let expected = |layout: &Layout| {
                bytes_by_target(&each, (std::slice::from_ref(layout), &layout_of), SERVERS as usize)
            };
            let (division, mut tiers) = (Division::new(&layout, &tier_of), [0; 3]);
            let mut filled = Filled::new(&layout);
            for file in &files {
                division.add(file, &mut tiers);
                filled.add(file);
            }
            let mut servers = vec![0; SERVERS as usize];
            filled.add_to(&mut servers);
            prop_assert_eq!(&servers, &expected(&layout));
            let some = (std::slice::from_ref(&layout), &layout_of[..files.len()]);
            prop_assert_eq!(&servers, &bytes_by_target(&files, some, SERVERS as usize));
            prop_assert_eq!(tiers, by_tier(&servers, &tier_of));
            if let Some(turned) = turned(&layout, &tier_of, (turn, 4)) {
                prop_assert_eq!(by_tier(&expected(&turned), &tier_of), tiers);
            }
        }
    }
}
