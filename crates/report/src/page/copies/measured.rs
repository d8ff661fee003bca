//! Section that compares the statistics of files with several copies with what was expected.

use std::path::Path;

use stripewise_plan::expected::{Expected, part, taken};

use super::super::table::{Column, table, whole};
use super::super::text::fact;
use super::pairs::{self, Pair};
use crate::html::Html;
use crate::statistics::{CopiesKind, FileStatistics};
use crate::{Report, units};

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

pub fn section(h: &mut Html, report: &Report<'_>) {
    let mut groups = groups(report);
    groups.sort_by_key(|group| std::cmp::Reverse(group.sum.bytes()));
    for group in groups.iter().take(CARDS) {
        h.element("div", &[("class", "card")], |h| card(h, group));
    }
    if groups.len() > CARDS {
        let more = groups.len() - CARDS;
        h.leaf("p", &[("class", "soft")], &format!("{more} more files, with fewer bytes, are not shown."));
    }
}

/// Groups the files of each rule. A file without a rule, or with copies other than the rule's, is
/// in a group by itself.
fn groups<'a>(report: &Report<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for file in report.statistics {
        let (name, expected) = rule_of(report, file).unwrap_or((&file.path, None));
        let with = |group: &&mut Group<'_>| {
            group.name == name
                && (group.sum.kind, &group.sum.mode) == (file.kind, &file.mode)
                && group.sum.copy_names().eq(file.copy_names())
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
    for view in report.plans {
        let rules = view.plan.rules.iter().zip(&view.details);
        let Some((rule, details)) = rules.into_iter().find(|(rule, _)| rule.matches(Path::new(&file.path)))
        else {
            continue;
        };
        let copies = rule.overlay.iter().flat_map(|overlay| &overlay.copies);
        if copies.map(|copy| copy.name.as_str()).eq(file.copy_names().skip(1)) {
            return Some((&rule.pattern, details.expected.as_ref()));
        }
    }
    None
}

fn card(h: &mut Html, group: &Group<'_>) {
    let sum = &group.sum;
    h.element("h3", &[], |h| {
        h.leaf("code", &[], group.name);
        h.text(" ");
        let kind = match (sum.kind, &sum.mode) {
            (CopiesKind::Replicas, _) => "replicas".to_owned(),
            (CopiesKind::Cache, None) => "cache".to_owned(),
            (CopiesKind::Cache, Some(mode)) => format!("cache, {mode}"),
        };
        h.leaf("span", &[("class", "pill chosen")], &kind);
    });
    let requests = units::counted(sum.counts.requests, "request", "requests");
    let processes = units::counted(sum.processes.len() as u64, "process", "processes");
    let files = units::counted(group.files.len() as u64, "file", "files");
    h.leaf("p", &[], &format!("{files}: {requests} of {processes} moved {}.", units::bytes(sum.bytes())));
    if sum.kind == CopiesKind::Cache {
        hits(h, group);
    }
    by_copy(h, group);
    copies(h, sum);
    background(h, sum);
    if group.files.len() > 1 {
        files_table(h, group);
    }
}

fn hits(h: &mut Html, group: &Group<'_>) {
    let counts = &group.sum.counts;
    let all = counts.requests as f64;
    let expected = group.expected;
    let taken = taken(group.sum.mode.as_deref().unwrap_or_default());
    let critical = expected.and_then(|e| Some(part(e.cache.as_ref()?.critical_requests, e.requests())));
    let pair = |name: &str, expected: Option<f64>, number: u64| Pair {
        name: name.to_owned(),
        expected,
        measured: part(number as f64, all),
        amount: units::count(number),
    };
    let pairs = [
        pair(taken, critical, counts.critical),
        pair("hits", expected.map(Expected::hits), counts.hits),
        pair("hits in part", None, counts.partial_hits),
    ];
    let text = "how many of all requests the cache was for, and how many it served, entirely or in part.";
    pairs::figure(h, "Requests and the cache", text, &pairs);
    let Some(expected) = expected.map(Expected::hits) else { return };
    let hits = part(counts.hits as f64, all);
    let text = if hits < FEW * expected {
        "Fewer hits than expected. The expectation is of a run that finds the cache as an earlier one like it left it: a first \
         run reads nothing from there, and data that were fetched meanwhile count only from then on."
    } else if hits > MANY * expected {
        "More hits than expected. The expectation counts the space once: what is written again finds its place, and where data \
         are written back meanwhile, others take theirs."
    } else {
        return;
    };
    h.leaf("p", &[("class", "soft")], text);
}

fn by_copy(h: &mut Html, group: &Group<'_>) {
    let all = group.sum.bytes() as f64;
    let pair = |(index, copy): (usize, &crate::statistics::CopyStatistics)| Pair {
        name: copy.name.clone(),
        expected: group.expected.and_then(|e| Some(part(e.copies.get(index)?.bytes, e.bytes()))),
        measured: part(copy.bytes() as f64, all),
        amount: units::bytes(copy.bytes()),
    };
    let pairs: Vec<Pair> = group.sum.copies.iter().enumerate().map(pair).collect();
    let text = match group.expected {
        None => "which part of the requests' bytes each copy served.",
        Some(_) => {
            "which part of the requests' bytes each copy served. Which one is cheapest depends on how many processes there are: \
             planned as traced, at run time as MPI, the launcher or the open files tell."
        }
    };
    pairs::figure(h, "Bytes by copy", text, &pairs);
}

fn copies(h: &mut Html, sum: &FileStatistics) {
    let columns = [
        Column::text("Copy"),
        Column::number("read"),
        Column::number("written"),
        Column::number("copied to it"),
    ];
    let caption = "Bytes that requests read and wrote, and that were copied in the background.";
    table(h, caption, &columns, |h| {
        for copy in &sum.copies {
            h.element("tr", &[], |h| {
                h.leaf("th", &[("scope", "row")], &copy.name);
                whole(h, copy.read_bytes, units::bytes);
                whole(h, copy.written_bytes, units::bytes);
                whole(h, copy.copied_bytes, units::bytes);
            });
        }
    });
}

fn background(h: &mut Html, sum: &FileStatistics) {
    if sum.kind == CopiesKind::Replicas {
        return;
    }
    let counts = &sum.counts;
    let ranges = |number| units::counted(number, "range", "ranges");
    h.element("dl", &[("class", "facts")], |h| {
        let copied: u64 = sum.copies.iter().skip(1).fold(0, |sum, copy| sum.saturating_add(copy.copied_bytes));
        let fetched = format!("{}, {}", ranges(counts.fetches), units::bytes(copied));
        fact(h, "Fetched into the cache", |h| h.text(&fetched));
        let back = sum.copies.first().map_or(0, |copy| copy.copied_bytes);
        let back = format!("{}, {}", ranges(counts.write_backs), units::bytes(back));
        fact(h, "Written back to the original", |h| h.text(&back));
        let evicted = format!("{}, {}", ranges(counts.evictions), units::bytes(counts.evicted_bytes));
        fact(h, "Evicted", |h| h.text(&evicted));
    });
}

fn files_table(h: &mut Html, group: &Group<'_>) {
    let columns = [
        Column::text("File"),
        Column::number("processes"),
        Column::number("requests"),
        Column::number("bytes"),
        Column::number("of these from or to the original"),
    ];
    let mut files = group.files.clone();
    files.sort_by_key(|file| std::cmp::Reverse(file.bytes()));
    h.element("details", &[], |h| {
        h.leaf("summary", &[], "File by file");
        table(h, "Files of this rule, those with the most bytes first.", &columns, |h| {
            for file in files.iter().take(FILES_LISTED) {
                h.element("tr", &[], |h| {
                    h.element("td", &[("class", "name")], |h| h.leaf("code", &[], &file.path));
                    whole(h, file.processes.len() as u64, units::count);
                    whole(h, file.counts.requests, units::count);
                    whole(h, file.bytes(), units::bytes);
                    whole(h, file.copies.first().map_or(0, |copy| copy.bytes()), units::bytes);
                });
            }
        });
        if files.len() > FILES_LISTED {
            let more = units::count((files.len() - FILES_LISTED) as u64);
            h.leaf("p", &[("class", "soft")], &format!("{more} more files are not listed."));
        }
    });
}
