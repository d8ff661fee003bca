//! Requests on files with several copies: the policy chooses, and the map is read and updated.

use std::ops::Range;

use stripewise_model::Op;
use stripewise_policy::{Kind, ORIGINAL, Part, Redirected, Request, Rule, Span, possible_copy, runs};

use super::Overlay;
use super::space::Reservation;
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
        let parts = self.choose(process, handle.file, op, &range);
        self.count_parts(handle.file, op, &parts);
        let done_ns = self.transfer(handle, op, &parts, Sender::Process(process));
        self.mark(handle.file, &parts, done_ns);
        if done_ns.is_none() {
            self.files.overlay(handle.file).under_way += 1;
            self.processes[process as usize].under_way = Some((handle.file, self.now_ns));
        }
        self.look_soon(handle.file);
        done_ns
    }

    /// Chooses the copies that serve a request, and updates the map.
    fn choose(&mut self, process: u32, file: u32, op: Op, range: &Range<u64>) -> Vec<Part> {
        let (cdt, sent, streams) = self.processes[process as usize].policy(file);
        let (offset, len) = (range.start, range.end - range.start);
        let kind = Kind { op, access: streams.access(offset, len) };
        let overlay = self.files.overlay(file);
        overlay.map.touch(range);
        let known = overlay.known(op, range);
        let all = overlay.by.all();
        let allowed = known.iter().fold(all, |allowed, known| allowed & !known.forbidden);
        // A range that is valid only where it cannot be written may go to any copy.
        let usable = |known: &Known| match known.span.mask & !known.forbidden {
            0 => 1,
            mask => mask,
        };
        let spans: Vec<Span> = known.iter().map(|known| Span { mask: usable(known), ..known.span }).collect();
        let mut reservation = Reservation {
            spaces: &mut self.spaces,
            map: &mut overlay.map,
            by: &overlay.by,
            limit: overlay.capacity.unwrap_or(0),
            range: range.clone(),
            taken: Vec::new(),
            evicted: 0,
        };
        let mut parts = Vec::new();
        let redirected = match &overlay.by.rule {
            Rule::Replicas(costs) => {
                match op {
                    Op::Read => costs.read(kind, &spans, &mut parts),
                    Op::Write => {
                        let copy = costs.cheapest(kind, offset, len, allowed).unwrap_or(ORIGINAL);
                        parts.push(Part { start: range.start, end: range.end, copy });
                    }
                }
                Redirected::default()
            }
            Rule::Cache(identifier) => {
                let request = Request { file: u64::from(file), kind, offset, len };
                identifier.redirect(cdt, sent, &request, &spans, &mut reservation, &mut parts)
            }
        };
        let Reservation { taken, evicted, .. } = reservation;
        let counters = &mut self.outcome.counters;
        counters.evicted_bytes += evicted;
        counters.critical += u64::from(redirected.critical.is_some());
        if let (true, Some(copy)) = (redirected.newly_wanted, redirected.critical) {
            overlay.map.want(range, copy);
        }
        if op == Op::Write {
            parts = possible(&parts, &known, all);
            self.wrote(file, &parts, taken);
        }
        parts
    }

    /// Updates the map for a write that has begun: the copies written to become the only valid
    /// ones. Frees the space of data that became stale, and space that was taken but not used.
    fn wrote(&mut self, file: u32, parts: &[Part], taken: Vec<(usize, Range<u64>)>) {
        let overlay = self.files.overlay(file);
        for part in parts {
            if let Some(copying) = &mut overlay.copying {
                let overlaps = copying.overlapping(&part.range()).next().is_some();
                copying.disturbed |= overlaps;
            }
            for span in overlay.map.spans(&part.range()) {
                for copy in overlay.caches().filter(|&copy| span.mask & 1 << copy != 0 && copy != part.copy) {
                    self.spaces.give(&overlay.by.placed[copy], &(span.start..span.end));
                }
            }
            overlay.map.set(&part.range(), 1 << part.copy);
            if overlay.caches().contains(&part.copy) {
                overlay.written += part.end - part.start;
            }
        }
        for (copy, range) in taken {
            let used = |part: &Part| part.copy == copy && part.start <= range.start && range.end <= part.end;
            if parts.iter().any(used) {
                self.outcome.counters.admitted_bytes += range.end - range.start;
            } else {
                self.spaces.give(&overlay.by.placed[copy], &range);
            }
        }
    }

    fn count_parts(&mut self, file: u32, op: Op, parts: &[Part]) {
        let counters = &mut self.outcome.counters;
        let bytes = match op {
            Op::Read => &mut counters.read_bytes,
            Op::Write => &mut counters.written_bytes,
        };
        for part in parts {
            bytes[part.copy] += part.end - part.start;
        }
        let cached = parts.iter().filter(|part| part.copy > 0).count();
        if self.files.overlay(file).capacity.is_some() && cached > 0 {
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
        for copy in 0..self.files.overlay(handle.file).by.placed.len() {
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
        let process = &mut self.processes[process as usize];
        if let Some((file, began_ns)) = process.under_way.take() {
            let overlay = self.files.overlay(file);
            overlay.under_way -= 1;
            overlay.took_ns = overlay.took_ns.max(process.done_ns - began_ns);
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
    /// The spans of a range for a request. Reads may use all valid copies.
    fn known(&self, op: Op, range: &Range<u64>) -> Vec<Known> {
        let spans = self.map.spans(range);
        let copying = self.copying.as_ref().filter(|_| op == Op::Write);
        let Some(copying) = copying else {
            return spans.into_iter().map(|span| Known { span, forbidden: 0 }).collect();
        };
        let mut known = Vec::with_capacity(spans.len());
        for span in spans {
            let mut push = |start, end, forbidden| {
                if start < end {
                    known.push(Known { span: Span { start, end, ..span }, forbidden });
                }
            };
            let mut at = span.start;
            for (start, end) in copying.overlapping(&(span.start..span.end)) {
                push(at, start, 0);
                push(start, end, 1 << copying.to);
                at = end;
            }
            push(at, span.end, 0);
        }
        known
    }
}

/// Redirects ranges of a write that would go to a forbidden copy. A copy that is being made always
/// has a source that can be written to.
fn possible(parts: &[Part], known: &[Known], copies: u8) -> Vec<Part> {
    let of_part = |part: &Part| {
        let Part { start, end, copy } = *part;
        let overlapping = known.iter().filter(move |known| known.span.start < end && start < known.span.end);
        overlapping.map(move |Known { span, forbidden }| Part {
            start: start.max(span.start),
            end: end.min(span.end),
            copy: possible_copy(copy, copies & !forbidden, span.mask).unwrap_or(copy),
        })
    };
    runs(parts.iter().flat_map(of_part)).collect()
}
