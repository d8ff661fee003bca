//! The table of all candidates: expected time, measured time if there is one, and layout.

use super::bars::Bars;
use super::table::{Column, amount, table as table_of, whole};
use crate::html::Html;
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
pub fn table(h: &mut Html, bars: &Bars<'_>, measured: bool) {
    let mut columns = vec![Column::text("Candidate"), Column::number("expected")];
    if measured {
        columns.extend(["measured", "runs", "from \u{2013} to", "error", "speed-up"].map(Column::number));
    }
    columns.push(Column::number("overall cost"));
    if measured {
        columns.push(Column::text("bytes"));
    }
    columns.push(Column::text("layout"));
    let costs = bars.candidates.iter().filter_map(|candidate| candidate.predicted_s);
    let cost_clock = Clock::up_to(costs.fold(0.0, f64::max));
    let open: &[(&str, &str)] = if measured { &[("open", "open")] } else { &[] };
    h.element("details", open, |h| {
        h.leaf("summary", &[], "All numbers");
        table_of(h, if measured { CAPTION_MEASURED } else { CAPTION_EXPECTED }, &columns, |h| {
            for (index, candidate) in bars.candidates.iter().enumerate() {
                if index < ROWS || candidate.name == bars.choice || candidate.name == bars.present {
                    row(h, bars, candidate, cost_clock, measured);
                }
            }
        });
        if bars.candidates.len() > ROWS {
            let text =
                format!("The first {ROWS} of {} candidates.", units::count(bars.candidates.len() as u64));
            h.leaf("p", &[("class", "soft")], &text);
        }
    });
}

fn row(h: &mut Html, bars: &Bars<'_>, candidate: &Candidate, cost_clock: Clock, measured: bool) {
    let clock = bars.clock();
    let class = if candidate.name == bars.choice { "chosen" } else { "" };
    h.element("tr", &[("class", class)], |h| {
        h.element("th", &[("scope", "row")], |h| bars.names(h, candidate));
        amount(h, candidate.elapsed_s, |s| clock.print(s));
        if measured {
            measured_cells(h, bars, candidate, clock);
        }
        amount(h, candidate.predicted_s, |s| cost_clock.print(s));
        if measured {
            h.element("td", &[], |h| verified(h, candidate.verified.into_iter()));
        }
        h.element("td", &[], |h| h.leaf("code", &[], &candidate.layout));
    });
}

fn measured_cells(h: &mut Html, bars: &Bars<'_>, candidate: &Candidate, clock: Clock) {
    let median = candidate.median_s();
    amount(h, median, |s| clock.print(s));
    whole(h, candidate.measured_s.len() as u64, units::count);
    h.leaf("td", &[("class", "n")], &range_of_runs(candidate, clock));
    amount(h, candidate.relative_error(), units::signed_percent);
    let present = bars.candidates.iter().find(|other| other.name == bars.present);
    let present_s = present.and_then(Candidate::median_s);
    let speed_up = median.filter(|&seconds| seconds > 0.0).and_then(|seconds| Some(present_s? / seconds));
    amount(h, speed_up, units::factor);
}

fn range_of_runs(candidate: &Candidate, clock: Clock) -> String {
    let least = candidate.measured_s.iter().copied().reduce(f64::min);
    let most = candidate.measured_s.iter().copied().reduce(f64::max);
    match (least, most) {
        (Some(least), Some(most)) => format!("{} \u{2013} {}", clock.print(least), clock.print(most)),
        _ => "\u{2013}".to_owned(),
    }
}

/// Writes the result of comparing all bytes, for one or several candidates.
pub fn verified(h: &mut Html, verdicts: impl Iterator<Item = bool>) {
    let verdicts: Vec<bool> = verdicts.collect();
    match (verdicts.is_empty(), verdicts.contains(&false)) {
        (true, _) => h.leaf("span", &[("class", "soft")], "not compared"),
        (_, true) => h.leaf("span", &[("class", "bad")], "WRONG"),
        _ => h.leaf("span", &[("class", "good")], "verified"),
    }
}
