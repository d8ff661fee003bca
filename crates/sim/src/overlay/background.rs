//! Background copying. Replicas are brought in sync. For caches, dirty data is written back,
//! prefetch hints are fetched, and some space is kept free. As in the data path, this happens while
//! no application uses the servers, with one copier per file.

use stripewise_cluster::MAX_COPIES;
use stripewise_model::{Access, Op};
use stripewise_policy::{Kind, Span};

use super::job::Job;
use super::request::Part;
use super::{By, Overlay};
use crate::Simulator;
use crate::event::Event;
use crate::process::Handle;
use crate::run::Sender;

/// Maximum length of a copied chunk, bytes.
const CHUNK_BYTES: u64 = 4 << 20;
/// Maximum number of ranges copied at once: while applications use the file, and while none does.
pub(super) const PIECES_MAX: usize = 16;
const PIECES_MAX_IDLE: usize = 4096;
/// Time between checks for work: initial and maximum, ns.
pub(super) const REST_NS: u64 = 1_000_000;
const REST_NS_MAX: u64 = 32_000_000;
/// A server counts as used until no request has begun or ended there for `USED_NS`, and for
/// `USED_REQUESTS` times the duration of recent requests, at most `USED_NS_MAX`.
const USED_NS: u64 = 20_000_000;
const USED_REQUESTS: u64 = 2;
const USED_NS_MAX: u64 = 10_000_000_000;
/// While applications use the servers, an operation begins only after this many times the duration
/// of the last one, multiplied by the number of processes, has passed since that one began.
const MAKE_WAY: u64 = 16;
/// The fraction 1/`FREE_PART` of a cache server is kept free.
const FREE_PART: u64 = 32;
/// Number of prefetch hints examined in one step.
const WANTED: usize = 16;
/// Minimum length of a range under a rate limit, bytes.
const PIECE_BYTES_MIN: u64 = 4096;

impl Simulator {
    pub(super) fn overlay(&mut self, file: u32) -> &mut Overlay {
        self.files.files[file as usize].overlay.as_mut().expect("it has copies")
    }

    /// Marks the servers of these ranges as used by an application's request, which ends at
    /// `done_ns` if that is known.
    pub(crate) fn mark(&mut self, file: u32, parts: &[Part], done_ns: Option<u64>) {
        let end_ns = done_ns.unwrap_or(self.now_ns);
        let took_ns = end_ns - self.now_ns;
        let overlay = self.overlay(file);
        overlay.took_ns = took_ns.max(overlay.took_ns - overlay.took_ns / 8);
        let rest_ns = (overlay.took_ns * USED_REQUESTS).clamp(USED_NS, USED_NS_MAX);
        let of_file = &self.files.files[file as usize];
        for part in parts {
            let placed = &self.files.placed[of_file.copies[part.copy] as usize];
            self.scratch.begin(placed);
            placed.cut(part.start, part.end - part.start, &mut self.scratch, &mut self.marks);
            for sub in self.marks.drain(..) {
                let server = placed.servers[sub.component as usize];
                let used = &mut self.used_until_ns[self.spaces.account_of(server)];
                *used = (*used).max(end_ns + rest_ns);
            }
        }
    }

    /// Schedules a check of the file if there is something to copy.
    pub(crate) fn look_soon(&mut self, file: u32) {
        let now_ns = self.now_ns;
        let overlay = self.overlay(file);
        if overlay.look_ns.is_none() && overlay.job.is_none() && overlay.has_work() {
            overlay.rest_ns = REST_NS;
            self.look_at(file, now_ns + REST_NS);
        }
    }

    fn look_at(&mut self, file: u32, at_ns: u64) {
        self.overlay(file).look_ns = Some(at_ns);
        self.push(at_ns, Event::Look(file));
    }

    /// Time until which the servers of the file's copies count as used, ns.
    fn used_until(&self, file: u32) -> u64 {
        let copies = self.files.files[file as usize].copies.iter();
        let servers = copies.flat_map(|&placed| self.files.placed[placed as usize].servers.iter());
        servers.map(|&server| self.used_until_ns[self.spaces.account_of(server)]).max().unwrap_or(0)
    }

    /// Begins the file's next background work, if there is any.
    pub(crate) fn look(&mut self, file: u32) {
        let now_ns = self.now_ns;
        if self.overlay(file).look_ns != Some(now_ns) {
            return; // Another check has been scheduled since.
        }
        self.overlay(file).look_ns = None;
        if self.overlay(file).job.is_some() || !self.overlay(file).has_work() {
            return;
        }
        let used_until_ns = self.used_until(file);
        let idle = used_until_ns <= now_ns && self.overlay(file).under_way == 0;
        let rested = now_ns >= self.overlay(file).next_ns;
        let begun =
            rested && if idle { self.work(file) } else { self.is_pressed(file) && self.make_clean(file, 1) };
        if begun {
            let overlay = self.overlay(file);
            overlay.rest_ns = REST_NS;
            if let Some(job) = &mut overlay.job {
                job.under_load = !idle;
                return;
            }
            // Space was freed.
            return self.look_at(file, now_ns + 1);
        }
        let overlay = self.overlay(file);
        let polls = overlay.capacity.is_some();
        overlay.rest_ns = (overlay.rest_ns * 2).min(REST_NS_MAX);
        let next_ns = (now_ns + overlay.rest_ns).max(overlay.next_ns);
        // Replicas are not copied before their servers are idle.
        let next_ns = if polls { next_ns } else { next_ns.max(used_until_ns) };
        // Prefetch hints for which there is no space wait for the next request.
        if !idle || !rested {
            self.look_at(file, next_ns);
        }
    }

    /// Whether more than half of a cache's space may hold dirty data, data was written to it since
    /// the last check, and the pause after the last operation is over.
    fn is_pressed(&mut self, file: u32) -> bool {
        let now_ns = self.now_ns;
        let overlay = self.overlay(file);
        let Some(capacity) = overlay.capacity else { return false };
        if now_ns < overlay.next_under_load_ns {
            return false;
        }
        let written = overlay.written;
        if std::mem::replace(&mut overlay.written_then, written) == written {
            return false;
        }
        let of_file = &self.files.files[file as usize];
        let overlay = of_file.overlay.as_ref().expect("it has copies");
        let (mut fullest, mut clean) = (0, 0);
        for copy in overlay.caches() {
            let placed = &self.files.placed[of_file.copies[copy] as usize];
            fullest = fullest.max(self.spaces.fullest(placed));
            clean += overlay.map.clean_bytes(copy) / self.spaces.servers(placed).max(1);
        }
        fullest.saturating_sub(clean) > capacity / 2
    }

    /// Begins one piece of background work, if there is any.
    fn work(&mut self, file: u32) -> bool {
        if self.overlay(file).capacity.is_some() {
            return self.make_clean(file, PIECES_MAX_IDLE) || self.fetch_some(file);
        }
        let (whole, limit) = (self.overlay(file).whole(), self.overlay(file).limit);
        whole.into_iter().any(|copy| self.copy_to(file, copy, PIECES_MAX_IDLE, limit))
    }

    /// Write-back of a cache: evicts clean data where space is short, otherwise writes dirty data
    /// back.
    fn make_clean(&mut self, file: u32, pieces: usize) -> bool {
        let limit = self.overlay(file).limit;
        self.keep_some_free(file) || self.copy_to(file, 0, pieces, limit)
    }

    fn keep_some_free(&mut self, file: u32) -> bool {
        let of_file = &mut self.files.files[file as usize];
        let overlay = of_file.overlay.as_mut().expect("it has copies");
        let Some(capacity) = overlay.capacity else { return false };
        let (part, mut given) = (capacity / FREE_PART, 0);
        for copy in overlay.caches() {
            let placed = &self.files.placed[of_file.copies[copy] as usize];
            if self.spaces.fullest(placed) + part > capacity {
                given += self.spaces.give_up(&mut overlay.map, placed, copy, (part, capacity), &(0..0));
            }
        }
        self.outcome.counters.evicted_bytes += given;
        given > 0
    }

    /// Begins to copy missing data to a copy, from where the last operation ended, and at most the
    /// bytes that `limit` allows in a second.
    pub(super) fn copy_to(&mut self, file: u32, to: usize, pieces: usize, limit: Option<u64>) -> bool {
        let overlay = self.overlay(file);
        let Some(first) = overlay.map.next_missing(to, overlay.at[to]) else { return false };
        let end = piece_end(&first, limit);
        let mut spans = overlay.map.missing_in(to, &(first.start..end), pieces);
        let from = overlay.by.source(&first);
        // Spans that this source does not have are copied another time.
        spans.retain(|span| span.mask & 1 << from != 0);
        overlay.at[to] = spans.last().map_or(end, |last| last.end);
        self.begin_job(file, from, to, spans, false);
        true
    }

    /// Begins to fetch the first prefetch hint that finds space, among the first [`WANTED`] of each
    /// copy.
    fn fetch_some(&mut self, file: u32) -> bool {
        let (caches, limit) = (self.overlay(file).caches(), self.overlay(file).limit);
        for copy in caches {
            for span in self.overlay(file).map.wanted(copy, 0, WANTED) {
                if self.fetch(file, copy, span, limit) {
                    return true;
                }
            }
        }
        false
    }

    /// Begins to fetch the next prefetch hint that finds space, from where the last call with this
    /// `at` ended. No space is freed meanwhile.
    pub(super) fn fetch_next(&mut self, file: u32, at: &mut [u64; MAX_COPIES]) -> bool {
        let caches = self.overlay(file).caches();
        for copy in caches {
            while let Some(&span) = self.overlay(file).map.wanted(copy, at[copy], 1).first() {
                at[copy] = span.end.min(piece_end(&span, None));
                if self.fetch(file, copy, span, None) {
                    return true;
                }
                at[copy] = span.end;
            }
        }
        false
    }

    /// Begins to fetch the first chunk of a span; false if there is no space.
    fn fetch(&mut self, file: u32, to: usize, span: Span, limit: Option<u64>) -> bool {
        let span = Span { end: span.end.min(piece_end(&span, limit)), ..span };
        let of_file = &self.files.files[file as usize];
        let overlay = of_file.overlay.as_ref().expect("it has copies");
        let Some(capacity) = overlay.capacity else { return false };
        let placed = &self.files.placed[of_file.copies[to] as usize];
        if !self.spaces.take_range(placed, &(span.start..span.end), capacity) {
            return false;
        }
        let from = overlay.by.source(&span);
        self.begin_job(file, from, to, vec![span], true);
        true
    }

    fn begin_job(&mut self, file: u32, from: usize, to: usize, spans: Vec<Span>, fetches: bool) {
        let began_ns = self.now_ns;
        let job = Job { to, spans, began_ns, is_read: false, disturbed: false, fetches, under_load: false };
        let parts = job.parts(from);
        self.overlay(file).job = Some(job);
        self.copy_parts(file, Op::Read, &parts);
    }

    fn copy_parts(&mut self, file: u32, op: Op, parts: &[Part]) {
        let handle = self.background_handle(file);
        let done_ns = self.transfer(handle, op, parts, Sender::Background);
        self.push(done_ns.unwrap_or(self.now_ns), Event::Copied(file));
    }

    fn background_handle(&mut self, file: u32) -> Handle {
        if let Some(handle) = self.overlay(file).handle {
            return handle;
        }
        let handle = self.new_handle(file);
        self.overlay(file).handle = Some(handle);
        handle
    }

    /// Continues a copy operation whose read or write is done.
    pub(crate) fn copied(&mut self, file: u32) {
        let Some(job) = &mut self.overlay(file).job else { return };
        if !job.is_read {
            job.is_read = true;
            let parts = job.parts(job.to);
            return self.copy_parts(file, Op::Write, &parts);
        }
        self.finish_job(file);
        if !self.overlay(file).closing.is_empty() {
            return self.go_on_closing(file);
        }
        if self.overlay(file).has_work() {
            let now_ns = self.now_ns.max(self.overlay(file).next_ns);
            self.look_at(file, now_ns);
        }
    }

    /// Makes the copied ranges valid in the destination, unless a process has written to them
    /// meanwhile.
    pub(super) fn finish_job(&mut self, file: u32) {
        let now_ns = self.now_ns;
        let of_file = &mut self.files.files[file as usize];
        let overlay = of_file.overlay.as_mut().expect("it has copies");
        let Some(job) = overlay.job.take() else { return };
        let bytes = job.bytes();
        if job.under_load {
            let rest_ns = (now_ns - job.began_ns).saturating_mul(MAKE_WAY * u64::from(overlay.procs));
            overlay.next_under_load_ns = job.began_ns.saturating_add(rest_ns);
        }
        if let Some(limit) = overlay.limit {
            let pause_ns = u128::from(bytes) * 1_000_000_000 / u128::from(limit.max(1));
            overlay.next_ns = job.began_ns + pause_ns as u64;
        }
        for (_, left) in &mut overlay.closing {
            *left = left.saturating_sub(bytes);
        }
        for span in &job.spans {
            let range = span.start..span.end;
            if job.disturbed {
                if job.fetches {
                    self.spaces.give(&self.files.placed[of_file.copies[job.to] as usize], &range);
                }
                continue;
            }
            // Data may have been evicted meanwhile, but not changed.
            for now in overlay.map.spans(&range) {
                overlay.map.set(&(now.start..now.end), now.mask | 1 << job.to);
            }
            overlay.map.want_no_more(&range, job.to);
        }
        if !job.disturbed {
            let counters = &mut self.outcome.counters;
            let sum = if job.fetches { &mut counters.fetched_bytes } else { &mut counters.copied_bytes };
            *sum += bytes;
        }
    }
}

impl super::Decider {
    /// The best copy to copy a span from.
    fn source(&self, span: &Span) -> usize {
        const KIND: Kind = Kind { op: Op::Read, access: Access::Sequential };
        let lowest = span.mask.trailing_zeros() as u8;
        let cheapest = match &self.by {
            By::Replicas(costs) => costs.cheapest(KIND, span.start, span.end - span.start, span.mask),
            By::Cache(_) => None,
        };
        usize::from(cheapest.unwrap_or(lowest))
    }
}

/// The end of the range of a span that is copied at once: the end of the chunk that it begins in,
/// or what the limit allows in a second.
fn piece_end(span: &Span, limit: Option<u64>) -> u64 {
    let most = limit.map_or(CHUNK_BYTES, |limit| limit.clamp(PIECE_BYTES_MIN, CHUNK_BYTES));
    (span.start + 1).next_multiple_of(CHUNK_BYTES).min(span.start + most)
}
