//! From a trace to a [`Workload`]: one pass over the requests, in bounded memory.
//!
//! The concurrency of a request is that of its phase, which is known when the phase is closed. So
//! requests are sampled by phase first, and the samples of a closed phase join those of the phases
//! with the same concurrency.
//!
//! # Bounded samples
//!
//! Open phases may be many, each with few requests, so their samples cannot just be limited one by
//! one. When there are too many samples in all, these steps free a sixteenth of the room, in this
//! order:
//!
//! 1. If closed phases have more than half of the samples, each of their groups keeps fewer.
//! 2. Groups of open phases keep fewer, as long as the largest keep [`OPEN_SAMPLE_LOW`].
//! 3. The set with the most samples in open phases closes the older half of these phases. A process
//!    that lags so far behind that it is still in one of them goes on in the oldest that is left.
//! 4. If no set has several open phases, their groups keep fewer still.
//!
//! Too many groups of open phases are reduced by step 3.
//!
//! More than [`MAX_GROUPS`] sets are planned by what they have in common (`many`). Before all other
//! steps, groups that are alike then forget their samples, except for those of the first sets. In
//! step 3 all sets close phases at once.

mod files;
mod pages;
mod scope;

use std::collections::HashMap;
use std::sync::Arc;

use stripewise_cluster::pattern::match_path;
use stripewise_trace::scope::is_data;
use stripewise_trace::summary::{LISTED_FILES_MAX, MAX_GROUPS};
use stripewise_trace::{Classifier, FileNames, ProcessInfo, Request as Call};

use crate::activity::Timeline;
use crate::collected::{Collected, Kind, Likeness, Size};
use crate::limits::Limits;
use crate::workload::{Calls, FileSet, Request, Workload};
use files::{Files, Wanted, absolute};
use pages::Pages;
pub use scope::{Busiest, LeftOut};
use scope::{Scope, Subset};

/// Maximum number of sampled requests of one group; planning is exact for a group of up to this
/// many requests.
const GROUP_SAMPLE_MAX: usize = 256 * 1024;
/// Number of sampled requests that a group of an open phase keeps as long as phases can be closed
/// instead.
const OPEN_SAMPLE_LOW: usize = 8 * 1024;

/// What is left of a limit after it was reached.
const fn reduced(limit: usize) -> usize {
    limit / 16 * 15
}

/// Builds a [`Workload`] from the calls of a trace, added in the trace's order.
///
/// Memory: at most about 320 MB of samples, groups and pages, and 90 MB of streams, however many
/// calls the trace has. Besides that 16 bytes for each file, some 200 for each of up to
/// [`LISTED_FILES_MAX`] files, and what the [`Classifier`] keeps: 4 bytes per phase, and at most
/// some 40 bytes for each process of a file set. More than [`MAX_GROUPS`] sets take some 4 KB each.
pub struct Collector {
    /// The wanted files.
    files: Files,
    scope: Scope,
    classifier: Classifier,
    /// By number of the file's group in the trace.
    sets: Vec<Collected>,
    /// What the nodes' page caches may hold.
    pages: Pages,
    /// When the sets are used, if they are few.
    timeline: Option<Timeline>,
    limits: Limits,
    /// The groups of open phases in all sets.
    open: Size,
    /// The groups of closed phases in all sets.
    closed: Size,
    /// Maximum number of sampled requests of a group of an open phase.
    open_limit: usize,
    /// The same of closed phases.
    closed_limit: usize,
}

impl Collector {
    /// A collector for a trace with these processes and files, which form at most `sets_max` sets.
    ///
    /// # Errors
    /// The names of the files cannot be read.
    pub fn new<F: FileNames + ?Sized>(
        processes: &[ProcessInfo],
        files: &F,
        sets_max: usize,
    ) -> Result<Self, F::Error> {
        Self::listing(processes, files, sets_max, LISTED_FILES_MAX)
    }

    /// A collector for those files whose absolute path is `wanted`. Other files are ignored from
    /// the beginning: files are grouped as if the trace had only the wanted ones.
    ///
    /// # Errors
    /// The names of the files cannot be read.
    pub fn only<F: FileNames + ?Sized>(
        processes: &[ProcessInfo],
        files: &F,
        wanted: impl Fn(&str) -> bool,
        sets_max: usize,
    ) -> Result<Self, F::Error> {
        let mut subset = Subset::default();
        files.for_each(&mut |name| subset.push(wanted(&absolute(name))))?;
        let files = Wanted { files, is_wanted: wanted, count: subset.count() };
        let collector = Self::listing(processes, &files, sets_max, LISTED_FILES_MAX)?;
        Ok(Self { scope: Scope::of(subset), ..collector })
    }

    /// A collector for files that may hold data by their names ([`is_data`]), without what programs
    /// write to their standard output.
    ///
    /// # Errors
    /// The names of the files cannot be read.
    pub fn of_data<F: FileNames + ?Sized>(
        processes: &[ProcessInfo],
        files: &F,
        sets_max: usize,
    ) -> Result<Self, F::Error> {
        let mut collector = Self::only(processes, files, |name| is_data(name.as_bytes()), sets_max)?;
        collector.scope.leave_out_output();
        Ok(collector)
    }

    /// A collector that lists up to `listed_max` files one by one.
    fn listing<F: FileNames + ?Sized>(
        processes: &[ProcessInfo],
        files: &F,
        sets_max: usize,
        listed_max: usize,
    ) -> Result<Self, F::Error> {
        let classifier = Classifier::new(processes, files, sets_max)?;
        let sets = classifier.groups().len();
        Ok(Self {
            files: Files::new(files, &classifier, listed_max)?,
            scope: Scope::default(),
            sets: classifier.groups().map(|_| Collected::default()).collect(),
            // Only sets that are planned one by one are told apart from memory.
            pages: Pages::new(sets <= MAX_GROUPS && files.count() <= listed_max),
            timeline: (sets <= MAX_GROUPS).then(|| Timeline::new(sets)),
            limits: Limits::of(sets),
            classifier,
            open: Size::default(),
            closed: Size::default(),
            open_limit: GROUP_SAMPLE_MAX,
            closed_limit: GROUP_SAMPLE_MAX,
        })
    }

    /// Adds the next call. The caller passes every call of the trace, in the trace's order.
    #[inline]
    pub fn add(&mut self, call: &Call) {
        if let Some(file) = self.scope.number(call) {
            self.add_wanted(&Call { file, ..*call });
        }
    }

    #[inline]
    fn add_wanted(&mut self, call: &Call) {
        let Some(class) = self.classifier.classify(call) else {
            self.add_other(call);
            return;
        };
        self.files.add(call);
        let index = class.group as usize;
        if let Some(timeline) = &mut self.timeline {
            timeline.note(index, call);
        }
        if self.classifier.closed(class.group) != self.sets[index].first_open() {
            self.join_closed(index);
        }
        let Call { process, file, offset, .. } = *call;
        let node = self.classifier.nodes().get(process as usize).copied().unwrap_or_default();
        let known = self.pages.access(node, call);
        let took_ns = u32::try_from(call.end_ns.saturating_sub(call.start_ns)).unwrap_or(u32::MAX);
        let request = Request { process, file, offset, size: call.bytes(), past: class.past, took_ns, known };
        let kind = Kind::of(call);
        if kind.op() == stripewise_model::Op::Write {
            self.pages.write(call);
        }
        if let Some(used) = self.files.use_of(file) {
            used.add(kind.op(), &request);
        }
        let set = &mut self.sets[index];
        let (before, is_full) = (set.open_size(), self.open.groups >= self.limits.open_groups);
        set.push(class.phase, kind, request, self.open_limit, is_full);
        let after = set.open_size();
        self.open.update(before, after);
        let has_new_group = after.groups > before.groups;
        let has_too_many = has_new_group && self.open.groups >= self.limits.open_groups;
        if has_too_many || self.sampled() > self.limits.samples {
            self.reduce();
        }
    }

    fn add_other(&mut self, call: &Call) {
        use stripewise_trace::Op::{Close, Map, Open, Resize, Stat, Sync, Unlink};
        let set = &mut self.sets[self.classifier.group(call.file) as usize];
        let took_ns = call.end_ns.saturating_sub(call.start_ns);
        match call.op {
            Map => set.mapped = true,
            // A call that failed may have looked at no object.
            _ if call.result < 0 => {}
            Open => {
                let creates = self.files.open(call.file, call.size);
                set.calls.creates += u64::from(creates);
                set.calls.opens += u64::from(!creates);
            }
            Resize => self.files.grow(call.file, call.size),
            Close => {
                set.calls.closes += 1;
                set.calls.flush_ns = set.calls.flush_ns.saturating_add(took_ns);
                self.pages.close(call);
            }
            Sync => {
                set.calls.flush_ns = set.calls.flush_ns.saturating_add(took_ns);
                self.pages.flush(call.file);
            }
            Stat => set.calls.stats += 1,
            Unlink => {
                self.files.remove(call.file);
                set.calls.unlinks += 1;
            }
            _ => {}
        }
    }

    /// Moves the groups of closed phases of a set to those of the same concurrency.
    fn join_closed(&mut self, index: usize) {
        let (number, set) = (index as u32, &mut self.sets[index]);
        let before = set.open_size();
        while set.first_open() < self.classifier.closed(number) {
            let concurrency = self.classifier.concurrency(number, set.first_open());
            set.close_first(concurrency, (self.closed_limit, self.limits.groups), &mut self.closed);
        }
        self.open.update(before, set.open_size());
    }

    /// Number of sampled requests.
    fn sampled(&self) -> usize {
        self.open.sampled + self.closed.sampled
    }

    /// Frees a sixteenth of what is limited for all sets together. Freeing less would have to be
    /// done again too soon.
    fn reduce(&mut self) {
        let Limits { samples, open_groups, open_sample, .. } = self.limits;
        while self.open.groups > reduced(open_groups) && self.close_oldest(|open| open.groups) {}
        if self.is_many() && self.sampled() > samples {
            self.forget_alike();
        }
        let mut has_large = true;
        while self.sampled() > reduced(samples) {
            if self.closed.sampled > samples / 2 {
                self.thin_closed();
                continue;
            }
            has_large = has_large && self.thin_open(OPEN_SAMPLE_LOW);
            if !has_large && !self.close_oldest(|open| open.sampled) && !self.thin_open(open_sample) {
                break;
            }
        }
    }

    /// Whether the sets are planned by what they have in common.
    fn is_many(&self) -> bool {
        self.timeline.is_none()
    }

    /// Of groups that are alike only those of the first sets keep their samples, at least one of
    /// them: half of the room is shared evenly by what is not alike.
    fn forget_alike(&mut self) {
        let mut kept: HashMap<Likeness, usize> = HashMap::new();
        for (like, sampled) in self.sets.iter_mut().flat_map(Collected::samples) {
            if sampled.len() > 0 {
                kept.insert(like, 0);
            }
        }
        let share = self.limits.samples / 2 / kept.len().max(1);
        (self.open.sampled, self.closed.sampled) = (0, 0);
        for set in &mut self.sets {
            for (like, sampled) in set.samples().filter(|(_, sampled)| sampled.len() > 0) {
                let kept = kept.entry(like).or_default();
                if *kept > 0 && *kept + sampled.len() > share {
                    sampled.forget()
                } else {
                    *kept += sampled.len()
                }
            }
            self.closed.sampled += set.recount();
            self.open.sampled += set.open_size().sampled;
        }
    }

    /// Closes the older half of the open phases of the set with the most of them by `size`; of all
    /// sets if they are many. Returns whether there is a set with several.
    fn close_oldest(&mut self, size: impl Fn(Size) -> usize) -> bool {
        if self.is_many() {
            let several: Vec<usize> =
                (0..self.sets.len()).filter(|&index| self.sets[index].open_phases() > 1).collect();
            several.iter().for_each(|&index| self.close_half(index));
            return !several.is_empty();
        }
        let several = self.sets.iter().enumerate().filter(|(_, set)| set.open_phases() > 1);
        let Some((index, _)) = several.max_by_key(|(_, set)| size(set.open_size())) else {
            return false;
        };
        self.close_half(index);
        true
    }

    fn close_half(&mut self, index: usize) {
        self.classifier.close_oldest(index as u32, self.sets[index].open_phases() / 2);
        self.join_closed(index);
    }

    /// Halves the largest samples of open phases. Returns `false` if all have at most `least`.
    fn thin_open(&mut self, least: usize) -> bool {
        let largest = self.sets.iter().map(Collected::largest_open).max().unwrap_or(0);
        if largest <= least {
            return false;
        }
        self.open_limit = (largest.next_power_of_two() / 2).max(least);
        self.open.sampled = 0;
        for set in &mut self.sets {
            set.thin_open(self.open_limit);
            self.open.sampled += set.open_size().sampled;
        }
        true
    }

    /// Halves the samples of closed phases.
    fn thin_closed(&mut self) {
        self.closed_limit /= 2;
        self.closed.sampled = self.sets.iter_mut().map(|set| set.thin_closed(self.closed_limit)).sum();
    }

    /// What was left out so far because it is not wanted.
    pub fn left_out(&self) -> LeftOut {
        self.scope.left_out()
    }

    /// How long the busiest process has read and written so far.
    pub fn busiest(&self) -> Busiest {
        self.scope.busiest()
    }

    /// The workload, with the largest file sets first (by bytes of their requests).
    pub fn finish(mut self) -> Workload {
        self.classifier.close();
        (0..self.sets.len()).for_each(|index| self.join_closed(index));
        let Self { files, classifier, mut sets, timeline, pages, .. } = self;
        for (file, bytes) in pages.unflushed() {
            let calls = &mut sets[classifier.group(file) as usize].calls;
            calls.unflushed_bytes = calls.unflushed_bytes.saturating_add(bytes);
        }
        let all_collected = sets;
        let (mut sets, index_of) = files.into_sets(&classifier);
        let nodes = classifier.nodes().into();
        // The samples are copied next.
        drop(classifier);
        for (set, collected) in sets.iter_mut().zip(all_collected) {
            set.private &= set.count() > 1;
            set.mapped = collected.mapped;
            let calls = collected.calls;
            set.groups = collected.into_groups(&index_of, &nodes);
            let procs = set.groups.iter().map(|group| group.procs).max().unwrap_or(1);
            set.calls = vec![Calls { times: 1, procs, ..calls }];
        }
        if let Some(timeline) = &timeline {
            timeline.assign_lanes(&mut sets);
        }
        pass_on_mappings(&mut sets);
        sets.retain(|set| !set.groups.is_empty());
        sets.sort_by_key(|set| std::cmp::Reverse(set.bytes()));
        Workload { file_sets: sets }
    }
}

/// Notes in every set whether its pattern matches mapped files of another set without data
/// requests. Such a set has no rule of its own, so a broader rule applies to its files.
fn pass_on_mappings(sets: &mut [FileSet]) {
    let without_rule = sets.iter().filter(|set| set.mapped && set.groups.is_empty());
    // A broader pattern matches all files of a set or none.
    let names: Vec<Arc<str>> = without_rule.map(|set| set.files[0].name.clone()).collect();
    for set in sets.iter_mut().filter(|set| !set.groups.is_empty()) {
        let matches = |name: &Arc<str>| match_path(set.pattern.as_bytes(), name.as_bytes(), None).is_some();
        set.mapped |= names.iter().any(matches);
    }
}

#[cfg(test)]
mod tests;
