//! Section that compares a run before a change with one after it.

use maud::{Markup, html};

use super::parts::{Table, facts, soft};
use crate::compare::{Moved, compare, elapsed_s};
use crate::{Activity, Report, units};

pub fn section(report: &Report<'_>) -> Markup {
    let (Some(before), Some(after)) = (report.before, report.activities.first()) else {
        return Markup::default();
    };
    let (was, is) = (elapsed_s(before), elapsed_s(after));
    let speed_up = (was > 0.0 && is > 0.0).then(|| ("Speed-up", html! { b { (units::factor(was / is)) } }));
    let caption = "Phases of file groups: from the start of the first request to the end of the last.";
    let bytes = |moved: Option<Moved>| moved.map(|moved| moved.bytes);
    let time = |moved: Option<Moved>| moved.map(|moved| moved.seconds);
    let rate = |moved: Option<Moved>| moved.and_then(|moved| moved.rate());
    let rows = compare(before, after);
    let table = Table::new(caption, &rows)
        .name("Files", |row| &row.pattern)
        .text("phase", |row| &row.phase)
        .number("bytes before", |row| bytes(row.before), units::bytes)
        .number("after", |row| bytes(row.after), units::bytes)
        .number("time before", |row| time(row.before), units::seconds)
        .number("after", |row| time(row.after), units::seconds)
        .number("throughput before", |row| rate(row.before), units::bytes_per_s)
        .number("after", |row| rate(row.after), units::bytes_per_s)
        .number("speed-up", |row| row.speed_up(), units::factor);
    html! {
        div.card {
            (facts([("Before", run(before, was)), ("After", run(after, is))].into_iter().chain(speed_up)))
            @if before.meta.command != after.meta.command {
                (soft("The commands differ: what is compared may be different work."))
            }
            (table)
        }
    }
}

fn run(activity: &Activity, elapsed_s: f64) -> Markup {
    html! {
        code { (activity.name) } ", " (units::seconds(elapsed_s)) ": "
        code { (activity.meta.command.join(" ")) }
    }
}
