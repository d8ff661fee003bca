//! Renders `evaluation.md`.

use textwrap::WordSplitter;

use super::section::Section;
use super::series::{Chart, DRAWINGS, Point};
use super::{chart, format, maps, plans};
use crate::joint;
use crate::judge::{RULE, Verdict};
use crate::record::{Document, Place};
use crate::regret;

/// Returns the page. `documents` are in the order of [`Place::ALL`].
pub fn page(documents: &[Option<&Document>; 3], sections: &[Section<'_>]) -> String {
    let mut out = String::new();
    out += "# The papers' experiments, reproduced\n\n";
    out += "Made by `stripewise-bench evaluate` from the records in [evaluation/](evaluation/). What the papers \
            are: [papers.md](papers.md).\n\n";
    places(&mut out, documents);
    overview(&mut out, sections);
    joint_plans(&mut out, sections);
    for section in sections {
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

/// Writes a table, and the empty line after it.
fn table(out: &mut String, names: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ");
    let names: Vec<String> = names.iter().map(|name| cell(name)).collect();
    *out += &format!("| {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        *out += &format!("| {} |\n", cells.join(" | "));
    }
    out.push('\n');
}

fn places(out: &mut String, documents: &[Option<&Document>; 3]) {
    for place in Place::ALL {
        *out += &format!("- **{}**: {}.\n", format::capital(format::place(place)), format::about(place));
    }
    out.push('\n');
    if documents.iter().all(Option::is_none) {
        out.push_str("Nothing was run yet.\n\n");
        return;
    }
    let row = |(place, document): (Place, &Document)| {
        vec![
            format::place(place).to_owned(),
            document.date.clone(),
            format!("`{}`", document.command),
            format::machine(&document.machine),
            format::runs(&document.records),
        ]
    };
    let documents = Place::ALL.into_iter().zip(documents);
    let documents = documents.filter_map(|(place, document)| Some((place, (*document)?)));
    table(out, &["where", "when", "command", "machine", "runs"], documents.map(row));
}

fn overview(out: &mut String, sections: &[Section<'_>]) {
    let signs: Vec<String> =
        Verdict::ALL.iter().map(|verdict| format!("{} {}", verdict.sign(), verdict.name())).collect();
    *out += &format!(
        "## Overview\n\n{RULE}\n\nSigns, with the number of claims that they stand for: {}. Behind them what was found: of few \
         claims each, of many the range. A claim holds if it agrees, or if more was found.\n\n",
        signs.join(", ")
    );
    let [simulated, emulated, disks] = Place::ALL.map(format::place);
    let names = ["#", "system", "experiment", "claimed", simulated, emulated, disks, "verdict"];
    let row = |section: &Section<'_>| {
        let experiment = section.experiment;
        let mut cells = vec![
            format!("[{}](#{})", experiment.id, format::anchor(experiment)),
            format::paper(experiment.paper).to_owned(),
            experiment.title.clone(),
            experiment.claimed.clone(),
        ];
        cells.extend(Place::ALL.map(|place| section.found(place)));
        cells.push(section.verdict());
        cells
    };
    table(out, &names, sections.iter().map(row));
}

/// Writes how the joint plan compares with the fastest candidate, the published schemes and the
/// bound.
fn joint_plans(out: &mut String, sections: &[Section<'_>]) {
    let rows: Vec<joint::Row> = sections.iter().flat_map(|section| section.plans.iter().cloned()).collect();
    if rows.is_empty() {
        return;
    }
    *out += &format!("## {}\n\n{}\n\n{}\n\n", plans::HEADING, plans::ABOUT, plans::verdict(&rows));
    table(out, &plans::SUMMARY, plans::summaries(&rows));
    out.push_str("<details><summary>Cells: those that are more than 2 % slower (✗), and all of experiments with up to 100 \
                  cells</summary>\n\n");
    table(out, &plans::CELL, plans::listed(&rows));
    out.push_str("</details>\n\n");
}

fn experiment(out: &mut String, section: &Section<'_>) {
    let experiment = section.experiment;
    *out += &format!("## {}\n\n", text(&format::heading(experiment)));
    *out += &format!("- Published: {}\n", text(&experiment.setting));
    *out += &format!("- Claimed: {}\n", text(&experiment.claimed));
    for (place, runs) in section.runs() {
        *out += &format!("- {}: {runs}\n", format::capital(format::place(place)));
    }
    for failure in section.failures() {
        *out += &format!("- **Failed** {}\n", text(&failure));
    }
    out.push('\n');
    for chart in &section.charts {
        *out += &format!("![{}]({DRAWINGS}/{})\n\n", text(&chart.figure.title), chart.file_name);
    }
    if !section.judgements.is_empty() {
        let rows = section.judgements.iter().map(|judgement| section.claim_row(judgement));
        table(out, &section.columns(), rows);
    }
    choices(out, section);
    for chart in &section.charts {
        numbers(out, chart);
    }
    if !experiment.explanation.is_empty() {
        *out += &format!("{}\n\n", experiment.explanation);
    }
}

/// Escapes text outside of tables, so that stripe pairs are not read as tags.
fn text(text: &str) -> String {
    text.replace('<', "&lt;")
}

/// Writes for C1 how well the models chose, and where.
fn choices(out: &mut String, section: &Section<'_>) {
    let tables = regret::tables(section.records.iter().flatten().copied());
    if tables.is_empty() {
        return;
    }
    *out += &format!("{}\n\n", format::CHOICES);
    let rows = |of: &regret::Table| -> Vec<Vec<String>> {
        of.rows.iter().map(|row| format::choice_row(of.place, row)).collect()
    };
    table(out, &format::CHOICE_COLUMNS, tables.iter().flat_map(rows));
    for map in tables.iter().flat_map(maps::of) {
        *out += &format!("<details><summary>{}: {}</summary>\n\n", text(&map.title), format::MAP);
        let names: Vec<&str> =
            std::iter::once("processes").chain(map.sizes.iter().map(String::as_str)).collect();
        table(out, &names, map.rows);
        out.push_str("</details>\n\n");
    }
}

/// Writes the numbers of a drawing as an accessible table.
fn numbers(out: &mut String, chart: &Chart<'_>) {
    *out += &format!("<details><summary>{}: MiB/s</summary>\n\n", text(&chart.figure.title));
    let mut names = vec!["where", chart.figure.x.1.as_str()];
    names.extend(chart.schemes.iter().map(String::as_str));
    let rows = chart.panels.iter().flat_map(|panel| {
        panel.x.iter().enumerate().map(|(index, x)| {
            let mut cells = vec![format::place(panel.place).to_owned(), x.clone()];
            let of = |points: &Vec<Option<Point>>| {
                points[index].as_ref().map_or("–".to_owned(), |point| chart::rate(point.rate))
            };
            cells.extend(panel.points.iter().map(of));
            cells
        })
    });
    table(out, &names, rows);
    out.push_str("</details>\n\n");
}
