//! Background copying. Replicas are brought in sync. For caches, dirty data is written back,
//! prefetch hints are fetched, and some space is kept free. As in the data path, this happens while
//! no application uses the servers, with one copier per file.

use stripewise_cluster::MAX_COPIES;
use stripewise_model::Op;
use stripewise_policy::background::{
    POLL_NS, Pace, Pressure, Step, Unit, WANTED_MAX, free_bytes, lacks_space, longer_poll_ns,
    pause_under_load_ns, recent_ns, used_for_ns,
};
use stripewise_policy::{Part, Span};

use super::CopyOperation;
use crate::Simulator;
use crate::process::Sender;
use crate::queue::Event;

impl Simulator {
    /// Marks the servers of these ranges as used by an application's request, which ends at
    /// `done_ns` if that is known.
    pub(super) fn mark(&mut self, file: u32, parts: &[Part], done_ns: Option<u64>) {
        let end_ns = done_ns.unwrap_or(self.now_ns);
        let overlay = self.files.overlay(file);
        overlay.took_ns = recent_ns(overlay.took_ns, end_ns - self.now_ns);
        let rest_ns = used_for_ns(overlay.took_ns);
        for part in parts {
            let placed = &overlay.by.placed[part.copy];
            self.scratch.begin(placed);
            placed.cut(part.start, part.end - part.start, &mut self.scratch, &mut self.marks);
            for sub in self.marks.drain(..) {
                let server = placed.servers[sub.object as usize];
                let used = &mut self.used_until_ns[self.spaces.account_of(server)];
                *used = (*used).max(end_ns + rest_ns);
            }
        }
    }

    /// Schedules a check of the file if there is something to copy.
    pub(super) fn look_soon(&mut self, file: u32) {
        let overlay = self.files.overlay(file);
        if overlay.look_ns.is_none() && overlay.copying.is_none() && overlay.has_work() {
            overlay.rest_ns = POLL_NS;
            self.look_at(file, self.now_ns + POLL_NS);
        }
    }

    fn look_at(&mut self, file: u32, at_ns: u64) {
        self.files.overlay(file).look_ns = Some(at_ns);
        self.queue.push(at_ns, Event::Look(file));
    }

    /// Begins the file's next background work, if there is any.
    pub(crate) fn look(&mut self, file: u32) {
        let now_ns = self.now_ns;
        let overlay = self.files.overlay(file);
        if overlay.look_ns != Some(now_ns) {
            return; // Another check has been scheduled since.
        }
        overlay.look_ns = None;
        if overlay.copying.is_some() || !overlay.has_work() {
            return;
        }
        let servers = overlay.by.placed.iter().flat_map(|placed| &placed.servers);
        let used_until_ns =
            servers.map(|&server| self.used_until_ns[self.spaces.account_of(server)]).max().unwrap_or(0);
        let idle = used_until_ns <= now_ns && overlay.under_way == 0;
        let step = Step::at(now_ns, overlay.pauses, idle);
        let begun = (step != Step::Relieve || self.is_pressed(file)) && self.begin_work(file, step);
        let overlay = self.files.overlay(file);
        if begun {
            overlay.rest_ns = POLL_NS;
            if let Some(copying) = &mut overlay.copying {
                copying.under_load = !idle;
                return;
            }
            // Space was freed.
            return self.look_at(file, now_ns + 1);
        }
        overlay.rest_ns = longer_poll_ns(overlay.rest_ns);
        let next_ns = (now_ns + overlay.rest_ns).max(overlay.pauses.next_ns);
        // Replicas are not copied before their servers are idle.
        let next_ns = if overlay.capacity.is_some() { next_ns } else { next_ns.max(used_until_ns) };
        // Prefetch hints for which there is no space wait for the next request.
        if step != Step::Work {
            self.look_at(file, next_ns);
        }
    }

    /// Whether a cache is under pressure, and data was written to it since the last check.
    fn is_pressed(&mut self, file: u32) -> bool {
        let overlay = self.files.overlay(file);
        let Some(capacity) = overlay.capacity else { return false };
        let written = overlay.written;
        if std::mem::replace(&mut overlay.written_then, written) == written {
            return false;
        }
        let mut pressure = Pressure::default();
        for copy in overlay.caches() {
            let placed = &overlay.by.placed[copy];
            let clean = overlay.map.clean_bytes(copy);
            pressure.add(self.spaces.fullest(placed), clean, self.spaces.servers(placed));
        }
        pressure.is_high(capacity)
    }

    /// Begins the first unit of a step that finds something to do.
    fn begin_work(&mut self, file: u32, step: Step) -> bool {
        let overlay = self.files.overlay(file);
        let (pace, mut units) = (overlay.pace, step.units(overlay.kind, overlay.by.placed.len()));
        units.any(|unit| match unit {
            Unit::KeepFree => self.keep_some_free(file),
            Unit::Copy { to } => self.copy_to(file, to, step.pieces_max(), pace),
            Unit::Fetch => self.fetch_some(file),
        })
    }

    fn keep_some_free(&mut self, file: u32) -> bool {
        let overlay = self.files.overlay(file);
        let Some(capacity) = overlay.capacity else { return false };
        let mut given = 0;
        for copy in overlay.caches() {
            let placed = &overlay.by.placed[copy];
            if lacks_space(self.spaces.fullest(placed), capacity) {
                let wanted = (free_bytes(capacity), capacity);
                given += self.spaces.give_up(&mut overlay.map, placed, copy, wanted, &(0..0));
            }
        }
        self.outcome.counters.evicted_bytes += given;
        given > 0
    }

    /// Begins to copy missing data to a copy, from where the last operation ended, and at most the
    /// bytes that `pace` allows.
    pub(super) fn copy_to(&mut self, file: u32, to: usize, pieces: usize, pace: Pace) -> bool {
        let overlay = self.files.overlay(file);
        let Some(first) = overlay.map.next_missing(to, overlay.at[to]) else { return false };
        let end = pace.piece_end(first.start);
        let mut spans = overlay.map.missing_in(to, &(first.start..end), pieces);
        let Some(from) = overlay.by.source(&first) else { return false };
        // Spans that this source does not have are copied another time.
        spans.retain(|span| span.mask & 1 << from != 0);
        overlay.at[to] = spans.last().map_or(end, |last| last.end);
        self.begin_copying(file, from, to, spans, false);
        true
    }

    /// Begins to fetch the first prefetch hint that finds space, among the first [`WANTED_MAX`] of
    /// each copy.
    fn fetch_some(&mut self, file: u32) -> bool {
        let overlay = self.files.overlay(file);
        let (mut caches, pace) = (overlay.caches(), overlay.pace);
        caches.any(|copy| {
            let wanted = self.files.overlay(file).map.wanted(copy, 0, WANTED_MAX);
            wanted.into_iter().any(|span| self.fetch(file, copy, span, pace))
        })
    }

    /// Begins to fetch the next prefetch hint that finds space, from where the last call with this
    /// `at` ended. No space is freed meanwhile.
    pub(super) fn fetch_next(&mut self, file: u32, at: &mut [u64; MAX_COPIES]) -> bool {
        for copy in self.files.overlay(file).caches() {
            while let Some(&span) = self.files.overlay(file).map.wanted(copy, at[copy], 1).first() {
                at[copy] = span.end.min(Pace::UNLIMITED.piece_end(span.start));
                if self.fetch(file, copy, span, Pace::UNLIMITED) {
                    return true;
                }
                at[copy] = span.end;
            }
        }
        false
    }

    /// Begins to fetch the first chunk of a span; false if there is no space.
    fn fetch(&mut self, file: u32, to: usize, span: Span, pace: Pace) -> bool {
        let span = Span { end: span.end.min(pace.piece_end(span.start)), ..span };
        let overlay = self.files.overlay(file);
        let Some(capacity) = overlay.capacity else { return false };
        if !self.spaces.take_range(&overlay.by.placed[to], &(span.start..span.end), capacity) {
            return false;
        }
        let Some(from) = overlay.by.source(&span) else { return false };
        self.begin_copying(file, from, to, vec![span], true);
        true
    }

    fn begin_copying(&mut self, file: u32, from: usize, to: usize, spans: Vec<Span>, fetches: bool) {
        let operation = CopyOperation {
            to,
            spans,
            began_ns: self.now_ns,
            is_read: false,
            disturbed: false,
            fetches,
            under_load: false,
        };
        let parts = operation.parts(from);
        self.files.overlay(file).copying = Some(operation);
        self.copy_parts(file, Op::Read, &parts);
    }

    fn copy_parts(&mut self, file: u32, op: Op, parts: &[Part]) {
        let handle = match self.files.overlay(file).handle {
            Some(handle) => handle,
            None => self.new_handle(file),
        };
        self.files.overlay(file).handle = Some(handle);
        let done_ns = self.transfer(handle, op, parts, Sender::Background);
        self.queue.push(done_ns.unwrap_or(self.now_ns), Event::Copied(file));
    }

    /// Continues a copy operation whose read or write is done.
    pub(crate) fn copied(&mut self, file: u32) {
        let Some(copying) = &mut self.files.overlay(file).copying else { return };
        if !copying.is_read {
            copying.is_read = true;
            let parts = copying.parts(copying.to);
            return self.copy_parts(file, Op::Write, &parts);
        }
        self.finish_copying(file);
        let overlay = self.files.overlay(file);
        if !overlay.closing.is_empty() {
            return self.go_on_closing(file);
        }
        if overlay.has_work() {
            let at_ns = self.now_ns.max(overlay.pauses.next_ns);
            self.look_at(file, at_ns);
        }
    }

    /// Makes the copied ranges valid in the destination, unless a process has written to them
    /// meanwhile.
    pub(super) fn finish_copying(&mut self, file: u32) {
        let overlay = self.files.overlay(file);
        let Some(copied) = overlay.copying.take() else { return };
        let bytes = copied.spans.iter().map(|span| span.end - span.start).sum();
        if copied.under_load {
            let pause_ns = pause_under_load_ns(self.now_ns - copied.began_ns, overlay.procs);
            overlay.pauses.next_under_load_ns = copied.began_ns.saturating_add(pause_ns);
        }
        if let Some(pause_ns) = overlay.pace.pause_ns(bytes) {
            overlay.pauses.next_ns = copied.began_ns.saturating_add(pause_ns);
        }
        for (_, left) in &mut overlay.closing {
            *left = left.saturating_sub(bytes);
        }
        if copied.disturbed {
            return self.spaces.give_back(&overlay.by, &copied);
        }
        for range in copied.spans.iter().map(|span| span.start..span.end) {
            // Data may have been evicted meanwhile, but not changed.
            for now in overlay.map.spans(&range) {
                overlay.map.set(&(now.start..now.end), now.mask | 1 << copied.to);
            }
            overlay.map.want_no_more(&range, copied.to);
        }
        let counters = &mut self.outcome.counters;
        *(if copied.fetches { &mut counters.fetched_bytes } else { &mut counters.copied_bytes }) += bytes;
    }
}
