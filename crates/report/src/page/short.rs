//! Summary of the page: title, notices that readers must not miss, and the main numbers.

use crate::Report;
use crate::html::Html;
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
pub fn notices(h: &mut Html, report: &Report<'_>) {
    let tiers = emulated_tiers(report);
    if !tiers.is_empty() {
        notice(
            h,
            "Emulated devices",
            &format!(
                "the servers of {} were paced by the parameters in the cluster file, not by real devices. The times compare \
                 layouts under these parameters; they do not say how fast this machine is.",
                tiers.join(", ")
            ),
        );
    }
    for activity in report.activities {
        if let Some(failure) = activity.meta.failure() {
            notice(h, &format!("The program of trace {} failed", activity.name), &failure);
        }
    }
    for activity in report.activities.iter().filter(|activity| !activity.meta.incomplete.is_empty()) {
        notice(h, &format!("Incomplete trace {}", activity.name), &activity.meta.incomplete.join("; "));
    }
    for workload in report.results.iter().flat_map(|results| &results.workloads) {
        if let Some(why) = &workload.trace_incomplete {
            notice(h, &format!("Planned from an incomplete trace: {}", workload.name), why);
        }
        for candidate in workload.candidates.iter().filter(|candidate| candidate.verified == Some(false)) {
            let text = format!(
                "{} under {} did not give back the bytes that were written.",
                workload.name, candidate.name
            );
            notice(h, "Wrong bytes", &text);
        }
    }
}

fn notice(h: &mut Html, title: &str, text: &str) {
    h.element("div", &[("class", "notice"), ("role", "note")], |h| {
        h.element("p", &[], |h| {
            h.leaf("b", &[], title);
            h.text(": ");
            h.text(text);
        });
    });
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
pub fn tiles(h: &mut Html, report: &Report<'_>) {
    h.element("div", &[("class", "tiles")], |h| {
        if let Some(results) = report.results {
            result_tiles(h, results);
        }
        trace_tiles(h, report);
    });
}

fn tile(h: &mut Html, value: &str, meaning: &str) {
    h.element("div", &[("class", "tile")], |h| {
        h.leaf("b", &[], value);
        h.leaf("span", &[], meaning);
    });
}

fn result_tiles(h: &mut Html, results: &Results) {
    let mut speed_ups: Vec<f64> = results.workloads.iter().filter_map(Workload::speed_up).collect();
    speed_ups.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (speed_ups.first(), speed_ups.last()) {
        let value = match (units::factor(*least), units::factor(*most)) {
            (least, most) if least == most => most,
            (least, most) => format!("{} \u{2013} {most}", least.trim_end_matches('×')),
        };
        tile(h, &value, "speed-up over the present layout, measured");
    }
    let behind: Vec<f64> =
        results.workloads.iter().filter_map(Workload::behind_best).map(|(_, behind)| behind).collect();
    if !behind.is_empty() {
        let close = behind.iter().filter(|&&behind| behind <= CLOSE).count();
        let meaning = "workloads where the chosen layout is the fastest measured, or within 5 % of it";
        tile(h, &format!("{close} of {}", behind.len()), meaning);
    }
    let verdicts: Vec<bool> =
        results.workloads.iter().flat_map(|w| &w.candidates).filter_map(|c| c.verified).collect();
    if !verdicts.is_empty() {
        let right = verdicts.iter().filter(|&&right| right).count();
        tile(h, &format!("{right} of {}", verdicts.len()), "layouts gave back every byte as written");
    }
}

fn trace_tiles(h: &mut Html, report: &Report<'_>) {
    let groups = || report.activities.iter().flat_map(|activity| &activity.summary.groups);
    if groups().next().is_none() {
        return;
    }
    let read: u64 = groups().map(|group| group.read.bytes).sum();
    let written: u64 = groups().map(|group| group.write.bytes).sum();
    let requests: u64 = groups().map(|group| group.read.requests + group.write.requests).sum();
    let files: usize = report.activities.iter().map(|activity| activity.summary.files.len()).sum();
    tile(h, &units::bytes(read), "read in the trace");
    tile(h, &units::bytes(written), "written in the trace");
    let files = units::counted(files as u64, "file", "files");
    tile(h, &units::count(requests), &format!("reads and writes of {files}"));
}
