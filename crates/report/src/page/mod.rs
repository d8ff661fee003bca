//! The page: header, summary, sections, and how it was made.

mod activity;
mod bars;
mod calls;
mod candidates;
mod compare;
mod copies;
mod group;
mod kinds;
mod layouts;
mod loads;
mod origin;
mod outcome;
mod parts;
mod regions;
mod short;
mod space;
mod verdict;

use copies::measured;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::html::document;
use crate::{MissingPart, Report};

/// Head of the page, written as XML. The classes of its style sheet are those that [`crate::draw`]
/// and the sections use.
const HEAD: PreEscaped<&str> = PreEscaped(concat!(
    "<meta charset=\"utf-8\"/>",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>",
    "<meta name=\"color-scheme\" content=\"light dark\"/>",
    "<title>stripewise report</title>",
    "<style>",
    include_str!("style.css"),
    "</style>"
));

/// Script that sorts tables.
const SCRIPT: PreEscaped<&str> = PreEscaped(include_str!("script.js"));

/// Writes the content of a section.
type Content = fn(&Report<'_>) -> Markup;

/// A section of the page.
struct Section {
    /// Its anchor.
    id: &'static str,
    title: &'static str,
    content: Content,
    /// How to get its input, if that was not given.
    missing: Option<MissingPart>,
}

/// Renders the page as one self-contained text.
pub fn render(report: &Report<'_>) -> String {
    let sections = sections(report);
    document(html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head { (HEAD) }
            body {
                header.top {
                    h1 { (short::title(report)) }
                    p.soft { "Made by stripewise " (report.version) " on " (report.date) }
                    nav aria-label="Parts of this page" {
                        @for section in &sections { a href={ "#" (section.id) } { (section.title) } }
                    }
                }
                main {
                    (short::notices(report))
                    (short::tiles(report))
                    @for section in &sections {
                        section id=(section.id) {
                            h2 { (section.title) }
                            @match &section.missing {
                                None => ((section.content)(report)),
                                Some(MissingPart { what, command, flag, .. }) => p.absent {
                                    (what) " " code { (command) } " and add " code { (flag) } " to this command."
                                },
                            }
                        }
                    }
                }
                footer { "This file needs no network and no other file." }
                script { (SCRIPT) }
            }
        }
        "\n"
    })
}

/// Returns the sections in order. The verdict and those on files with several copies and on the
/// comparison of two runs exist only if there is something to show.
fn sections(report: &Report<'_>) -> Vec<Section> {
    let section = |id, title, content: Content| Section { id, title, content, missing: None };
    let verdict = section("verdict", "Verdict", verdict::section);
    let outcome = section("outcome", "Predicted and measured", outcome::section);
    let compare = section("compare", "Before and after", compare::section);
    let layouts = section("layouts", "Layouts", layouts::section);
    let copies = section("copies", "What the copies served", measured::section);
    let activity = section("activity", "What the application does", activity::section);
    let origin = section("origin", "How this was made", origin::section);
    let if_missing = |section: Section, is_missing: bool, [what, command, flag]: [&'static str; 3]| {
        let part = MissingPart { title: section.title, what, command, flag };
        Section { missing: is_missing.then_some(part), ..section }
    };
    let results = ["No results were given: measure with", "stripewise-bench demo", "-r results.json"];
    let plan =
        ["No plan was given: make one with", "stripewise plan T -c cluster.toml -o plan.toml", "-p plan.toml"];
    let count = "stripewise run --statistics FILE -p plan.toml -- COMMAND";
    let statistics = ["No statistics were given: count with", count, "--statistics FILE"];
    let trace = ["No trace was given: record one with", "stripewise trace -o T -- COMMAND", "-t T"];
    let sections = [
        verdict::wanted(report).then_some(verdict),
        Some(if_missing(outcome, report.results.is_none(), results)),
        report.before.map(|_| compare),
        Some(if_missing(layouts, report.plans.is_empty(), plan)),
        measured::wanted(report).then(|| if_missing(copies, report.statistics.is_empty(), statistics)),
        Some(if_missing(activity, report.activities.is_empty(), trace)),
        Some(origin),
    ];
    sections.into_iter().flatten().collect()
}

/// Returns the sections whose input was not given, and how to get the input.
pub fn missing_parts(report: &Report<'_>) -> Vec<MissingPart> {
    sections(report).into_iter().filter_map(|section| section.missing).collect()
}
