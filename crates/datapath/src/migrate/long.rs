//! Fills the temporary of a long file chunk by chunk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};

use super::contents::{Contents, Version};
use super::copy::{checksum, copy_range};
use super::error::{MigrateError, Result};
use super::job::{Job, Pace, Phase, Progress};
use super::journal::Journal;

impl Job<'_> {
    /// Copies the missing chunks and verifies all.
    ///
    /// A file of several chunks gets its attributes last: a user who may not write to a read-only
    /// copy could not resume after a kill. A file with one chunk and one copy would be started
    /// again anyway, so it gets its attributes first and is synced once.
    pub(super) fn fill(
        &mut self,
        journal: &mut Journal,
        destination: &Contents,
        mut sums: Vec<Option<u32>>,
    ) -> Result<()> {
        sums.resize(self.version.chunk_count(self.pace.chunk_bytes) as usize, None);
        self.copy_chunks(journal, destination, &mut sums)?;
        destination.set_size(self.version.size).map_err(self.io("set the size of the copy of"))?;
        destination.settle().map_err(self.io("bring in sync the copy of"))?;
        // A file with several copies must be open to be read back, and its map must be closed
        // before the file is given to its owner.
        let single = sums.len() <= 1 && destination.managed().is_none_or(|file| file.overlay().is_none());
        if single {
            self.give_attributes(destination)?;
        }
        destination.sync().map_err(self.io("sync the copy of"))?;
        let copied_again = self.verify_chunks(destination, &sums)?;
        if single && !copied_again {
            return Ok(());
        }
        self.give_attributes(destination)?;
        destination.sync().map_err(self.io("sync the copy of"))
    }

    pub(super) fn give_attributes(&self, destination: &Contents) -> Result<()> {
        destination
            .take_attributes(&self.stat, &self.source)
            .map_err(self.io("set the attributes of the copy of"))
    }

    fn copy_chunks(
        &mut self,
        journal: &mut Journal,
        destination: &Contents,
        sums: &mut [Option<u32>],
    ) -> Result<()> {
        let missing: Vec<u64> = (0..).zip(&*sums).filter(|(_, sum)| sum.is_none()).map(|(n, _)| n).collect();
        let (version, pace, source) = (self.version, self.pace, &self.source);
        let (unread, unwritten) = (self.io("copy"), self.io("write the journal of"));
        let work = |index, tell: &mut dyn FnMut(u64)| {
            let range = range(&version, pace, index);
            increments(range, tell, |tell| copy_range(source, destination, range, tell)).map_err(&unread)
        };
        // With several chunks, a recorded chunk need not be copied again. If a managed file is
        // replaced, the complete record shows that its objects may be removed.
        let noted = sums.len() > 1 || source.managed().is_some();
        let absent: u64 = missing.iter().map(|&index| range(&version, pace, index)).map(|(a, b)| b - a).sum();
        let mut done = version.size - absent;
        if done > 0 {
            (self.progress)(Progress { phase: Phase::Found, done, total: version.size });
        }
        let moved = |bytes| {
            done += bytes;
            (self.progress)(Progress { phase: Phase::Copy, done, total: version.size });
        };
        each_chunk(&missing, pace.streams, work, moved, |index, sum| {
            sums[index as usize] = Some(sum);
            if noted { journal.chunk_done(index, sum).map_err(&unwritten) } else { Ok(()) }
        })
    }

    /// Reads all chunks back. Copies a chunk again if it differs: an earlier run's chunk may be
    /// lost in a power cut although the journal lists it. Returns whether any was copied again.
    fn verify_chunks(&mut self, destination: &Contents, sums: &[Option<u32>]) -> Result<bool> {
        destination.forget().map_err(self.io("read back the copy of"))?;
        let (version, pace, source) = (self.version, self.pace, &self.source);
        let (unread, unwritten, unsynced) =
            (self.io("read back the copy of"), self.io("copy"), self.io("sync the copy of"));
        let (path, copied_again) = (self.path, AtomicBool::new(false));
        let work = |index, tell: &mut dyn FnMut(u64)| {
            let range = range(&version, pace, index);
            let sum = sums[index as usize].unwrap_or_default();
            let read = increments(range, tell, |tell| checksum(destination, range, tell)).map_err(&unread)?;
            if read == sum {
                return Ok(sum);
            }
            copied_again.store(true, Ordering::Relaxed);
            let sum = copy_range(source, destination, range, |_| tell(0)).map_err(&unwritten)?;
            destination.sync().map_err(&unsynced)?;
            match checksum(destination, range, |_| {}).map_err(&unread)? == sum {
                true => Ok(sum),
                false => Err(MigrateError::Damaged(path.into())),
            }
        };
        let mut done = 0;
        let moved = |bytes| {
            done += bytes;
            (self.progress)(Progress { phase: Phase::Verify, done, total: version.size });
        };
        let all: Vec<u64> = (0..sums.len() as u64).collect();
        each_chunk(&all, pace.streams, work, moved, |_, _| Ok(()))?;
        Ok(copied_again.into_inner())
    }
}

fn range(version: &Version, pace: Pace, index: u64) -> (u64, u64) {
    (index * pace.chunk_bytes, ((index + 1) * pace.chunk_bytes).min(version.size))
}

/// Converts the progress of `work`, an end offset, into bytes since the last call; holes count as
/// done.
fn increments(
    (from, to): (u64, u64),
    tell: &mut dyn FnMut(u64),
    work: impl FnOnce(&mut dyn FnMut(u64)) -> crate::Result<u32>,
) -> crate::Result<u32> {
    let mut at = from;
    let sum = work(&mut |end| {
        tell(end - at);
        at = end;
    })?;
    if at < to {
        tell(to - at);
    }
    Ok(sum)
}

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
fn each_chunk(
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
            each_chunk(&indices, streams, work, |bytes| moved += bytes, finish).unwrap();
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
            assert_eq!(each_chunk(&indices, streams, work, |_| {}, count), Err(busy()));
            assert!(finished < 10_000, "{finished}");
        }
    }
}
