//! Sizes of calls, from what Darshan counts of them: bytes, calls in ten ranges of sizes, and the
//! most frequent sizes.

/// Number of ranges of sizes.
pub(super) const BUCKETS: usize = 10;

/// The largest size of every range but the last: `DARSHAN_BUCKET_INC` in
/// `darshan-runtime/lib/darshan-common.h` of Darshan 3.5.
const LARGEST: [u64; BUCKETS - 1] =
    [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];

/// The range of a size.
pub(super) fn bucket(size: u64) -> usize {
    LARGEST.iter().position(|&largest| size <= largest).unwrap_or(BUCKETS - 1)
}

/// Smallest and largest size of a range, where no size is above `most`.
fn bounds(bucket: usize, most: u64) -> (u64, u64) {
    let smallest = bucket.checked_sub(1).map_or(0, |before| LARGEST[before] + 1);
    (smallest, LARGEST.get(bucket).copied().unwrap_or(most).max(smallest))
}

/// Sizes and how many calls have each: `calls` calls in all, of `bytes` bytes together as far as
/// the ranges allow that. The most frequent sizes are true; between the bounds of a range, all
/// others are as far from the smallest as in every other range.
pub(super) fn of(
    calls: u64,
    bytes: u64,
    histogram: Option<[u64; BUCKETS]>,
    common: &[(u64, u64)],
) -> Vec<(u64, u64)> {
    let mut left = histogram.unwrap_or_default();
    let (mut calls_left, mut bytes_left) = (calls, bytes);
    let mut sizes = Vec::new();
    for &(size, times) in common {
        // Which of them were reads is guessed. All of them together have no more than all bytes.
        let times =
            times.min(left[bucket(size)]).min(calls_left).min(bytes_left.checked_div(size).unwrap_or(times));
        left[bucket(size)] -= times;
        calls_left -= times;
        bytes_left -= times * size;
        sizes.push((size, times));
    }
    sizes.extend(between(calls_left, bytes_left, left));
    sizes.retain(|(_, times)| *times > 0);
    sizes
}

/// Sizes of calls of which only the range is known, or nothing.
fn between(calls: u64, bytes: u64, mut left: [u64; BUCKETS]) -> Vec<(u64, u64)> {
    let mut calls_left = calls;
    for times in &mut left {
        *times = (*times).min(calls_left);
        calls_left -= *times;
    }
    let ranges: Vec<((u64, u64), u64)> = (0..BUCKETS)
        .map(|bucket| (bounds(bucket, bytes), left[bucket]))
        .filter(|(_, times)| *times > 0)
        .collect();
    let total = |pick: fn(&(u64, u64)) -> u64| {
        ranges.iter().map(|(bounds, times)| pick(bounds) as f64 * *times as f64).sum::<f64>()
    };
    let (least, most) = (total(|bounds| bounds.0), total(|bounds| bounds.1));
    let fraction = ((bytes as f64 - least) / (most - least).max(1.0)).clamp(0.0, 1.0);
    let size = |(smallest, largest): (u64, u64)| smallest + (fraction * (largest - smallest) as f64) as u64;
    let mut sizes: Vec<(u64, u64)> = ranges.iter().map(|(bounds, times)| (size(*bounds), *times)).collect();
    // Calls in no range are of one size.
    let rest = bytes.saturating_sub(sum(&sizes)).checked_div(calls_left);
    sizes.extend(rest.map(|size| (size, calls_left)));
    let missing = bytes.saturating_sub(sum(&sizes));
    spread(missing, calls, sizes)
}

/// Adds a byte to as many calls as bytes are missing, if they are fewer than calls.
fn spread(missing: u64, calls: u64, sizes: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut missing = if missing <= calls { missing } else { 0 };
    let longer = sizes.into_iter().flat_map(|(size, times)| {
        let longer = missing.min(times);
        missing -= longer;
        [(size, times - longer), (size + 1, longer)]
    });
    longer.collect()
}

fn sum(sizes: &[(u64, u64)]) -> u64 {
    sizes.iter().fold(0, |sum, (size, times)| sum.saturating_add(size.saturating_mul(*times)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(sizes: &[(u64, u64)]) -> u64 {
        sizes.iter().map(|(_, times)| times).sum()
    }

    #[test]
    fn frequent_sizes_are_true() {
        let mut histogram = [0; BUCKETS];
        histogram[bucket(4096)] = 100;
        assert_eq!(of(100, 409_600, Some(histogram), &[(4096, 100)]), [(4096, 100)]);
    }

    #[test]
    fn bytes_and_calls_add_up() {
        let mut histogram = [0; BUCKETS];
        (histogram[0], histogram[3], histogram[4], histogram[9]) = (7, 1000, 13, 2);
        for bytes in [3_000_000_000, 4_123_456_789, 5_000_000_001] {
            let sizes = of(1022, bytes, Some(histogram), &[(65536, 300)]);
            assert_eq!((calls(&sizes), sum(&sizes)), (1022, bytes), "{sizes:?}");
        }
    }

    #[test]
    fn without_ranges_all_calls_are_alike() {
        assert_eq!(of(3, 10, None, &[]), [(3, 2), (4, 1)]);
        assert_eq!(of(0, 0, None, &[]), []);
    }

    #[test]
    fn counters_that_contradict_each_other_keep_the_number_of_calls() {
        let sizes = of(5, 0, Some([u64::MAX; BUCKETS]), &[(u64::MAX, u64::MAX)]);
        assert_eq!(calls(&sizes), 5);
        assert_eq!(calls(&of(u64::MAX, u64::MAX, Some([3; BUCKETS]), &[(1, 2)])), u64::MAX);
    }
}
