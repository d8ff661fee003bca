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

use super::{Job, Overlay};
use crate::Simulator;
use crate::process::{Handle, Sender};
use crate::queue::Event;

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
        overlay.took_ns = recent_ns(overlay.took_ns, took_ns);
        let rest_ns = used_for_ns(overlay.took_ns);
        let of_file = &self.files.files[file as usize];
        for part in parts {
            let placed = &self.files.placed[of_file.copies[part.copy] as usize];
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
    pub(crate) fn look_soon(&mut self, file: u32) {
        let now_ns = self.now_ns;
        let overlay = self.overlay(file);
        if overlay.look_ns.is_none() && overlay.job.is_none() && overlay.has_work() {
            overlay.rest_ns = POLL_NS;
            self.look_at(file, now_ns + POLL_NS);
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
        let step = Step::at(now_ns, self.overlay(file).pauses, idle);
        let begun = (step != Step::Relieve || self.is_pressed(file)) && self.begin_work(file, step);
        if begun {
            let overlay = self.overlay(file);
            overlay.rest_ns = POLL_NS;
            if let Some(job) = &mut overlay.job {
                job.under_load = !idle;
                return;
            }
            // Space was freed.
            return self.look_at(file, now_ns + 1);
        }
        let overlay = self.overlay(file);
        let polls = overlay.capacity.is_some();
        overlay.rest_ns = longer_poll_ns(overlay.rest_ns);
        let next_ns = (now_ns + overlay.rest_ns).max(overlay.pauses.next_ns);
        // Replicas are not copied before their servers are idle.
        let next_ns = if polls { next_ns } else { next_ns.max(used_until_ns) };
        // Prefetch hints for which there is no space wait for the next request.
        if step != Step::Work {
            self.look_at(file, next_ns);
        }
    }

    /// Whether a cache is under pressure, and data was written to it since the last check.
    fn is_pressed(&mut self, file: u32) -> bool {
        let overlay = self.overlay(file);
        let Some(capacity) = overlay.capacity else { return false };
        let written = overlay.written;
        if std::mem::replace(&mut overlay.written_then, written) == written {
            return false;
        }
        let of_file = &self.files.files[file as usize];
        let overlay = of_file.overlay.as_ref().expect("it has copies");
        let mut pressure = Pressure::default();
        for copy in overlay.caches() {
            let placed = &self.files.placed[of_file.copies[copy] as usize];
            pressure.add(
                self.spaces.fullest(placed),
                overlay.map.clean_bytes(copy),
                self.spaces.servers(placed),
            );
        }
        pressure.is_high(capacity)
    }

    /// Begins the first unit of a step that finds something to do.
    fn begin_work(&mut self, file: u32, step: Step) -> bool {
        let overlay = self.overlay(file);
        let (pace, mut units) = (overlay.pace, step.units(overlay.kind, overlay.copies));
        units.any(|unit| match unit {
            Unit::KeepFree => self.keep_some_free(file),
            Unit::Copy { to } => self.copy_to(file, to, step.pieces_max(), pace),
            Unit::Fetch => self.fetch_some(file),
        })
    }

    fn keep_some_free(&mut self, file: u32) -> bool {
        let of_file = &mut self.files.files[file as usize];
        let overlay = of_file.overlay.as_mut().expect("it has copies");
        let Some(capacity) = overlay.capacity else { return false };
        let (part, mut given) = (free_bytes(capacity), 0);
        for copy in overlay.caches() {
            let placed = &self.files.placed[of_file.copies[copy] as usize];
            if lacks_space(self.spaces.fullest(placed), capacity) {
                given += self.spaces.give_up(&mut overlay.map, placed, copy, (part, capacity), &(0..0));
            }
        }
        self.outcome.counters.evicted_bytes += given;
        given > 0
    }

    /// Begins to copy missing data to a copy, from where the last operation ended, and at most the
    /// bytes that `pace` allows.
    pub(super) fn copy_to(&mut self, file: u32, to: usize, pieces: usize, pace: Pace) -> bool {
        let overlay = self.overlay(file);
        let Some(first) = overlay.map.next_missing(to, overlay.at[to]) else { return false };
        let end = pace.piece_end(first.start);
        let mut spans = overlay.map.missing_in(to, &(first.start..end), pieces);
        let Some(from) = overlay.by.source(&first) else { return false };
        // Spans that this source does not have are copied another time.
        spans.retain(|span| span.mask & 1 << from != 0);
        overlay.at[to] = spans.last().map_or(end, |last| last.end);
        self.begin_job(file, from, to, spans, false);
        true
    }

    /// Begins to fetch the first prefetch hint that finds space, among the first [`WANTED_MAX`] of
    /// each copy.
    fn fetch_some(&mut self, file: u32) -> bool {
        let (caches, pace) = (self.overlay(file).caches(), self.overlay(file).pace);
        for copy in caches {
            for span in self.overlay(file).map.wanted(copy, 0, WANTED_MAX) {
                if self.fetch(file, copy, span, pace) {
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
        let of_file = &self.files.files[file as usize];
        let overlay = of_file.overlay.as_ref().expect("it has copies");
        let Some(capacity) = overlay.capacity else { return false };
        let placed = &self.files.placed[of_file.copies[to] as usize];
        if !self.spaces.take_range(placed, &(span.start..span.end), capacity) {
            return false;
        }
        let Some(from) = overlay.by.source(&span) else { return false };
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
            let now_ns = self.now_ns.max(self.overlay(file).pauses.next_ns);
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
            let pause_ns = pause_under_load_ns(now_ns - job.began_ns, overlay.procs);
            overlay.pauses.next_under_load_ns = job.began_ns.saturating_add(pause_ns);
        }
        if let Some(pause_ns) = overlay.pace.pause_ns(bytes) {
            overlay.pauses.next_ns = job.began_ns.saturating_add(pause_ns);
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
    fn source(&self, span: &Span) -> Option<usize> {
        self.rule.source(span.start, span.end - span.start, span.mask)
    }
}
