//! Predicted against measured: the overview of all workloads, and each with its candidates.

use super::bars::Bars;
use super::table::{Column, amount, table, whole};
use crate::html::Html;
use crate::results::{Candidate, Results, Workload};
use crate::units::{self, Clock};

pub fn section(h: &mut Html, results: &Results) {
    if results.workloads.is_empty() {
        h.leaf("p", &[("class", "absent")], "The results file has no workload: nothing was measured.");
        return;
    }
    if results.workloads.len() > 1 {
        overview(h, results);
    }
    for workload in &results.workloads {
        card(h, workload);
    }
}

/// How much faster the choice ran than the present layout; `None` where one of them was not measured.
pub fn speed_up(workload: &Workload) -> Option<f64> {
    let measured = |name: &str| workload.candidate(name).and_then(Candidate::median_s);
    let choice = measured(&workload.choice).filter(|&seconds| seconds > 0.0)?;
    Some(measured(&workload.present)? / choice)
}

/// The fastest measured candidate, and how much longer the choice took (0.05: 5 %).
pub fn behind_best(workload: &Workload) -> Option<(&Candidate, f64)> {
    let measured = workload.candidates.iter().filter_map(|c| Some((c, c.median_s()?)));
    let (best, best_s) = measured.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let choice = workload.candidate(&workload.choice)?.median_s()?;
    (best_s > 0.0).then(|| (best, choice / best_s - 1.0))
}

fn overview(h: &mut Html, results: &Results) {
    let columns = [
        Column::text("Workload"),
        Column::text("Present layout"),
        Column::number("measured"),
        Column::text("Chosen layout"),
        Column::number("expected"),
        Column::number("measured"),
        Column::number("Speed-up"),
        Column::text("Against the fastest"),
        Column::text("Bytes"),
    ];
    h.element("div", &[("class", "card")], |h| {
        h.leaf("h3", &[], "All workloads");
        table(h, "Median wall-clock time of the runs of each workload.", &columns, |h| {
            for workload in &results.workloads {
                h.element("tr", &[], |h| overview_row(h, workload));
            }
        });
    });
}

fn overview_row(h: &mut Html, workload: &Workload) {
    let present = workload.candidate(&workload.present);
    let choice = workload.candidate(&workload.choice);
    let clock = bars(workload).clock();
    h.leaf("th", &[("scope", "row")], &workload.name);
    h.leaf("td", &[], &workload.present);
    amount(h, present.and_then(Candidate::median_s), |s| clock.print(s));
    h.leaf("td", &[], &workload.choice);
    amount(h, choice.and_then(|c| c.elapsed_s), |s| clock.print(s));
    amount(h, choice.and_then(Candidate::median_s), |s| clock.print(s));
    amount(h, speed_up(workload), units::factor);
    h.leaf("td", &[], &against_best(workload));
    h.element("td", &[], |h| verified(h, workload.candidates.iter().filter_map(|c| c.verified)));
}

fn bars(workload: &Workload) -> Bars<'_> {
    Bars { candidates: &workload.candidates, choice: &workload.choice, present: &workload.present }
}

fn against_best(workload: &Workload) -> String {
    match behind_best(workload) {
        None => "not measured".to_owned(),
        Some((best, _)) if best.name == workload.choice => "is the fastest".to_owned(),
        Some((best, behind)) => format!("{} behind {}", units::signed_percent(behind), best.name),
    }
}

/// What the comparison of all bytes said, for one or several candidates.
fn verified(h: &mut Html, verdicts: impl Iterator<Item = bool>) {
    let verdicts: Vec<bool> = verdicts.collect();
    match (verdicts.is_empty(), verdicts.contains(&false)) {
        (true, _) => h.leaf("span", &[("class", "soft")], "not compared"),
        (_, true) => h.leaf("span", &[("class", "bad")], "WRONG"),
        _ => h.leaf("span", &[("class", "good")], "verified"),
    }
}

fn card(h: &mut Html, workload: &Workload) {
    h.element("div", &[("class", "card")], |h| {
        h.leaf("h3", &[], &workload.name);
        h.leaf("p", &[], &workload.description);
        verdict(h, workload);
        let bars = bars(workload);
        bars.figure(h, "Wall-clock time of each layout");
        candidates(h, workload, &bars);
        h.element("dl", &[("class", "facts")], |h| {
            fact(h, "Command", |h| h.leaf("code", &[], &workload.command));
            fact(h, "Processes", |h| h.text(&units::count(workload.processes.into())));
            fact(h, "Bytes per run", |h| h.text(&units::bytes(workload.bytes)));
            let complete = workload.trace_incomplete.as_deref();
            fact(h, "Trace planned from", |h| {
                let (class, text) = complete.map_or(("", "complete"), |why| ("bad", why));
                h.leaf("span", &[("class", class)], text);
            });
        });
    });
}

pub(super) fn fact(h: &mut Html, name: &str, value: impl FnOnce(&mut Html)) {
    h.leaf("dt", &[], name);
    h.element("dd", &[], value);
}

fn verdict(h: &mut Html, workload: &Workload) {
    h.element("p", &[], |h| {
        h.text("Choice: ");
        h.leaf("b", &[], &workload.choice);
        match speed_up(workload) {
            _ if workload.choice == workload.present => h.text(", the present layout."),
            None => h.text(&format!(", instead of {}; not both were measured.", workload.present)),
            Some(speed_up) => {
                h.text(", measured ");
                h.leaf("b", &[], &units::factor(speed_up));
                h.text(&format!(" as fast as the present layout ({}).", workload.present));
            }
        }
        h.text(&format!(" {}", workload.reason));
    });
}

fn candidates(h: &mut Html, workload: &Workload, bars: &Bars<'_>) {
    let columns = [
        Column::text("Candidate"),
        Column::number("expected"),
        Column::number("measured"),
        Column::number("runs"),
        Column::number("from \u{2013} to"),
        Column::number("error"),
        Column::number("speed-up"),
        Column::number("overall cost"),
        Column::text("bytes"),
        Column::text("layout"),
    ];
    let caption = "Expected and measured are wall-clock seconds; error is (expected \u{2212} measured) / measured; overall \
                   cost is the papers' sum of all request costs, in process-seconds.";
    let present = workload.candidate(&workload.present).and_then(Candidate::median_s);
    let costs = workload.candidates.iter().filter_map(|candidate| candidate.predicted_s);
    let clocks = (bars.clock(), Clock::up_to(costs.fold(0.0, f64::max)));
    h.element("details", &[("open", "open")], |h| {
        h.leaf("summary", &[], "All numbers");
        table(h, caption, &columns, |h| {
            for candidate in &workload.candidates {
                let class = if candidate.name == workload.choice { "chosen" } else { "" };
                h.element("tr", &[("class", class)], |h| {
                    h.element("th", &[("scope", "row")], |h| bars.names(h, candidate));
                    candidate_cells(h, candidate, present, clocks);
                });
            }
        });
    });
}

fn candidate_cells(h: &mut Html, candidate: &Candidate, present_s: Option<f64>, (clock, cost): (Clock, Clock)) {
    let median = candidate.median_s();
    amount(h, candidate.elapsed_s, |s| clock.print(s));
    amount(h, median, |s| clock.print(s));
    whole(h, candidate.measured_s.len() as u64, units::count);
    h.leaf("td", &[("class", "n")], &range_of_runs(candidate, clock));
    amount(h, candidate.relative_error(), units::signed_percent);
    let speed_up = median.filter(|&seconds| seconds > 0.0).and_then(|seconds| Some(present_s? / seconds));
    amount(h, speed_up, units::factor);
    amount(h, candidate.predicted_s, |s| cost.print(s));
    h.element("td", &[], |h| verified(h, candidate.verified.into_iter()));
    h.element("td", &[], |h| h.leaf("code", &[], &candidate.layout));
}

fn range_of_runs(candidate: &Candidate, clock: Clock) -> String {
    let least = candidate.measured_s.iter().copied().reduce(f64::min);
    let most = candidate.measured_s.iter().copied().reduce(f64::max);
    match (least, most) {
        (Some(least), Some(most)) => format!("{} \u{2013} {}", clock.print(least), clock.print(most)),
        _ => "\u{2013}".to_owned(),
    }
}
