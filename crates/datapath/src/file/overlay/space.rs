//! The space of cache copies: reservations for a request, and eviction of clean data, least
//! recently used first.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use stripewise_cluster::OverlayKind;
use stripewise_extents::{CopyId, Journal, MapSpec, Span};
use stripewise_policy::background::{self, eviction_order};
use stripewise_policy::{Space, Want};
use stripewise_target::{Target, TargetRef};

use super::accounts::{Account, Accounts, give, give_back, take};
use super::copy_set::CopySet;
use super::state::{Context, Overlay, base};
use crate::error::{Errno, Logged, Result};
use crate::file::copy::OpenCopy;
use crate::manifest::{CopyRef, Manifest};

impl<'f> CopySet<'f> {
    /// The accounts of a copy's targets; tried again at each call until all are available.
    fn accounts(&self, copy: &OpenCopy) -> Option<&'f Accounts> {
        let overlay = self.overlay;
        let known = &overlay.accounts[copy.number().index()];
        if known.get().is_none() {
            let extra = copy.number().index().checked_sub(1).and_then(|index| overlay.copies.list.get(index));
            let pool_servers = extra.map_or(&[][..], |extra| &extra.pool_servers);
            let targets = copy.objects().targets();
            let _ = known.set(overlay.context.spaces.accounts(overlay.base(), targets, pool_servers)?);
        }
        known.get()
    }

    /// Number of servers on which a cache copy's space is counted, at least 1: its targets, and all
    /// servers of a pool.
    pub(crate) fn servers_of_space(&self, copy: &OpenCopy) -> u64 {
        let accounts = self.accounts(copy).map_or(&[][..], |accounts| accounts);
        let is_new = |&(index, account): &(usize, &Account)| {
            accounts[..index].iter().all(|before| !Arc::ptr_eq(&before.space, &account.space))
        };
        accounts.iter().enumerate().filter(is_new).map(|(_, account)| account.servers).sum::<u64>().max(1)
    }

    /// Reserves space for a range of a cache copy. Returns false if one of its servers has too
    /// little.
    pub(crate) fn take_space(&self, copy: &OpenCopy, range: &Range<u64>) -> bool {
        let OverlayKind::Cache { capacity_per_server, .. } = self.overlay.copies.kind else { return false };
        let mut bytes = vec![0; copy.objects().len()];
        copy.layout().bytes_per_target(range.start, range.end - range.start, &mut bytes);
        self.accounts(copy).is_some_and(|accounts| take(accounts, &bytes, capacity_per_server))
    }

    /// Bytes that the fullest server of a cache copy holds, of all files; for a pool, the mean of
    /// its servers.
    pub(crate) fn used_space(&self, copy: &OpenCopy) -> Option<u64> {
        self.accounts(copy)?.iter().map(Account::used_per_server).max()
    }

    pub(crate) fn give_space(&self, copy: &OpenCopy, ranges: &[Range<u64>]) {
        let mut bytes = vec![0; copy.objects().len()];
        let mut of_range = bytes.clone();
        for range in ranges {
            copy.layout().bytes_per_target(range.start, range.end - range.start, &mut of_range);
            bytes.iter_mut().zip(&of_range).for_each(|(sum, bytes)| *sum += bytes);
        }
        give(self.accounts(copy).into_iter().flatten().zip(bytes));
    }
}

/// Bytes of cache copies on their targets.
pub(crate) type CachedBytes = Vec<(TargetRef, u64)>;

impl Context {
    /// What is in the cache copies of a file, as its journal says.
    pub(crate) fn cached_bytes(&self, manifest: &Manifest, spec: &MapSpec) -> CachedBytes {
        let Ok(journal) = Journal::read(&self.sys, spec) else { return Vec::new() };
        let of_copy = |copy: CopyRef<'_>| {
            let mut bytes = vec![0; copy.targets.len()];
            let mut of_span = bytes.clone();
            for span in journal.spans.iter().filter(|span| span.mask.contains(copy.number)) {
                copy.layout.bytes_per_target(span.start, span.len(), &mut of_span);
                bytes.iter_mut().zip(&of_span).for_each(|(sum, bytes)| *sum += bytes);
            }
            copy.targets.iter().cloned().zip(bytes).collect::<Vec<_>>()
        };
        manifest.all_copies().filter(|copy| copy.is_cache).flat_map(of_copy).collect()
    }

    /// Releases the space of a cache copy's removed object.
    pub(crate) fn release_removed(&self, spec: &MapSpec, target: &Target, bytes: u64) {
        self.spaces.release(base(spec), target, bytes);
    }
}

impl Overlay {
    /// Gives the space back to other nodes that this one has been handed for caches and does not
    /// use.
    pub(crate) fn give_back_space(&self) {
        self.accounts.iter().filter_map(OnceLock::get).for_each(give_back);
    }
}

/// The space of a file's cache copies as seen by one request, and what the request has reserved.
pub(super) struct Reservation<'a> {
    copies: Option<&'a CopySet<'a>>,
    pub taken: Vec<(CopyId, Range<u64>)>,
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
        let (number, range) = (CopyId::new(want.copy), want.start..want.end);
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
        // Other nodes would have to acknowledge the eviction first, which takes them up to a
        // second. The request does not wait for that, and background work evicts.
        if copies.usable(CopyId::new(want.copy)).is_none() || copies.is_sharing() {
            return false;
        }
        for copy in eviction_order(want.copy, copies.overlay.manifest.all_copies().count()) {
            if copies.make_room(CopyId::new(copy), want.end - want.start) && self.take(want) {
                return true;
            }
        }
        false
    }
}

impl CopySet<'_> {
    /// Evicts at least `bytes` of clean data from a copy, if there is that much. Returns whether
    /// anything was evicted: nothing is while another process copies or writes there.
    pub(crate) fn make_room(&self, number: CopyId, bytes: u64) -> bool {
        let Some(copy) = self.usable(number) else { return false };
        // Most requests that miss end here while all cached data is dirty.
        if self.map.clean_bytes(number) == Ok(0) {
            return false;
        }
        let batch = self.batch_bytes(copy);
        let spans = self.map.least_recent(number, bytes.max(batch)).unwrap_or_default();
        let mut given = 0;
        for range in batches(&spans, batch) {
            match self.evict(copy, range) {
                Ok(more) => given += more,
                Err(_) => break,
            }
            if given >= bytes {
                break;
            }
        }
        given > 0
    }

    /// Evicts the clean data in `range` of a copy. Returns the bytes; 0 if another process copies
    /// or writes there.
    pub(crate) fn evict(&self, copy: &OpenCopy, range: Range<u64>) -> Result<u64> {
        let Some(mut copier) = self.map.copier().logged()? else { return Ok(0) };
        let punch = |parts: &[Range<u64>]| parts.iter().try_for_each(|part| self.punch(copy, part));
        let evicted = copier.evict(range, copy.number(), || self.file.sync_objects(true), punch).logged()?;
        self.give_space(copy, &evicted);
        Ok(total(&evicted))
    }

    /// Minimum bytes evicted at once from a copy.
    fn batch_bytes(&self, copy: &OpenCopy) -> u64 {
        let OverlayKind::Cache { capacity_per_server, .. } = self.overlay.copies.kind else {
            return background::BATCH_BYTES;
        };
        background::batch_bytes(capacity_per_server, self.servers_of_space(copy))
    }

    /// Punches a range out of the objects of a copy, which frees its blocks.
    pub(crate) fn punch(&self, copy: &OpenCopy, range: &Range<u64>) -> Result<()> {
        copy.each_extent(range, |fd, start, bytes| match self.file.sys().punch_hole(fd, start, bytes) {
            // The file system cannot punch holes: the space stays allocated until the file is
            // removed.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            punched => punched,
        })
    }
}

/// Merges ranges that follow each other in the given order, with their gaps, into batches of at
/// most `most` bytes: each batch costs a sync. Splits longer ranges.
fn batches(spans: &[Span], most: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for span in spans {
        match ranges.last_mut() {
            Some(last) if last.end <= span.start && span.end - last.start <= most => last.end = span.end,
            _ => {
                let starts = (span.start..span.end).step_by(most as usize);
                ranges.extend(starts.map(|start| start..span.end.min(start + most)));
            }
        }
    }
    ranges
}

/// The bytes of ranges that do not overlap.
pub(in crate::file) fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The bytes of `ranges` that are not in `rest`. Both must be sorted.
pub(super) fn without(ranges: &[Range<u64>], rest: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    for range in ranges {
        let mut at = range.start;
        let inside =
            |other: &&Range<u64>| !other.is_empty() && other.start < range.end && range.start < other.end;
        for other in rest.iter().filter(inside) {
            if at < other.start {
                left.push(at..other.start);
            }
            at = at.max(other.end);
        }
        if at < range.end {
            left.push(at..range.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use stripewise_extents::Mask;

    use super::*;

    fn spans(ranges: &[Range<u64>]) -> Vec<Span> {
        ranges.iter().map(|range| Span::new(range.clone(), Mask::ORIGINAL)).collect()
    }

    #[test]
    fn what_is_left_of_ranges() {
        let all = [10..20, 30..40, 50..60];
        assert_eq!(without(&all, &[]), all);
        assert_eq!(without(&all, &all), []);
        assert_eq!(without(&all, &[0..12, 15..17, 35..55]), [12..15, 17..20, 30..35, 55..60]);
        let of = |range: Range<u64>, other: Range<u64>| {
            without(&[range], &[other]).iter().map(|left| (left.start, left.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(10..20, 12..15), [(10, 12), (15, 20)]);
        assert_eq!(of(10..20, 5..15), [(15, 20)]);
        assert_eq!(of(10..20, 15..25), [(10, 15)]);
        assert_eq!(of(10..20, 0..30), []);
        assert_eq!(of(10..20, 30..40), [(10, 20)]);
        assert_eq!(of(10..20, 15..15), [(10, 20)]);
    }

    #[test]
    fn close_ranges_are_one_and_long_ones_several() {
        let found = batches(&spans(&[0..10, 20..30, 95..100, 100..110, 40..50, 200..450]), 100);
        assert_eq!(found, [0..100, 100..110, 40..50, 200..300, 300..400, 400..450]);
    }
}
