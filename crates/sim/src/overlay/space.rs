//! The space that cached data of all files uses on their servers. As in the data path, the servers
//! of a pool are counted together, because the file system decides which of them hold a file.

use std::ops::Range;

use stripewise_cluster::Cluster;
use stripewise_policy::background::{batch_bytes, eviction_order};
use stripewise_policy::{Space, Want};

use super::map::Map;
use super::{CopyOperation, Decider};
use crate::placed::Placed;

/// Space used by cached data on the servers.
#[derive(Debug)]
pub(crate) struct Spaces {
    /// Per server, the number of its account; the servers of a pool share one.
    account_of: Vec<u32>,
    accounts: Vec<Account>,
}

#[derive(Debug, Default)]
struct Account {
    used: u64,
    /// Number of servers of the account.
    servers: u64,
}

impl Spaces {
    pub fn new(cluster: &Cluster) -> Self {
        let mut spaces = Self { account_of: Vec::new(), accounts: Vec::new() };
        for tier in &cluster.tiers {
            let servers = tier.driver.servers();
            let (accounts, each) = if tier.driver.is_pool() { (1, servers) } else { (servers, 1) };
            for _ in 0..accounts {
                spaces.account_of.extend(vec![spaces.accounts.len() as u32; each]);
                spaces.accounts.push(Account { used: 0, servers: each as u64 });
            }
        }
        spaces
    }

    /// The account number of a server, which is the same for all servers of a pool.
    pub fn account_of(&self, server: u32) -> usize {
        self.account_of[server as usize] as usize
    }

    fn account(&mut self, server: u32) -> &mut Account {
        let account = self.account_of(server);
        &mut self.accounts[account]
    }

    /// Takes `bytes` on these servers, or nothing. False if a server would then hold more than
    /// `limit`, or the servers of a pool more than that on average.
    fn take(&mut self, servers: &[u32], bytes: &[u64], limit: u64) -> bool {
        let mut taken = 0;
        let all = servers.iter().zip(bytes).all(|(&server, &bytes)| {
            taken += 1;
            let account = self.account(server);
            account.used += bytes;
            bytes == 0 || account.used <= limit.saturating_mul(account.servers)
        });
        if !all {
            let back = servers.iter().zip(bytes).take(taken);
            back.for_each(|(&server, &bytes)| self.account(server).used -= bytes);
        }
        all
    }

    /// Takes space for a range of a copy; false if one of its servers has too little.
    pub fn take_range(&mut self, placed: &Placed, range: &Range<u64>, limit: u64) -> bool {
        self.take(&placed.servers, &bytes_of(placed, range), limit)
    }

    /// Frees the space of a range of a copy.
    pub fn give(&mut self, placed: &Placed, range: &Range<u64>) {
        for (&server, bytes) in placed.servers.iter().zip(bytes_of(placed, range)) {
            let account = self.account(server);
            debug_assert!(account.used >= bytes, "more given back than was taken");
            account.used -= bytes;
        }
    }

    /// Frees the space that was taken for a copy operation that is discarded.
    pub fn give_back(&mut self, by: &Decider, discarded: &CopyOperation) {
        if discarded.fetches {
            let placed = &by.placed[discarded.to];
            discarded.spans.iter().for_each(|span| self.give(placed, &(span.start..span.end)));
        }
    }

    fn accounts_of(&self, placed: &Placed) -> impl Iterator<Item = &Account> {
        // The servers of a tier have consecutive numbers, and so have those of a copy.
        let mut accounts: Vec<u32> =
            placed.servers.iter().map(|&server| self.account_of[server as usize]).collect();
        accounts.dedup();
        accounts.into_iter().map(|account| &self.accounts[account as usize])
    }

    /// Bytes held by the fullest server of a copy; for a pool, the mean of its servers.
    pub fn fullest(&self, placed: &Placed) -> u64 {
        self.accounts_of(placed).map(|account| account.used / account.servers).max().unwrap_or(0)
    }

    /// Number of servers over which the data of a copy is counted: its own, or all servers of a
    /// pool.
    pub fn servers(&self, placed: &Placed) -> u64 {
        self.accounts_of(placed).map(|account| account.servers).sum()
    }

    /// Evicts clean data of a copy, the least recently used first: at least `bytes` if there are
    /// that many, and nothing in `but`. The servers hold `limit` bytes each. Returns the number of
    /// file bytes evicted.
    pub fn give_up(
        &mut self,
        map: &mut Map,
        placed: &Placed,
        copy: usize,
        (bytes, limit): (u64, u64),
        but: &Range<u64>,
    ) -> u64 {
        if map.clean_bytes(copy) == 0 {
            return 0;
        }
        let batch = batch_bytes(limit, self.servers(placed));
        let mut given = 0;
        let ranges = map.least_recent(copy, bytes.max(batch), but);
        for range in ranges.iter().flat_map(|range| pieces(range, batch)) {
            for span in map.spans(&range) {
                map.set(&(span.start..span.end), span.mask & !(1 << copy));
            }
            self.give(placed, &range);
            given += range.end - range.start;
            if given >= bytes {
                break;
            }
        }
        given
    }

    /// Bytes used, per account.
    #[cfg(test)]
    pub fn used(&self) -> Vec<u64> {
        self.accounts.iter().map(|account| account.used).collect()
    }
}

/// The bytes of a range on each server of a copy.
fn bytes_of(placed: &Placed, range: &Range<u64>) -> Vec<u64> {
    let mut bytes = vec![0; placed.servers.len()];
    placed.layout.bytes_per_target(range.start, range.end - range.start, &mut bytes);
    bytes
}

/// Divides a range into pieces of at most `most` bytes.
fn pieces(range: &Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    (range.start..end).step_by(most as usize).map(move |start| start..end.min(start + most))
}

/// The space of a file's cache copies, as one request sees it, and what the request has taken.
pub(super) struct Reservation<'a> {
    pub spaces: &'a mut Spaces,
    pub map: &'a mut Map,
    pub by: &'a Decider,
    pub limit: u64,
    /// The range of the request, whose data is not evicted.
    pub range: Range<u64>,
    /// What was taken: copies and ranges.
    pub taken: Vec<(usize, Range<u64>)>,
    pub evicted: u64,
}

impl Space for Reservation<'_> {
    fn take_free(&mut self, want: &Want<'_>) -> bool {
        let copy = want.copy;
        // The policy counts the targets of all copies together.
        let bytes = want.bytes.get(self.by.first_target[copy]..).unwrap_or_default();
        let taken = self.spaces.take(&self.by.placed[copy].servers, bytes, self.limit);
        if taken {
            self.taken.push((copy, want.start..want.end));
        }
        taken
    }

    fn take_clean(&mut self, want: &Want<'_>) -> bool {
        for copy in eviction_order(want.copy, self.by.placed.len()) {
            let wanted = (want.end - want.start, self.limit);
            let given = self.spaces.give_up(self.map, &self.by.placed[copy], copy, wanted, &self.range);
            self.evicted += given;
            if given > 0 && self.take_free(want) {
                return true;
            }
        }
        false
    }
}
