//! Section that compares predictions with measurements: an overview of all workloads, and each with
//! its candidates.

use super::bars::Bars;
use super::candidates::{self, verified};
use super::table::{Column, amount, table};
use super::text::{anchor, fact, sentence};
use crate::Report;
use crate::html::Html;
use crate::results::{Candidate, Results, Workload};
use crate::units;

pub fn section(h: &mut Html, report: &Report<'_>, results: &Results) {
    if results.workloads.is_empty() {
        h.leaf("p", &[("class", "absent")], "The results file has no workload: nothing was measured.");
        return;
    }
    if results.workloads.len() > 1 {
        overview(h, results);
    }
    for (index, workload) in results.workloads.iter().enumerate() {
        card(h, report, workload, index);
    }
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
            for (index, workload) in results.workloads.iter().enumerate() {
                h.element("tr", &[], |h| overview_row(h, workload, index));
            }
        });
    });
}

fn overview_row(h: &mut Html, workload: &Workload, index: usize) {
    let present = workload.candidate(&workload.present);
    let choice = workload.candidate(&workload.choice);
    let clock = bars(workload).clock();
    let target = format!("#{}", anchor("workload", index));
    h.element("th", &[("scope", "row")], |h| h.leaf("a", &[("href", &target)], &workload.name));
    h.leaf("td", &[], &workload.present);
    amount(h, present.and_then(Candidate::median_s), |s| clock.print(s));
    h.leaf("td", &[], &workload.choice);
    amount(h, choice.and_then(|c| c.elapsed_s), |s| clock.print(s));
    amount(h, choice.and_then(Candidate::median_s), |s| clock.print(s));
    amount(h, workload.speed_up(), units::factor);
    h.leaf("td", &[], &against_best(workload));
    h.element("td", &[], |h| verified(h, workload.candidates.iter().filter_map(|c| c.verified)));
}

fn bars(workload: &Workload) -> Bars<'_> {
    Bars { candidates: &workload.candidates, choice: &workload.choice, present: &workload.present }
}

fn against_best(workload: &Workload) -> String {
    match workload.behind_best() {
        None => "not measured".to_owned(),
        Some((best, _)) if best.name == workload.choice => "is the fastest".to_owned(),
        Some((best, behind)) => format!("{} behind {}", units::signed_percent(behind), best.name),
    }
}

fn card(h: &mut Html, report: &Report<'_>, workload: &Workload, index: usize) {
    h.element("div", &[("class", "card"), ("id", &anchor("workload", index))], |h| {
        h.leaf("h3", &[], &workload.name);
        h.leaf("p", &[], &sentence(&workload.description));
        verdict(h, workload);
        let bars = bars(workload);
        bars.figure(h, "Wall-clock time of each layout");
        candidates::table(h, &bars, true);
        h.element("dl", &[("class", "facts")], |h| {
            fact(h, "Command", |h| h.leaf("code", &[], &workload.command));
            fact(h, "Processes", |h| h.text(&units::count(workload.processes.into())));
            fact(h, "Bytes per run", |h| h.text(&units::bytes(workload.bytes)));
            let plans: Vec<&str> = report.plans.iter().map(|view| view.name.as_str()).collect();
            let traces: Vec<&str> = report.activities.iter().map(|trace| trace.name.as_str()).collect();
            linked(h, "Plan", workload.plan.as_deref(), "plan", &plans);
            linked(h, "Trace", workload.trace.as_deref(), "trace", &traces);
            let complete = workload.trace_incomplete.as_deref();
            fact(h, "Trace planned from", |h| {
                let (class, text) = complete.map_or(("", "complete"), |why| ("bad", why));
                h.leaf("span", &[("class", class)], text);
            });
        });
    });
}

/// Writes a file that the workload names, linked to the section that shows it.
fn linked(h: &mut Html, name: &str, path: Option<&str>, kind: &str, shown: &[&str]) {
    let Some(path) = path else { return };
    let file = path.rsplit('/').next().unwrap_or(path);
    fact(h, name, |h| match shown.iter().position(|name| *name == file) {
        Some(index) => h.leaf("a", &[("href", &format!("#{}", anchor(kind, index)))], path),
        None => h.leaf("code", &[], path),
    });
}

fn verdict(h: &mut Html, workload: &Workload) {
    h.element("p", &[], |h| {
        h.text("Choice: ");
        h.leaf("b", &[], &workload.choice);
        match workload.speed_up() {
            _ if workload.choice == workload.present => h.text(", the present layout."),
            None => h.text(&format!(", instead of {}; not both were measured.", workload.present)),
            Some(speed_up) => {
                h.text(", measured ");
                h.leaf("b", &[], &units::factor(speed_up));
                h.text(&format!(" as fast as the present layout ({}).", workload.present));
            }
        }
        h.text(&format!(" {}", sentence(&workload.reason)));
    });
}
