//! Text output of `plan`.

use comfy_table::Table;
use stripewise_cluster::{format_cycle, size};
use stripewise_layout::{Layout, Region};
use stripewise_model::{Access, Op};
use stripewise_plan::workload::FileSet;
use stripewise_plan::{Decision, Judged, native};

use super::{Args, Planned, copies};
use crate::output;

/// Approximate maximum number of table rows, unless all are requested.
const ROWS_MAX: usize = 20;
/// Maximum number of kinds of requests.
const GROUPS_MAX: usize = 4;
/// Maximum width of a layout in characters.
const LAYOUT_MAX: usize = 48;

/// Prints the complete report.
pub fn print(planned: &Planned, args: &Args) {
    if let Some(reason) = planned.trace.incomplete() {
        println!("The trace is incomplete: {reason}\n");
    }
    if let Some(failure) = planned.trace.meta().failure() {
        println!("The traced program failed: {failure}\n");
    }
    for (set, decision) in planned.workload.file_sets.iter().zip(&planned.decisions) {
        files(planned, set, decision, args.candidates);
    }
    let emulated: Vec<&str> =
        planned.cluster.tiers.iter().filter(|tier| tier.emulate).map(|tier| tier.name.as_str()).collect();
    println!(
        "predicted s: the papers' overall cost, summed over all requests; elapsed s: expected wall-clock time."
    );
    if !emulated.is_empty() {
        println!("Emulated servers: {}.", emulated.join(", "));
    }
    match &planned.profile {
        Some(path) => println!("Server parameters as measured: {}", path.display()),
        None => println!("Server parameters as written in {}", args.cluster.path.display()),
    }
    println!("Plan written to {}", args.output.display());
}

fn files(planned: &Planned, set: &FileSet, decision: &Decision, all: bool) {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    println!(
        "{}: {} file{} of {}, {} request{}",
        decision.pattern,
        decision.files,
        plural(decision.files),
        about(decision.file_bytes),
        decision.requests,
        plural(decision.requests as usize),
    );
    groups(set);
    println!("{}", table(planned, decision, all));
    println!("{}.", capitalised(&decision.reason));
    if let Some(executables) = planned.executables.get(&decision.pattern) {
        println!("WARNING: {executables}.");
    }
    copies::print(planned, decision);
    for remark in &decision.best().candidate.remarks {
        println!("{}.", capitalised(remark));
    }
    copies::print_gain(decision);
    for note in &decision.notes {
        println!("Not considered: {note}.");
    }
    if !decision.keep && decision.chosen().candidate.overlay.is_none() {
        println!("The same on parallel file systems:");
        for native in native(&decision.chosen().candidate, set, &planned.cluster) {
            for command in &native.commands {
                println!("  {}: {command}", native.system);
            }
            if let Some(note) = &native.note {
                println!("  {}: {note}", native.system);
            }
        }
    }
    println!();
}

/// Prints the kinds of requests, one line each, those with the most bytes first.
fn groups(set: &FileSet) {
    let mut groups: Vec<_> = set.groups.iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    for group in groups.iter().take(GROUPS_MAX) {
        println!(
            "  {} × {}; {} process{} at a time, up to {} per node",
            group.count,
            kind(group.op, group.access, group.bytes / group.count.max(1)),
            group.procs,
            if group.procs == 1 { "" } else { "es" },
            group.procs_per_node
        );
    }
    let rest = groups.len().saturating_sub(GROUPS_MAX);
    if rest > 0 {
        println!("  and {rest} smaller kind{} of requests", if rest == 1 { "" } else { "s" });
    }
}

fn table(planned: &Planned, decision: &Decision, all: bool) -> Table {
    let mut rows: Vec<(usize, &Judged)> = decision.candidates.iter().enumerate().collect();
    rows.sort_by(|a, b| a.1.elapsed_s.total_cmp(&b.1.elapsed_s));
    if !all {
        // Notable candidates, those that people look for, stay, and so do the best of the others.
        let notable = rows.iter().filter(|row| row.1.notable).count();
        let mut room = ROWS_MAX.saturating_sub(notable).max(4);
        rows.retain(|row| {
            let wanted = row.1.notable || row.0 == decision.best;
            room -= usize::from(!wanted && room > 0);
            wanted || room > 0
        });
    }
    let shown = rows.len();
    let mut table = output::table(["", "candidate", "layout", "predicted s", "elapsed s"], [3, 4]);
    for (index, judged) in rows {
        let mark = if index == decision.best && !decision.keep { ">" } else { "" };
        table.add_row(row(planned, mark, judged));
    }
    table.add_row(row(planned, if decision.keep { ">" } else { "now" }, &decision.present));
    if shown < decision.candidates.len() {
        let more = format!("... and {} more (--candidates shows all)", decision.candidates.len() - shown);
        table.add_row(["", more.as_str(), "", "", ""]);
    }
    table
}

fn row(planned: &Planned, mark: &str, judged: &Judged) -> [String; 5] {
    let mut layout = layouts(planned, &judged.candidate.layouts);
    if let Some((end, _)) = layout.char_indices().nth(LAYOUT_MAX) {
        layout = format!("{}...", &layout[..end]);
    }
    match judged.candidate.copies().len() {
        0 => {}
        1 => layout += " + 1 copy",
        more => layout += &format!(" + {more} copies"),
    }
    let name = judged.candidate.name.clone();
    [mark.to_owned(), name, layout, format!("{:.3}", judged.predicted_s()), format!("{:.3}", judged.elapsed_s)]
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Describes requests by their kind: `read of 64K, in order`.
pub fn kind(op: Op, access: Access, bytes: u64) -> String {
    let order = match access {
        Access::Random => "not in order",
        Access::Sequential => "in order",
    };
    format!("{} of {}, {order}", output::op_name(op), about(bytes))
}

/// Formats the first of several layouts, and their number.
pub fn layouts(planned: &Planned, layouts: &[Layout]) -> String {
    let regions = layouts.first().map(|layout| layout.regions()).unwrap_or_default();
    let region = |region: &Region| {
        let end = region.end.map_or(String::new(), |end| format!(" to {}", about(end)));
        format!("{}{end}", format_cycle(&region.cycle, &planned.cluster))
    };
    let first = regions.iter().map(region).collect::<Vec<_>>().join(", ");
    if layouts.len() > 1 { format!("{first}, ... ({} layouts)", layouts.len()) } else { first }
}

/// Formats a size for people, with at most one digit after the point.
fn about(bytes: u64) -> String {
    let exact = size::format(bytes);
    if exact.len() <= 5 {
        return exact;
    }
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let power = (bytes.max(1).ilog2() / 10) as usize;
    format!("{:.1}{}", bytes as f64 / (1u64 << (10 * power)) as f64, units[power])
}
