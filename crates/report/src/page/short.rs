//! Summary of the page: title, notices that readers must not miss, and the main numbers.

use maud::{Markup, html};

use crate::Report;
use crate::results::{Results, Workload};
use crate::units;

/// A choice within this fraction of the fastest counts as good. Smaller differences are noise on
/// most machines.
const CLOSE: f64 = 0.05;

/// Returns the page's title: the command that was traced or measured.
pub fn title(report: &Report<'_>) -> String {
    let traced = report.activities.first().map(|activity| activity.meta.command.join(" "));
    match (report.results, report.activities.len(), traced) {
        (Some(results), ..) => format!("I/O layout report: {}", results.command),
        (None, 1, Some(command)) if !command.is_empty() => format!("I/O layout report: {command}"),
        _ => "I/O layout report".to_owned(),
    }
}

/// Writes notices about emulated devices, incomplete traces and wrong bytes.
pub fn notices(report: &Report<'_>) -> Markup {
    html! {
        @for (title, text) in all_notices(report) {
            div.notice role="note" { p { b { (title) } ": " (text) } }
        }
    }
}

fn all_notices(report: &Report<'_>) -> Vec<(String, String)> {
    let mut notices = Vec::new();
    let tiers = emulated_tiers(report);
    if !tiers.is_empty() {
        let text = format!(
            "the servers of {} were paced by the parameters in the cluster file, not by real devices. The times compare \
             layouts under these parameters; they do not say how fast this machine is.",
            tiers.join(", ")
        );
        notices.push(("Emulated devices".to_owned(), text));
    }
    for activity in report.activities {
        if let Some(failure) = activity.meta.failure() {
            notices.push((format!("The program of trace {} failed", activity.name), failure));
        }
    }
    for activity in report.activities.iter().filter(|activity| !activity.meta.incomplete.is_empty()) {
        notices.push((format!("Incomplete trace {}", activity.name), activity.meta.incomplete.join("; ")));
    }
    for workload in report.results.iter().flat_map(|results| &results.workloads) {
        let name = &workload.name;
        if let Some(why) = &workload.trace_incomplete {
            notices.push((format!("Planned from an incomplete trace: {name}"), why.clone()));
        }
        for candidate in workload.candidates.iter().filter(|candidate| candidate.verified == Some(false)) {
            let text =
                format!("{name} under {} did not give back the bytes that were written.", candidate.name);
            notices.push(("Wrong bytes".to_owned(), text));
        }
    }
    notices
}

/// Returns the names of the emulated tiers of all plans and results, without duplicates.
fn emulated_tiers(report: &Report<'_>) -> Vec<String> {
    let planned = report.plans.iter().flat_map(|view| &view.plan.cluster.tiers);
    let planned = planned.filter(|tier| tier.emulate).map(|tier| &tier.name);
    let measured = report.results.iter().flat_map(|results| &results.servers);
    let measured = measured.filter(|servers| servers.emulated).map(|servers| &servers.tier);
    let mut names: Vec<String> = Vec::new();
    for name in measured.chain(planned) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Writes the main numbers.
pub fn tiles(report: &Report<'_>) -> Markup {
    let results = report.results.map(result_tiles).unwrap_or_default();
    html! {
        div.tiles {
            @for (value, meaning) in results.into_iter().chain(trace_tiles(report)) {
                div.tile { b { (value) } span { (meaning) } }
            }
        }
    }
}

/// Returns values and their meanings.
fn result_tiles(results: &Results) -> Vec<(String, String)> {
    let mut tiles = Vec::new();
    let mut speed_ups: Vec<f64> = results.workloads.iter().filter_map(Workload::speed_up).collect();
    speed_ups.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (speed_ups.first(), speed_ups.last()) {
        let value = match (units::factor(*least), units::factor(*most)) {
            (least, most) if least == most => most,
            (least, most) => format!("{} \u{2013} {most}", least.trim_end_matches('×')),
        };
        tiles.push((value, "speed-up over the present layout, measured".to_owned()));
    }
    let behind: Vec<f64> =
        results.workloads.iter().filter_map(Workload::behind_best).map(|(_, behind)| behind).collect();
    let verdicts: Vec<bool> =
        results.workloads.iter().flat_map(|w| &w.candidates).filter_map(|c| c.verified).collect();
    let close = behind.iter().filter(|&&behind| behind <= CLOSE).count();
    let right = verdicts.iter().filter(|&&right| right).count();
    let fast = "workloads where the chosen layout is the fastest measured, or within 5 % of it";
    for (count, all, meaning) in
        [(close, behind.len(), fast), (right, verdicts.len(), "layouts gave back every byte as written")]
    {
        if all > 0 {
            tiles.push((format!("{count} of {all}"), meaning.to_owned()));
        }
    }
    tiles
}

fn trace_tiles(report: &Report<'_>) -> Vec<(String, String)> {
    let groups = || report.activities.iter().flat_map(|activity| &activity.summary.groups);
    if groups().next().is_none() {
        return Vec::new();
    }
    let read: u64 = groups().map(|group| group.read.bytes).sum();
    let written: u64 = groups().map(|group| group.write.bytes).sum();
    let requests: u64 = groups().map(|group| group.read.requests + group.write.requests).sum();
    let files: u64 = report.activities.iter().map(|activity| activity.summary.file_count).sum();
    let files = units::counted(files, "file", "files");
    vec![
        (units::bytes(read), "read in the trace".to_owned()),
        (units::bytes(written), "written in the trace".to_owned()),
        (units::count(requests), format!("reads and writes of {files}")),
    ]
}
