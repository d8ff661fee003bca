//! The group counts of 2-D that are worth a candidate.

/// Up to this number of servers every group count is a candidate.
pub const EVERY_COUNT: usize = 128;

/// The group counts to try for 2-D over `servers` servers, ascending, among them 1 (1-DH) and
/// `servers` (1-DV). `sharers` are the numbers of processes and of files that are divided over the
/// groups.
///
/// Up to [`EVERY_COUNT`] servers these are all counts. Over more servers, the largest count remains
/// of all those whose smallest groups have m servers: `⌊servers / m⌋`. A smaller one has more
/// processes on each group, and gains one server in some of the groups only. All counts up to
/// `√servers` are among these. Above `servers / 8` there are at least eight counts per power of
/// two, because the mixture of larger and smaller groups matters there. The counts over which the
/// sharers divide evenly remain, too: with them each process or file can stay on one group.
/// Together these are little more than `2·√servers` (`docs/decisions/0002-costs-and-elapsed.md`).
pub fn group_counts(servers: usize, sharers: &[usize]) -> Vec<usize> {
    group_counts_beyond(EVERY_COUNT, servers, sharers)
}

/// As [`group_counts`], with every count up to `every` servers only.
pub fn group_counts_beyond(every: usize, servers: usize, sharers: &[usize]) -> Vec<usize> {
    if servers <= every {
        return (1..=servers).collect();
    }
    let root = servers.isqrt();
    let mut counts: Vec<usize> = (1..=root).flat_map(|m| [m, servers / m]).collect();
    // Where groups have fewer than eight servers, one server more is more than an eighth.
    counts.extend((0..3).flat_map(|halved| (9..16).map(move |eighths| (servers >> halved) * eighths / 16)));
    counts.extend(sharers.iter().flat_map(|&sharers| divisors(sharers)).filter(|&count| count <= servers));
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn divisors(number: usize) -> impl Iterator<Item = usize> {
    let small = (1..=number.isqrt()).filter(move |&divisor| number.is_multiple_of(divisor));
    small.flat_map(move |divisor| [divisor, number / divisor])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_clusters_have_every_count() {
        for servers in 1..=EVERY_COUNT {
            assert_eq!(group_counts(servers, &[7]), (1..=servers).collect::<Vec<_>>());
        }
    }

    proptest! {
        /// For every count left out there is one with more groups of the same least size.
        #[test]
        fn a_count_left_out_has_a_better_one(servers in EVERY_COUNT + 1..20_000, sharers in 1usize..100_000) {
            let counts = group_counts(servers, &[sharers]);
            prop_assert!(counts.is_sorted_by(|a, b| a < b));
            prop_assert!(counts.len() <= 2 * servers.isqrt() + 21 + divisors(sharers).count());
            prop_assert!((1..=servers).filter(|&count| sharers.is_multiple_of(count)).all(|c| counts.contains(&c)));
            for count in 1..=servers {
                let least = servers / count;
                let kept = servers / least;
                prop_assert!(kept >= count && servers / kept == least && counts.contains(&kept), "{count}");
            }
        }
    }
}
