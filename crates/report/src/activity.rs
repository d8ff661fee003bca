//! What a trace shows, gathered for drawing: one pass over the requests, memory that does not grow with them.

use std::ops::Range;

use stripewise_trace::{Meta, Op, ProcessInfo, Request, Summary};

use crate::density::{self, COLUMNS, Density};

/// So many groups of files are drawn, those with the most bytes; all of them are in the table.
pub const GROUPS_DRAWN: usize = 6;

/// Rows of a picture by offset.
const OFFSET_ROWS: usize = 96;

/// Rows of the picture by rank; more ranks share rows.
const LANE_ROWS: usize = 128;

/// A trace, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Activity {
    /// What to call it: the trace file's name.
    pub name: String,
    /// Command, times, what is missing.
    pub meta: Meta,
    /// Groups, phases, sizes.
    pub summary: Summary,
    /// The ranks, or processes where there are none, that moved data, in order.
    pub lanes: Vec<Lane>,
    /// Where time begins and ends, nanoseconds since the start of the trace.
    pub span_ns: Range<u64>,
    /// Bytes (read, written) in equal slots of the span.
    pub moved: Vec<[f64; 2]>,
    /// Requests over time and lanes. Rows are lanes, or as many lanes as [`Activity::lanes_per_row`] says.
    pub by_lane: Density,
    /// Lanes in one row of `by_lane`; the last row may have fewer.
    pub lanes_per_row: usize,
    /// The largest groups, most bytes first.
    pub pictures: Vec<GroupPicture>,
}

/// A rank, or a process that has none.
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
    /// The times it shows, nanoseconds since the start of the trace.
    pub span_ns: Range<u64>,
    /// The offsets it shows: 0 to here.
    pub extent: u64,
    /// The picture.
    pub by_offset: Density,
}

/// Gathers an [`Activity`]: made from the summary, then fed with all requests.
pub struct Collector {
    activity: Activity,
    /// Process to index into the lanes.
    lane_of: Vec<usize>,
    /// File to index into the pictures, if its group is drawn.
    picture_of: Vec<Option<usize>>,
}

impl Collector {
    /// For the trace that `summary` was made from; `name` is what to call it.
    pub fn new(name: &str, meta: &Meta, processes: &[ProcessInfo], summary: Summary) -> Self {
        let (lanes, lane_of) = lanes(processes);
        let lanes_per_row = lanes.len().div_ceil(LANE_ROWS).max(1);
        let start = summary.groups.iter().map(|group| group.start_ns).min().unwrap_or(0);
        let end = summary.groups.iter().map(|group| group.end_ns).max().unwrap_or(0);
        let span_ns = start..end.max(start);
        let rows = lanes.len().div_ceil(lanes_per_row).max(1);
        let pictures = pictures(&summary);
        let picture_of = summary
            .files
            .iter()
            .map(|file| pictures.iter().position(|picture| picture.group == file.group as usize))
            .collect();
        let activity = Activity {
            name: name.to_owned(),
            meta: meta.clone(),
            by_lane: Density::new(span_ns.end - span_ns.start, (rows * lanes_per_row) as u64, rows),
            summary,
            lanes,
            span_ns,
            moved: vec![[0.0; 2]; COLUMNS],
            lanes_per_row,
            pictures,
        };
        Self { activity, lane_of, picture_of }
    }

    /// Adds requests of the trace, in any order; each once.
    pub fn add(&mut self, requests: &[Request]) {
        for request in requests.iter().filter(|request| request.bytes() > 0) {
            self.add_data(request);
        }
    }

    /// The activity. Lanes that moved nothing (launchers) are gone, unless lanes share rows.
    pub fn finish(self) -> Activity {
        let mut activity = self.activity;
        if activity.lanes_per_row == 1 {
            let used: Vec<bool> = activity.lanes.iter().map(|lane| lane.bytes != [0, 0]).collect();
            activity.by_lane = activity.by_lane.keep_rows(&used);
            activity.lanes.retain(|lane| lane.bytes != [0, 0]);
        }
        activity
    }

    fn add_data(&mut self, request: &Request) {
        let activity = &mut self.activity;
        let write = request.op == Op::Write;
        let time = since(request, &activity.span_ns);
        let lane = self.lane_of[request.process as usize];
        activity.lanes[lane].bytes[usize::from(write)] += request.bytes();
        activity.by_lane.add(write, time.clone(), lane as u64..lane as u64 + 1);
        spread(&mut activity.moved, usize::from(write), request.bytes(), time, &activity.span_ns);
        if let Some(index) = self.picture_of[request.file as usize] {
            let picture = &mut activity.pictures[index];
            let places = request.offset..request.offset.saturating_add(request.bytes());
            picture.by_offset.add(write, since(request, &picture.span_ns), places);
        }
    }
}

/// The request's time, from the beginning of `span_ns`.
fn since(request: &Request, span_ns: &Range<u64>) -> Range<u64> {
    request.start_ns.saturating_sub(span_ns.start)..request.end_ns.saturating_sub(span_ns.start)
}

/// Adds `bytes` to the slots that `time` covers, each by its part of the time.
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

/// The lanes, and the lane of every process: ranks in order, then the processes without one. Processes of one
/// rank (a program and those it starts) share a lane.
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

/// Empty pictures of the groups with the most bytes.
fn pictures(summary: &Summary) -> Vec<GroupPicture> {
    let mut order: Vec<usize> = (0..summary.groups.len()).collect();
    let bytes = |index: usize| summary.groups[index].read.bytes + summary.groups[index].write.bytes;
    order.retain(|&index| bytes(index) > 0);
    order.sort_by_key(|&index| (std::cmp::Reverse(bytes(index)), index));
    order.truncate(GROUPS_DRAWN);
    let picture = |group: usize| {
        let of_group = summary.files.iter().filter(|file| file.group as usize == group);
        let extent = of_group.map(|file| file.extent_bytes).max().unwrap_or(0).max(1);
        let span_ns = summary.groups[group].start_ns..summary.groups[group].end_ns;
        let by_offset = Density::new(span_ns.end - span_ns.start, extent, OFFSET_ROWS);
        GroupPicture { group, span_ns, extent, by_offset }
    };
    order.into_iter().map(picture).collect()
}
