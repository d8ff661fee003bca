//! The table of all candidates: expected time, measured time if there is one, and layout.

use maud::{Markup, html};

use super::bars::Bars;
use super::parts::{Table, soft};
use crate::results::Candidate;
use crate::units::{self, Clock};

/// Maximum number of rows, in addition to the choice and the present layout.
const ROWS: usize = 200;

const CAPTION_MEASURED: &str = "Expected and measured are wall-clock times, measured is the median of the runs; error is \
    (expected \u{2212} measured) / measured; overall cost is the papers' sum of all request costs, in process-seconds.";

const CAPTION_EXPECTED: &str = "Expected is wall-clock time; overall cost is the papers' sum of all request costs, in \
    process-seconds.";

/// Writes the table. If nothing was `measured` it lacks those columns and is folded, because it can
/// be long.
pub fn table(bars: &Bars<'_>, measured: bool) -> Markup {
    let costs = bars.candidates.iter().filter_map(|candidate| candidate.predicted_s);
    let cost_clock = Clock::up_to(costs.fold(0.0, f64::max));
    let is_choice = |candidate: &Candidate| candidate.name == bars.choice;
    let rows = bars.candidates.iter().enumerate();
    let rows = rows.filter(|(index, c)| *index < ROWS || is_choice(c) || c.name == bars.present);
    let caption = if measured { CAPTION_MEASURED } else { CAPTION_EXPECTED };
    let mut table = Table::new(caption, rows.map(|(_, candidate)| candidate))
        .mark(|c| is_choice(c))
        .head("Candidate", |c| bars.names(c))
        .aligned("expected", |c| bars.time(c.elapsed_s));
    if measured {
        table = with_measured(table, bars);
    }
    table = table.number("overall cost", |c| c.predicted_s, |s| cost_clock.print(s));
    if measured {
        table = table.text("bytes", |c| verified(c.verified.into_iter()));
    }
    table = table.text("layout", |c| html! { code { (c.layout) } });
    let count = bars.candidates.len();
    html! {
        details open=[measured.then_some("open")] {
            summary { "All numbers" }
            (table)
            @if count > ROWS {
                (soft(format_args!("The first {ROWS} of {} candidates.", units::count(count as u64))))
            }
        }
    }
}

fn with_measured<'a>(table: Table<&'a Candidate>, bars: &Bars<'_>) -> Table<&'a Candidate> {
    let clock = bars.clock();
    let present = bars.candidates.iter().find(|other| other.name == bars.present);
    let present_s = present.and_then(Candidate::median_s);
    let runs = |c: &Candidate| match c.range_s() {
        Some((least, most)) => format!("{} \u{2013} {}", clock.print(least), clock.print(most)),
        None => "\u{2013}".to_owned(),
    };
    table
        .aligned("measured", |c| bars.time(c.median_s()))
        .amount("runs", |c| c.measured_s.len() as u64, units::count)
        .aligned("from \u{2013} to", |c| runs(c))
        .number("error", |c| c.relative_error(), units::signed_percent)
        .number("speed-up", |c| Some(present_s? / c.median_s().filter(|&s| s > 0.0)?), units::factor)
}

/// Writes the result of comparing all bytes, for one or several candidates.
pub fn verified(verdicts: impl Iterator<Item = bool>) -> Markup {
    match verdicts.reduce(|all, right| all && right) {
        None => html! { span.soft { "not compared" } },
        Some(false) => html! { span.bad { "WRONG" } },
        Some(true) => html! { span.good { "verified" } },
    }
}
