//! Accounting of the space that cache copies use on their servers: some words per server, shared by
//! all files and processes of the node. Several nodes share it through a [`Ledger`].
//!
//! The targets of a pool share its servers, and the file system decides which server holds which
//! bytes. All targets of a pool therefore share one account, whose limit is the sum over all
//! servers of the pool.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::user::act_as;
use stripewise_sys::{Fd, LockKind, SharedMap, SysRef};
use stripewise_target::Target;

use super::activity::{Base, ByPath, map_words, open_words};
use super::ledger::{Handed, Ledger};
use crate::anchor;
use crate::error::{Logged, Result};
use crate::pool::{pool_of, servers_of};

const MAGIC: u64 = u64::from_le_bytes(*b"swspace1");
/// Words of a file: one page.
const WORDS: usize = 512;
/// Index of the word that is `MAGIC` once the count is valid.
const READY: usize = 0;
/// Index of the word that counts the used bytes. With a ledger, what it said last: the bytes that
/// are used or that a node may use.
const USED: usize = 1;
/// Index of the word that counts the bytes that this node has been handed and does not use.
const FREE: usize = 2;
/// Index of the word with the ledger's count of which `FREE` is.
const COUNT: usize = 3;
/// Index of the word with the bytes that this node asked for last.
const PART: usize = 4;
/// Index of the word with the time until which the ledger is not asked, ns (CLOCK_MONOTONIC).
const ASK_AT_NS: usize = 5;
/// Bytes of the file that are locked: `COUNTING` while the space is counted or the ledger visited,
/// `USING` as long as a process has the words mapped.
const COUNTING: u64 = 0;
const USING: u64 = 1;

/// A node is handed at least this part of the space: few visits, and little that others lack.
const PARTS: u64 = 64;
/// Where that is little, a node that asks again is handed up to so many times its request, but at
/// most this part of what is left.
const REQUESTS_MAX: u64 = 16;
const PARTS_LEFT: u64 = 4;
/// Time for which the ledger is not asked after it had too little, ns.
const FULL_NS: u64 = 1_000_000_000;

/// The space of a server, or of all servers of a pool, as all processes of this node see it.
pub(crate) struct ServerSpace {
    sys: SysRef,
    /// The file with the words.
    path: PathBuf,
    owner: Option<u32>,
    words: SharedMap,
    /// If several nodes may cache there.
    ledger: Option<Ledger>,
}

impl ServerSpace {
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.words.words()[index]
    }

    /// Bytes used as far as this node knows, with those that other nodes may use.
    pub fn used(&self) -> u64 {
        self.word(USED).load(Ordering::Acquire).saturating_sub(self.word(FREE).load(Ordering::Acquire))
    }

    fn is_within(&self, bytes: u64, limit: u64) -> bool {
        self.used().saturating_add(bytes) <= limit
    }

    /// Returns false if there is certainly too little space.
    fn may_have(&self, bytes: u64, limit: u64) -> bool {
        self.is_within(bytes, limit) || self.ledger.is_some() && self.may_ask()
    }

    /// Reserves space; at most `limit` bytes are used then. Returns false if there is too little.
    fn take(&self, bytes: u64, limit: u64) -> bool {
        let Some(ledger) = &self.ledger else {
            let used = self.word(USED).fetch_add(bytes, Ordering::AcqRel);
            let taken = used.saturating_add(bytes) <= limit;
            if !taken {
                sub(self.word(USED), bytes);
            }
            return taken;
        };
        let has = || self.is_within(bytes, limit) && self.take_free(bytes);
        has() || self.may_ask() && self.ask(ledger, bytes, limit) && self.take_free(bytes)
    }

    fn take_free(&self, bytes: u64) -> bool {
        let rest = |free: u64| free.checked_sub(bytes);
        self.word(FREE).fetch_update(Ordering::AcqRel, Ordering::Acquire, rest).is_ok()
    }

    /// Releases space.
    fn give(&self, bytes: u64) {
        if self.ledger.is_none() {
            return sub(self.word(USED), bytes);
        }
        let free = self.word(FREE).fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        let part = self.word(PART).load(Ordering::Acquire);
        if free > part.saturating_mul(2) {
            self.give_back(part);
        }
    }

    /// Whether the ledger did not have too little a moment ago.
    fn may_ask(&self) -> bool {
        let now_ns = self.sys.now_ns();
        !(now_ns + 1..=now_ns + FULL_NS).contains(&self.word(ASK_AT_NS).load(Ordering::Acquire))
    }

    /// Asks the ledger for space. Returns whether this node has enough now.
    fn ask(&self, ledger: &Ledger, bytes: u64, limit: u64) -> bool {
        let (mut more, mut has) = (0, false);
        let visited = self.visit(ledger, |handed| {
            let lacking = bytes.saturating_sub(self.word(FREE).load(Ordering::Acquire));
            let left = limit.saturating_sub(handed);
            let part = next_part(self.word(PART).load(Ordering::Acquire), bytes, limit, left);
            self.word(PART).store(part, Ordering::Release);
            has = lacking <= left;
            more = if has && lacking > 0 { part.min(left) } else { 0 };
            handed + more
        });
        let has = has && visited.is_ok();
        if has {
            self.word(FREE).fetch_add(more, Ordering::AcqRel);
        } else {
            self.word(ASK_AT_NS).store(self.sys.now_ns() + FULL_NS, Ordering::Release);
        }
        has
    }

    /// Gives back what this node has been handed and does not use, except for `keep` bytes.
    fn give_back(&self, keep: u64) {
        let Some(ledger) = self.ledger.as_ref().filter(|_| self.word(FREE).load(Ordering::Acquire) > keep)
        else {
            return;
        };
        // What a process that is killed in between takes out is lost until the space is counted.
        let visited = self.visit(ledger, |handed| {
            let kept = |free: u64| Some(free.min(keep));
            let free = self.word(FREE).fetch_update(Ordering::AcqRel, Ordering::Acquire, kept);
            handed.saturating_sub(free.unwrap_or(0).saturating_sub(keep))
        });
        drop(visited);
    }

    /// Changes the bytes that the ledger says. Returns the lock that excludes the other processes
    /// of this node: those that were forked share the ledger's locks.
    fn visit(&self, ledger: &Ledger, change: impl FnOnce(u64) -> u64) -> Result<Fd> {
        let node = open_words(&self.sys, &self.path, self.owner)?;
        self.sys.lock(node.as_fd(), COUNTING, 1, LockKind::Exclusive)?;
        let handed = ledger.visit(|handed| {
            self.adopt(handed);
            change(handed.bytes)
        });
        self.adopt(handed.map_err(|error| ledger.failed(error))?);
        Ok(node)
    }

    /// Takes over what the ledger says. If the space was counted, this node has nothing free.
    fn adopt(&self, handed: Handed) {
        if self.word(COUNT).swap(handed.count, Ordering::AcqRel) != handed.count {
            self.word(FREE).store(0, Ordering::Release);
            self.word(ASK_AT_NS).store(0, Ordering::Release);
        }
        self.word(USED).store(handed.bytes, Ordering::Release);
    }
}

/// The bytes that a node is handed, if there are as many. It grows with each visit, so a node that
/// needs little keeps little from the others.
fn next_part(last: u64, bytes: u64, limit: u64, left: u64) -> u64 {
    let grown = last.saturating_mul(2).min(bytes.saturating_mul(REQUESTS_MAX)).min(left / PARTS_LEFT);
    grown.max(limit / PARTS).max(bytes)
}

pub(crate) struct Spaces {
    sys: SysRef,
    known: ByPath<ServerSpace>,
}

impl Spaces {
    pub fn new(sys: SysRef) -> Self {
        Self { sys, known: ByPath::default() }
    }

    /// The space of a target. What is used is counted first if nobody uses the count: no process of
    /// the node, or, with a ledger, none of any node.
    fn of(&self, base: Base<'_>, target: &Target) -> Result<Arc<ServerSpace>> {
        self.known.get(words_of(base, target), |path| self.map(path, base.owner, target))
    }

    /// Whether anybody goes by the count of a target's space. Who begins to, counts it first.
    fn is_used(&self, base: Base<'_>, target: &Target) -> Result<bool> {
        let path = words_of(base, target);
        if self.known.has(&path) {
            return Ok(true);
        }
        if target.has_sessions() {
            return self.open_ledger(base.owner, target)?.is_used();
        }
        let words = open_words(&self.sys, &path, base.owner)?;
        Ok(!self.sys.try_lock(words.as_fd(), USING, 1, LockKind::Exclusive)?)
    }

    /// Releases the space of bytes on a target whose objects were removed.
    pub fn release(&self, base: Base<'_>, target: &Target, bytes: u64) {
        if bytes == 0 || self.is_used(base, target) != Ok(true) {
            return;
        }
        if let Ok(space) = self.of(base, target) {
            space.give(bytes);
            space.give_back(0);
        }
    }

    fn map(&self, path: &Path, owner: Option<u32>, target: &Target) -> Result<ServerSpace> {
        let file = open_words(&self.sys, path, owner)?;
        self.sys.lock(file.as_fd(), COUNTING, 1, LockKind::Exclusive)?;
        let words = map_words(&self.sys, file.as_fd(), WORDS)?;
        let mut space =
            ServerSpace { sys: self.sys.clone(), path: path.to_owned(), owner, words, ledger: None };
        if target.has_sessions() {
            let ledger = self.open_ledger(owner, target)?;
            space.adopt(ledger.count_if_alone(|known| self.counted(target, known))?);
            space.ledger = Some(ledger);
        } else {
            self.count_if_first(&space, file.as_fd(), target)?;
        }
        // Unlock explicitly: the mapping keeps the open file description and its locks. The `USING`
        // lock stays as long as the mapping.
        let _ = self.sys.unlock(file.as_fd(), COUNTING, 1);
        Ok(space)
    }

    fn count_if_first(&self, space: &ServerSpace, file: BorrowedFd<'_>, target: &Target) -> Result<()> {
        // Without other users, correct the errors that killed processes left: space reserved but
        // not used, or used but not counted.
        let first = self.sys.try_lock(file, USING, 1, LockKind::Exclusive)?;
        let used = space.word(USED).load(Ordering::Acquire);
        let known = (space.word(READY).load(Ordering::Acquire) == MAGIC).then_some(used);
        if first || known.is_none() {
            space.word(USED).store(self.counted(target, known), Ordering::Release);
            // Left from a time when the target had sessions.
            space.word(FREE).store(0, Ordering::Release);
            space.word(READY).store(MAGIC, Ordering::Release);
        }
        self.sys.lock(file, USING, 1, LockKind::Shared)
    }

    /// The ledger of a target, or of its pool.
    fn open_ledger(&self, owner: Option<u32>, target: &Target) -> Result<Ledger> {
        let user = owner.unwrap_or_else(|| self.sys.user());
        let _acting = act_as(owner);
        let others = self.others(target);
        let mut targets: Vec<&Target> = others.iter().chain([target]).collect();
        targets.sort_by_key(|target| target.name());
        // A target that the pool got later may come first by name.
        let keeper = targets.iter().find(|target| target.has_ledger(user)).unwrap_or(&targets[0]);
        let file = keeper.open_ledger(user).logged()?;
        Ok(Ledger::new(&self.sys, file, keeper.path().to_owned()))
    }

    /// What is used on a target, or on all targets of its pool, if the count was `known` before. On
    /// file systems that count holes as allocated, a new count is only an upper bound.
    fn counted(&self, target: &Target, known: Option<u64>) -> u64 {
        let counted = self.count(target);
        let known = known.filter(|_| anchor::counts_holes(&self.sys, target.dir()));
        known.map_or(counted, |known| known.min(counted))
    }

    /// The bytes that the objects of cache copies use on a target, or on all targets of its pool.
    /// Too large where the file system counts holes as allocated.
    fn count(&self, target: &Target) -> u64 {
        let cached = |target: &Target| -> u64 {
            let found = target.list_objects().unwrap_or_default();
            found.iter().filter(|found| found.cached).map(|found| found.allocated).sum()
        };
        cached(target) + self.others(target).iter().map(cached).sum::<u64>()
    }

    /// The other targets of a target's pool.
    fn others(&self, target: &Target) -> Vec<Target> {
        let pool = pool_of(target.name(), target.path());
        let mut targets = pool.map_or(Vec::new(), |(pool, _)| pool.targets(&self.sys));
        targets.retain(|other| other.id() != target.id());
        targets
    }

    /// The accounts of a copy's targets; `None` if one is unavailable. `pool_servers` comes from
    /// the manifest.
    pub fn accounts(&self, base: Base<'_>, targets: &[Arc<Target>], pool_servers: &[u32]) -> Option<Accounts> {
        let account = |(index, target): (usize, &Arc<Target>)| {
            // Older manifests record only the servers of one stripe cycle, not all servers of the
            // pool.
            let turn = servers_of(target.name(), target.path());
            let servers = pool_servers.get(index).map_or(turn, |&servers| servers.max(turn));
            Some(Account { space: self.of(base, target).ok()?, servers: u64::from(servers) })
        };
        targets.iter().enumerate().map(account).collect()
    }

    /// Counts the space that cache copies use on a target again. Space reserved or released during
    /// the count may be counted wrong. With a ledger, nothing is counted while other processes use
    /// it: only they know what they have of it.
    pub fn recount(&self, base: Base<'_>, target: &Target) -> Result<()> {
        let space = self.of(base, target)?;
        let Some(ledger) = &space.ledger else {
            let used = space.word(USED);
            used.store(self.counted(target, Some(used.load(Ordering::Acquire))), Ordering::Release);
            return Ok(());
        };
        let node = open_words(&self.sys, &space.path, space.owner)?;
        self.sys.lock(node.as_fd(), COUNTING, 1, LockKind::Exclusive)?;
        space.adopt(ledger.count_if_alone(|known| self.counted(target, known))?);
        Ok(())
    }
}

/// The file with the words of a target, or of its pool.
fn words_of(base: Base<'_>, target: &Target) -> PathBuf {
    let pool = pool_of(target.name(), target.path());
    base.path.join("space").join(pool.map_or(target.id().to_owned(), |(pool, _)| pool.key()))
}

/// A copy's share of a server's space.
pub(crate) struct Account {
    pub space: Arc<ServerSpace>,
    /// Number of servers that it covers, at least 1: those of the target's pool, or the target
    /// itself.
    pub servers: u64,
}

pub(crate) type Accounts = Box<[Account]>;

impl Account {
    /// Bytes used per server if spread evenly.
    pub fn used_per_server(&self) -> u64 {
        self.space.used() / self.servers
    }
}

/// Reserves `bytes` on each of the targets, or nothing. Returns false if a server would hold more
/// than `limit`, or the servers of a pool more than that on average.
pub(super) fn take(accounts: &Accounts, bytes: &[u64], limit: u64) -> bool {
    let wanted = || accounts.iter().zip(bytes.iter().copied()).filter(|&(_, bytes)| bytes > 0);
    let limit_of = |account: &Account| limit.saturating_mul(account.servers);
    // Usually the space is full: check first, without changing the words.
    if !wanted().all(|(account, bytes)| account.space.may_have(bytes, limit_of(account))) {
        return false;
    }
    let taken = wanted().take_while(|(account, bytes)| account.space.take(*bytes, limit_of(account))).count();
    let all = taken == wanted().count();
    if !all {
        give(wanted().take(taken));
    }
    all
}

/// Releases bytes on servers.
pub(super) fn give<'a>(bytes: impl Iterator<Item = (&'a Account, u64)>) {
    bytes.filter(|&(_, bytes)| bytes > 0).for_each(|(account, bytes)| account.space.give(bytes));
}

/// Gives the space back to other nodes that this one has been handed and does not use.
pub(super) fn give_back(accounts: &Accounts) {
    accounts.iter().for_each(|account| account.space.give_back(0));
}

/// Subtracts without going below 0: after a crash the count may be too small.
fn sub(word: &AtomicU64, bytes: u64) {
    let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| Some(used.saturating_sub(bytes)));
}

#[cfg(test)]
mod tests;
