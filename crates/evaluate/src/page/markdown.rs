//! Renders `evaluation.md`.

use std::fmt::Write;

use textwrap::WordSplitter;

use super::series::{Chart, DRAWINGS, Point};
use super::view::{Section, View};
use super::{chart, format, maps};
use crate::judge::{RULE, Verdict};
use crate::record::Place;

/// Returns the page.
pub fn page(view: &View<'_>) -> String {
    let mut out = String::new();
    out += "# The papers' experiments, reproduced\n\n";
    out += "Made by `stripewise-bench evaluate` from the records in [evaluation/](evaluation/). What the papers \
            are: [papers.md](papers.md).\n\n";
    places(&mut out, view);
    overview(&mut out, view);
    for section in &view.sections {
        experiment(&mut out, section);
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    wrapped(&out)
}

/// Wraps everything but headings, tables, HTML and drawings, like the pages that people write.
fn wrapped(page: &str) -> String {
    let usual = textwrap::Options::new(100).break_words(false).word_splitter(WordSplitter::NoHyphenation);
    let line = |line: &str| match line.as_bytes() {
        [b'#' | b'|' | b'<' | b'!', ..] => line.to_owned(),
        [b'-', ..] => textwrap::fill(line, usual.clone().subsequent_indent("  ")),
        _ => textwrap::fill(line, &usual),
    };
    page.lines().map(|text| line(text) + "\n").collect()
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

fn row(out: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn head(out: &mut String, names: &[&str]) {
    row(out, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let _ = writeln!(out, "|{}", "---|".repeat(names.len()));
}

fn places(out: &mut String, view: &View<'_>) {
    for place in Place::ALL {
        let _ = writeln!(out, "- **{}**: {}.", format::capital(format::place(place)), format::about(place));
    }
    out.push('\n');
    if view.documents.is_empty() {
        out.push_str("Nothing was run yet.\n\n");
        return;
    }
    head(out, &["where", "when", "command", "machine", "runs"]);
    for (place, document) in &view.documents {
        row(
            out,
            &[
                format::place(*place).to_owned(),
                document.date.clone(),
                format!("`{}`", document.command),
                format::machine(&document.machine),
                format::runs(&document.records),
            ],
        );
    }
    out.push('\n');
}

fn overview(out: &mut String, view: &View<'_>) {
    let _ = writeln!(out, "## Overview\n\n{RULE}\n");
    let signs: Vec<String> =
        Verdict::ALL.iter().map(|verdict| format!("{} {}", verdict.sign(), verdict.name())).collect();
    let _ = writeln!(
        out,
        "Signs, with the number of claims that they stand for: {}. Behind them what was found: of few claims each, of many the \
         range. A claim holds if it agrees, or if more was found.\n",
        signs.join(", ")
    );
    head(
        out,
        &[
            "#",
            "system",
            "experiment",
            "claimed",
            "simulated",
            "emulated servers",
            "throttled disks",
            "verdict",
        ],
    );
    for section in &view.sections {
        let experiment = section.experiment;
        let id = experiment.id;
        let mut cells = vec![
            format!("[{id}](#{})", format::anchor(section.experiment)),
            format::paper(experiment.paper).to_owned(),
            experiment.title.clone(),
            experiment.claimed.clone(),
        ];
        cells.extend(Place::ALL.map(|place| found(section, place)));
        cells.push(section.verdict());
        row(out, &cells);
    }
    out.push('\n');
}

/// Formats the number of verdicts by sign, and the values.
fn found(section: &Section<'_>, place: Place) -> String {
    let Some(verdicts) = section.verdicts(place) else { return "–".to_owned() };
    let signs: Vec<String> = format::tally(&verdicts)
        .iter()
        .map(|(verdict, count)| format!("{count}\u{a0}{}", verdict.sign()))
        .collect();
    format!("{}: {}", signs.join(" "), section.values(place))
}

fn experiment(out: &mut String, section: &Section<'_>) {
    let experiment = section.experiment;
    let _ = writeln!(out, "## {}\n", text(&format::heading(experiment)));
    let _ = writeln!(out, "- Published: {}", text(&experiment.setting));
    let _ = writeln!(out, "- Claimed: {}", text(&experiment.claimed));
    for (place, runs) in &section.runs {
        let _ = writeln!(out, "- {}: {runs}", format::capital(format::place(*place)));
    }
    for failure in &section.failures {
        let _ = writeln!(out, "- **Failed** {}", text(failure));
    }
    out.push('\n');
    for chart in &section.charts {
        let _ = writeln!(out, "![{}]({DRAWINGS}/{})\n", text(&chart.figure.title), chart.file_name());
    }
    claims(out, section);
    choices(out, section);
    for chart in &section.charts {
        numbers(out, chart);
    }
    if !section.explanation.is_empty() {
        let _ = writeln!(out, "{}\n", section.explanation);
    }
}

/// Escapes text outside of tables, so that stripe pairs are not read as tags.
fn text(text: &str) -> String {
    text.replace('<', "&lt;")
}

fn claims(out: &mut String, section: &Section<'_>) {
    if section.judgements.is_empty() {
        return;
    }
    let columns = section.columns();
    head(out, &columns);
    for index in 0..section.judgements.len() {
        row(out, &section.claim_row(index));
    }
    out.push('\n');
}

/// Writes how well the models chose, and where.
fn choices(out: &mut String, section: &Section<'_>) {
    if section.choices.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}\n", format::CHOICES);
    head(out, &format::CHOICE_COLUMNS);
    for table in &section.choices {
        for choice in &table.rows {
            row(out, &format::choice_row(table.place, choice));
        }
    }
    out.push('\n');
    for map in section.choices.iter().flat_map(maps::of) {
        let title = format!("{}: {}", format::capital(format::place(map.place)), map.title);
        let _ = writeln!(out, "<details><summary>{}: {}</summary>\n", text(&title), format::MAP);
        let mut names = vec!["processes"];
        names.extend(map.sizes.iter().map(String::as_str));
        head(out, &names);
        for (procs, spots) in map.procs.iter().zip(&map.spots) {
            let mut cells = vec![procs.clone()];
            cells.extend(spots.iter().map(|spot| spot.as_ref().map_or("–".to_owned(), maps::Spot::text)));
            row(out, &cells);
        }
        out.push_str("\n</details>\n\n");
    }
}

/// Writes the numbers of a drawing as an accessible table.
fn numbers(out: &mut String, chart: &Chart<'_>) {
    let _ = writeln!(out, "<details><summary>{}: MiB/s</summary>\n", text(&chart.figure.title));
    let mut names = vec!["where", chart.figure.x.1.as_str()];
    names.extend(chart.schemes.iter().map(String::as_str));
    head(out, &names);
    for panel in &chart.panels {
        for (index, x) in panel.x.iter().enumerate() {
            let mut cells = vec![format::place(panel.place).to_owned(), x.clone()];
            let of = |points: &Vec<Option<Point>>| {
                points[index].as_ref().map_or("–".to_owned(), |point| chart::rate(point.rate))
            };
            cells.extend(panel.points.iter().map(of));
            row(out, &cells);
        }
    }
    out.push_str("\n</details>\n\n");
}
