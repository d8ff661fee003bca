//! Section on the application's I/O: over time, by rank, by offset, by size; groups of files and
//! their phases.

use stripewise_trace::summary::Group;

use super::group::{order_of_access, sharing};
use super::table::{Column, table, whole};
use super::text::{anchor, caption, contents, fact, time_ticks};
use crate::activity::{Activity, Lane};
use crate::density::COLUMNS;
use crate::draw::{self, Plot};
use crate::html::Html;
use crate::{ticks, units};

/// Maximum number of groups in the table.
const GROUPS_LISTED: usize = 200;

/// Columns of the chart of bytes per rank. More ranks than this share columns.
const LANE_COLUMNS: usize = 240;

pub fn section(h: &mut Html, activities: &[Activity]) {
    contents(h, "trace", activities.iter().map(|activity| activity.name.as_str()));
    for (index, activity) in activities.iter().enumerate() {
        trace(h, activity, index);
    }
}

fn trace(h: &mut Html, activity: &Activity, index: usize) {
    h.element("div", &[("class", "card"), ("id", &anchor("trace", index))], |h| {
        h.element("h3", &[], |h| {
            h.text("Trace ");
            h.leaf("code", &[], &activity.name);
        });
        facts(h, activity);
        if activity.summary.calls == 0 {
            h.leaf("p", &[], "The trace has no calls: the program touched no file that was traced.");
            return;
        }
        throughput(h, activity);
        by_lane(h, activity);
        bytes_per_lane(h, activity);
        groups(h, activity);
    });
    for picture in &activity.pictures {
        super::group::card(h, activity, picture);
    }
    let moved = activity.summary.groups.iter().filter(|g| g.read.bytes + g.write.bytes > 0).count();
    if moved > activity.pictures.len() {
        let hidden = units::count((moved - activity.pictures.len()) as u64);
        let text = format!("{hidden} more patterns of file names with fewer bytes are only in the table.");
        h.leaf("p", &[("class", "soft")], &text);
    }
}

fn facts(h: &mut Html, activity: &Activity) {
    let summary = &activity.summary;
    h.element("dl", &[("class", "facts")], |h| {
        let command: Vec<&str> = activity.meta.command.iter().map(String::as_str).collect();
        fact(h, "Command", |h| h.leaf("code", &[], &command.join(" ")));
        if activity.meta.origin != "recorded" {
            fact(h, "Origin", |h| {
                h.text(&format!("{}: no program ran, times are nominal", activity.meta.origin))
            });
        }
        fact(h, "Complete", |h| match activity.meta.incomplete.as_slice() {
            [] => h.text("yes, no call is missing"),
            reasons => h.leaf("span", &[("class", "bad")], &format!("no: {}", reasons.join("; "))),
        });
        fact(h, "Processes", |h| {
            let nodes = units::counted(summary.nodes, "node", "nodes");
            h.text(&format!("{} on {nodes}", units::count(summary.processes)));
        });
        fact(h, "Calls", |h| {
            let files = units::counted(summary.files.len() as u64, "file", "files");
            h.text(&format!("{} on {files}", units::count(summary.calls)));
        });
        fact(h, "Time", |h| {
            let span = units::seconds(summary.span_s);
            let wall = activity.meta.wall_s.map(|s| format!("; the command ran for {}", units::seconds(s)));
            h.text(&format!("{span} from the first call to the last{}", wall.unwrap_or_default()));
        });
    });
}

/// Returns the legend for the bytes drawn: read, written, or both.
fn legend(activity: &Activity) -> Vec<(&'static str, &'static str)> {
    let moved = |op: usize| activity.lanes.iter().any(|lane| lane.bytes[op] > 0);
    let entries = [("read", "read"), ("write", "written")];
    (0..2).filter(|&op| moved(op)).map(|op| entries[op]).collect()
}

fn throughput(h: &mut Html, activity: &Activity) {
    let span_ns = activity.span_ns.end - activity.span_ns.start;
    if span_ns == 0 || activity.moved.iter().all(|bytes| *bytes == [0.0; 2]) {
        return;
    }
    let slot_s = span_ns as f64 * 1e-9 / COLUMNS as f64;
    let peak = activity.moved.iter().map(|[read, written]| read + written).fold(0.0, f64::max);
    let peak_rate = (peak / slot_s) as u64;
    let heights = |op: usize| -> Vec<f64> { activity.moved.iter().map(|bytes| bytes[op] / peak).collect() };
    let mut y = ticks::bytes(peak_rate);
    y.iter_mut().for_each(|tick| tick.label.push_str("/s"));
    h.element("figure", &[], |h| {
        let text = format!("bytes per second in {COLUMNS} slots of {}.", units::seconds(slot_s));
        caption(h, "Throughput over time", &text);
        draw::legend(h, &legend(activity));
        h.element("div", &[("class", "framed")], |h| {
            let name = format!("Throughput over time, at most {}", units::bytes_per_s(peak_rate as f64));
            let plot = Plot { height: 130, name: &name, x: time_ticks(&activity.span_ns), y, downwards: false };
            draw::stretched(h, &plot, (COLUMNS, 100), |h| {
                draw::columns(h, &[("read", heights(0)), ("write", heights(1))]);
            });
        });
        h.leaf("div", &[("class", "axis")], "time since the start of the trace");
    });
}

fn by_lane(h: &mut Html, activity: &Activity) {
    let lanes = activity.lanes.len();
    if lanes == 0 || activity.by_lane.peak() == 0 {
        return;
    }
    h.element("figure", &[], |h| {
        let shared = match activity.lanes_per_row {
            1 => String::new(),
            n => format!("; {n} neighbouring ranks share a row"),
        };
        caption(
            h,
            "Requests over time, by rank",
            &format!("each row is a rank (or a process without one){shared}."),
        );
        draw::density_legend(h, &activity.by_lane);
        h.element("div", &[("class", "framed")], |h| {
            let rows = activity.by_lane.rows();
            let plot = Plot {
                height: (rows as u32 * 12).clamp(60, 320),
                name: &format!("Requests over time of {lanes} ranks or processes"),
                x: time_ticks(&activity.span_ns),
                y: lane_ticks(activity, activity.lanes_per_row, rows),
                downwards: true,
            };
            draw::stretched(h, &plot, (COLUMNS, rows), |h| draw::density(h, &activity.by_lane));
        });
        h.leaf("div", &[("class", "axis")], "time since the start of the trace");
    });
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

fn bytes_per_lane(h: &mut Html, activity: &Activity) {
    let lanes = &activity.lanes;
    if lanes.len() < 2 {
        return;
    }
    let per_column = lanes.len().div_ceil(LANE_COLUMNS);
    let columns: Vec<[u64; 2]> = lanes
        .chunks(per_column)
        .map(|chunk| [0, 1].map(|op| chunk.iter().map(|lane| lane.bytes[op]).sum::<u64>() / chunk.len() as u64))
        .collect();
    let peak = columns.iter().map(|bytes| bytes[0] + bytes[1]).max().unwrap_or(0);
    if peak == 0 {
        return;
    }
    let heights =
        |op: usize| -> Vec<f64> { columns.iter().map(|bytes| bytes[op] as f64 / peak as f64).collect() };
    let text = range_of_lanes(lanes, per_column);
    h.element("figure", &[], |h| {
        caption(h, "Bytes per rank", &text);
        draw::legend(h, &legend(activity));
        h.element("div", &[("class", "framed")], |h| {
            let plot = Plot {
                height: 110,
                name: &format!("Bytes of each of {} ranks: {text}", lanes.len()),
                x: lane_ticks(activity, per_column, columns.len()),
                y: ticks::bytes(peak),
                downwards: false,
            };
            draw::stretched(h, &plot, (columns.len(), 100), |h| {
                draw::columns(h, &[("read", heights(0)), ("write", heights(1))]);
            });
        });
        h.leaf("div", &[("class", "axis")], "ranks that moved data, in order");
    });
}

/// Formats the range of bytes per lane, from the least to the most.
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

fn groups(h: &mut Html, activity: &Activity) {
    let columns = [
        Column::text("Files"),
        Column::number("number"),
        Column::text("used by"),
        Column::number("extent"),
        Column::number("reads"),
        Column::number("bytes read"),
        Column::number("writes"),
        Column::number("bytes written"),
        Column::text("order of access"),
    ];
    let all = &activity.summary.groups;
    let mut order: Vec<&Group> = all.iter().collect();
    order.sort_by_key(|group| std::cmp::Reverse(group.read.bytes + group.write.bytes));
    let caption = match all.len() {
        n if n > GROUPS_LISTED => {
            format!("The {GROUPS_LISTED} patterns of file names with the most bytes, of {n}.")
        }
        _ => "All files, by the pattern of their names; <n> is a number.".to_owned(),
    };
    table(h, &caption, &columns, |h| {
        for group in order.iter().take(GROUPS_LISTED) {
            h.element("tr", &[], |h| group_row(h, group));
        }
    });
}

fn group_row(h: &mut Html, group: &Group) {
    h.element("td", &[("class", "name")], |h| h.leaf("code", &[], &group.pattern));
    whole(h, group.files, units::count);
    h.leaf("td", &[("class", "words")], &sharing(group));
    whole(h, group.extent_bytes, units::bytes);
    for direction in [&group.read, &group.write] {
        whole(h, direction.requests, units::count);
        whole(h, direction.bytes, units::bytes);
    }
    let directions = [(&group.read, "reads"), (&group.write, "writes")];
    let used = directions.iter().filter(|(direction, _)| direction.requests > 0);
    let orders: Vec<String> =
        used.map(|(direction, name)| format!("{name}: {}", order_of_access(direction))).collect();
    h.leaf("td", &[("class", "words")], &orders.join("; "));
}
