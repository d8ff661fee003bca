//! Classes of requests, and the cost of one request on every copy.

use stripewise_model::{Access, Op};
use stripewise_plan::{Expected, ExpectedCache, RequestClass};

use super::super::bars::{BAR_END, BAR_PITCH};
use super::super::table::{Column, amount, table as table_of, whole};
use crate::draw;
use crate::html::Html;
use crate::units::{self, short_seconds};

/// Number of classes drawn. The table lists more.
const DRAWN: usize = 6;
/// Maximum number of classes in the table.
const LISTED: usize = 100;
/// Fractions below this are not mentioned.
const NEGLIGIBLE: f64 = 0.0005;

/// Draws bars of the costs, class by class.
pub fn figure(h: &mut Html, expected: &Expected) {
    if expected.classes.is_empty() {
        return;
    }
    h.element("figure", &[], |h| {
        h.element("figcaption", &[], |h| {
            h.leaf("b", &[], "What a request costs on each copy");
            h.text(match expected.cache {
                None => {
                    ": by the model that chooses at run time. Each kind of requests has a scale of its own; the copy that \
                     serves it is marked."
                }
                Some(_) => {
                    ": by SLA's model, without the network. Each kind of requests has a scale of its own; the copy that \
                     its data are cached in is marked."
                }
            });
        });
        h.element("div", &[("class", "bars tight")], |h| {
            for class in expected.classes.iter().take(DRAWN) {
                h.leaf("div", &[("class", "head")], &name(class));
                costs(h, expected, class);
            }
        });
        if expected.classes.len() > DRAWN {
            let more = expected.classes.len() - DRAWN;
            h.leaf("p", &[("class", "soft")], &format!("{more} more kinds, with fewer bytes, are in the table."));
        }
    });
}

fn costs(h: &mut Html, expected: &Expected, class: &RequestClass) {
    let longest = class.cost_s.iter().copied().fold(0.0, f64::max);
    let serves = if class.critical.is_empty() { &class.served } else { &class.critical };
    for (index, copy) in expected.copies.iter().enumerate() {
        let share = serves[index];
        let mark = if share > 0.5 { "chosen" } else { "" };
        h.element("div", &[("class", mark)], |h| {
            h.text(&copy.name);
            if share > NEGLIGIBLE {
                let word = match (&expected.cache, index) {
                    (None, _) => "serves",
                    (Some(_), 0) => "not cached",
                    (Some(cache), _) if cache.mode == "sla" => "gains most",
                    (Some(_), _) => "cached here",
                };
                let text =
                    if share > 0.9995 { word.to_owned() } else { format!("{word} {}", units::percent(share)) };
                h.leaf("span", &[("class", if mark.is_empty() { "pill" } else { "pill chosen" })], &text);
            }
        });
        h.element("div", &[("class", mark)], |h| {
            let text = short_seconds(class.cost_s[index]);
            draw::drawing(h, "one", BAR_PITCH as u32 - 2, &format!("{}: {text}", copy.name), |h| {
                let end = if longest > 0.0 { class.cost_s[index] / longest * BAR_END } else { 0.0 };
                draw::bar(h, "expected", (0.0, end), 1.0, end, &text);
            });
        });
    }
}

/// Writes the table of all numbers.
pub fn table(h: &mut Html, expected: &Expected) {
    let is_cache = expected.cache.is_some();
    let mut columns = vec![
        Column::text("Requests"),
        Column::text("order"),
        Column::number("p"),
        Column::number("c"),
        Column::number("requests"),
        Column::number("bytes"),
    ];
    let costs: Vec<String> = expected.copies.iter().map(|copy| format!("on {}", copy.name)).collect();
    columns.extend(costs.iter().map(|name| Column::number(name)));
    if is_cache {
        let taken = expected.cache.as_ref().map_or("", ExpectedCache::taken);
        columns.extend([Column::number("benefit B"), Column::number(taken), Column::number("hits")]);
    }
    columns.push(Column::text(match &expected.cache {
        None => "served by",
        Some(cache) if cache.mode == "sla" => "gains most in",
        Some(_) => "cached in",
    }));
    let mut caption = "Kinds of requests, with p processes at a time and c of them on one node; seconds of one request on each \
                       copy"
        .to_owned();
    caption += match is_cache {
        true => {
            "; B: what it gains in the best layout of the cache; what B is above 0 of is critical; hits: what fits."
        }
        false => ".",
    };
    h.element("details", &[], |h| {
        h.leaf("summary", &[], "All kinds of requests in numbers");
        table_of(h, &caption, &columns, |h| {
            for class in expected.classes.iter().take(LISTED) {
                h.element("tr", &[], |h| row(h, expected, class));
            }
        });
        if expected.classes.len() > LISTED {
            let text = format!("The {LISTED} kinds with the most bytes, of {}.", expected.classes.len());
            h.leaf("p", &[("class", "soft")], &text);
        }
    });
}

fn row(h: &mut Html, expected: &Expected, class: &RequestClass) {
    h.leaf("th", &[("scope", "row")], &format!("{} of {}", op_name(class), units::bytes(class.request_bytes)));
    h.leaf("td", &[], order(class));
    whole(h, class.procs.into(), units::count);
    whole(h, class.procs_per_node.into(), units::count);
    whole(h, class.requests, units::count);
    whole(h, class.bytes, units::bytes);
    for &cost_s in &class.cost_s {
        amount(h, Some(cost_s), short_seconds);
    }
    let chosen = if expected.cache.is_some() {
        amount(h, Some(class.benefit_s()), |s| short_seconds(s).replace('-', "\u{2212}"));
        let critical: f64 = class.critical.iter().skip(1).sum();
        amount(h, Some(critical), units::percent);
        amount(h, Some(class.served.iter().skip(1).sum()), units::percent);
        &class.critical
    } else {
        &class.served
    };
    h.leaf("td", &[], &by_copy(expected, chosen));
}

/// Formats fractions by copy: `1-DV`, or `original 60 %, 1-DV 40 %`.
fn by_copy(expected: &Expected, shares: &[f64]) -> String {
    let mut named: Vec<(&str, f64)> = (expected.copies.iter().zip(shares))
        .map(|(copy, &share)| (copy.name.as_str(), share))
        .filter(|(_, share)| *share > NEGLIGIBLE)
        .collect();
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    match named.as_slice() {
        [(name, _)] => (*name).to_owned(),
        several => {
            let parts = several.iter().map(|(name, share)| format!("{name} {}", units::percent(*share)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

fn name(class: &RequestClass) -> String {
    format!(
        "{} of {}, {}, {} at a time",
        op_name(class),
        units::bytes(class.request_bytes),
        order(class),
        units::counted(class.procs.into(), "process", "processes"),
    )
}

fn order(class: &RequestClass) -> &'static str {
    if class.access == Access::Sequential { "in order" } else { "not in order" }
}

fn op_name(class: &RequestClass) -> &'static str {
    match class.op {
        Op::Read => "read",
        Op::Write => "write",
    }
}
