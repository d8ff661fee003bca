//! The page: header, summary, sections, and how it was made.

mod activity;
mod bars;
mod candidates;
mod cluster;
mod compare;
mod copies;
mod group;
mod layouts;
mod origin;
mod outcome;
mod regions;
mod short;
mod sizes;
mod table;
mod text;

use crate::html::Html;
use crate::{MissingPart, Report};

/// Style sheet of the page. Its classes are those that [`crate::draw`] and [`table`] use.
const STYLE: &str = include_str!("style.css");

/// Script that sorts tables.
const SCRIPT: &str = include_str!("script.js");

const TITLE: &str = "stripewise report";

/// The sections in order, as (anchor, title).
const PARTS: [(&str, &str); 6] = [
    ("outcome", "Predicted and measured"),
    ("compare", "Before and after"),
    ("layouts", "Layouts"),
    ("copies", "What the copies served"),
    ("activity", "What the application does"),
    ("origin", "How this was made"),
];

/// Renders the page as one self-contained text.
pub fn render(report: &Report<'_>) -> String {
    let mut h = Html::default();
    h.raw("<!DOCTYPE html>\n");
    h.element("html", &[("lang", "en")], |h| {
        h.element("head", &[], head);
        h.element("body", &[], |h| body(h, report));
    });
    h.raw("\n");
    h.finish()
}

fn head(h: &mut Html) {
    h.empty("meta", &[("charset", "utf-8")]);
    h.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    h.empty("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    h.leaf("title", &[], TITLE);
    h.element("style", &[], |h| h.raw(STYLE));
}

fn body(h: &mut Html, report: &Report<'_>) {
    h.element("header", &[("class", "top")], |h| {
        h.leaf("h1", &[], &short::title(report));
        h.leaf("p", &[("class", "soft")], &format!("Made by stripewise {} on {}", report.version, report.date));
        h.element("nav", &[("aria-label", "Parts of this page")], |h| {
            for (id, title) in parts(report) {
                h.leaf("a", &[("href", &format!("#{id}"))], title);
            }
        });
    });
    h.element("main", &[], |h| {
        short::notices(h, report);
        short::tiles(h, report);
        let missing = missing_parts(report);
        for (id, title) in parts(report) {
            h.element("section", &[("id", id)], |h| {
                h.leaf("h2", &[], title);
                match missing.iter().find(|part| part.title == title) {
                    Some(part) => absent(h, part),
                    None => content(h, report, id),
                }
            });
        }
    });
    h.element("footer", &[], |h| h.text("This file needs no network and no other file."));
    h.element("script", &[], |h| h.raw(SCRIPT));
}

/// Returns the sections of this page. Those on files with several copies and on the comparison of
/// two runs exist only if there is something to show.
fn parts(report: &Report<'_>) -> impl Iterator<Item = (&'static str, &'static str)> {
    let (copies, runs) = (copies::measured::wanted(report), report.before.is_some());
    let wanted = move |id: &str| (id != "copies" || copies) && (id != "compare" || runs);
    PARTS.into_iter().filter(move |(id, _)| wanted(id))
}

/// Returns the sections whose input was not given, and how to get the input.
pub fn missing_parts(report: &Report<'_>) -> Vec<MissingPart> {
    let part = |is_missing: bool, index: usize, what, command, flag| {
        is_missing.then_some(MissingPart { title: PARTS[index].1, what, command, flag })
    };
    let plan_command = "stripewise plan T -c cluster.toml -o plan.toml";
    let trace_command = "stripewise trace -o T -- COMMAND";
    [
        part(
            report.results.is_none(),
            0,
            "No results were given: measure with",
            "stripewise-bench demo",
            "-r results.json",
        ),
        part(report.plans.is_empty(), 2, "No plan was given: make one with", plan_command, "-p plan.toml"),
        part(
            report.statistics.is_empty() && copies::measured::wanted(report),
            3,
            "No statistics were given: count with",
            "stripewise run --statistics FILE -p plan.toml -- COMMAND",
            "--statistics FILE",
        ),
        part(report.activities.is_empty(), 4, "No trace was given: record one with", trace_command, "-t T"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn absent(h: &mut Html, part: &MissingPart) {
    h.element("p", &[("class", "absent")], |h| {
        h.text(&format!("{} ", part.what));
        h.leaf("code", &[], part.command);
        h.text(" and add ");
        h.leaf("code", &[], part.flag);
        h.text(" to this command.");
    });
}

fn content(h: &mut Html, report: &Report<'_>, id: &str) {
    match id {
        "outcome" => report.results.iter().for_each(|results| outcome::section(h, report, results)),
        "compare" => report
            .before
            .zip(report.activities.first())
            .iter()
            .for_each(|(before, after)| compare::section(h, before, after)),
        "layouts" => layouts::section(h, report.plans),
        "copies" => copies::measured::section(h, report),
        "activity" => activity::section(h, report.activities),
        _ => origin::section(h, report),
    }
}
