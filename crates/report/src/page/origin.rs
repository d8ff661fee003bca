//! Section on how the page was made: commands, machine, dates.

use super::table::{Column, table, whole};
use super::text::fact;
use crate::Report;
use crate::html::Html;
use crate::results::Results;
use crate::units;

pub fn section(h: &mut Html, report: &Report<'_>) {
    h.element("div", &[("class", "card")], |h| {
        h.element("dl", &[("class", "facts")], |h| {
            fact(h, "Report made", |h| h.text(report.date));
            fact(h, "with", |h| h.leaf("code", &[], report.command));
            fact(h, "by", |h| h.text(&format!("stripewise {}", report.version)));
            for view in report.plans {
                fact(h, "Plan", |h| h.leaf("code", &[], &view.name));
            }
            for activity in report.activities {
                fact(h, "Trace", |h| {
                    h.leaf("code", &[], &activity.name);
                    if activity.meta.start_unix_ns > 0 {
                        let began = units::utc(activity.meta.start_unix_ns / 1_000_000_000);
                        h.text(&format!(", begun {began}"));
                    }
                });
            }
        });
        if let Some(results) = report.results {
            measured(h, results);
        }
    });
}

fn measured(h: &mut Html, results: &Results) {
    let machine = &results.machine;
    h.leaf("h4", &[], "Measurements");
    h.element("dl", &[("class", "facts")], |h| {
        fact(h, "Begun", |h| h.text(&results.date));
        fact(h, "with", |h| h.leaf("code", &[], &results.command));
        fact(h, "Machine", |h| h.text(&machine.host));
        fact(h, "Processor", |h| {
            let cores = units::counted(machine.cores.into(), "processor", "processors");
            h.text(&format!("{} ({cores})", machine.cpu));
        });
        fact(h, "Memory", |h| h.text(&units::bytes(machine.memory_bytes)));
        fact(h, "System", |h| h.text(&machine.system));
    });
    let columns =
        [Column::text("Tier"), Column::text("class"), Column::number("servers"), Column::text("devices")];
    table(h, "The storage that was measured.", &columns, |h| {
        for servers in &results.servers {
            h.element("tr", &[], |h| {
                h.leaf("th", &[("scope", "row")], &servers.tier);
                h.leaf("td", &[], &servers.class);
                whole(h, servers.count.into(), units::count);
                h.leaf("td", &[], if servers.emulated { "emulated" } else { "real" });
            });
        }
    });
}
