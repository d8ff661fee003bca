//! Section that compares the statistics of files with several copies with what was expected.

use std::path::Path;

use maud::{Markup, html};
use stripewise_cluster::{CacheMode, CopiesKind, CopyCounts, Counts};
use stripewise_plan::expected::{Expected, part, taken};

use super::super::bars::{BAR_END, Bar, bars};
use super::super::parts::{Table, facts, figure, more, soft};
use crate::{FileStatistics, Report, draw, units};

/// Maximum number of files in a card's table.
const FILES_LISTED: usize = 100;
/// Maximum number of cards, those with the most bytes.
const CARDS: usize = 20;
/// Multiples of the expected hits. A remark explains hits below [`FEW`] or above [`MANY`].
const FEW: f64 = 0.5;
const MANY: f64 = 1.5;

/// Files that are shown together: files of one rule that have the same copies.
struct Group<'a> {
    name: &'a str,
    expected: Option<&'a Expected>,
    files: Vec<&'a FileStatistics>,
    sum: FileStatistics,
}

/// Returns whether there are statistics, or a plan with files of several copies.
pub fn wanted(report: &Report<'_>) -> bool {
    let mut rules = report.plans.iter().flat_map(|view| &view.plan.rules);
    !report.statistics.is_empty() || rules.any(|rule| rule.overlay.is_some())
}

pub fn section(report: &Report<'_>) -> Markup {
    let mut groups = groups(report);
    groups.sort_by_key(|group| std::cmp::Reverse(group.sum.line.counts.bytes()));
    html! {
        @for group in groups.iter().take(CARDS) { div.card { (card(group)) } }
        (more(groups.len().saturating_sub(CARDS), "files, with fewer bytes, are not shown."))
    }
}

/// Groups the files of each rule. A file without a rule, or with copies other than the rule's, is
/// in a group by itself.
fn groups<'a>(report: &Report<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for file in report.statistics {
        let (name, expected) = rule_of(report, file).unwrap_or((&file.line.path, None));
        let with = |group: &&mut Group<'_>| {
            group.name == name
                && (group.sum.line.kind, group.sum.line.mode) == (file.line.kind, file.line.mode)
                && group.sum.line.counts.copy_names().eq(file.line.counts.copy_names())
        };
        match groups.iter_mut().find(with) {
            Some(group) => {
                group.sum.add(file);
                group.files.push(file);
            }
            None => groups.push(Group { name, expected, files: vec![file], sum: file.clone() }),
        }
    }
    groups
}

/// Returns the pattern and the expectation of the first rule that the file matches, if the file has
/// the rule's copies.
fn rule_of<'a>(report: &Report<'a>, file: &FileStatistics) -> Option<(&'a str, Option<&'a Expected>)> {
    report.plans.iter().find_map(|view| {
        let mut rules = view.plan.rules.iter().zip(&view.details);
        let (rule, details) = rules.find(|(rule, _)| rule.matches(Path::new(&file.line.path)))?;
        let copies = rule.overlay.iter().flat_map(|overlay| &overlay.copies);
        let has_them = copies.map(|copy| copy.name.as_str()).eq(file.line.counts.copy_names().skip(1));
        has_them.then_some((rule.pattern.as_str(), details.expected.as_ref()))
    })
}

fn card(group: &Group<'_>) -> Markup {
    let line = &group.sum.line;
    let counts = &line.counts;
    let kind = match (line.kind, line.mode) {
        (CopiesKind::Replicas, _) => "replicas".to_owned(),
        (CopiesKind::Cache, None) => "cache".to_owned(),
        (CopiesKind::Cache, Some(mode)) => format!("cache, {}", mode.name()),
    };
    let requests = units::counted(counts.requests, "request", "requests");
    let processes = units::counted(group.sum.processes.len() as u64, "process", "processes");
    let files = units::counted(group.files.len() as u64, "file", "files");
    html! {
        h3 { code { (group.name) } " " span.pill.chosen { (kind) } }
        p { (files) ": " (requests) " of " (processes) " moved " (units::bytes(counts.bytes())) "." }
        @if line.kind == CopiesKind::Cache { (hits(group)) }
        (by_copy(group))
        (copies(counts))
        @if line.kind == CopiesKind::Cache { (background(counts)) }
        @if group.files.len() > 1 { (files_table(group)) }
    }
}

/// A fraction of the whole (0 to 1): expected, if known, and measured.
struct Pair<'a> {
    name: &'a str,
    /// Fraction according to the plan.
    expected: Option<f64>,
    /// Fraction according to the statistics.
    measured: f64,
    /// The measured amount as text.
    amount: String,
}

fn pairs(title: &str, text: &str, pairs: &[Pair<'_>]) -> Markup {
    let with_expected = pairs.iter().any(|pair| pair.expected.is_some());
    let legend = [("expected", "expected by the plan"), ("measured", "measured")];
    // The text behind the bar is long.
    let end = |share: f64| share.clamp(0.0, 1.0) * (BAR_END - 0.24);
    let bar = |class, meaning, end, text| Bar { class, meaning, end, text, range: None };
    let pair = |pair: &Pair<'_>| {
        let text = pair.expected.map_or("not predicted".to_owned(), units::percent);
        let expected = bar("expected", "expected ", end(pair.expected.unwrap_or(0.0)), text);
        let text = format!("{} ({})", units::percent(pair.measured), pair.amount);
        let measured = bar("measured", "measured ", end(pair.measured), text);
        let both = [expected, measured];
        bars(pair.name, if with_expected { &both } else { &both[1..] })
    };
    figure(
        title,
        text,
        html! {
            (draw::legend(if with_expected { &legend } else { &legend[1..] }))
            div.bars { @for row in pairs { div { (row.name) } div { (pair(row)) } } }
        },
    )
}

fn hits(group: &Group<'_>) -> Markup {
    let counts = &group.sum.line.counts;
    let all = counts.requests as f64;
    let expected_hits = group.expected.map(Expected::hits);
    let taken = taken(group.sum.line.mode.map_or("", CacheMode::name));
    let critical = group.expected.and_then(|e| Some(part(e.cache.as_ref()?.critical_requests, e.requests())));
    let pair = |name, expected: Option<f64>, number: u64| Pair {
        name,
        expected,
        measured: part(number as f64, all),
        amount: units::count(number),
    };
    let rows = [
        pair(taken, critical, counts.critical),
        pair("hits", expected_hits, counts.hits),
        pair("hits in part", None, counts.partial_hits),
    ];
    let hits = part(counts.hits as f64, all);
    let remark = match expected_hits {
        Some(expected) if hits < FEW * expected => Some(
            "Fewer hits than expected. The expectation is of a run that finds the cache as an earlier one like it left it: a \
             first run reads nothing from there, and data that were fetched meanwhile count only from then on.",
        ),
        Some(expected) if hits > MANY * expected => Some(
            "More hits than expected. The expectation counts the space once: what is written again finds its place, and where \
             data are written back meanwhile, others take theirs.",
        ),
        _ => None,
    };
    let text = "how many of all requests the cache was for, and how many it served, entirely or in part.";
    html! {
        (pairs("Requests and the cache", text, &rows))
        @if let Some(remark) = remark { (soft(remark)) }
    }
}

fn by_copy(group: &Group<'_>) -> Markup {
    let all = group.sum.line.counts.bytes() as f64;
    let expected =
        |index: usize| group.expected.and_then(|e| Some(part(e.copies.get(index)?.bytes, e.bytes())));
    let rows = group.sum.line.counts.copies.iter().enumerate().map(|(index, copy)| Pair {
        name: &copy.name,
        expected: expected(index),
        measured: part(copy.bytes() as f64, all),
        amount: units::bytes(copy.bytes()),
    });
    let text = match group.expected {
        None => "which part of the requests' bytes each copy served.",
        Some(_) => {
            "which part of the requests' bytes each copy served. Which one is cheapest depends on how many processes there are: \
             planned as traced, at run time as MPI, the launcher or the open files tell."
        }
    };
    pairs("Bytes by copy", text, &rows.collect::<Vec<_>>())
}

fn copies(counts: &Counts) -> Markup {
    let caption = "Bytes that requests read and wrote, and that were copied in the background.";
    let table = Table::new(caption, &counts.copies)
        .head("Copy", |copy| &copy.name)
        .amount("read", |copy| copy.read_bytes, units::bytes)
        .amount("written", |copy| copy.written_bytes, units::bytes)
        .amount("copied to it", |copy| copy.copied_bytes, units::bytes);
    html! { (table) }
}

fn background(counts: &Counts) -> Markup {
    let fetched: u64 = counts.copies.iter().skip(1).fold(0, |sum, copy| sum.saturating_add(copy.copied_bytes));
    let written_back = counts.copies.first().map_or(0, |copy| copy.copied_bytes);
    let ranges = |number, bytes| {
        html! { (units::counted(number, "range", "ranges")) ", " (units::bytes(bytes)) }
    };
    facts([
        ("Fetched into the cache", ranges(counts.fetches, fetched)),
        ("Written back to the original", ranges(counts.write_backs, written_back)),
        ("Evicted", ranges(counts.evictions, counts.evicted_bytes)),
    ])
}

fn files_table(group: &Group<'_>) -> Markup {
    let of_original = |counts: &Counts| counts.copies.first().map_or(0, CopyCounts::bytes);
    let mut files = group.files.clone();
    files.sort_by_key(|file| std::cmp::Reverse(file.line.counts.bytes()));
    let shown = files.iter().copied().take(FILES_LISTED);
    let table = Table::new("Files of this rule, those with the most bytes first.", shown)
        .name("File", |file| &file.line.path)
        .amount("processes", |file| file.processes.len() as u64, units::count)
        .amount("requests", |file| file.line.counts.requests, units::count)
        .amount("bytes", |file| file.line.counts.bytes(), units::bytes)
        .amount("of these from or to the original", |file| of_original(&file.line.counts), units::bytes);
    html! {
        details {
            summary { "File by file" }
            (table)
            (more(files.len().saturating_sub(FILES_LISTED), "files are not listed."))
        }
    }
}
