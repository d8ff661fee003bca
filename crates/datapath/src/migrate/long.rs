//! Fills the temporary of a long file chunk by chunk.

use std::sync::atomic::{AtomicBool, Ordering};

use super::chunks;
use super::contents::{Contents, Version};
use super::copy::{checksum, copy_range};
use super::error::{MigrateError, Result};
use super::job::{Job, Pace, chunk_count};
use super::journal::Journal;
use super::progress::{Phase, Progress};

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
        sums.resize(chunk_count(&self.version, self.pace.chunk_bytes) as usize, None);
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

    fn give_attributes(&self, destination: &Contents) -> Result<()> {
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
        chunks::each(&missing, pace.streams, work, moved, |index, sum| {
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
        chunks::each(&all, pace.streams, work, moved, |_, _| Ok(()))?;
        Ok(copied_again.into_inner())
    }
}

/// The bytes of a chunk.
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
