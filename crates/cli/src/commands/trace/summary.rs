//! Prints what is in a trace.

use std::path::Path;

use comfy_table::{ContentArrangement, Table};
use serde::Serialize;
use stripewise_trace::summary::{Concurrency, Direction, Group};
use stripewise_trace::{Meta, Op, Summary, Trace};

use crate::darshan::open_trace;
use crate::output::{self, human};

/// Fraction from which a property is attributed to the whole group.
const MOSTLY: f64 = 0.9;

/// Output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    trace: String,
    origin: &'a str,
    command: &'a [String],
    complete: bool,
    incomplete: &'a [String],
    notes: &'a [String],
    wall_s: &'a Option<f64>,
    exit_code: &'a Option<u8>,
    start_unix_ns: &'a u64,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Prints the statistics of a trace: as text, those of the first `groups` groups of files only.
pub fn print_summary(path: &Path, json: bool, groups: usize) -> anyhow::Result<()> {
    let trace = open_trace(path)?;
    let summary = Summary::of(&trace)?;
    if !json {
        print_text(&trace, &summary, groups);
        return Ok(());
    }
    let Meta { origin, command, incomplete, notes, wall_s, exit_code, start_unix_ns } = trace.meta();
    let (trace, complete, summary) = (path.display().to_string(), incomplete.is_empty(), &summary);
    output::json(&Report {
        trace,
        origin,
        command,
        complete,
        incomplete,
        notes,
        wall_s,
        exit_code,
        start_unix_ns,
        summary,
    })
}

/// Prints a header, a table of the first `groups` groups of files by bytes, and notes.
fn print_text(trace: &Trace, summary: &Summary, groups: usize) {
    print_head(trace, summary);
    let mut order: Vec<&Group> = summary.groups.iter().collect();
    order.sort_by_key(|group| std::cmp::Reverse(group.read.bytes + group.write.bytes));
    let with_data = order.iter().filter(|group| group.read.requests + group.write.requests > 0);
    let shown: Vec<&Group> = with_data.take(groups).copied().collect();
    if !shown.is_empty() {
        println!("\n{}\n", table(&shown).trim_fmt());
        println!("p: processes that access the files together (in a phase); c: the most of them on one node");
        if shown.iter().any(|group| !group.marks.is_empty()) {
            println!("collective: the part of the bytes that moved inside collective calls of MPI-IO");
        }
    }
    let hidden = summary.groups.len() - shown.len();
    if hidden > 0 {
        println!("{hidden} more group(s) of files, with less data or none (all with --summary --json)");
    }
    let all = |count: fn(&Group) -> u64| summary.groups.iter().map(count).sum::<u64>();
    let mapped = all(|group| group.other.map);
    if mapped > 0 {
        println!("{mapped} mapping(s) of files: what was accessed through them is not in the trace");
    }
    let failed = all(|group| group.other.failed);
    if failed > 0 {
        println!("{failed} call(s) failed");
    }
}

fn print_head(trace: &Trace, summary: &Summary) {
    let meta = trace.meta();
    println!("trace    {} ({})", trace.path().display(), meta.origin);
    if !meta.command.is_empty() {
        println!("command  {}", meta.command.join(" "));
    }
    if let Some(wall_s) = meta.wall_s {
        println!("time     {wall_s:.3} s, of which {:.3} s between first and last call", summary.span_s);
    }
    let Summary { calls, processes, nodes, file_count: files, .. } = summary;
    println!("calls    {calls} of {processes} process(es) on {nodes} node(s), {files} file(s)");
    if let Some(failure) = meta.failure() {
        println!("FAILED: {failure}");
    }
    match trace.incomplete() {
        Some(reason) => println!("INCOMPLETE: {reason}"),
        None => println!("complete: no call is missing"),
    }
    for note in &meta.notes {
        println!("{}", output::wrapped(&format!("NOTE: {note}")));
    }
}

fn table(groups: &[&Group]) -> Table {
    let mut header = vec!["files", "", "requests", "bytes", "request sizes", "p", "c", "order"];
    // Only an MPI library marks calls as collective.
    let has_marks = groups.iter().any(|group| !group.marks.is_empty());
    header.extend(has_marks.then_some("collective"));
    let mut table = output::table(header, [2, 3]);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for group in groups {
        let mut name = files(group);
        for (op, direction) in [(Op::Write, &group.write), (Op::Read, &group.read)] {
            if direction.requests > 0 {
                let mut row = vec![
                    std::mem::take(&mut name),
                    op.name().to_string(),
                    direction.requests.to_string(),
                    human(direction.bytes),
                    sizes(direction),
                    concurrency(group, op, |class| class.processes),
                    concurrency(group, op, |class| class.per_node),
                    order(direction),
                ];
                row.extend(has_marks.then(|| format!("{:.0} %", 100.0 * direction.collective_share())));
                table.add_row(row);
            }
        }
    }
    table
}

fn files(group: &Group) -> String {
    if group.files == 1 {
        let shared = if group.shared_files == 1 { "\nshared" } else { "" };
        return format!("{}{shared}", group.first_file);
    }
    let shared = match group.shared_files {
        0 => "each used by one process".to_string(),
        all if all == group.files => "all shared".to_string(),
        some => format!("{some} shared"),
    };
    format!("{}\n{} files, {shared}", group.pattern, group.files)
}

/// Formats the most frequent sizes.
fn sizes(direction: &Direction) -> String {
    let by_count = direction.sizes.by_count();
    let shown = by_count.iter().take(3).map(|(size, count)| {
        let percent = 100.0 * *count as f64 / direction.requests as f64;
        if by_count.len() == 1 { human(*size) } else { format!("{} ({percent:.0} %)", human(*size)) }
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if by_count.len() > 3 {
        text += &format!(", {} others", by_count.len() - 3);
    }
    text
}

/// Formats the concurrency of most bytes, with its range if it varies.
fn concurrency(group: &Group, op: Op, value: impl Fn(&Concurrency) -> u32) -> String {
    let classes: Vec<_> = group.phases.by_concurrency.iter().filter(|class| class.op == op).collect();
    let most = classes.iter().max_by_key(|class| class.bytes).map_or(0, |class| value(class));
    let least = classes.iter().map(|class| value(class)).min().unwrap_or(0);
    let largest = classes.iter().map(|class| value(class)).max().unwrap_or(0);
    if least == largest { most.to_string() } else { format!("{most} ({least}-{largest})") }
}

fn order(direction: &Direction) -> String {
    let (sequential, strided) = (direction.sequential_share(), direction.strided_share());
    let stride = || direction.strides.most_frequent().map_or(0, |(distance, _)| distance.unsigned_abs());
    if direction.requests == direction.streams {
        return "one request each".into();
    }
    if sequential >= MOSTLY {
        return "sequential".into();
    }
    if strided >= MOSTLY {
        return format!("strided by {}", human(stride()));
    }
    if sequential + strided < 1.0 - MOSTLY {
        return "random".into();
    }
    format!("{:.0} % sequential, {:.0} % strided", 100.0 * sequential, 100.0 * strided)
}
