//! What `plan --candidates` prints of each set of files.

use std::fmt::Write;

use comfy_table::Table;
use stripewise_cluster::{format_cycle, size};
use stripewise_layout::{Layout, Region};
use stripewise_model::{Access, Op};
use stripewise_plan::workload::FileSet;
use stripewise_plan::{Compared, Decision, Expected, Judged, KindTimes, RequestClass, Tie, native};

use super::planned::Planned;
use crate::output;

/// Maximum number of lines about file sets, unless those of the first set are more.
const LINES_MAX: usize = 180;
/// Approximate maximum number of table rows if there are several file sets.
const ROWS_OF_MANY: usize = 120;
/// Maximum number of kinds of requests.
const GROUPS_MAX: usize = 4;
/// Maximum width of a layout in characters.
const LAYOUT_MAX: usize = 48;
/// Maximum length in characters of a native command, or of a copy's layout.
const LINE_MAX: usize = 4096;
/// Maximum number of request classes in the table.
const CLASSES_MAX: usize = 8;
/// Fractions below this are not printed.
pub const NEGLIGIBLE: f64 = 0.0005;

/// Prints the file sets with the most bytes, as many as fit into [`LINES_MAX`] lines, but at least
/// one.
pub fn print(planned: &Planned) {
    let sets: Vec<_> = planned.workload.file_sets.iter().zip(&planned.decisions).collect();
    let rows = if sets.len() == 1 { usize::MAX } else { ROWS_OF_MANY };
    println!(
        "predicted s: the papers' overall cost, summed over all requests; elapsed s: expected wall-clock time; =: a \
         tie within the model's error.\n"
    );
    let mut left = LINES_MAX;
    for (index, (set, decision)) in sets.iter().enumerate() {
        let mut text = String::new();
        let compared = planned.compared.get(index);
        files(&mut text, planned, (set, compared), decision, rows).expect("a string takes any text");
        let lines = text.lines().count();
        if index > 0 && lines > left {
            println!(
                "... and {} more patterns of files with fewer bytes (--json shows all)\n",
                sets.len() - index
            );
            return;
        }
        left = left.saturating_sub(lines);
        print!("{text}");
    }
}

fn files(
    out: &mut String,
    planned: &Planned,
    (set, compared): (&FileSet, Option<&Compared>),
    decision: &Decision,
    rows: usize,
) -> std::fmt::Result {
    let Decision { pattern, files, requests, .. } = decision;
    let (plural, bytes) = (if *files == 1 { "" } else { "s" }, about(decision.file_bytes));
    writeln!(
        out,
        "{pattern}: {files} file{plural} of {bytes}, {requests} request{}",
        if *requests == 1 { "" } else { "s" }
    )?;
    groups(out, set, compared)?;
    writeln!(out, "{}", table(planned, decision, rows))?;
    writeln!(out, "{}.", capitalised(&decision.reason))?;
    if let Some(executables) = planned.executables.get(&decision.pattern) {
        writeln!(out, "WARNING: {executables}.")?;
    }
    print_copies(out, planned, decision)?;
    for remark in &decision.best().candidate.remarks {
        writeln!(out, "{}.", capitalised(remark))?;
    }
    print_gain(out, decision)?;
    for note in &decision.notes {
        writeln!(out, "Not considered: {note}.")?;
    }
    if !decision.keep && decision.chosen().candidate.overlay.is_none() {
        writeln!(out, "The same on parallel file systems:")?;
        for native in native(&decision.chosen().candidate, set, &planned.cluster) {
            for command in &native.commands {
                match command.len() {
                    0..=LINE_MAX => writeln!(out, "  {}: {command}", native.system)?,
                    len => {
                        writeln!(out, "  {}: a command of {len} characters (--json has it)", native.system)?;
                    }
                }
            }
            if let Some(note) = &native.note {
                writeln!(out, "  {}: {note}", native.system)?;
            }
        }
    }
    writeln!(out)
}

/// Writes the kinds of requests, one line each, those with the most bytes first, and how long they
/// take in the present layout.
fn groups(out: &mut String, set: &FileSet, compared: Option<&Compared>) -> std::fmt::Result {
    let kinds = compared.map_or(&[][..], |compared| &compared.kinds);
    let times = |KindTimes { traced_s, model_s, .. }: &KindTimes| {
        format!("; traced {traced_s:.3} s, model {model_s:.3} s")
    };
    let mut groups: Vec<_> = set.groups.iter().enumerate().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.bytes));
    for (index, group) in groups.iter().take(GROUPS_MAX) {
        writeln!(
            out,
            "  {} × {}; {} process{} at a time, up to {} per node{}",
            group.count,
            kind(group.op, group.access, group.bytes / group.count.max(1)),
            group.procs,
            if group.procs == 1 { "" } else { "es" },
            group.procs_per_node,
            kinds.get(*index).map_or_else(String::new, times)
        )?;
    }
    let rest = groups.len().saturating_sub(GROUPS_MAX);
    if rest > 0 {
        writeln!(out, "  and {rest} smaller kind{} of requests", if rest == 1 { "" } else { "s" })?;
    }
    if let Some(Compared { flush_s, .. }) = compared.filter(|compared| compared.flush_s > 0.0) {
        writeln!(out, "  syncs and closes; traced {flush_s:.3} s, in the model a part of the writes")?;
    }
    Ok(())
}

fn table(planned: &Planned, decision: &Decision, rows_max: usize) -> Table {
    let mut rows: Vec<(usize, &Judged)> = decision.candidates.iter().enumerate().collect();
    rows.sort_by(|a, b| a.1.elapsed_s.total_cmp(&b.1.elapsed_s));
    if rows.len() > rows_max {
        // Notable candidates, those that people look for, stay, and so do the best of the others.
        let notable = rows.iter().filter(|row| row.1.candidate.notable).count();
        let mut room = rows_max.saturating_sub(notable).max(4);
        rows.retain(|row| {
            let wanted = row.1.candidate.notable || row.0 == decision.best;
            room -= usize::from(!wanted && room > 0);
            wanted || room > 0
        });
    }
    let shown = rows.len();
    let mut table = output::table(["", "candidate", "layout", "predicted s", "elapsed s"], [3, 4]);
    for (index, judged) in rows {
        let ties = |tie: &Tie| tie.between.contains(&judged.candidate.name);
        let mark = match () {
            () if index == decision.best && !decision.keep => ">",
            () if decision.tie.as_ref().is_some_and(ties) => "=",
            () => "",
        };
        table.add_row(row(planned, mark, judged));
    }
    table.add_row(row(planned, if decision.keep { ">" } else { "now" }, &decision.present));
    if shown < decision.candidates.len() {
        let more =
            format!("... and {} more (--candidates --json shows all)", decision.candidates.len() - shown);
        table.add_row(["", more.as_str(), "", "", ""]);
    }
    table
}

fn row(planned: &Planned, mark: &str, judged: &Judged) -> [String; 5] {
    let packed = &judged.candidate.layouts;
    let mut layout = cut(layouts(planned, packed.first().as_ref(), packed.len()), LAYOUT_MAX);
    match judged.candidate.copies().len() {
        0 => {}
        1 => layout += " + 1 copy",
        more => layout += &format!(" + {more} copies"),
    }
    let name = judged.candidate.name.clone();
    [mark.to_owned(), name, layout, format!("{:.3}", judged.predicted_s()), format!("{:.3}", judged.elapsed_s)]
}

pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Describes requests by their kind: `read of 64K, in order`.
fn kind(op: Op, access: Access, bytes: u64) -> String {
    let order = match access {
        Access::Random => "not in order",
        Access::Sequential => "in order",
    };
    format!("{} of {}, {order}", output::op_name(op), about(bytes))
}

/// Formats the first of several layouts, and their number.
fn layouts(planned: &Planned, first: Option<&Layout>, count: usize) -> String {
    let regions = first.map(Layout::regions).unwrap_or_default();
    let region = |region: &Region| {
        let end = region.end.map_or(String::new(), |end| format!(" to {}", about(end)));
        format!("{}{end}", format_cycle(&region.cycle, &planned.cluster))
    };
    let first = regions.iter().map(region).collect::<Vec<_>>().join(", ");
    if count > 1 { format!("{first}, ... ({count} layouts)") } else { first }
}

/// The first `most` characters of a text, with dots if it has more.
fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Formats a size for people, with at most one digit after the point.
pub fn about(bytes: u64) -> String {
    let exact = size::format(bytes);
    if exact.len() <= 5 {
        return exact;
    }
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let power = (bytes.max(1).ilog2() / 10) as usize;
    format!("{:.1}{}", bytes as f64 / (1u64 << (10 * power)) as f64, units[power])
}

/// Writes the copies planned for the files; nothing if the files get a single copy.
fn print_copies(out: &mut String, planned: &Planned, decision: &Decision) -> std::fmt::Result {
    let chosen = &decision.chosen().candidate;
    let (false, false, Some(expected)) = (decision.keep, chosen.copies().is_empty(), &decision.expected) else {
        return Ok(());
    };
    let original = chosen.layouts.build();
    let copies = chosen.copies().iter().map(|copy| (copy.name.as_str(), &copy.layouts));
    for (name, of_copy) in std::iter::once(("original", &original)).chain(copies) {
        let layouts = cut(layouts(planned, of_copy.first(), of_copy.len()), LINE_MAX);
        writeln!(out, "  copy {name}: {layouts}")?;
    }
    writeln!(out, "{}", copies_table(expected))
}

fn copies_table(expected: &Expected) -> Table {
    let is_cache = expected.cache.is_some();
    let mut header = vec!["  seconds of one request".to_owned(), "p".to_owned()];
    header.extend(expected.copies.iter().map(|copy| copy.name.clone()));
    let last = match &expected.cache {
        None => &["served by"][..],
        Some(cache) if cache.mode == "sla" => &["gains most in", "hits"],
        Some(_) => &["cached in", "hits"],
    };
    header.extend(last.iter().map(|&name| name.to_owned()));
    // The column behind the costs names copies.
    let numbers: Vec<_> = (1..header.len()).filter(|&column| column != 2 + expected.copies.len()).collect();
    let mut table = output::table(header, numbers);
    for class in expected.classes.iter().take(CLASSES_MAX) {
        table.add_row(copies_row(expected, class, is_cache));
    }
    let more = expected.classes.len().saturating_sub(CLASSES_MAX);
    if more > 0 {
        table.add_row([format!("  ... and {more} more (--json shows all)")]);
    }
    table
}

fn copies_row(expected: &Expected, class: &RequestClass, is_cache: bool) -> Vec<String> {
    let kind = kind(class.op, class.access, class.request_bytes);
    let mut row = vec![format!("  {kind}"), class.procs.to_string()];
    row.extend(class.cost_s.iter().map(|cost_s| format!("{cost_s:.6}")));
    if is_cache {
        row.push(by_copy(expected, &class.critical, "nothing"));
        row.push(percent(class.served.iter().skip(1).sum()));
    } else {
        row.push(by_copy(expected, &class.served, "original"));
    }
    row
}

/// Formats fractions by copy: `1-DV`, or `original 60 %, 1-DV 40 %`. Copy 0 is called `first`.
fn by_copy(expected: &Expected, shares: &[f64], first: &str) -> String {
    let name = |index: usize| if index == 0 { first } else { &expected.copies[index].name };
    let mut named: Vec<(&str, f64)> =
        shares.iter().enumerate().map(|(index, &share)| (name(index), share)).collect();
    named.retain(|(_, share)| *share > NEGLIGIBLE);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    if let [(name, _)] = named[..] {
        return name.to_owned();
    }
    let parts = named.iter().map(|(name, share)| format!("{name} {}", percent(*share)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Writes how much of the original's time the cache saves, and the most that its space allows.
/// Writes nothing without a cache.
fn print_gain(out: &mut String, decision: &Decision) -> std::fmt::Result {
    let Some(expected) = &decision.expected else { return Ok(()) };
    let Some(cache) = &expected.cache else { return Ok(()) };
    if let Some(alone) = expected.copies[0].alone {
        let (alone_s, elapsed_s) = (alone.alone_elapsed_s, decision.best().elapsed_s);
        let saved = 100.0 * (1.0 - elapsed_s / alone_s.max(f64::MIN_POSITIVE));
        writeln!(
            out,
            "With the cache the files take {elapsed_s:.3} s, without it in the same original {alone_s:.3} s: {:.1} % {}.",
            saved.abs(),
            if saved < 0.0 { "more" } else { "less" },
        )?;
    }
    let x = cache.time_of_hits;
    if x < 1.0 {
        writeln!(
            out,
            "Hits are x = {} of the time in the original by that model: if they took none, 1/(1-x) = {:.2} times as fast.",
            percent(x),
            1.0 / (1.0 - x),
        )?;
    }
    Ok(())
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
