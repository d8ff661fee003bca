//! Which sizes of a tier a curve shows.

/// Maximum number of sizes at which the price of space falls most.
const KNEES: usize = 3;
/// A knee is worth a point of its own if the line beside it is off by more than this fraction of
/// what all space saves.
const SHARP: f64 = 0.01;
/// Smaller and larger sizes, in halves and quarters of the present one.
const SMALLER: [u64; 4] = [0, 1, 2, 3];
const LARGER: [u64; 7] = [6, 8, 12, 16, 32, 64, 128];
/// Sizes that differ by less than this fraction from a more interesting one are left out.
const NEAR: f64 = 1.0 / 32.0;

/// Space, and what it saves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Bytes.
    pub bytes: f64,
    /// Seconds.
    pub saves_s: f64,
}

/// What more and more space saves a region that may have a layout for each of these sizes (bytes,
/// seconds). The steps are in the order in which they save most per byte.
pub fn steps(mut layouts: Vec<(f64, f64)>) -> Vec<Step> {
    layouts.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut steps = Vec::new();
    let Some(&(mut at, mut seconds)) = layouts.first() else { return steps };
    loop {
        let step = |it: &(f64, f64)| Step { bytes: it.0 - at, saves_s: seconds - it.1 };
        let better = layouts.iter().map(step).filter(|step| step.bytes > 0.0 && step.saves_s > 0.0);
        let Some(best) = better.max_by(|one, other| one.rate().total_cmp(&other.rate())) else { return steps };
        (at, seconds) = (at + best.bytes, seconds - best.saves_s);
        steps.push(best);
    }
}

impl Step {
    /// Seconds per byte.
    fn rate(&self) -> f64 {
        self.saves_s / self.bytes
    }
}

/// The sizes to show, in ascending order, of a tier of `now` bytes of which the files can use up to
/// `needed`: none, fractions and multiples of the present size, all that is needed, and the sizes
/// where the files that save most per byte fit.
pub fn sizes(now: u64, needed: u64, steps: Vec<Step>) -> Vec<u64> {
    let needed = round(needed as f64);
    let knees = knees(steps).into_iter().filter(|&knee| knee < needed);
    let mut sizes: Vec<u64> = knees.chain([now, needed]).collect();
    let base = if now == 0 { needed } else { now.min(needed) };
    let quarters =
        |of: u64, count: u64| u64::try_from(u128::from(of) * u128::from(count) / 4).unwrap_or(u64::MAX);
    let larger = LARGER.iter().map(|&count| quarters(now, count)).filter(|&size| size < needed);
    let round: Vec<u64> = SMALLER.iter().map(|&count| quarters(base, count)).chain(larger).collect();
    let is_near = |size: u64, other: u64| (size as f64 - other as f64).abs() < NEAR * other as f64;
    let exact = sizes.clone();
    sizes.extend(round.into_iter().filter(|&size| !exact.iter().any(|&other| is_near(size, other))));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The sizes at which the line of what is saved over the space bends most.
fn knees(mut steps: Vec<Step>) -> Vec<u64> {
    steps.sort_by(|one, other| other.rate().total_cmp(&one.rate()));
    let mut line = vec![Step { bytes: 0.0, saves_s: 0.0 }];
    for step in steps {
        let last = line[line.len() - 1];
        line.push(Step { bytes: last.bytes + step.bytes, saves_s: last.saves_s + step.saves_s });
    }
    // The corners of a coarser line, which gets the corner where it is off most.
    let mut corners = vec![0, line.len() - 1];
    for _ in 0..KNEES {
        let off = |of: usize| {
            let next = corners.partition_point(|&corner| corner < of);
            let (left, right) = (line[corners[next - 1]], line[corners[next]]);
            let straight = left.saves_s
                + (right.saves_s - left.saves_s) * (line[of].bytes - left.bytes) / (right.bytes - left.bytes);
            line[of].saves_s - straight
        };
        let between = (1..line.len()).filter(|of| !corners.contains(of)).map(|of| (of, off(of)));
        match between.max_by(|one, other| one.1.total_cmp(&other.1)) {
            Some((corner, off)) if off > SHARP * line[line.len() - 1].saves_s => {
                corners.insert(corners.partition_point(|&known| known < corner), corner);
            }
            _ => break,
        }
    }
    corners[1..corners.len() - 1].iter().map(|&corner| round(line[corner].bytes)).collect()
}

/// The next number of bytes with at most 11 binary digits.
fn round(bytes: f64) -> u64 {
    let unit = 1u64 << (bytes.max(1.0).log2() as u32).saturating_sub(10).min(53);
    ((bytes / unit as f64).ceil() as u64).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const M: f64 = 1048576.0;

    fn step(bytes: f64, saves_s: f64) -> Step {
        Step { bytes, saves_s }
    }

    #[test]
    fn steps_are_those_that_save_most_per_byte() {
        let layouts = vec![(0.0, 10.0), (16.0, 2.0), (8.0, 9.0), (32.0, 1.0), (64.0, 3.0)];
        assert_eq!(steps(layouts), [step(16.0, 8.0), step(16.0, 1.0)]);
        assert_eq!(steps(Vec::new()), []);
    }

    #[test]
    fn the_size_where_a_file_fits_that_gains_most_is_shown() {
        let all = sizes(24 << 20, 256 << 20, vec![step(240.0 * M, 0.4), step(16.0 * M, 9.0)]);
        let mib: Vec<f64> = all.iter().map(|&size| size as f64 / M).collect();
        assert_eq!(mib, [0.0, 6.0, 12.0, 16.0, 18.0, 24.0, 36.0, 48.0, 72.0, 96.0, 192.0, 256.0]);
    }

    #[test]
    fn of_more_space_than_is_needed_fractions_of_what_is_needed_are_shown() {
        assert_eq!(sizes(1000, 80, vec![step(80.0, 1.0)]), [0, 20, 40, 60, 80, 1000]);
        assert_eq!(sizes(0, 80, Vec::new()), [0, 20, 40, 60, 80], "a tier without servers' space");
    }

    proptest! {
        #[test]
        fn sizes_are_few_and_in_order(
            now in prop_oneof![0u64..1 << 40, any::<u64>()],
            needed in prop_oneof![1u64..1 << 40, any::<u64>()],
            all in prop::collection::vec((1u64..1 << 36, 0.0f64..10.0), 0..40),
        ) {
            let all = all.iter().map(|&(bytes, saves_s)| step(bytes as f64, saves_s)).collect();
            let sizes = sizes(now, needed, all);
            prop_assert!(sizes.len() <= SMALLER.len() + LARGER.len() + KNEES + 2);
            prop_assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
            prop_assert!(sizes.contains(&now) && sizes.iter().any(|&size| size >= needed.min(u64::MAX / 2)));
        }

        #[test]
        fn rounded_sizes_are_no_smaller(bytes in 0u64..1 << 53) {
            let rounded = round(bytes as f64);
            prop_assert!(rounded >= bytes && rounded as f64 <= (bytes as f64 * 1.001).ceil());
        }
    }
}
