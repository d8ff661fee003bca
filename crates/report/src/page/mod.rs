//! The page: head, what it says in short, its parts, how it was made.

mod activity;
mod bars;
mod cluster;
mod group;
mod layouts;
mod origin;
mod outcome;
mod short;
mod sizes;
mod table;

use crate::Report;
use crate::html::Html;

const TITLE: &str = "stripewise report";

/// A part of the page.
struct Part {
    id: &'static str,
    title: &'static str,
    /// What to do to get it, where its input was not given.
    remedy: Option<(&'static str, &'static str, &'static str)>,
}

/// The page as one self-contained text.
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
    h.element("style", &[], |h| h.raw(include_str!("style.css")));
}

fn body(h: &mut Html, report: &Report<'_>) {
    let parts = parts(report);
    h.element("header", &[("class", "top")], |h| {
        h.leaf("h1", &[], &short::title(report));
        h.leaf("p", &[("class", "soft")], &format!("Made by stripewise {} on {}", report.version, report.date));
        h.element("nav", &[("aria-label", "Parts of this page")], |h| {
            for part in &parts {
                h.leaf("a", &[("href", &format!("#{}", part.id))], part.title);
            }
        });
    });
    h.element("main", &[], |h| {
        short::notices(h, report);
        short::tiles(h, report);
        for part in &parts {
            h.element("section", &[("id", part.id)], |h| {
                h.leaf("h2", &[], part.title);
                match part.remedy {
                    Some(remedy) => absent(h, remedy),
                    None => content(h, report, part.id),
                }
            });
        }
    });
    h.element("footer", &[], |h| h.text("This file needs no network and no other file."));
    h.element("script", &[], |h| h.raw(include_str!("script.js")));
}

fn parts(report: &Report<'_>) -> [Part; 4] {
    let missing = |is: bool, what, command, flag| is.then_some((what, command, flag));
    [
        Part {
            id: "outcome",
            title: "Predicted and measured",
            remedy: missing(
                report.results.is_none(),
                "No results were given: measure with",
                "stripewise demo",
                "-r results.json",
            ),
        },
        Part {
            id: "layouts",
            title: "Layouts",
            remedy: missing(
                report.plans.is_empty(),
                "No plan was given: make one with",
                "stripewise plan T -c cluster.toml -o plan.toml",
                "-p plan.toml",
            ),
        },
        Part {
            id: "activity",
            title: "What the application does",
            remedy: missing(
                report.activities.is_empty(),
                "No trace was given: record one with",
                "stripewise trace -o T -- COMMAND",
                "-t T",
            ),
        },
        Part { id: "origin", title: "How this was made", remedy: None },
    ]
}

fn absent(h: &mut Html, (what, command, flag): (&str, &str, &str)) {
    h.element("p", &[("class", "absent")], |h| {
        h.text(what);
        h.text(" ");
        h.leaf("code", &[], command);
        h.text(" and add ");
        h.leaf("code", &[], flag);
        h.text(" to this command.");
    });
}

fn content(h: &mut Html, report: &Report<'_>, id: &str) {
    match id {
        "outcome" => report.results.iter().for_each(|results| outcome::section(h, results)),
        "layouts" => report.plans.iter().for_each(|view| layouts::section(h, view)),
        "activity" => report.activities.iter().for_each(|activity| activity::section(h, activity)),
        _ => origin::section(h, report),
    }
}
