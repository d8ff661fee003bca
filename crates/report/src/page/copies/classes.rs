//! Classes of requests, and the cost of one request on every copy.

use maud::{Markup, html};
use stripewise_plan::{Expected, RequestClass};

use super::super::bars::{BAR_END, Bar, bars};
use super::super::kinds::{op, order};
use super::super::parts::{Table, figure as figure_of, more, soft};
use crate::units::{self, short_seconds};

/// Number of classes drawn. The table lists more.
const DRAWN: usize = 6;
/// Maximum number of classes in the table.
const LISTED: usize = 100;
/// Fractions below this are not mentioned.
const NEGLIGIBLE: f64 = 0.0005;

/// Draws bars of the costs, class by class.
pub fn figure(expected: &Expected) -> Markup {
    if expected.classes.is_empty() {
        return Markup::default();
    }
    let text = match expected.cache {
        None => {
            "by the model that chooses at run time. Each kind of requests has a scale of its own; the copy that serves it is \
             marked."
        }
        Some(_) => {
            "by SLA's model, without the network. Each kind of requests has a scale of its own; the copy that its data are \
             cached in is marked."
        }
    };
    figure_of(
        "What a request costs on each copy",
        text,
        html! {
            div.bars.tight {
                @for class in expected.classes.iter().take(DRAWN) {
                    div.head { (name(class)) }
                    (costs(expected, class))
                }
            }
            (more(expected.classes.len().saturating_sub(DRAWN), "kinds, with fewer bytes, are in the table."))
        },
    )
}

fn costs(expected: &Expected, class: &RequestClass) -> Markup {
    let longest = class.cost_s.iter().copied().fold(0.0, f64::max);
    let serves = if class.critical.is_empty() { &class.served } else { &class.critical };
    let bar = |cost_s: f64| Bar {
        class: "expected",
        meaning: "",
        end: if longest > 0.0 { cost_s / longest * BAR_END } else { 0.0 },
        text: short_seconds(cost_s),
        range: None,
    };
    html! {
        @for (index, copy) in expected.copies.iter().enumerate() {
            @let share = serves[index];
            @let is_chosen = share > 0.5;
            div.chosen[is_chosen] {
                (copy.name)
                @if share > NEGLIGIBLE {
                    span.pill.chosen[is_chosen] {
                        (role(expected, index))
                        @if share <= 0.9995 { " " (units::percent(share)) }
                    }
                }
            }
            div.chosen[is_chosen] { (bars(&copy.name, &[bar(class.cost_s[index])])) }
        }
    }
}

/// Describes what a copy does for the requests that go there.
fn role(expected: &Expected, copy: usize) -> &'static str {
    match (&expected.cache, copy) {
        (None, _) => "serves",
        (Some(_), 0) => "not cached",
        (Some(cache), _) if cache.mode == "sla" => "gains most",
        (Some(_), _) => "cached here",
    }
}

/// Writes the table of all numbers.
pub fn table(expected: &Expected) -> Markup {
    let chosen = |class: &RequestClass| match expected.cache {
        None => by_copy(expected, &class.served),
        Some(_) => by_copy(expected, &class.critical),
    };
    let size = |class: &RequestClass| format!("{} of {}", op(class.op), units::bytes(class.request_bytes));
    let header = match &expected.cache {
        None => "served by",
        Some(cache) if cache.mode == "sla" => "gains most in",
        Some(_) => "cached in",
    };
    let rest = match expected.cache {
        Some(_) => {
            "; B: what it gains in the best layout of the cache; what B is above 0 of is critical; hits: what fits."
        }
        None => ".",
    };
    let caption = format!(
        "Kinds of requests, with p processes at a time and c of them on one node; seconds of one request on each copy{rest}"
    );
    let mut table = Table::new(caption, expected.classes.iter().take(LISTED))
        .head("Requests", |class| size(class))
        .text("order", |class| order(class.access))
        .amount("p", |class| u64::from(class.procs), units::count)
        .amount("c", |class| u64::from(class.procs_per_node), units::count)
        .amount("requests", |class| class.requests, units::count)
        .amount("bytes", |class| class.bytes, units::bytes);
    for (index, copy) in expected.copies.iter().enumerate() {
        table = table.amount(format!("on {}", copy.name), |class| class.cost_s[index], short_seconds);
    }
    if let Some(cache) = &expected.cache {
        let in_cache = |shares: &[f64]| shares.iter().skip(1).sum::<f64>();
        let signed = |seconds: f64| short_seconds(seconds).replace('-', "\u{2212}");
        table = table
            .amount("benefit B", |class| class.benefit_s(), signed)
            .amount(cache.taken(), |class| in_cache(&class.critical), units::percent)
            .amount("hits", |class| in_cache(&class.served), units::percent);
    }
    table = table.text(header, |class| chosen(class));
    html! {
        details {
            summary { "All kinds of requests in numbers" }
            (table)
            @if expected.classes.len() > LISTED {
                (soft(format_args!("The {LISTED} kinds with the most bytes, of {}.", expected.classes.len())))
            }
        }
    }
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
        op(class.op),
        units::bytes(class.request_bytes),
        order(class.access),
        units::counted(class.procs.into(), "process", "processes"),
    )
}
