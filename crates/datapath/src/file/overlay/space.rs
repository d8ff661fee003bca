//! Accounting of the space that cache copies use on their servers: one word per server, shared by
//! all files and processes of the node.
//!
//! The targets of a pool share its servers, and the file system decides which server holds which
//! bytes. All targets of a pool therefore share one word, whose limit is the sum over all servers
//! of the pool.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_cluster::OverlayKind;
use stripewise_policy::background::eviction_order;
use stripewise_policy::{Space, Want};
use stripewise_sys::{LockKind, SharedMap, SysRef};
use stripewise_target::{Target, list_components};

use super::super::OpenCopy;
use super::CopySet;
use super::words::{Base, map_words, open_words};
use crate::Result;
use crate::anchor;
use crate::forked::ForkSafe;
use crate::pool::{pool_of, servers_of};

const MAGIC: u64 = u64::from_le_bytes(*b"swspace1");
/// Words of a file: one page.
const WORDS: usize = 512;
/// Index of the word that is `MAGIC` once the count is valid.
const READY: usize = 0;
/// Index of the word that counts the used bytes.
const USED: usize = 1;
/// Bytes of the file that are locked: `COUNTING` while the space is counted, `USING` as long as a
/// process has the words mapped.
const COUNTING: u64 = 0;
const USING: u64 = 1;

/// The words that this process has mapped, by path.
pub(crate) struct Spaces {
    sys: SysRef,
    words: ForkSafe<HashMap<PathBuf, Arc<SharedMap>>>,
}

impl Spaces {
    pub fn new(sys: SysRef) -> Self {
        Self { sys, words: ForkSafe::default() }
    }

    /// The word of a target. Counts its used space first if no process of the node has the word
    /// mapped.
    fn word(&self, base: Base<'_>, target: &Target) -> Result<Arc<SharedMap>> {
        let pool = pool_of(target.name(), target.path());
        let path = base.path.join("space").join(pool.map_or(target.id().to_owned(), |(pool, _)| pool.key()));
        let known = self.words.lock().get(&path).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let map = Arc::new(self.map(&path, base.owner, target)?);
        // If another thread was first, its mapping stays.
        Ok(self.words.lock().entry(path).or_insert(map).clone())
    }

    fn map(&self, path: &Path, owner: Option<u32>, target: &Target) -> Result<SharedMap> {
        let file = open_words(&self.sys, path, owner)?;
        self.sys.lock(file.as_fd(), COUNTING, 1, LockKind::Exclusive)?;
        // Without other users, correct the errors that killed processes left: space reserved but
        // not used, or used but not counted.
        let first = self.sys.try_lock(file.as_fd(), USING, 1, LockKind::Exclusive)?;
        let map = self.map_counted(file.as_fd(), target, first);
        self.sys.lock(file.as_fd(), USING, 1, LockKind::Shared)?;
        // Unlock explicitly: the mapping keeps the open file description and its locks. The `USING`
        // lock stays as long as the mapping.
        let _ = self.sys.unlock(file.as_fd(), COUNTING, 1);
        map
    }

    fn map_counted(&self, file: BorrowedFd<'_>, target: &Target, first: bool) -> Result<SharedMap> {
        let map = map_words(&self.sys, file, WORDS)?;
        let known = map.words()[READY].load(Ordering::Acquire) == MAGIC;
        if !known {
            map.words()[USED].store(self.count(target), Ordering::Release);
            map.words()[READY].store(MAGIC, Ordering::Release);
        } else if first {
            self.count_again(&map, target);
        }
        Ok(map)
    }

    /// Corrects the count. On file systems that count holes as allocated, the new count is only an
    /// upper bound.
    fn count_again(&self, word: &SharedMap, target: &Target) {
        let (used, counted) = (&word.words()[USED], self.count(target));
        if anchor::counts_holes(&self.sys, target.dir()) {
            used.fetch_min(counted, Ordering::AcqRel);
        } else {
            used.store(counted, Ordering::Release);
        }
    }

    /// The bytes that the objects of cache copies use on a target, or on all targets of its pool.
    /// Too large where the file system counts holes as allocated.
    fn count(&self, target: &Target) -> u64 {
        let cached = |target: &Target| -> u64 {
            let found = list_components(&self.sys, target).unwrap_or_default();
            found.iter().filter(|found| found.cached).map(|found| found.allocated).sum()
        };
        let pool = pool_of(target.name(), target.path());
        let others = pool.map_or(Vec::new(), |(pool, _)| pool.targets(&self.sys));
        let others = others.iter().filter(|other| other.id() != target.id());
        cached(target) + others.map(cached).sum::<u64>()
    }

    /// The accounts of a copy's targets; `None` if a word is unavailable. `pool_servers` comes from
    /// the manifest.
    fn accounts(&self, base: Base<'_>, targets: &[Arc<Target>], pool_servers: &[u32]) -> Option<Accounts> {
        let account = |(index, target): (usize, &Arc<Target>)| {
            // Older manifests record only the servers of one stripe cycle, not all servers of the
            // pool.
            let turn = servers_of(target.name(), target.path());
            let servers = pool_servers.get(index).map_or(turn, |&servers| servers.max(turn));
            Some(Account { word: self.word(base, target).ok()?, servers: u64::from(servers) })
        };
        targets.iter().enumerate().map(account).collect()
    }

    /// Counts the space that cache copies use on a target again. Space reserved or released during
    /// the count may be counted wrong.
    ///
    /// # Errors
    /// Same as open(2).
    pub(super) fn recount(&self, base: Base<'_>, target: &Target) -> Result<()> {
        self.count_again(&*self.word(base, target)?, target);
        Ok(())
    }
}

/// The space account of a target.
pub(super) struct Account {
    word: Arc<SharedMap>,
    /// Number of servers that the word covers, at least 1: those of the target's pool, or the
    /// target itself.
    servers: u64,
}

/// The accounts of a copy's targets.
pub(super) type Accounts = Box<[Account]>;

impl Account {
    fn used(&self) -> &AtomicU64 {
        &self.word.words()[USED]
    }

    /// Bytes used per server if spread evenly.
    fn used_per_server(&self) -> u64 {
        self.used().load(Ordering::Acquire) / self.servers
    }
}

/// Reserves `bytes` on each of the targets, or nothing. Returns false if a server would hold more
/// than `limit`, or the servers of a pool more than that on average.
fn take(accounts: &Accounts, bytes: &[u64], limit: u64) -> bool {
    let wanted = || accounts.iter().zip(bytes.iter().copied()).filter(|&(_, bytes)| bytes > 0);
    let is_within =
        |account: &Account, used: u64, more| used.saturating_add(more) <= limit.saturating_mul(account.servers);
    // Usually the space is full: check first, without changing the words.
    if !wanted().all(|(account, bytes)| is_within(account, account.used().load(Ordering::Acquire), bytes)) {
        return false;
    }
    let mut taken = 0;
    let all = wanted().all(|(account, bytes)| {
        taken += 1;
        is_within(account, account.used().fetch_add(bytes, Ordering::AcqRel), bytes)
    });
    if !all {
        wanted().take(taken).for_each(|(account, bytes)| sub(account.used(), bytes));
    }
    all
}

/// Subtracts without going below 0: after a crash the count may be too small.
fn sub(word: &AtomicU64, bytes: u64) {
    let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| Some(used.saturating_sub(bytes)));
}

impl<'f> CopySet<'f> {
    /// The accounts of a copy's targets; tried again at each call until all words are available.
    fn accounts(&self, copy: &OpenCopy) -> Option<&'f Accounts> {
        let overlay = self.overlay;
        let known = overlay.accounts.get(copy.number())?;
        if known.get().is_none() {
            let extra = copy.number().checked_sub(1).and_then(|index| overlay.copies.list.get(index));
            let pool_servers = extra.map_or(&[][..], |extra| &extra.pool_servers);
            let targets = copy.components().targets();
            let _ = known.set(overlay.context.spaces.accounts(overlay.base(), targets, pool_servers)?);
        }
        known.get()
    }

    /// Number of servers on which a cache copy's space is counted, at least 1: its targets, and all
    /// servers of a pool.
    pub(crate) fn servers_of_space(&self, copy: &OpenCopy) -> u64 {
        let accounts = self.accounts(copy).map_or(&[][..], |accounts| accounts);
        let is_new = |&(index, account): &(usize, &Account)| {
            accounts[..index].iter().all(|before| !Arc::ptr_eq(&before.word, &account.word))
        };
        accounts.iter().enumerate().filter(is_new).map(|(_, account)| account.servers).sum::<u64>().max(1)
    }

    /// Reserves space for a range of a cache copy. Returns false if one of its servers has too
    /// little.
    pub(super) fn take_space(&self, copy: &OpenCopy, range: &Range<u64>) -> bool {
        let OverlayKind::Cache { capacity_per_server, .. } = self.overlay.copies.kind else { return false };
        let mut bytes = vec![0; copy.components().len()];
        copy.layout().bytes_per_target(range.start, range.end - range.start, &mut bytes);
        self.accounts(copy).is_some_and(|accounts| take(accounts, &bytes, capacity_per_server))
    }

    /// Bytes that the fullest server of a cache copy holds, of all files; for a pool, the mean of
    /// its servers.
    pub(crate) fn used_space(&self, copy: &OpenCopy) -> Option<u64> {
        self.accounts(copy)?.iter().map(Account::used_per_server).max()
    }

    /// Releases the space of these ranges of a copy.
    pub(super) fn give_space(&self, copy: &OpenCopy, ranges: &[Range<u64>]) {
        let mut bytes = vec![0; copy.components().len()];
        let mut of_range = bytes.clone();
        for range in ranges {
            copy.layout().bytes_per_target(range.start, range.end - range.start, &mut of_range);
            bytes.iter_mut().zip(&of_range).for_each(|(sum, bytes)| *sum += bytes);
        }
        let accounts = self.accounts(copy).into_iter().flatten();
        accounts
            .zip(bytes)
            .filter(|(_, bytes)| *bytes > 0)
            .for_each(|(account, bytes)| sub(account.used(), bytes));
    }
}

/// The space of a file's cache copies as seen by one request, and what the request has reserved.
pub(super) struct Reservation<'a> {
    copies: Option<&'a CopySet<'a>>,
    /// The reservations: copy and range.
    pub taken: Vec<(usize, Range<u64>)>,
}

impl<'a> Reservation<'a> {
    pub fn of(copies: &'a CopySet<'a>) -> Self {
        Self { copies: Some(copies), taken: Vec::new() }
    }

    /// For a request that may not reserve space.
    pub fn none() -> Self {
        Self { copies: None, taken: Vec::new() }
    }

    fn take(&mut self, want: &Want<'_>) -> bool {
        let Some(copies) = self.copies else { return false };
        let (number, range) = (want.copy, want.start..want.end);
        let Some(copy) = copies.usable(number) else { return false };
        // The policy gives bytes per server of the models; space is counted per target, so use the
        // range.
        let taken = copies.take_space(copy, &range);
        if taken {
            self.taken.push((number, range));
        }
        taken
    }
}

impl Space for Reservation<'_> {
    fn take_free(&mut self, want: &Want<'_>) -> bool {
        self.take(want)
    }

    fn take_clean(&mut self, want: &Want<'_>) -> bool {
        let Some(copies) = self.copies else { return false };
        if copies.usable(want.copy).is_none() {
            return false;
        }
        for copy in eviction_order(want.copy, copies.overlay.manifest.all_copies().count()) {
            if copies.make_room(copy, want.end - want.start) && self.take(want) {
                return true;
            }
        }
        false
    }
}
