//! Card of one file group: its requests over time, their sizes, and its phases.

use std::ops::Range;

use stripewise_trace::Op;
use stripewise_trace::summary::{Direction, Group, Phase};

use super::table::{Column, amount, table, whole};
use super::text::{caption, time_ticks};
use crate::activity::{Activity, GroupPicture};
use crate::density::COLUMNS;
use crate::draw::{self, Plot};
use crate::html::Html;
use crate::{ticks, units};

/// Maximum number of phase kinds listed per group.
const PHASES_LISTED: usize = 24;

/// Minimum width of a drawn phase as a fraction of the drawing: two pixels on a wide screen.
const NARROWEST: f64 = 0.002;

/// Maximum number of phases drawn per group. A group with more phases has no phase drawing.
const PHASES_DRAWN: usize = 200;

pub fn card(h: &mut Html, activity: &Activity, picture: &GroupPicture) {
    let group = &activity.summary.groups[picture.group];
    h.element("div", &[("class", "card")], |h| {
        h.element("h3", &[], |h| {
            h.leaf("code", &[], if group.files == 1 { &group.first_file } else { &group.pattern });
        });
        h.leaf("p", &[("class", "soft")], &sentence(group));
        by_offset(h, group, picture);
        sizes(h, group);
        phases(h, group);
    });
}

fn sentence(group: &Group) -> String {
    let mut parts =
        vec![format!("{}, used by {}", units::counted(group.files, "file", "files"), sharing(group))];
    for (direction, done) in [(&group.read, "read"), (&group.write, "written")] {
        if direction.requests > 0 {
            let requests = units::counted(direction.requests, "request", "requests");
            let order = order_of_access(direction);
            parts.push(format!("{} {done} by {requests} ({order})", units::bytes(direction.bytes)));
        }
    }
    if group.other.map > 0 {
        parts.push(format!(
            "{} (accesses through a mapping are not seen)",
            units::counted(group.other.map, "mapping", "mappings")
        ));
    }
    if group.other.failed > 0 {
        parts.push(format!("{} failed", units::counted(group.other.failed, "call", "calls")));
    }
    parts.join("; ") + "."
}

fn by_offset(h: &mut Html, group: &Group, picture: &GroupPicture) {
    h.element("figure", &[], |h| {
        let of = if group.files == 1 { "the file" } else { "its file (all files are laid over one another)" };
        let bar = if phases_drawn(group).is_empty() { "" } else { " The bar above shows the phases." };
        let text = format!("where in {of} each request was.{bar}");
        caption(h, "Requests over time, by offset", &text);
        draw::density_legend(h, &picture.by_offset);
        h.element("div", &[("class", "framed")], |h| {
            let plot = Plot {
                height: 240,
                name: &format!("Requests over time and offset, up to {}", units::bytes(picture.extent)),
                x: time_ticks(&picture.span_ns),
                y: ticks::bytes(picture.extent),
                downwards: true,
            };
            phase_strip(h, group, &picture.span_ns);
            let rows = picture.by_offset.rows();
            draw::stretched(h, &plot, (COLUMNS, rows), |h| draw::density(h, &picture.by_offset));
        });
        h.leaf("div", &[("class", "axis")], "time since the start of the trace");
    });
}

/// Returns all phases of the group, or none if there are too many to draw.
fn phases_drawn(group: &Group) -> &[Phase] {
    let all = group.phases.len() == group.phases.first.len() && group.phases.len() <= PHASES_DRAWN;
    if all { &group.phases.first } else { &[] }
}

/// Draws the phases over time. Later phases cover earlier ones where they overlap.
fn phase_strip(h: &mut Html, group: &Group, span_ns: &Range<u64>) {
    let phases = phases_drawn(group);
    if phases.is_empty() {
        return;
    }
    let length = (span_ns.end - span_ns.start).max(1) as f64;
    let at = |ns: u64| ns.saturating_sub(span_ns.start) as f64 / length;
    let name = units::counted(phases.len() as u64, "phase", "phases");
    draw::drawing(h, "phases", 20, &format!("{name} over time"), |h| {
        for phase in phases {
            let class = if phase.op == Op::Read { "read" } else { "write" };
            let (left, right) = (at(phase.start_ns), at(phase.end_ns));
            let visible = right.max(left + NARROWEST).min(1.0);
            draw::rect(h, class, (left, visible), (0.0, 16.0), &phase_sentence(phase));
            if right - left > 0.2 {
                let text = format!("{} p={}", phase.op.name(), phase.processes);
                let class = if phase.op == Op::Read { "on-read" } else { "on" };
                draw::label(h, class, ((left + right) / 2.0, 12.0), "middle", 0, &text);
            }
        }
    });
}

fn phase_sentence(phase: &Phase) -> String {
    let processes = units::counted(phase.processes.into(), "process", "processes");
    let bytes = units::bytes(phase.bytes);
    format!("{} by {processes}, {} on one node: {bytes}", phase.op.name(), phase.per_node)
}

fn sizes(h: &mut Html, group: &Group) {
    let rows = super::sizes::rows(&group.read.sizes, &group.write.sizes);
    if rows.is_empty() {
        return;
    }
    h.element("figure", &[], |h| {
        caption(h, "Request sizes", "how many requests moved so many bytes.");
        let directions = [(&group.read, ("read", "reads")), (&group.write, ("write", "writes"))];
        let used = directions.iter().filter(|(direction, _)| direction.requests > 0);
        draw::legend(h, &used.map(|(_, entry)| *entry).collect::<Vec<_>>());
        super::sizes::bars(h, &rows);
    });
}

fn phases(h: &mut Html, group: &Group) {
    let columns = [
        Column::text("What"),
        Column::number("processes p"),
        Column::number("on one node c"),
        Column::number("phases"),
        Column::number("requests"),
        Column::number("bytes"),
        Column::number("bytes per request"),
    ];
    let kinds = &group.phases.by_concurrency;
    let shown = kinds.len().min(PHASES_LISTED);
    let mut caption =
        "Phases: what the processes do together, with p processes at once, c of them on one node.".to_owned();
    if shown < kinds.len() {
        caption += &format!(" The first {shown} kinds of {}.", kinds.len());
    }
    table(h, &caption, &columns, |h| {
        for kind in &kinds[..shown] {
            h.element("tr", &[], |h| {
                h.leaf("th", &[("scope", "row")], kind.op.name());
                whole(h, kind.processes.into(), units::count);
                whole(h, kind.per_node.into(), units::count);
                whole(h, kind.phases, units::count);
                whole(h, kind.requests, units::count);
                whole(h, kind.bytes, units::bytes);
                amount(h, Some(kind.bytes as f64 / kind.requests.max(1) as f64), |b| units::bytes(b as u64));
            });
        }
    });
}

/// Describes which processes use the files of a group.
pub fn sharing(group: &Group) -> String {
    match group.shared_files {
        0 if group.files == 1 => "one process".to_owned(),
        0 => "one process each".to_owned(),
        n if n == group.files => "several processes".to_owned(),
        n => format!("several processes ({} of them)", units::count(n)),
    }
}

/// Describes the order of accesses: `sequential`, `87 % sequential, 13 % random`, ...
pub fn order_of_access(direction: &Direction) -> String {
    let followers = direction.requests - direction.streams;
    if followers == 0 {
        return "one request per process and file".to_owned();
    }
    let (sequential, strided) = (direction.sequential_share(), direction.strided_share());
    let kinds = [(sequential, "sequential"), (strided, "strided"), (1.0 - sequential - strided, "random")];
    let mentioned: Vec<_> = kinds.iter().filter(|(share, _)| *share >= 0.005).collect();
    match mentioned.as_slice() {
        [(_, kind)] => (*kind).to_owned(),
        several => {
            let parts = several.iter().map(|(share, kind)| format!("{} {kind}", units::percent(*share)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}
