//! Parallel work on many files, for commands that mostly wait for file systems.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Default number of files processed in parallel.
pub fn jobs_usual() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (8 * cores).clamp(8, 32)
}

/// Calls `work` with each of `items`, `jobs` of them in parallel on threads that end with the call.
/// Returns the results in the order of `items`. A panic in `work` is passed on to the caller.
pub fn in_parallel<I: Sync, T: Send>(items: &[I], jobs: usize, work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let take = || next.fetch_add(1, Ordering::Relaxed);
        let ours = std::iter::repeat_with(take).map_while(|index| Some((index, items.get(index)?)));
        ours.map(|(index, item)| (index, work(item))).collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(items.len())).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_are_done_once_in_order_and_at_once() {
        let items: Vec<u32> = (0..1000).collect();
        for jobs in [1, 3, 2000] {
            assert_eq!(in_parallel(&items, jobs, |item| item + 1), (1..=1000).collect::<Vec<_>>());
        }
        assert_eq!(in_parallel(&[0; 0], 4, |item| *item), []);
        // Four calls wait for each other, so they must run in parallel.
        let meet = Barrier::new(4);
        in_parallel(&[(); 8], 4, |()| meet.wait().is_leader());
        let failed = std::panic::catch_unwind(|| in_parallel(&items, 4, |&item| assert_ne!(item, 500)));
        assert!(failed.is_err());
    }
}
