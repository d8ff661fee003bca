//! `evaluation.html`: one file. Its only script sorts the tables, and the page is readable without
//! it.

use stripewise_report::html::Html;
use stripewise_report::table::{Column, table};
use stripewise_report::{SCRIPT, STYLE};

use super::maps::{self, Map, Spot};
use super::series::Chart;
use super::view::{Section, View};
use super::{chart, look, prose, words};
use crate::judge::{RULE, Verdict};
use crate::record::Place;

const TITLE: &str = "The papers' experiments, reproduced";

/// Returns the page.
pub fn page(view: &View<'_>) -> String {
    let mut h = Html::default();
    h.raw("<!DOCTYPE html>\n");
    h.element("html", &[("lang", "en")], |h| {
        h.element("head", &[], head);
        h.element("body", &[], |h| body(h, view));
    });
    h.raw("\n");
    h.finish()
}

fn head(h: &mut Html) {
    h.empty("meta", &[("charset", "utf-8")]);
    h.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    h.empty("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    h.leaf("title", &[], TITLE);
    h.element("style", &[], |h| {
        h.raw(STYLE);
        h.raw(include_str!("look.css"));
        h.raw(include_str!("evaluation.css"));
    });
}

fn body(h: &mut Html, view: &View<'_>) {
    // Every drawing refers to the patterns by name. A hidden drawing would hide them, so their
    // definitions are in a drawing of size 0.
    let out_of_sight = [("class", "definitions"), ("width", "0"), ("height", "0"), ("aria-hidden", "true")];
    h.element("svg", &out_of_sight, look::definitions);
    h.element("header", &[("class", "top")], |h| {
        h.leaf("h1", &[], TITLE);
        h.element("p", &[("class", "soft")], |h| prose::inline(h, "Made by `stripewise evaluate`."));
        h.element("nav", &[("aria-label", "Experiments")], |h| {
            h.leaf("a", &[("href", "#overview")], "Overview");
            for section in &view.sections {
                h.leaf("a", &[("href", &format!("#{}", id(section)))], section.experiment.id);
            }
        });
    });
    h.element("main", &[], |h| {
        places(h, view);
        overview(h, view);
        view.sections.iter().for_each(|section| experiment(h, section));
    });
    h.element("footer", &[], |h| h.text("This file needs no network and no other file."));
    h.element("script", &[], |h| h.raw(SCRIPT));
}

fn id(section: &Section<'_>) -> String {
    section.experiment.id.to_lowercase()
}

fn places(h: &mut Html, view: &View<'_>) {
    h.element("div", &[("class", "notice"), ("role", "note")], |h| {
        for place in Place::ALL {
            h.element("p", &[], |h| {
                h.leaf("b", &[], &words::capital(words::place(place)));
                h.text(&format!(": {}.", words::about(place)));
            });
        }
    });
    if view.documents.is_empty() {
        h.leaf("p", &[("class", "absent")], "Nothing was run yet.");
        return;
    }
    let columns = ["where", "when", "command", "machine", "runs"].map(Column::text);
    carded(h, "What was run.", &columns, |h| {
        for (place, document) in &view.documents {
            h.element("tr", &[], |h| {
                h.leaf("th", &[("scope", "row")], words::place(*place));
                h.leaf("td", &[("class", "when")], &document.date);
                h.element("td", &[("class", "name")], |h| h.leaf("code", &[], &document.command));
                h.leaf("td", &[("class", "words")], &words::machine(&document.machine));
                h.leaf("td", &[("class", "words")], &words::runs(&document.records));
            });
        }
    });
}

/// Writes a table in a card of its own.
fn carded(h: &mut Html, caption: &str, columns: &[Column<'_>], rows: impl FnOnce(&mut Html)) {
    h.element("div", &[("class", "card")], |h| table(h, caption, columns, rows));
}

fn overview(h: &mut Html, view: &View<'_>) {
    h.leaf("h2", &[("id", "overview")], "Overview");
    h.leaf("p", &[], RULE);
    h.element("div", &[("class", "legend")], |h| {
        for verdict in Verdict::ALL {
            h.element("span", &[], |h| {
                h.leaf("b", &[("class", class(verdict))], verdict.sign());
                h.text(verdict.name());
            });
        }
    });
    let columns = ["#", "experiment", "claimed", "simulated", "emulated servers", "slowed disks", "verdict"]
        .map(Column::text);
    let caption = "How many claims have which verdict, and what was found: of few claims each value, of many the range. A claim \
                   holds if it agrees, or if more was found.";
    carded(h, caption, &columns, |h| {
        for section in &view.sections {
            h.element("tr", &[], |h| overview_row(h, section));
        }
    });
}

fn overview_row(h: &mut Html, section: &Section<'_>) {
    let experiment = section.experiment;
    h.element("th", &[("scope", "row")], |h| {
        h.leaf("a", &[("href", &format!("#{}", id(section)))], experiment.id);
    });
    h.element("td", &[("class", "words")], |h| {
        h.leaf("span", &[("class", "soft")], words::paper(experiment.paper));
        h.text(&format!(" {}", experiment.title));
    });
    h.leaf("td", &[("class", "words")], experiment.claimed);
    for place in Place::ALL {
        h.element("td", &[("class", "found")], |h| {
            let Some(verdicts) = section.verdicts(place) else {
                h.leaf("span", &[("class", "soft")], "–");
                return;
            };
            h.element("div", &[("class", "tally")], |h| {
                for (verdict, count) in words::tally(&verdicts) {
                    let title = format!("{count} {}", verdict.name());
                    h.leaf(
                        "span",
                        &[("class", class(verdict)), ("title", &title)],
                        &format!("{}\u{a0}{count}", verdict.sign()),
                    );
                }
            });
            h.leaf("div", &[("class", "small")], &section.values(place));
        });
    }
    h.leaf("td", &[("class", "words")], &section.verdict());
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "v agrees",
        Verdict::Larger => "v larger",
        Verdict::Smaller => "v smaller",
        Verdict::NoDifference => "v nothing",
        Verdict::Opposite => "v opposite",
        Verdict::NotRun => "v soft",
    }
}

fn experiment(h: &mut Html, section: &Section<'_>) {
    let experiment = section.experiment;
    h.element("section", &[("id", &id(section))], |h| {
        h.leaf("h2", &[], &words::heading(experiment));
        h.element("div", &[("class", "card")], |h| {
            h.element("dl", &[("class", "facts")], |h| {
                fact(h, "Published", experiment.setting);
                fact(h, "Claimed", experiment.claimed);
                for (place, runs) in &section.runs {
                    fact(h, &words::capital(words::place(*place)), runs);
                }
                for failure in &section.failures {
                    fact(h, "Failed", failure);
                }
            });
            section.charts.iter().for_each(|chart| figure(h, chart));
            claims(h, section);
            choices(h, section);
            if !section.explanation.is_empty() {
                h.element("div", &[("class", "why")], |h| prose::blocks(h, section.explanation));
            }
        });
    });
}

fn fact(h: &mut Html, name: &str, text: &str) {
    h.leaf("dt", &[], name);
    h.leaf("dd", &[], text);
}

fn figure(h: &mut Html, chart: &Chart<'_>) {
    h.element("figure", &[], |h| {
        h.element("figcaption", &[], |h| {
            h.leaf("b", &[], &chart.figure.title);
            h.text(": throughput, MiB/s; higher is better.");
        });
        legend(h, chart);
        h.element("div", &[("class", "panels")], |h| {
            for panel in &chart.panels {
                h.element("div", &[], |h| {
                    h.element("div", &[("class", "place")], |h| {
                        h.leaf("b", &[], &words::capital(words::place(panel.place)));
                        h.leaf("span", &[("class", "soft")], &format!(", {}", chart::unit(panel)));
                    });
                    h.element("div", &[("class", "framed")], |h| chart::panel(h, chart, panel));
                    h.leaf("div", &[("class", "axis")], &chart.figure.x.1);
                });
            }
        });
        numbers(h, chart);
    });
}

/// Writes how well the models chose, and where.
fn choices(h: &mut Html, section: &Section<'_>) {
    if section.choices.is_empty() {
        return;
    }
    let columns: Vec<Column<'_>> = words::CHOICE_COLUMNS
        .iter()
        .enumerate()
        .map(|(index, name)| if index < 3 { Column::text(name) } else { Column::number(name) })
        .collect();
    table(h, words::CHOICES, &columns, |h| {
        for table in &section.choices {
            for choice in &table.rows {
                h.element("tr", &[("class", if choice.group == "all" { "chosen" } else { "" })], |h| {
                    for (index, text) in words::choice_row(table.place, choice).iter().enumerate() {
                        h.leaf("td", &[("class", if index < 3 { "" } else { "n" })], text);
                    }
                });
            }
        }
    });
    h.leaf(
        "p",
        &[("class", "caption")],
        &format!("By size (from left to right) and processes (downwards): {}.", words::MAP),
    );
    h.element("div", &[("class", "maps")], |h| {
        section.choices.iter().flat_map(maps::of).for_each(|map| heat(h, section, &map));
    });
}

/// Writes a map as a colored table.
fn heat(h: &mut Html, section: &Section<'_>, map: &Map) {
    let title = format!("{}: {}", words::capital(words::place(map.place)), map.title);
    h.element("div", &[], |h| {
        h.leaf("h4", &[], &title);
        h.element(
            "div",
            &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", &title)],
            |h| {
                h.element("table", &[("class", "map")], |h| {
                    h.element("tr", &[], |h| {
                        h.leaf("th", &[("scope", "col"), ("class", "soft")], "processes");
                        map.sizes.iter().for_each(|size| h.leaf("th", &[("scope", "col")], size));
                    });
                    for (procs, spots) in map.procs.iter().zip(&map.spots) {
                        h.element("tr", &[], |h| {
                            h.leaf("th", &[("scope", "row")], procs);
                            spots.iter().for_each(|spot| spot_cell(h, section, spot.as_ref()));
                        });
                    }
                });
            },
        );
    });
}

fn spot_cell(h: &mut Html, section: &Section<'_>, spot: Option<&Spot>) {
    let Some(spot) = spot else { return h.leaf("td", &[("class", "soft")], "–") };
    let look = section.looks.iter().position(|scheme| *scheme == spot.best).unwrap_or(look::LOOKS - 1);
    let wrong = if spot.wrong.is_some() { " wrong" } else { "" };
    h.leaf("td", &[("class", &format!("b{}{wrong}", look % look::LOOKS))], &spot.text());
}

fn legend(h: &mut Html, chart: &Chart<'_>) {
    let bars = chart.panels.iter().any(|panel| chart::is_bars(chart, panel));
    h.element("div", &[("class", "legend")], |h| {
        for (scheme, look) in chart.figure.schemes.iter().zip(&chart.looks) {
            h.element("span", &[], |h| {
                let attributes = [("width", "26"), ("height", "14"), ("aria-hidden", "true")];
                h.element("svg", &attributes, |h| chart::sample(h, *look, bars));
                h.text(scheme);
            });
        }
    });
}

/// Writes the numbers of a drawing as an accessible table.
fn numbers(h: &mut Html, chart: &Chart<'_>) {
    h.element("details", &[], |h| {
        h.leaf("summary", &[], "The numbers");
        let mut columns = vec![Column::text("where"), Column::text(&chart.figure.x.1)];
        columns.extend(chart.figure.schemes.iter().map(|scheme| Column::number(scheme)));
        table(h, &format!("{}: MiB/s.", chart.figure.title), &columns, |h| {
            for panel in &chart.panels {
                for (index, x) in panel.x.iter().enumerate() {
                    h.element("tr", &[], |h| {
                        h.leaf("td", &[], words::place(panel.place));
                        h.leaf("td", &[], x);
                        for points in &panel.points {
                            let text = points[index].as_ref().map(|point| chart::rate(point.rate));
                            h.leaf("td", &[("class", "n")], text.as_deref().unwrap_or("–"));
                        }
                    });
                }
            }
        });
    });
}

fn claims(h: &mut Html, section: &Section<'_>) {
    if section.judgements.is_empty() {
        return;
    }
    let names = section.columns();
    let columns: Vec<Column<'_>> = names.iter().map(|name| Column::text(name)).collect();
    table(h, "What is claimed, and what was found.", &columns, |h| {
        for (index, judgement) in section.judgements.iter().enumerate() {
            h.element("tr", &[], |h| {
                let mut places = Place::ALL.into_iter();
                for (name, text) in names.iter().zip(section.claim_row(index)) {
                    let verdict = match *name {
                        "claim" | "claimed" | "bound" => None,
                        _ => places.next().map(|place| judgement.at(place).verdict),
                    };
                    h.element("td", &[], |h| match verdict {
                        None => h.text(&text),
                        Some(verdict) => {
                            h.leaf("span", &[("class", class(verdict)), ("title", verdict.name())], &text);
                        }
                    });
                }
            });
        }
    });
}
