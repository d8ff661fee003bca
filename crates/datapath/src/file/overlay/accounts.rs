//! Accounting of the space that cache copies use on their servers: one word per server, shared by
//! all files and processes of the node.
//!
//! The targets of a pool share its servers, and the file system decides which server holds which
//! bytes. All targets of a pool therefore share one word, whose limit is the sum over all servers
//! of the pool.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::{LockKind, SharedMap, SysRef};
use stripewise_target::Target;

use super::activity::{Base, SharedWords, map_words, open_words};
use crate::Result;
use crate::anchor;
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

pub(crate) struct Spaces {
    sys: SysRef,
    words: SharedWords,
}

impl Spaces {
    pub fn new(sys: SysRef) -> Self {
        Self { sys, words: SharedWords::default() }
    }

    /// The word of a target. Counts its used space first if no process of the node has the word
    /// mapped.
    fn word(&self, base: Base<'_>, target: &Target) -> Result<Arc<SharedMap>> {
        let pool = pool_of(target.name(), target.path());
        let path = base.path.join("space").join(pool.map_or(target.id().to_owned(), |(pool, _)| pool.key()));
        self.words.get(path, |path| self.map(path, base.owner, target))
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
            let found = target.list_objects().unwrap_or_default();
            found.iter().filter(|found| found.cached).map(|found| found.allocated).sum()
        };
        let pool = pool_of(target.name(), target.path());
        let others = pool.map_or(Vec::new(), |(pool, _)| pool.targets(&self.sys));
        let others = others.iter().filter(|other| other.id() != target.id());
        cached(target) + others.map(cached).sum::<u64>()
    }

    /// The accounts of a copy's targets; `None` if a word is unavailable. `pool_servers` comes from
    /// the manifest.
    pub fn accounts(&self, base: Base<'_>, targets: &[Arc<Target>], pool_servers: &[u32]) -> Option<Accounts> {
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
    pub fn recount(&self, base: Base<'_>, target: &Target) -> Result<()> {
        self.count_again(&*self.word(base, target)?, target);
        Ok(())
    }
}

pub(crate) struct Account {
    pub word: Arc<SharedMap>,
    /// Number of servers that the word covers, at least 1: those of the target's pool, or the
    /// target itself.
    pub servers: u64,
}

pub(crate) type Accounts = Box<[Account]>;

impl Account {
    pub fn used(&self) -> &AtomicU64 {
        &self.word.words()[USED]
    }

    /// Bytes used per server if spread evenly.
    pub fn used_per_server(&self) -> u64 {
        self.used().load(Ordering::Acquire) / self.servers
    }
}

/// Reserves `bytes` on each of the targets, or nothing. Returns false if a server would hold more
/// than `limit`, or the servers of a pool more than that on average.
pub(super) fn take(accounts: &Accounts, bytes: &[u64], limit: u64) -> bool {
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
pub(super) fn sub(word: &AtomicU64, bytes: u64) {
    let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| Some(used.saturating_sub(bytes)));
}
