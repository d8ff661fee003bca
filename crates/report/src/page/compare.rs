//! Section that compares a run before a change with one after it.

use super::table::{Column, amount, table};
use super::text::fact;
use crate::compare::{Moved, compare, elapsed_s};
use crate::html::Html;
use crate::{Activity, units};

pub fn section(h: &mut Html, before: &Activity, after: &Activity) {
    h.element("div", &[("class", "card")], |h| {
        let (was, is) = (elapsed_s(before), elapsed_s(after));
        h.element("dl", &[("class", "facts")], |h| {
            fact(h, "Before", |h| run(h, before, was));
            fact(h, "After", |h| run(h, after, is));
            if was > 0.0 && is > 0.0 {
                fact(h, "Speed-up", |h| h.leaf("b", &[], &units::factor(was / is)));
            }
        });
        if before.meta.command != after.meta.command {
            h.leaf("p", &[("class", "soft")], "The commands differ: what is compared may be different work.");
        }
        let columns = [
            Column::text("Files"),
            Column::text("phase"),
            Column::number("bytes before"),
            Column::number("after"),
            Column::number("time before"),
            Column::number("after"),
            Column::number("throughput before"),
            Column::number("after"),
            Column::number("speed-up"),
        ];
        let caption = "Phases of file groups: from the start of the first request to the end of the last.";
        table(h, caption, &columns, |h| {
            for row in compare(before, after) {
                h.element("tr", &[], |h| {
                    h.element("td", &[("class", "name")], |h| h.leaf("code", &[], &row.pattern));
                    h.leaf("td", &[], &row.phase);
                    pair(
                        h,
                        (row.before, row.after),
                        |m| Some(m.bytes as f64),
                        |bytes| units::bytes(bytes as u64),
                    );
                    pair(h, (row.before, row.after), |m| Some(m.seconds), units::seconds);
                    pair(h, (row.before, row.after), |m| m.rate(), units::bytes_per_s);
                    amount(h, row.speed_up(), units::factor);
                });
            }
        });
    });
}

/// Writes two cells: before and after.
fn pair(
    h: &mut Html,
    (before, after): (Option<Moved>, Option<Moved>),
    value: impl Fn(Moved) -> Option<f64>,
    text: impl Fn(f64) -> String,
) {
    amount(h, before.and_then(&value), &text);
    amount(h, after.and_then(&value), &text);
}

fn run(h: &mut Html, activity: &Activity, elapsed_s: f64) {
    h.leaf("code", &[], &activity.name);
    h.text(&format!(", {}: ", units::seconds(elapsed_s)));
    h.leaf("code", &[], &activity.meta.command.join(" "));
}
