//! The page: header, summary, sections, and how it was made.

mod activity;
mod bars;
mod candidates;
mod compare;
mod copies;
mod group;
mod layouts;
mod origin;
mod outcome;
mod parts;
mod regions;
mod short;

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
    /// If its input was not given: a statement of that, the command that produces the input, and
    /// the flags that pass it to the report.
    missing: Option<[&'static str; 3]>,
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
                                Some([what, command, flag]) => p.absent {
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

/// Returns the sections in order. Those on files with several copies and on the comparison of two
/// runs exist only if there is something to show.
fn sections(report: &Report<'_>) -> Vec<Section> {
    let section = |id, title, content, is_missing: bool, how_to_get_it: [&'static str; 3]| Section {
        id,
        title,
        content,
        missing: is_missing.then_some(how_to_get_it),
    };
    let results = ["No results were given: measure with", "stripewise-bench demo", "-r results.json"];
    let plan =
        ["No plan was given: make one with", "stripewise plan T -c cluster.toml -o plan.toml", "-p plan.toml"];
    let count = "stripewise run --statistics FILE -p plan.toml -- COMMAND";
    let statistics = ["No statistics were given: count with", count, "--statistics FILE"];
    let trace = ["No trace was given: record one with", "stripewise trace -o T -- COMMAND", "-t T"];
    let no_results = report.results.is_none();
    let mut sections = vec![
        section("outcome", "Predicted and measured", outcome::section as Content, no_results, results),
        section("compare", "Before and after", compare::section, false, [""; 3]),
        section("layouts", "Layouts", layouts::section, report.plans.is_empty(), plan),
        section(
            "copies",
            "What the copies served",
            measured::section,
            report.statistics.is_empty(),
            statistics,
        ),
        section(
            "activity",
            "What the application does",
            activity::section,
            report.activities.is_empty(),
            trace,
        ),
        section("origin", "How this was made", origin::section, false, [""; 3]),
    ];
    let (copies, runs) = (measured::wanted(report), report.before.is_some());
    sections.retain(|section| (section.id != "copies" || copies) && (section.id != "compare" || runs));
    sections
}

/// Returns the sections whose input was not given, and how to get the input.
pub fn missing_parts(report: &Report<'_>) -> Vec<MissingPart> {
    let part = |section: Section| {
        let [what, command, flag] = section.missing?;
        Some(MissingPart { title: section.title, what, command, flag })
    };
    sections(report).into_iter().filter_map(part).collect()
}
