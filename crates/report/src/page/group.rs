//! Card of one file group: its requests over time, their sizes, and its phases.

use std::collections::BTreeMap;
use std::ops::Range;

use maud::{Markup, html};
use stripewise_trace::Op;
use stripewise_trace::summary::{Direction, Group, Phase, Sizes};

use super::parts::{TIME, Table, figure, soft, time_ticks};
use crate::activity::{Activity, GroupPicture};
use crate::density::COLUMNS;
use crate::draw::{self, Plot};
use crate::{ticks, units};

/// Up to this number, distinct sizes are shown individually; more are grouped by powers of two.
const SIZES_SHOWN: usize = 12;

/// Maximum number of phase kinds listed per group.
const PHASES_LISTED: usize = 24;

/// Minimum width of a drawn phase as a fraction of the drawing: two pixels on a wide screen.
const NARROWEST: f64 = 0.002;

/// Maximum number of phases drawn per group. A group with more phases has no phase drawing.
const PHASES_DRAWN: usize = 200;

pub fn card(activity: &Activity, picture: &GroupPicture) -> Markup {
    let group = &activity.summary.groups[picture.group];
    html! {
        div.card {
            h3 { code { (if group.files == 1 { &group.first_file } else { &group.pattern }) } }
            (soft(sentence(group)))
            (by_offset(group, picture))
            (sizes(group))
            (phases(group))
        }
    }
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

fn by_offset(group: &Group, picture: &GroupPicture) -> Markup {
    let of = if group.files == 1 { "the file" } else { "its file (all files are laid over one another)" };
    let bar = if phases_drawn(group).is_empty() { "" } else { " The bar above shows the phases." };
    let frame = Plot {
        height: 240,
        name: &format!("Requests over time and offset, up to {}", units::bytes(picture.extent)),
        x: time_ticks(&picture.span_ns),
        y: ticks::bytes(picture.extent),
        downwards: true,
    };
    let cells = (COLUMNS, picture.by_offset.rows());
    figure(
        "Requests over time, by offset",
        format_args!("where in {of} each request was.{bar}"),
        html! {
            (draw::density_legend(&picture.by_offset))
            div.framed {
                (phase_strip(group, &picture.span_ns))
                (draw::stretched(&frame, cells, draw::density(&picture.by_offset)))
            }
            div.axis { (TIME) }
        },
    )
}

/// Returns all phases of the group, or none if there are too many to draw.
fn phases_drawn(group: &Group) -> &[Phase] {
    let all = group.phases.len() == group.phases.first.len() && group.phases.len() <= PHASES_DRAWN;
    if all { &group.phases.first } else { &[] }
}

/// Draws the phases over time. Later phases cover earlier ones where they overlap.
fn phase_strip(group: &Group, span_ns: &Range<u64>) -> Markup {
    let phases = phases_drawn(group);
    if phases.is_empty() {
        return Markup::default();
    }
    let length = (span_ns.end - span_ns.start).max(1) as f64;
    let at = |ns: u64| (ns.saturating_sub(span_ns.start) as f64 / length).min(1.0);
    let is_shown = |phase: &&Phase| phase.start_ns <= span_ns.end && phase.end_ns >= span_ns.start;
    let block = |phase: &Phase| {
        let (class, on) = if phase.op == Op::Read { ("read", "on-read") } else { ("write", "on") };
        let (left, right) = (at(phase.start_ns), at(phase.end_ns));
        let visible = right.max(left + NARROWEST).min(1.0);
        let text = format!("{} p={}", phase.op.name(), phase.processes);
        html! {
            (draw::rect(class, (left, visible), (0.0, 16.0), &phase_sentence(phase)))
            @if right - left > 0.2 { (draw::label(on, ((left + right) / 2.0, 12.0), "middle", 0, &text)) }
        }
    };
    let name = format!("{} over time", units::counted(phases.len() as u64, "phase", "phases"));
    draw::drawing(
        "phases",
        20,
        &name,
        html! {
            @for phase in phases.iter().filter(is_shown) { (block(phase)) }
        },
    )
}

fn phase_sentence(phase: &Phase) -> String {
    let processes = units::counted(phase.processes.into(), "process", "processes");
    let bytes = units::bytes(phase.bytes);
    format!("{} by {processes}, {} on one node: {bytes}", phase.op.name(), phase.per_node)
}

/// Draws the histogram of request sizes: one bar per size, with reads followed by writes.
fn sizes(group: &Group) -> Markup {
    let rows = size_rows(&group.read.sizes, &group.write.sizes);
    if rows.is_empty() {
        return Markup::default();
    }
    let directions = [(&group.read, ("read", "reads")), (&group.write, ("write", "writes"))];
    let used = directions.iter().filter(|(direction, _)| direction.requests > 0);
    let most = rows.iter().map(|row| row.requests.iter().sum::<u64>()).max().unwrap_or(0).max(1) as f64;
    figure(
        "Request sizes",
        "how many requests moved so many bytes.",
        html! {
            (draw::legend(&used.map(|(_, entry)| *entry).collect::<Vec<_>>()))
            div.bars.tight.sizes {
                @for row in &rows {
                    @let middle = row.requests[0] as f64 / most;
                    @let end = middle + row.requests[1] as f64 / most;
                    @let text = row.text();
                    div { span.size { (row.name) } span.soft { (text) } }
                    div {
                        (draw::segments(
                            16,
                            &format!("{}: {text}", row.name),
                            &[("read", (0.0, middle)), ("write", (middle, end))],
                        ))
                    }
                }
            }
        },
    )
}

/// Requests of one size, or of a range of sizes.
struct SizeRow {
    /// The size, or `FROM to below TO`.
    name: String,
    /// Number of reads and of writes.
    requests: [u64; 2],
}

/// Returns the rows by ascending size: exact sizes if there are few, else powers of two.
fn size_rows(reads: &Sizes, writes: &Sizes) -> Vec<SizeRow> {
    let mut exact: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for (op, sizes) in [reads, writes].into_iter().enumerate() {
        for (size, count) in sizes.by_count() {
            exact.entry(size).or_default()[op] += count;
        }
    }
    let all_exact = reads.rounded.is_empty() && writes.rounded.is_empty();
    if all_exact && exact.len() <= SIZES_SHOWN {
        return exact
            .into_iter()
            .map(|(size, requests)| SizeRow { name: units::bytes(size), requests })
            .collect();
    }
    let mut rounded: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for (size, requests) in exact {
        let row = rounded.entry(size.max(1).ilog2()).or_default();
        row[0] += requests[0];
        row[1] += requests[1];
    }
    let name = |power: u32| match 1u64.checked_shl(power + 1) {
        Some(end) => format!("{} to below {}", units::bytes(1 << power), units::bytes(end)),
        None => format!("{} and more", units::bytes(1 << power)),
    };
    rounded.into_iter().map(|(power, requests)| SizeRow { name: name(power), requests }).collect()
}

impl SizeRow {
    fn text(&self) -> String {
        let [reads, writes] = self.requests;
        let counted = [(reads, "read", "reads"), (writes, "write", "writes")].into_iter();
        let counted = counted.filter(|(count, ..)| *count > 0);
        counted.map(|(count, one, many)| units::counted(count, one, many)).collect::<Vec<_>>().join(", ")
    }
}

fn phases(group: &Group) -> Markup {
    let kinds = &group.phases.by_concurrency;
    let mut caption =
        "Phases: what the processes do together, with p processes at once, c of them on one node.".to_owned();
    if kinds.len() > PHASES_LISTED {
        caption += &format!(" The first {PHASES_LISTED} kinds of {}.", kinds.len());
    }
    let table = Table::new(caption, kinds.iter().take(PHASES_LISTED))
        .head("What", |kind| kind.op.name())
        .amount("processes p", |kind| u64::from(kind.processes), units::count)
        .amount("on one node c", |kind| u64::from(kind.per_node), units::count)
        .amount("phases", |kind| kind.phases, units::count)
        .amount("requests", |kind| kind.requests, units::count)
        .amount("bytes", |kind| kind.bytes, units::bytes)
        .amount(
            "bytes per request",
            |kind| kind.bytes as f64 / kind.requests.max(1) as f64,
            |bytes| units::bytes(bytes as u64),
        );
    html! { (table) }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(exact: &[(u64, u64)], rounded: &[(u64, u64)]) -> Sizes {
        Sizes { exact: exact.iter().copied().collect(), rounded: rounded.iter().copied().collect() }
    }

    #[test]
    fn few_sizes_are_shown_as_they_are() {
        let rows = size_rows(&sizes(&[(65536, 10), (100, 1)], &[]), &sizes(&[(65536, 5)], &[]));
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["100\u{a0}B", "64\u{a0}KiB"]);
        assert_eq!(rows[1].requests, [10, 5]);
    }

    #[test]
    fn many_sizes_are_put_together_and_none_is_lost() {
        let exact: Vec<(u64, u64)> = (1..60).map(|i| (i * 1000, i)).collect();
        let rows = size_rows(&sizes(&exact, &[(1 << 20, 7)]), &sizes(&[(u64::MAX, 2)], &[]));
        assert!(rows.iter().any(|row| row.name == "32\u{a0}KiB to below 64\u{a0}KiB"));
        assert_eq!(rows.last().unwrap().name, "8\u{a0}EiB and more");
        let reads: u64 = rows.iter().map(|row| row.requests[0]).sum();
        assert_eq!(reads, (1..60).sum::<u64>() + 7);
        assert_eq!(rows.last().unwrap().requests, [0, 2]);
    }
}
