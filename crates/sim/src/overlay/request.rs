//! Requests on files with several copies: the policy chooses, and the map is read and updated.

use std::ops::Range;

use stripewise_model::Op;
use stripewise_policy::{Kind, ORIGINAL, Part, Request, Rule, Span, possible_copy};

use super::Overlay;
use super::space::Room;
use crate::Simulator;
use crate::process::{Handle, Sender};

impl Simulator {
    /// Issues a request of a process. Returns when it is done, ns; `None` if that is not known yet.
    pub(crate) fn request_copies(
        &mut self,
        process: u32,
        handle: Handle,
        op: Op,
        range: Range<u64>,
    ) -> Option<u64> {
        let streams = self.processes[process as usize].streams(handle.file);
        let access = streams.access(range.start, range.end - range.start);
        let kind = Kind { op, access };
        let parts = match op {
            Op::Read => self.choose_read(process, handle.file, kind, &range),
            Op::Write => self.choose_write(process, handle.file, kind, &range),
        };
        self.count_parts(handle.file, op, &parts);
        let done_ns = self.transfer(handle, op, &parts, Sender::Process(process));
        self.mark(handle.file, &parts, done_ns);
        if done_ns.is_none() {
            self.overlay(handle.file).under_way += 1;
            self.processes[process as usize].under_way = Some((handle.file, self.now_ns));
        }
        self.look_soon(handle.file);
        done_ns
    }

    fn choose_read(&mut self, process: u32, file: u32, kind: Kind, range: &Range<u64>) -> Vec<Part> {
        let overlay = self.files.files[file as usize].overlay.as_mut().expect("it has copies");
        overlay.map.touch(range);
        let spans = overlay.map.spans(range);
        let by = overlay.by.clone();
        match &by.rule {
            Rule::Replicas(costs) => {
                let mut parts = Vec::new();
                costs.read(kind, &spans, &mut parts);
                parts
            }
            Rule::Cache(_) => self.redirect(process, file, kind, range, &spans).0,
        }
    }

    fn choose_write(&mut self, process: u32, file: u32, kind: Kind, range: &Range<u64>) -> Vec<Part> {
        let overlay = self.files.files[file as usize].overlay.as_mut().expect("it has copies");
        overlay.map.touch(range);
        let copies = ((1u16 << overlay.copies) - 1) as u8;
        let known = overlay.known(range);
        let allowed = known.iter().fold(copies, |allowed, known| allowed & !known.forbidden);
        let usable = |known: &Known| match known.span.mask & !known.forbidden {
            0 => 1,
            mask => mask,
        };
        let spans: Vec<Span> = known.iter().map(|known| Span { mask: usable(known), ..known.span }).collect();
        let by = overlay.by.clone();
        let (parts, taken) = match &by.rule {
            Rule::Replicas(costs) => {
                let copy = costs.write(kind, range.start, range.end - range.start, allowed);
                let copy = copy.unwrap_or(ORIGINAL);
                (vec![Part { start: range.start, end: range.end, copy }], Vec::new())
            }
            Rule::Cache(_) => self.redirect(process, file, kind, range, &spans),
        };
        let parts = possible(parts, &known, copies);
        self.wrote(file, &parts, taken);
        parts
    }

    /// Lets the Redirector decide.
    fn redirect(
        &mut self,
        process: u32,
        file: u32,
        kind: Kind,
        range: &Range<u64>,
        spans: &[Span],
    ) -> (Vec<Part>, Vec<(usize, Range<u64>)>) {
        let of_file = &mut self.files.files[file as usize];
        let overlay = of_file.overlay.as_mut().expect("it has copies");
        let by = overlay.by.clone();
        let (Rule::Cache(identifier), Some(limit)) = (&by.rule, overlay.capacity) else {
            return Default::default();
        };
        let process = &mut self.processes[process as usize];
        let (cdt, sent) = process.policy(file);
        let placed = of_file.copies.iter().map(|&placed| &self.files.placed[placed as usize]).collect();
        let request =
            Request { file: u64::from(file), kind, offset: range.start, len: range.end - range.start };
        let mut room = Room {
            spaces: &mut self.spaces,
            map: &mut overlay.map,
            placed,
            first_target: &by.first_target,
            limit,
            range: range.clone(),
            taken: Vec::new(),
            evicted: 0,
        };
        let mut parts = Vec::new();
        let redirected = identifier.redirect(cdt, sent, &request, spans, &mut room, &mut parts);
        let (taken, evicted) = (room.taken, room.evicted);
        let counters = &mut self.outcome.counters;
        counters.evicted_bytes += evicted;
        counters.critical += u64::from(redirected.critical.is_some());
        if let (true, Some(copy)) = (redirected.newly_wanted, redirected.critical) {
            overlay.map.want(range, copy);
        }
        (parts, taken)
    }

    /// Updates the map for a write that has begun: the copies written to become the only valid
    /// ones. Frees the space of data that became stale, and space that was taken but not used.
    fn wrote(&mut self, file: u32, parts: &[Part], taken: Vec<(usize, Range<u64>)>) {
        let of_file = &mut self.files.files[file as usize];
        let overlay = of_file.overlay.as_mut().expect("it has copies");
        let placed = |copy: usize| &self.files.placed[of_file.copies[copy] as usize];
        for part in parts {
            if let Some(job) = &mut overlay.job {
                job.disturb(&part.range());
            }
            for span in overlay.map.spans(&part.range()) {
                for copy in overlay.caches().filter(|&copy| span.mask & 1 << copy != 0 && copy != part.copy) {
                    self.spaces.give(placed(copy), &(span.start..span.end));
                }
            }
            overlay.map.set(&part.range(), 1 << part.copy);
            if overlay.caches().contains(&part.copy) {
                overlay.written += part.end - part.start;
            }
        }
        for (copy, range) in taken {
            let used = |part: &&Part| part.copy == copy && part.start <= range.start && range.end <= part.end;
            if parts.iter().any(|part| used(&part)) {
                self.outcome.counters.admitted_bytes += range.end - range.start;
            } else {
                self.spaces.give(placed(copy), &range);
            }
        }
    }

    fn count_parts(&mut self, file: u32, op: Op, parts: &[Part]) {
        let is_cache =
            self.files.files[file as usize].overlay.as_ref().is_some_and(|overlay| overlay.capacity.is_some());
        let counters = &mut self.outcome.counters;
        for part in parts {
            let bytes = match op {
                Op::Read => &mut counters.read_bytes,
                Op::Write => &mut counters.written_bytes,
            };
            bytes[part.copy] += part.end - part.start;
        }
        let cached = parts.iter().filter(|part| part.copy > 0).count();
        if is_cache && cached > 0 {
            let whole = cached == parts.len();
            counters.hits += u64::from(whole);
            counters.partial_hits += u64::from(!whole);
        }
    }

    /// Sends the ranges to the servers of their copies, all at once. Returns when the last is done,
    /// ns, if that is known.
    pub(crate) fn transfer(&mut self, handle: Handle, op: Op, parts: &[Part], sender: Sender) -> Option<u64> {
        #[cfg(test)]
        self.log.push((handle.file, op, sender, parts.to_vec()));
        let (mut done_ns, mut known) = (self.now_ns, true);
        let copies = self.files.files[handle.file as usize].copies.len();
        for copy in 0..copies {
            let mut of_copy = parts.iter().filter(|part| part.copy == copy).peekable();
            if of_copy.peek().is_some() {
                self.cut(handle, copy, of_copy.map(Part::range));
                match self.send(handle, copy, op, sender) {
                    Some(end_ns) => done_ns = done_ns.max(end_ns),
                    None => known = false,
                }
            }
        }
        known.then_some(done_ns)
    }

    /// Ends a request that went through the network.
    pub(crate) fn request_ended(&mut self, process: u32) {
        if let Some((file, began_ns)) = self.processes[process as usize].under_way.take() {
            let took_ns = self.processes[process as usize].done_ns - began_ns;
            let overlay = self.overlay(file);
            overlay.under_way -= 1;
            overlay.took_ns = overlay.took_ns.max(took_ns);
        }
    }
}

/// A span, and the copies that are being written there by the copier, which must not be written to.
#[derive(Clone, Copy, Debug)]
struct Known {
    span: Span,
    forbidden: u8,
}

impl Overlay {
    fn known(&self, range: &Range<u64>) -> Vec<Known> {
        let spans = self.map.spans(range);
        let Some(job) = &self.job else {
            return spans.into_iter().map(|span| Known { span, forbidden: 0 }).collect();
        };
        let mut known = Vec::with_capacity(spans.len());
        for span in spans {
            let mut at = span.start;
            for (start, end) in job.overlapping(&(span.start..span.end)) {
                if at < start {
                    known.push(Known { span: Span { start: at, end: start, ..span }, forbidden: 0 });
                }
                known.push(Known { span: Span { start, end, ..span }, forbidden: 1 << job.to });
                at = end;
            }
            if at < span.end {
                known.push(Known { span: Span { start: at, ..span }, forbidden: 0 });
            }
        }
        known
    }
}

/// Redirects ranges of a write that would go to a forbidden copy. A copy that is being made always
/// has a source that can be written to.
fn possible(parts: Vec<Part>, known: &[Known], copies: u8) -> Vec<Part> {
    let mut possible: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        for Known { span, forbidden } in
            known.iter().filter(|k| k.span.start < part.end && part.start < k.span.end)
        {
            let (start, end) = (part.start.max(span.start), part.end.min(span.end));
            let allowed = copies & !forbidden;
            let copy = possible_copy(part.copy, allowed, span.mask).unwrap_or(part.copy);
            match possible.last_mut() {
                Some(last) if last.copy == copy && last.end == start => last.end = end,
                _ => possible.push(Part { start, end, copy }),
            }
        }
    }
    possible
}
