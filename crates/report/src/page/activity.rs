//! Section on the application's I/O: over time, by rank, by offset, by size; groups of files and
//! their phases.

use maud::{Markup, html};
use stripewise_trace::summary::Group;
use stripewise_trace::{ORIGIN_COUNTERS, ORIGIN_DXT};

use super::calls;
use super::group::{self, order_of_access, sharing};
use super::parts::{TIME, Table, anchor, contents, facts, figure, more, plot, time_ticks};
use crate::activity::{Activity, Lane};
use crate::density::COLUMNS;
use crate::draw::{self, Plot};
use crate::{Report, ticks, units};

/// Maximum number of groups in the table.
const GROUPS_LISTED: usize = 200;

/// Columns of the chart of bytes per rank. More ranks than this share columns.
const LANE_COLUMNS: usize = 240;

pub fn section(report: &Report<'_>) -> Markup {
    html! {
        (contents("trace", report.activities.iter().map(|activity| activity.name.as_str())))
        @for (index, activity) in report.activities.iter().enumerate() { (trace(activity, index)) }
    }
}

fn trace(activity: &Activity, index: usize) -> Markup {
    let moved = activity.summary.groups.iter().filter(|g| g.read.bytes + g.write.bytes > 0).count();
    let hidden = moved.saturating_sub(activity.pictures.len());
    html! {
        div.card id=(anchor("trace", index)) {
            h3 { "Trace " code { (activity.name) } }
            (overview(activity))
            @if activity.zoomed { p { (zoom(activity)) } }
            @if activity.summary.calls == 0 {
                p { "The trace has no calls: the program touched no file that was traced." }
            } @else {
                (calls::seconds(activity))
                (throughput(activity))
                (calls::metadata(activity))
                (by_lane(activity))
                (bytes_per_lane(activity))
                (groups(activity))
            }
        }
        @for picture in &activity.pictures { (group::card(activity, picture)) }
        (more(hidden, "patterns of file names with fewer bytes are only in the table."))
    }
}

fn overview(activity: &Activity) -> Markup {
    let (summary, meta) = (&activity.summary, &activity.meta);
    let origin = match meta.origin.as_str() {
        "recorded" => None,
        ORIGIN_DXT | ORIGIN_COUNTERS => Some(html! { (meta.origin) }),
        other => Some(html! { (other) ": no program ran, times are nominal" }),
    };
    let origin = origin.map(|origin| ("Origin", origin));
    let notes = (!meta.notes.is_empty()).then(|| ("Notes", html! { (meta.notes.join("; ")) }));
    let complete = match meta.incomplete.as_slice() {
        [] => html! { "yes, no call is missing" },
        reasons => html! { span.bad { "no: " (reasons.join("; ")) } },
    };
    let nodes = units::counted(summary.nodes, "node", "nodes");
    let files = units::counted(summary.file_count, "file", "files");
    let time = html! {
        (units::seconds(summary.span_s)) " from the first call to the last"
        @if let Some(wall_s) = meta.wall_s { "; the command ran for " (units::seconds(wall_s)) }
    };
    let command = ("Command", html! { code { (meta.command.join(" ")) } });
    facts([command].into_iter().chain(origin).chain(notes).chain([
        ("Complete", complete),
        ("Processes", html! { (units::count(summary.processes)) " on " (nodes) }),
        ("Calls", html! { (units::count(summary.calls)) " on " (files) }),
        ("Time", time),
    ]))
}

/// Says which part of the time charts show.
fn zoom(activity: &Activity) -> String {
    let [from, to] = [activity.span_ns.start, activity.span_ns.end].map(|ns| units::seconds(ns as f64 * 1e-9));
    format!(
        "Charts show the time from {from} to {to}; tables, phases and request sizes are of the whole trace."
    )
}

/// Draws the legend for the bytes drawn: read, written, or both.
fn legend(activity: &Activity) -> Markup {
    let moved = |op: usize| activity.lanes.iter().any(|lane| lane.bytes[op] > 0);
    let entries = [("read", "read"), ("write", "written")];
    draw::legend(&(0..2).filter(|&op| moved(op)).map(|op| entries[op]).collect::<Vec<_>>())
}

fn throughput(activity: &Activity) -> Markup {
    let span_ns = activity.span_ns.end - activity.span_ns.start;
    let peak = activity.moved.iter().map(|[read, written]| read + written).fold(0.0, f64::max);
    if span_ns == 0 || peak == 0.0 {
        return Markup::default();
    }
    let slot_s = span_ns as f64 * 1e-9 / COLUMNS as f64;
    let peak_rate = (peak / slot_s) as u64;
    let heights = |op: usize| -> Vec<f64> { activity.moved.iter().map(|bytes| bytes[op] / peak).collect() };
    let mut y = ticks::bytes(peak_rate);
    y.iter_mut().for_each(|tick| tick.label.push_str("/s"));
    let name = format!("Throughput over time, at most {}", units::bytes_per_s(peak_rate as f64));
    let frame = Plot { height: 130, name: &name, x: time_ticks(&activity.span_ns), y, downwards: false };
    let columns = draw::columns(&[("read", heights(0)), ("write", heights(1))]);
    figure(
        "Throughput over time",
        format_args!("bytes per second in {COLUMNS} slots of {}.", units::seconds(slot_s)),
        plot(legend(activity), &frame, (COLUMNS, 100), columns, TIME),
    )
}

fn by_lane(activity: &Activity) -> Markup {
    let (lanes, density) = (activity.lanes.len(), &activity.by_lane);
    if lanes == 0 || density.peak() == 0 {
        return Markup::default();
    }
    let shared = match activity.lanes_per_row {
        1 => String::new(),
        n => format!("; {n} neighbouring ranks share a row"),
    };
    let rows = density.rows();
    let frame = Plot {
        height: (rows as u32 * 12).clamp(60, 320),
        name: &format!("Requests over time of {lanes} ranks or processes"),
        x: time_ticks(&activity.span_ns),
        y: lane_ticks(activity, activity.lanes_per_row, rows),
        downwards: true,
    };
    figure(
        "Requests over time, by rank",
        format_args!("each row is a rank (or a process without one){shared}."),
        plot(draw::density_legend(density), &frame, (COLUMNS, rows), draw::density(density), TIME),
    )
}

/// Returns ticks for about six lanes, each at the middle of its row or column.
fn lane_ticks(activity: &Activity, lanes_per_row: usize, rows: usize) -> Vec<ticks::Tick> {
    let tick = |row: usize| {
        let lane = activity.lanes.get(row * lanes_per_row)?;
        let label = if lane.name.starts_with("rank ") { lane.name.clone() } else { format!("#{row}") };
        Some(ticks::Tick { at: (row as f64 + 0.5) / rows as f64, label })
    };
    (0..rows).step_by(rows.div_ceil(6).max(1)).filter_map(tick).collect()
}

fn bytes_per_lane(activity: &Activity) -> Markup {
    let lanes = &activity.lanes;
    let per_column = lanes.len().div_ceil(LANE_COLUMNS).max(1);
    let mean =
        |chunk: &[Lane], op: usize| chunk.iter().map(|lane| lane.bytes[op]).sum::<u64>() / chunk.len() as u64;
    let columns: Vec<[u64; 2]> =
        lanes.chunks(per_column).map(|chunk| [0, 1].map(|op| mean(chunk, op))).collect();
    let peak = columns.iter().map(|bytes| bytes[0] + bytes[1]).max().unwrap_or(0);
    if lanes.len() < 2 || peak == 0 {
        return Markup::default();
    }
    let heights =
        |op: usize| -> Vec<f64> { columns.iter().map(|bytes| bytes[op] as f64 / peak as f64).collect() };
    let text = range_of_lanes(lanes, per_column);
    let frame = Plot {
        height: 110,
        name: &format!("Bytes of each of {} ranks: {text}", lanes.len()),
        x: lane_ticks(activity, per_column, columns.len()),
        y: ticks::bytes(peak),
        downwards: false,
    };
    let content = draw::columns(&[("read", heights(0)), ("write", heights(1))]);
    let axis = "ranks that moved data, in order";
    figure("Bytes per rank", &text, plot(legend(activity), &frame, (columns.len(), 100), content, axis))
}

fn range_of_lanes(lanes: &[Lane], per_column: usize) -> String {
    let totals = lanes.iter().map(|lane| lane.bytes[0] + lane.bytes[1]);
    let (least, most) = (totals.clone().min().unwrap_or(0), totals.max().unwrap_or(0));
    let mean = match per_column {
        1 => String::new(),
        n => format!(" Each column is the mean of {n} ranks."),
    };
    match (units::bytes(least), units::bytes(most)) {
        (least, most) if least == most => format!("{least} each.{mean}"),
        (least, most) => format!("from {least} to {most}.{mean}"),
    }
}

fn groups(activity: &Activity) -> Markup {
    let all = &activity.summary.groups;
    let mut order: Vec<&Group> = all.iter().collect();
    order.sort_by_key(|group| std::cmp::Reverse(group.read.bytes + group.write.bytes));
    let caption = match all.len() {
        n if n > GROUPS_LISTED => {
            format!("The {GROUPS_LISTED} patterns of file names with the most bytes, of {n}.")
        }
        _ => "All files, by the pattern of their names; <n> is a number.".to_owned(),
    };
    let table = Table::new(caption, order.into_iter().take(GROUPS_LISTED))
        .name("Files", |group| &group.pattern)
        .amount("number", |group| group.files, units::count)
        .words("used by", |group| sharing(group))
        .amount("extent", |group| group.extent_bytes, units::bytes)
        .amount("reads", |group| group.read.requests, units::count)
        .amount("bytes read", |group| group.read.bytes, units::bytes)
        .amount("writes", |group| group.write.requests, units::count)
        .amount("bytes written", |group| group.write.bytes, units::bytes)
        .words("order of access", |group| orders_of_access(group));
    html! { (table) }
}

fn orders_of_access(group: &Group) -> String {
    let directions = [(&group.read, "reads"), (&group.write, "writes")];
    let used = directions.iter().filter(|(direction, _)| direction.requests > 0);
    let orders = used.map(|(direction, name)| format!("{name}: {}", order_of_access(direction)));
    orders.collect::<Vec<_>>().join("; ")
}
