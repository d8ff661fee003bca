//! Gathers the contents of a trace for drawing, in one pass over the requests. Memory use does not
//! grow with the number of requests.

use std::ops::Range;

use stripewise_trace::{Meta, Op, ProcessInfo, Request, Summary};

use crate::calls::Calls;
use crate::density::{self, COLUMNS, Density};

/// Number of file groups drawn, those with the most bytes. The table lists all groups.
pub const GROUPS_DRAWN: usize = 6;

/// Rows of a density plot by offset.
const OFFSET_ROWS: usize = 96;

/// Rows of the density plot by rank. More ranks than this share rows.
const LANE_ROWS: usize = 128;

/// The contents of a trace, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Display name: the trace file's name.
    pub name: String,
    /// Command, times, and what is missing from the trace.
    pub meta: Meta,
    /// Groups, phases and sizes.
    pub summary: Summary,
    /// The ranks that moved data, in order, followed by processes without a rank.
    pub lanes: Vec<Lane>,
    /// The times that charts show, nanoseconds since the start of the trace.
    pub span_ns: Range<u64>,
    /// The charts show a part of the trace's time.
    pub zoomed: bool,
    /// How long calls took, and when they were made.
    pub calls: Calls,
    /// Bytes (read, written) in equal time slots of the span.
    pub moved: Vec<[f64; 2]>,
    /// Requests over time and lanes. Each row holds [`Activity::lanes_per_row`] lanes.
    pub by_lane: Density,
    /// Lanes in one row of `by_lane`; the last row may have fewer.
    pub lanes_per_row: usize,
    /// The largest groups, those with the most bytes first.
    pub pictures: Vec<GroupPicture>,
}

/// A rank, or a process without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// `rank 3`, or `node pid program`.
    pub name: String,
    /// Bytes (read, written).
    pub bytes: [u64; 2],
}

/// The requests of one group of files over time and offset.
#[derive(Clone, Debug)]
pub struct GroupPicture {
    /// Index into [`Summary::groups`].
    pub group: usize,
    /// The times shown, nanoseconds since the start of the trace.
    pub span_ns: Range<u64>,
    /// End of the offsets shown, which start at 0.
    pub extent: u64,
    /// The density plot.
    pub by_offset: Density,
}

/// Gathers an [`Activity`]. Create it from the summary, then feed it all requests.
pub struct Collector {
    activity: Activity,
    /// Index into the lanes, by process.
    lane_of: Vec<usize>,
    /// Index into the pictures, by group of files; `None` if the group is not drawn.
    picture_of: Vec<Option<usize>>,
}

impl Collector {
    /// Creates a collector for the trace from which `summary` was made; `name` is its display name.
    /// Charts show the times in `shown`, nanoseconds since the start of the trace; sums of the
    /// summary are those of the whole trace.
    pub fn new(
        name: &str,
        meta: &Meta,
        processes: &[ProcessInfo],
        summary: Summary,
        shown: Range<u64>,
    ) -> Self {
        let (lanes, lane_of) = lanes(processes);
        let lanes_per_row = lanes.len().div_ceil(LANE_ROWS).max(1);
        let whole_ns = span_of(&summary);
        let span_ns = both(&whole_ns, &shown);
        let rows = lanes.len().div_ceil(lanes_per_row).max(1);
        let pictures = pictures(&summary, &span_ns);
        let picture_of = |group: usize| pictures.iter().position(|picture| picture.group == group);
        let picture_of = (0..summary.groups.len()).map(picture_of).collect();
        let activity = Activity {
            name: name.to_owned(),
            meta: meta.clone(),
            by_lane: Density::new(span_ns.end - span_ns.start, (rows * lanes_per_row) as u64, rows),
            calls: Calls::new(summary.groups.len()),
            summary,
            lanes,
            zoomed: span_ns != whole_ns,
            span_ns,
            moved: vec![[0.0; 2]; COLUMNS],
            lanes_per_row,
            pictures,
        };
        Self { activity, lane_of, picture_of }
    }

    /// Adds requests of the trace, in any order. Each request must be added once.
    pub fn add(&mut self, requests: &[Request]) {
        for request in requests {
            let Some(time_ns) = within(request, &self.activity.span_ns) else { continue };
            self.add_call(request, time_ns.clone());
            if request.bytes() > 0 {
                self.add_data(request, time_ns);
            }
        }
    }

    /// Returns the activity. Lanes that moved nothing (launchers) are removed, unless lanes share
    /// rows.
    pub fn finish(self) -> Activity {
        let mut activity = self.activity;
        if activity.lanes_per_row == 1 {
            let used: Vec<bool> = activity.lanes.iter().map(|lane| lane.bytes != [0, 0]).collect();
            activity.by_lane = activity.by_lane.keep_rows(&used);
            activity.lanes.retain(|lane| lane.bytes != [0, 0]);
        }
        activity
    }

    fn add_call(&mut self, request: &Request, time_ns: Range<u64>) {
        let Activity { calls, summary, span_ns, .. } = &mut self.activity;
        let group = summary.group_of[request.file as usize] as usize;
        let began_ns = request.start_ns.checked_sub(span_ns.start);
        calls.add(group, request.op, time_ns.end - time_ns.start, began_ns, span_ns.end - span_ns.start);
    }

    fn add_data(&mut self, request: &Request, time_ns: Range<u64>) {
        let activity = &mut self.activity;
        let write = request.op == Op::Write;
        let lane = self.lane_of[request.process as usize];
        let bytes = shown_bytes(request, &time_ns);
        activity.lanes[lane].bytes[usize::from(write)] += bytes;
        activity.by_lane.add(write, time_ns.clone(), lane as u64..lane as u64 + 1);
        spread(&mut activity.moved, usize::from(write), bytes, time_ns, &activity.span_ns);
        let group = activity.summary.group_of[request.file as usize];
        if let Some(index) = self.picture_of[group as usize] {
            let picture = &mut activity.pictures[index];
            let places = request.offset..request.offset.saturating_add(request.bytes());
            if let Some(time_ns) = within(request, &picture.span_ns) {
                picture.by_offset.add(write, time_ns, places);
            }
        }
    }
}

/// Returns the time from the first call of a trace to its last, nanoseconds since its start.
pub fn span_of(summary: &Summary) -> Range<u64> {
    let start = summary.groups.iter().map(|group| group.start_ns).min().unwrap_or(0);
    let end = summary.groups.iter().map(|group| group.end_ns).max().unwrap_or(0);
    start..end.max(start)
}

/// Returns the time that is in both, or an empty one.
fn both(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// Returns the part of the request's time that is in `span_ns`, relative to its start; `None` if
/// there is none.
fn within(request: &Request, span_ns: &Range<u64>) -> Option<Range<u64>> {
    let is_outside = request.end_ns < span_ns.start || request.start_ns > span_ns.end;
    let part = both(&(request.start_ns..request.end_ns), span_ns);
    (!is_outside).then(|| part.start - span_ns.start..part.end - span_ns.start)
}

/// Returns how many of the request's bytes were moved in this part of its time.
fn shown_bytes(request: &Request, part_ns: &Range<u64>) -> u64 {
    let (part, whole) = (part_ns.end - part_ns.start, request.end_ns.saturating_sub(request.start_ns));
    if part >= whole {
        return request.bytes();
    }
    (u128::from(request.bytes()) * u128::from(part) / u128::from(whole)) as u64
}

/// Distributes `bytes` over the slots that `time` covers, in proportion to the time in each slot.
fn spread(slots: &mut [[f64; 2]], op: usize, bytes: u64, time: Range<u64>, span_ns: &Range<u64>) {
    let span = (span_ns.end - span_ns.start).max(1);
    let (first, end) = density::cells(time.clone(), span, slots.len());
    if first + 1 == end {
        slots[first][op] += bytes as f64;
        return;
    }
    let slot_ns = span as f64 / slots.len() as f64;
    let per_ns = bytes as f64 / (time.end - time.start) as f64;
    for (index, slot) in slots.iter_mut().enumerate().take(end).skip(first) {
        let from = (index as f64 * slot_ns).max(time.start as f64);
        let to = ((index + 1) as f64 * slot_ns).min(time.end as f64);
        slot[op] += per_ns * (to - from).max(0.0);
    }
}

/// Returns the lanes, and the lane of every process: ranks in order, then processes without a rank.
/// Processes of one rank (a program and its children) share a lane.
fn lanes(processes: &[ProcessInfo]) -> (Vec<Lane>, Vec<usize>) {
    let mut order: Vec<usize> = (0..processes.len()).collect();
    order.sort_by_key(|&index| (processes[index].rank < 0, processes[index].rank, index));
    let mut lanes: Vec<Lane> = Vec::new();
    let mut lane_of = vec![0; processes.len()];
    let mut last_rank = -1;
    for index in order {
        let process = &processes[index];
        if process.rank < 0 || process.rank != last_rank {
            let name = match process.rank {
                0.. => format!("rank {}", process.rank),
                _ => format!("{} process {} {}", process.node, process.pid, process.program),
            };
            lanes.push(Lane { name, bytes: [0; 2] });
        }
        last_rank = process.rank;
        lane_of[index] = lanes.len() - 1;
    }
    (lanes, lane_of)
}

/// Creates empty density plots for the groups with the most bytes that were in use in `shown`.
fn pictures(summary: &Summary, shown: &Range<u64>) -> Vec<GroupPicture> {
    let mut order: Vec<usize> = (0..summary.groups.len()).collect();
    let bytes = |index: usize| summary.groups[index].read.bytes + summary.groups[index].write.bytes;
    let is_shown = |index: usize| {
        summary.groups[index].start_ns <= shown.end && summary.groups[index].end_ns >= shown.start
    };
    order.retain(|&index| bytes(index) > 0 && is_shown(index));
    order.sort_by_key(|&index| (std::cmp::Reverse(bytes(index)), index));
    order.truncate(GROUPS_DRAWN);
    let picture = |group: usize| {
        let extent = summary.groups[group].largest_extent_bytes.max(1);
        let span_ns = both(&(summary.groups[group].start_ns..summary.groups[group].end_ns), shown);
        let by_offset = Density::new(span_ns.end - span_ns.start, extent, OFFSET_ROWS);
        GroupPicture { group, span_ns, extent, by_offset }
    };
    order.into_iter().map(picture).collect()
}
