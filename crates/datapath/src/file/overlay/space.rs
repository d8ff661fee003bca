//! The space that cache copies take on their servers: one word per server, shared by all files and processes of the node.
//!
//! The targets of a pool share its servers, and on which of them a file's bytes are the file system decides: they have one word together,
//! which may count up to what all servers of the pool may hold.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_cluster::OverlayKind;
use stripewise_extents::Map;
use stripewise_policy::{Space, Want};
use stripewise_sys::{LockKind, SharedMap, SysRef};
use stripewise_target::{Target, list_components};

use super::super::{LogicalFile, OpenCopy};
use super::Overlay;
use super::words::{Base, map_words, open_words};
use crate::Result;
use crate::anchor;
use crate::forked::ForkSafe;
use crate::pool::{pool_of, servers_of};

const MAGIC: u64 = u64::from_le_bytes(*b"swspace1");
const WORDS: usize = 512;
const READY: usize = 0;
const USED: usize = 1;
/// Bytes that are locked: while counting, and as long as the words are used.
const COUNTING: u64 = 0;
const USING: u64 = 1;

/// The words that this process has mapped.
pub(crate) struct Spaces {
    sys: SysRef,
    words: ForkSafe<HashMap<PathBuf, Arc<SharedMap>>>,
}

impl Spaces {
    pub fn new(sys: SysRef) -> Self {
        Self { sys, words: ForkSafe::default() }
    }

    /// The word of a target; counted now if nobody on the node has it.
    fn word(&self, base: Base<'_>, target: &Target) -> Result<Arc<SharedMap>> {
        let pool = pool_of(target.name(), target.path());
        let path = base.path.join("space").join(pool.map_or(target.id().to_owned(), |(pool, _)| pool.key()));
        let known = self.words.lock().get(&path).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let map = Arc::new(self.map(&path, base.owner, target)?);
        // Where another thread was first, its one stays.
        Ok(self.words.lock().entry(path).or_insert(map).clone())
    }

    fn map(&self, path: &Path, owner: Option<u32>, target: &Target) -> Result<SharedMap> {
        let file = open_words(&self.sys, path, owner)?;
        self.sys.lock(file.as_fd(), COUNTING, 1, LockKind::Exclusive)?;
        // What processes that were killed had taken and not used, or used and not counted, is put right when nobody goes by it.
        let first = self.sys.try_lock(file.as_fd(), USING, 1, LockKind::Exclusive)?;
        let map = self.map_counted(file.as_fd(), target, first);
        self.sys.lock(file.as_fd(), USING, 1, LockKind::Shared)?;
        // Explicitly: the mapping keeps the open file, and its locks: the other one for as long as it lasts.
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

    /// Puts right what was noted. Where holes are taken for space, what is counted is the most that it can be.
    fn count_again(&self, word: &SharedMap, target: &Target) {
        let (used, counted) = (&word.words()[USED], self.count(target));
        if anchor::counts_holes(&self.sys, target.dir()) {
            used.fetch_min(counted, Ordering::AcqRel);
        } else {
            used.store(counted, Ordering::Release);
        }
    }

    /// What the components of cache copies take on a target, or on all targets of its pool; too much where their holes are taken for
    /// space.
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

    /// Where the space of a copy's targets is counted; `None`: a word cannot be had. `pool_servers`: as in its manifest.
    fn accounts(&self, base: Base<'_>, targets: &[Arc<Target>], pool_servers: &[u32]) -> Option<Accounts> {
        let account = |(index, target): (usize, &Arc<Target>)| {
            // Manifests of older versions do not say how many servers there are beside those of a turn.
            let turn = servers_of(target.name(), target.path());
            let servers = pool_servers.get(index).map_or(turn, |&servers| servers.max(turn));
            Some(Account { word: self.word(base, target).ok()?, servers: u64::from(servers) })
        };
        targets.iter().enumerate().map(account).collect()
    }

    /// Counts what cache copies take on a target anew. What others take or give just then may be
    /// counted wrong by as much.
    ///
    /// # Errors
    /// As open(2).
    pub(super) fn recount(&self, base: Base<'_>, target: &Target) -> Result<()> {
        self.count_again(&*self.word(base, target)?, target);
        Ok(())
    }
}

/// Where the space of a target is counted.
pub(super) struct Account {
    word: Arc<SharedMap>,
    /// Servers that the word is of, at least 1: those of the target's pool, or the target.
    servers: u64,
}

/// Of a copy's targets.
pub(super) type Accounts = Box<[Account]>;

impl Account {
    fn used(&self) -> &AtomicU64 {
        &self.word.words()[USED]
    }

    /// Bytes per server, if they are spread evenly.
    fn used_per_server(&self) -> u64 {
        self.used().load(Ordering::Acquire) / self.servers
    }
}

/// Takes so many bytes on each of the targets, or nothing: false, a server would hold more than `limit`, or those of a pool more than
/// that on average.
fn take(accounts: &Accounts, bytes: &[u64], limit: u64) -> bool {
    let wanted = || accounts.iter().zip(bytes.iter().copied()).filter(|&(_, bytes)| bytes > 0);
    let is_within =
        |account: &Account, used: u64, more| used.saturating_add(more) <= limit.saturating_mul(account.servers);
    // Most find it full: they change nothing.
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

/// Never below 0: after a crash the count may be too small.
fn sub(word: &AtomicU64, bytes: u64) {
    let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| Some(used.saturating_sub(bytes)));
}

impl Overlay {
    /// Where the space of a copy's targets is counted; looked for until it can be had.
    fn accounts(&self, copy: &OpenCopy) -> Option<&Accounts> {
        let known = self.accounts.get(copy.number())?;
        if known.get().is_none() {
            let further = copy.number().checked_sub(1).and_then(|index| self.copies.list.get(index));
            let pool_servers = further.map_or(&[][..], |further| &further.pool_servers);
            let targets = copy.components().targets();
            let _ = known.set(self.surroundings.spaces.accounts(self.base(), targets, pool_servers)?);
        }
        known.get()
    }

    /// Servers that what a cache copy holds is counted on, at least 1: its targets, and of a pool all.
    pub(crate) fn servers_of_space(&self, copy: &OpenCopy) -> u64 {
        let accounts = self.accounts(copy).map_or(&[][..], |accounts| accounts);
        let is_new = |&(index, account): &(usize, &Account)| {
            accounts[..index].iter().all(|before| !Arc::ptr_eq(&before.word, &account.word))
        };
        accounts.iter().enumerate().filter(is_new).map(|(_, account)| account.servers).sum::<u64>().max(1)
    }
}

impl LogicalFile {
    /// Takes space for a range of a cache copy; false: one of its servers has too little.
    pub(super) fn take_space(&self, overlay: &Overlay, copy: &OpenCopy, range: &Range<u64>) -> bool {
        let OverlayKind::Cache { capacity_per_server, .. } = overlay.copies.kind else { return false };
        let mut bytes = vec![0; copy.components().len()];
        copy.layout().bytes_per_target(range.start, range.end - range.start, &mut bytes);
        overlay.accounts(copy).is_some_and(|accounts| take(accounts, &bytes, capacity_per_server))
    }

    /// What the fullest server of a cache copy holds, of all files, bytes; of a pool, the mean of its servers.
    pub(crate) fn used_space(&self, overlay: &Overlay, copy: &OpenCopy) -> Option<u64> {
        overlay.accounts(copy)?.iter().map(Account::used_per_server).max()
    }

    /// Gives back the space of these ranges of a copy.
    pub(super) fn give_space(&self, overlay: &Overlay, copy: &OpenCopy, ranges: &[Range<u64>]) {
        let mut bytes = vec![0; copy.components().len()];
        let mut of_range = bytes.clone();
        for range in ranges {
            copy.layout().bytes_per_target(range.start, range.end - range.start, &mut of_range);
            bytes.iter_mut().zip(&of_range).for_each(|(sum, bytes)| *sum += bytes);
        }
        let accounts = overlay.accounts(copy).into_iter().flatten();
        accounts
            .zip(bytes)
            .filter(|(_, bytes)| *bytes > 0)
            .for_each(|(account, bytes)| sub(account.used(), bytes));
    }
}

/// The space of a file's cache copies, as one request takes it.
pub(super) struct Room<'a> {
    of: Option<(&'a LogicalFile, &'a Overlay, &'a Map)>,
    /// What was taken: the copy, and of what range.
    pub taken: Vec<(usize, Range<u64>)>,
}

impl<'a> Room<'a> {
    pub fn of(file: &'a LogicalFile, overlay: &'a Overlay, map: &'a Map) -> Self {
        Self { of: Some((file, overlay, map)), taken: Vec::new() }
    }

    /// For those who ask for none.
    pub fn none() -> Self {
        Self { of: None, taken: Vec::new() }
    }

    fn take(&mut self, want: &Want<'_>) -> bool {
        let Some((file, overlay, _)) = self.of else { return false };
        let (number, range) = (usize::from(want.copy), want.start..want.end);
        let Some(copy) = file.usable(overlay, number) else { return false };
        // What the policy says of the bytes is per server of the models: here targets count.
        let taken = file.take_space(overlay, copy, &range);
        if taken {
            self.taken.push((number, range));
        }
        taken
    }
}

impl Space for Room<'_> {
    fn take_free(&mut self, want: &Want<'_>) -> bool {
        self.take(want)
    }

    fn take_clean(&mut self, want: &Want<'_>) -> bool {
        let Some((file, overlay, map)) = self.of else { return false };
        let number = usize::from(want.copy);
        if file.usable(overlay, number).is_none() {
            return false;
        }
        // All cache copies may lie on the servers that are full.
        let others = (1..overlay.manifest.all_copies().count()).filter(|&other| other != number);
        for copy in std::iter::once(number).chain(others) {
            if file.make_room(overlay, map, copy, want.end - want.start) && self.take(want) {
                return true;
            }
        }
        false
    }
}
