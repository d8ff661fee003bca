//! Processes the chunks of a long file, sequentially or several in parallel.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::error::Result;

enum Event {
    Moved(u64),
    Done(u64, Result<u32>),
}

/// Calls `work` with each of `indices`, `streams` of them in parallel, and with a function that it
/// calls with the bytes moved since the last such call. Calls `finish` with each
/// result and `moved` with the progress, both on the caller's thread. With one stream everything
/// runs on the caller's thread, in order.
///
/// # Errors
/// The first error of `work` or `finish`. After it no chunk is started, and those in progress are
/// completed.
pub(super) fn each(
    indices: &[u64],
    streams: usize,
    work: impl Fn(u64, &mut dyn FnMut(u64)) -> Result<u32> + Sync,
    mut moved: impl FnMut(u64),
    mut finish: impl FnMut(u64, u32) -> Result<()>,
) -> Result<()> {
    let streams = streams.min(indices.len());
    if streams <= 1 {
        return indices.iter().try_for_each(|&index| finish(index, work(index, &mut moved)?));
    }
    let (next, stop) = (Mutex::new(indices.iter()), AtomicBool::new(false));
    let take = || next.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next().copied();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..streams {
            let (sender, take, work, stop) = (sender.clone(), &take, &work, &stop);
            scope.spawn(move || {
                // Sending fails only if the receiver is gone; then the result is not needed.
                while let (false, Some(index)) = (stop.load(Ordering::Relaxed), take()) {
                    let done = work(index, &mut |bytes| _ = sender.send(Event::Moved(bytes)));
                    let _ = sender.send(Event::Done(index, done));
                }
            });
        }
        drop(sender);
        let mut result = Ok(());
        for event in receiver {
            let ended = match event {
                Event::Moved(bytes) => {
                    moved(bytes);
                    continue;
                }
                Event::Done(index, done) => done.and_then(|sum| finish(index, sum)),
            };
            if let (Err(error), true) = (ended, result.is_ok()) {
                stop.store(true, Ordering::Relaxed);
                result = Err(error);
            }
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use super::super::error::MigrateError;
    use super::*;

    #[test]
    fn every_chunk_is_done_once() {
        for streams in [0, 1, 3, 50] {
            let indices: Vec<u64> = (5..25).collect();
            let (mut moved, mut done) = (0, Vec::new());
            let work = |index: u64, tell: &mut dyn FnMut(u64)| {
                tell(index);
                tell(1);
                Ok(index as u32 * 2)
            };
            let finish = |index, sum| {
                done.push((index, sum));
                Ok(())
            };
            each(&indices, streams, work, |bytes| moved += bytes, finish).unwrap();
            done.sort_unstable();
            assert_eq!(done, indices.iter().map(|&index| (index, index as u32 * 2)).collect::<Vec<_>>());
            assert_eq!(moved, indices.iter().sum::<u64>() + 20);
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        for streams in [1, 4] {
            let indices: Vec<u64> = (0..10_000).collect();
            let busy = || MigrateError::Busy("f".into());
            let work = |index, _: &mut dyn FnMut(u64)| if index == 3 { Err(busy()) } else { Ok(0) };
            let mut finished = 0;
            let count = |_, _| {
                finished += 1;
                Ok(())
            };
            assert_eq!(each(&indices, streams, work, |_| {}, count), Err(busy()));
            assert!(finished < 10_000, "{finished}");
        }
    }
}
