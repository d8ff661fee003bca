//! Selects the requests of a group to examine: all, or windows of neighbors.
//!
//! Neighbors stay together because their order matters. A window shows how concurrent requests meet
//! on the servers; several windows show how that changes over the run.

use std::borrow::Cow;

use crate::workload::{Group, Request};

/// Number of neighboring requests that stay together when a group keeps only a sample.
pub const RUN: usize = 1024;

/// About `limit` requests of a group, in evenly spaced windows of `window` requests; the whole
/// sample if it is no longer than that.
pub fn windows(group: &Group, limit: usize, window: usize) -> Cow<'_, [Request]> {
    let sample = &group.sample[..];
    let window = window.clamp(1, sample.len().max(1));
    if sample.len() <= limit || window == sample.len() {
        return Cow::Borrowed(sample);
    }
    // If the sample has gaps, runs of neighbors begin at multiples of RUN.
    let step = if sample.len() as u64 == group.count { 1 } else { RUN };
    let count = (limit / window).clamp(1, sample.len() / window);
    let start = |index: usize| index * sample.len() / count / step * step;
    let one = |index: usize| &sample[start(index)..(start(index) + window).min(sample.len())];
    (0..count).flat_map(one).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stripewise_model::{Access, Op};

    fn group(kept: usize, count: u64) -> Group {
        let request = |offset| Request { offset, size: 1, ..Request::default() };
        let sample = (0..kept as u64).map(request).collect();
        Group {
            op: Op::Read,
            access: Access::Random,
            procs: 1,
            procs_per_node: 1,
            collective: false,
            count,
            bytes: count,
            sample,
        }
    }

    #[test]
    fn all_or_evenly_spaced_windows() {
        let all = group(5000, 5000);
        assert_eq!(windows(&all, 8192, 1024).len(), 5000);
        let some = windows(&all, 2048, 256);
        let starts: Vec<u64> = some.chunks(256).map(|window| window[0].offset).collect();
        assert_eq!(starts, [0, 625, 1250, 1875, 2500, 3125, 3750, 4375]);
        assert!(some.chunks(256).all(|window| window[255].offset == window[0].offset + 255));
    }

    #[test]
    fn windows_of_a_sample_with_gaps_begin_behind_them() {
        let gaps = group(8 * RUN, 1_000_000);
        assert!(windows(&gaps, 2048, 256).chunks(256).all(|window| window[0].offset % RUN as u64 == 0));
        assert_eq!(windows(&gaps, 2048, 100 * RUN).len(), 8 * RUN, "a window that does not fit is the whole");
    }
}
