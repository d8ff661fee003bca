//! Tracks which servers applications are using: background work waits until the servers it needs
//! are idle.
//!
//! `activity/servers`, next to the run directories of the extent maps, holds one word per server:
//! the time until which the server counts as in use (CLOCK_MONOTONIC, ns). All processes of the
//! node that use the files of one user share the words. Every request advances the words of its
//! servers when it begins and when it ends. Nothing has to be released, so killed processes leave
//! nothing behind. Requests to files without extra copies and requests of other nodes are not
//! tracked; copying yields to the latter by their delay ([`stripewise_policy::yielding`]).

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_extents::CopyId;
use stripewise_policy::background::{USED_NS_MAX, recent_ns, used_for_ns};
use stripewise_sys::user::act_as;
use stripewise_sys::{Errno, Fd, ForkLock, Mode, OFlags, SharedMap, SysRef};
use stripewise_target::TargetRef;

use crate::Result;
use crate::manifest::Manifest;
use crate::pool::pool_of;

/// Number of words. With more servers, several share a word, and all of them count as in use while
/// one of them is.
const SLOTS: usize = 512;
/// Each word has a cache line of its own, so that updates for different servers do not contend.
const SLOT_WORDS: usize = 8;
/// A word is not advanced by less than this, to save writes.
const STEP_NS: u64 = 1_000_000;

/// The directory with the run directories of a user's extent maps and these files.
#[derive(Clone, Copy)]
pub(crate) struct Base<'a> {
    pub path: &'a Path,
    /// The owner of the files, if root creates them for another user.
    pub owner: Option<u32>,
}

/// Opens or creates a file of words in a directory below the base.
pub(super) fn open_words(sys: &SysRef, path: &Path, owner: Option<u32>) -> Result<Fd> {
    let _acting = act_as(owner);
    let parents: Vec<&Path> = path.ancestors().skip(1).take(2).collect();
    for parent in parents.into_iter().rev() {
        match sys.mkdir(None, parent, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
    sys.open(None, path, flags, Mode::RUSR | Mode::WUSR)
}

/// Maps the words, which are 0 in a new file. Allocates memory for all of them, so that a shortage
/// is an error here and not a SIGBUS later.
pub(super) fn map_words(sys: &SysRef, file: BorrowedFd<'_>, words: usize) -> Result<SharedMap> {
    let bytes = (words * size_of::<u64>()) as u64;
    if (sys.stat(file)?.st_size as u64) < bytes {
        sys.truncate(file, bytes)?;
        sys.allocate(file, 0, bytes, true)?;
    }
    sys.map_shared(file, words)
}

/// Files of words that this process has mapped, by path.
pub(crate) type SharedWords = ByPath<SharedMap>;

/// What this process has opened, by path.
pub(crate) struct ByPath<T>(ForkLock<HashMap<PathBuf, Arc<T>>>);

impl<T> Default for ByPath<T> {
    fn default() -> Self {
        Self(ForkLock::default())
    }
}

impl<T> ByPath<T> {
    /// Whether it was used before.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.lock().contains_key(path)
    }

    /// What is at `path`; opened with `map` at its first use.
    pub(super) fn get(&self, path: PathBuf, map: impl FnOnce(&Path) -> Result<T>) -> Result<Arc<T>> {
        let known = self.0.lock().get(&path).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let map = Arc::new(map(&path)?);
        // If another thread was first, its mapping stays.
        Ok(self.0.lock().entry(path).or_insert(map).clone())
    }
}

fn words_of(sys: &SysRef, known: &SharedWords, base: Base<'_>) -> Result<Arc<SharedMap>> {
    let path = base.path.join("activity").join("servers");
    known.get(path, |path| map_words(sys, open_words(sys, path, base.owner)?.as_fd(), SLOTS * SLOT_WORDS))
}

pub(crate) struct Activity {
    /// `None` if the words are unavailable; all servers then count as in use.
    words: Option<Arc<SharedMap>>,
    slots: Vec<Box<[usize]>>,
    /// Recent request duration, see [`recent_ns`].
    took_ns: AtomicU64,
}

impl Activity {
    pub fn new(sys: &SysRef, activities: &SharedWords, base: Base<'_>, manifest: &Manifest) -> Self {
        let slot = |target: &TargetRef| {
            // The targets of a pool share its servers.
            let pool = pool_of(&target.name, &target.path);
            let key = pool.map_or_else(|| target.id.clone(), |(pool, _)| pool.key());
            crc32fast::hash(key.as_bytes()) as usize % SLOTS * SLOT_WORDS
        };
        let slots = manifest.all_copies().map(|copy| copy.targets.iter().map(slot).collect());
        let words = words_of(sys, activities, base).ok();
        Self { words, slots: slots.collect(), took_ns: AtomicU64::new(0) }
    }

    /// Records that a request of an application uses these objects of a copy.
    pub fn mark(&self, copy: CopyId, objects: impl Iterator<Item = u32>, now_ns: u64) {
        let (Some(words), Some(slots)) = (&self.words, self.slots.get(copy.index())) else { return };
        let until = now_ns + used_for_ns(self.took_ns.load(Ordering::Relaxed));
        let mut last = None;
        for object in objects.filter(|&object| last.replace(object) != Some(object)) {
            let Some(word) = slots.get(object as usize).and_then(|&slot| words.words().get(slot)) else {
                continue;
            };
            let known = word.load(Ordering::Relaxed);
            if known > now_ns + USED_NS_MAX {
                word.store(until, Ordering::Relaxed);
            } else if known + STEP_NS < until {
                word.fetch_max(until, Ordering::Relaxed);
            }
        }
    }

    pub fn took(&self, ns: u64) {
        let known = self.took_ns.load(Ordering::Relaxed);
        self.took_ns.store(recent_ns(known, ns), Ordering::Relaxed);
    }

    /// Returns whether an application uses a server of these copies.
    pub fn is_used(&self, mut copies: impl Iterator<Item = CopyId>, now_ns: u64) -> bool {
        let Some(words) = &self.words else { return true };
        let is_used = |&slot: &usize| {
            let until = words.words().get(slot).map_or(0, |word| word.load(Ordering::Relaxed));
            (now_ns + 1..=now_ns + USED_NS_MAX).contains(&until)
        };
        copies.any(|copy| self.slots.get(copy.index()).is_some_and(|slots| slots.iter().any(is_used)))
    }
}

#[cfg(test)]
mod tests {
    use stripewise_policy::background::USED_NS;

    use super::super::state::Overlay;
    use super::*;

    impl Overlay {
        /// Acts as if a request of this process had taken this time.
        pub(crate) fn took(&self, time: std::time::Duration) {
            self.activity.took(time.as_nanos() as u64);
        }
    }

    const NOW: u64 = 1_000_000_000_000;

    /// The activity of a file whose copies use these words, as a process of its own would see it.
    fn activity(base: &Path, slots: &[&[usize]]) -> Activity {
        let sys: SysRef = Arc::new(stripewise_sys::Real);
        let words = words_of(&sys, &SharedWords::default(), Base { path: base, owner: None }).ok();
        let slots = slots.iter().map(|slots| slots.iter().map(|slot| slot * SLOT_WORDS).collect()).collect();
        Activity { words, slots, took_ns: AtomicU64::new(0) }
    }

    fn copies(numbers: std::ops::Range<usize>) -> impl Iterator<Item = CopyId> {
        numbers.map(CopyId::new)
    }

    #[test]
    fn what_one_process_uses_others_see() {
        let base = tempfile::tempdir().unwrap();
        let (one, two) = (activity(base.path(), &[&[0, 1], &[2]]), activity(base.path(), &[&[1], &[2, 511]]));
        assert!(!two.is_used(copies(0..2), NOW), "nobody uses anything yet");
        one.mark(CopyId::new(0), [0, 0, 1].into_iter(), NOW);
        assert!(two.is_used(copies(0..1), NOW) && two.is_used(copies(0..2), NOW));
        assert!(!two.is_used(copies(1..2), NOW), "another server");
        assert!(two.is_used(copies(0..1), NOW + USED_NS - 1) && !two.is_used(copies(0..1), NOW + USED_NS));
    }

    #[test]
    fn slow_requests_are_waited_for() {
        let base = tempfile::tempdir().unwrap();
        let (one, two) = (activity(base.path(), &[&[0]]), activity(base.path(), &[&[0]]));
        one.took(400_000_000);
        one.took(1_000);
        one.mark(CopyId::new(0), [0].into_iter(), NOW);
        assert!(two.is_used(copies(0..1), NOW + 600_000_000) && !two.is_used(copies(0..1), NOW + 800_000_000));
        (0..100).for_each(|_| one.took(1_000));
        one.mark(CopyId::new(0), [0].into_iter(), NOW + 1_000_000_000);
        assert!(!two.is_used(copies(0..1), NOW + 1_000_000_000 + USED_NS), "they are quick again");
    }

    #[test]
    fn nonsense_does_not_stop_the_work_for_ever() {
        let base = tempfile::tempdir().unwrap();
        let one = activity(base.path(), &[&[0]]);
        one.words.as_ref().unwrap().words()[0].store(u64::MAX, Ordering::Relaxed);
        assert!(!one.is_used(copies(0..1), NOW));
        one.mark(CopyId::new(0), [0].into_iter(), NOW);
        assert!(one.is_used(copies(0..1), NOW) && !one.is_used(copies(0..1), NOW + USED_NS));
    }

    #[test]
    fn without_words_all_servers_are_used() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("activity"), "not a directory").unwrap();
        let one = activity(base.path(), &[&[0]]);
        one.mark(CopyId::new(0), [0].into_iter(), NOW);
        assert!(one.is_used(copies(0..1), NOW + USED_NS_MAX));
    }
}
