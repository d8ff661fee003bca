//! Section on how the page was made: commands, machine, dates.

use maud::{Markup, html};

use super::parts::{Table, facts};
use crate::results::Results;
use crate::{Activity, Report, units};

pub fn section(report: &Report<'_>) -> Markup {
    let mut origins = vec![
        ("Report made", html! { (report.date) }),
        ("with", html! { code { (report.command) } }),
        ("by", html! { "stripewise " (report.version) }),
    ];
    origins.extend(report.plans.iter().map(|view| ("Plan", html! { code { (view.name) } })));
    origins.extend(report.activities.iter().map(|activity| ("Trace", trace(activity))));
    html! {
        div.card {
            (facts(origins))
            @if let Some(results) = report.results { (measured(results)) }
        }
    }
}

fn trace(activity: &Activity) -> Markup {
    let start_s = activity.meta.start_unix_ns / 1_000_000_000;
    html! {
        code { (activity.name) }
        @if start_s > 0 { ", begun " (units::utc(start_s)) }
    }
}

fn measured(results: &Results) -> Markup {
    let machine = &results.machine;
    let cores = units::counted(machine.cores.into(), "processor", "processors");
    let table = Table::new("The storage that was measured.", &results.servers)
        .head("Tier", |servers| &servers.tier)
        .text("class", |servers| &servers.class)
        .amount("servers", |servers| u64::from(servers.count), units::count)
        .text("devices", |servers| if servers.emulated { "emulated" } else { "real" });
    html! {
        h4 { "Measurements" }
        (facts([
            ("Begun", html! { (results.date) }),
            ("with", html! { code { (results.command) } }),
            ("Machine", html! { (machine.host) }),
            ("Processor", html! { (machine.cpu) " (" (cores) ")" }),
            ("Memory", html! { (units::bytes(machine.memory_bytes)) }),
            ("System", html! { (machine.system) }),
        ]))
        (table)
    }
}
