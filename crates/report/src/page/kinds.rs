//! The model of the present layout held against the trace, by kind of request.

use maud::{Markup, html};
use stripewise_model::{Access, Op};
use stripewise_plan::{Compared, KindTimes};

use super::parts::{Table, more};
use crate::units::{self, Clock};

/// Maximum number of kinds.
const LISTED: usize = 20;

const CAPTION: &str = "The present layout, in the trace and in the model: seconds that a process waits for its requests in one \
    run, with p processes at a time. What memory served is left out. Writes of the model include what syncs and closes \
    wait for.";

/// Writes the table, those with the most bytes first; folded, because few need it.
pub fn table(compared: &Compared) -> Markup {
    let mut kinds: Vec<&KindTimes> = compared.kinds.iter().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.bytes));
    let longest_s = kinds.iter().map(|kind| kind.traced_s.max(kind.model_s)).fold(0.0, f64::max);
    let clock = Clock::up_to(longest_s.max(compared.flush_s));
    let hidden = kinds.len().saturating_sub(LISTED);
    let table = Table::new(CAPTION, kinds.into_iter().take(LISTED))
        .head("Requests", |kind| name(kind))
        .amount("p", |kind| u64::from(kind.procs), units::count)
        .amount("requests", |kind| kind.requests, units::count)
        .amount("bytes", |kind| kind.bytes, units::bytes)
        .number("traced", |kind| Some(kind.traced_s), |s| clock.print(s))
        .number("model", |kind| Some(kind.model_s), |s| clock.print(s));
    html! {
        details {
            summary { "The model against the trace" }
            (table)
            (more(hidden, "kinds, with fewer bytes, are not listed."))
            @if compared.flush_s > 0.0 { p { "Syncs and closes: " (clock.print(compared.flush_s)) " in the trace." } }
        }
    }
}

fn name(kind: &KindTimes) -> String {
    let calls = if kind.collective { ", collective" } else { "" };
    let bytes = units::bytes(kind.bytes / kind.requests.max(1));
    format!("{} of {bytes}, {}{calls}", op(kind.op), order(kind.access))
}

pub fn order(access: Access) -> &'static str {
    if access == Access::Sequential { "in order" } else { "not in order" }
}

pub fn op(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}
