//! Section that compares predictions with measurements: an overview of all workloads, and each with
//! its candidates.

use maud::{Markup, html};

use super::bars::Bars;
use super::candidates::{self, verified};
use super::parts::{Table, anchor, facts, sentence};
use crate::results::{Candidate, Workload};
use crate::{Report, units};

pub fn section(report: &Report<'_>) -> Markup {
    let workloads = report.results.map_or(&[][..], |results| &results.workloads);
    html! {
        @if workloads.is_empty() {
            p.absent { "The results file has no workload: nothing was measured." }
        }
        @if workloads.len() > 1 { (overview(workloads)) }
        @for (index, workload) in workloads.iter().enumerate() { (card(report, workload, index)) }
    }
}

fn overview(workloads: &[Workload]) -> Markup {
    let caption = "Median wall-clock time of the runs of each workload.";
    let table = Table::new(caption, workloads.iter().enumerate())
        .head("Workload", |(index, w)| {
            html! { a href={ "#" (anchor("workload", *index)) } { (w.name) } }
        })
        .text("Present layout", |(_, w)| &w.present)
        .aligned("measured", |(_, w)| bars(w).time(measured(w, &w.present)))
        .text("Chosen layout", |(_, w)| &w.choice)
        .aligned("expected", |(_, w)| bars(w).time(w.candidate(&w.choice).and_then(|c| c.elapsed_s)))
        .aligned("measured", |(_, w)| bars(w).time(measured(w, &w.choice)))
        .number("Speed-up", |(_, w)| w.speed_up(), units::factor)
        .text("Against the fastest", |(_, w)| against_best(w))
        .text("Bytes", |(_, w)| verified(w.candidates.iter().filter_map(|c| c.verified)));
    html! {
        div.card {
            h3 { "All workloads" }
            (table)
        }
    }
}

fn measured(workload: &Workload, candidate: &str) -> Option<f64> {
    workload.candidate(candidate).and_then(Candidate::median_s)
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

fn card(report: &Report<'_>, workload: &Workload, index: usize) -> Markup {
    let bars = bars(workload);
    let plans: Vec<&str> = report.plans.iter().map(|view| view.name.as_str()).collect();
    let traces: Vec<&str> = report.activities.iter().map(|trace| trace.name.as_str()).collect();
    let plan = workload.plan.iter().map(|path| ("Plan", linked(path, "plan", &plans)));
    let trace = workload.trace.iter().map(|path| ("Trace", linked(path, "trace", &traces)));
    let planned_from = match &workload.trace_incomplete {
        None => html! { span { "complete" } },
        Some(why) => html! { span.bad { (why) } },
    };
    let run = [
        ("Command", html! { code { (workload.command) } }),
        ("Processes", html! { (units::count(workload.processes.into())) }),
        ("Bytes per run", html! { (units::bytes(workload.bytes)) }),
    ];
    html! {
        div.card id=(anchor("workload", index)) {
            h3 { (workload.name) }
            p { (sentence(&workload.description)) }
            (verdict(workload))
            (bars.figure("Wall-clock time of each layout"))
            (candidates::table(&bars, true))
            (facts(run.into_iter().chain(plan).chain(trace).chain([("Trace planned from", planned_from)])))
        }
    }
}

/// Writes a file that the workload names, linked to the section that shows it.
fn linked(path: &str, kind: &str, shown: &[&str]) -> Markup {
    let file = path.rsplit('/').next().unwrap_or(path);
    match shown.iter().position(|name| *name == file) {
        Some(index) => html! { a href={ "#" (anchor(kind, index)) } { (path) } },
        None => html! { code { (path) } },
    }
}

fn verdict(workload: &Workload) -> Markup {
    html! {
        p {
            "Choice: " b { (workload.choice) }
            @match workload.speed_up() {
                _ if workload.choice == workload.present => ", the present layout.",
                None => { ", instead of " (workload.present) "; not both were measured." }
                Some(speed_up) => {
                    ", measured " b { (units::factor(speed_up)) }
                    " as fast as the present layout (" (workload.present) ")."
                }
            }
            " " (sentence(&workload.reason))
        }
    }
}
