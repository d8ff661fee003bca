//! Text output of `plan` for files with several copies: their layouts, the cost of a request on
//! each copy, and the copy that serves it.

use comfy_table::Table;
use stripewise_plan::{Decision, Expected, RequestClass};

use super::Planned;
use super::table::{kind, layouts};
use crate::output;

/// Maximum number of request classes in the table.
const CLASSES_MAX: usize = 8;
/// Fractions below this are not printed.
const NEGLIGIBLE: f64 = 0.0005;

/// Prints the copies planned for the files; nothing if the files get a single copy.
pub fn print(planned: &Planned, decision: &Decision) {
    let chosen = &decision.chosen().candidate;
    let (false, false, Some(expected)) = (decision.keep, chosen.copies().is_empty(), &decision.expected) else {
        return;
    };
    let original = ("original", &chosen.layouts);
    let copies = chosen.copies().iter().map(|copy| (copy.name.as_str(), &copy.layouts));
    for (name, of_copy) in std::iter::once(original).chain(copies) {
        println!("  copy {name}: {}", layouts(planned, of_copy));
    }
    println!("{}", table(expected));
}

fn table(expected: &Expected) -> Table {
    let is_cache = expected.cache.is_some();
    let mut header = vec!["  seconds of one request".to_owned(), "p".to_owned()];
    header.extend(expected.copies.iter().map(|copy| copy.name.clone()));
    let last = match &expected.cache {
        None => &["served by"][..],
        Some(cache) if cache.mode == "sla" => &["gains most in", "hits"],
        Some(_) => &["cached in", "hits"],
    };
    header.extend(last.iter().map(|&name| name.to_owned()));
    // The column behind the costs names copies.
    let numbers: Vec<_> = (1..header.len()).filter(|&column| column != 2 + expected.copies.len()).collect();
    let mut table = output::table(header, numbers);
    for class in expected.classes.iter().take(CLASSES_MAX) {
        table.add_row(row(expected, class, is_cache));
    }
    let more = expected.classes.len().saturating_sub(CLASSES_MAX);
    if more > 0 {
        table.add_row([format!("  ... and {more} more (--json shows all)")]);
    }
    table
}

fn row(expected: &Expected, class: &RequestClass, is_cache: bool) -> Vec<String> {
    let kind = kind(class.op, class.access, class.request_bytes);
    let mut row = vec![format!("  {kind}"), class.procs.to_string()];
    row.extend(class.cost_s.iter().map(|cost_s| format!("{cost_s:.6}")));
    if is_cache {
        row.push(by_copy(expected, &class.critical, "nothing"));
        row.push(percent(class.served.iter().skip(1).sum()));
    } else {
        row.push(by_copy(expected, &class.served, "original"));
    }
    row
}

/// Formats fractions by copy: `1-DV`, or `original 60 %, 1-DV 40 %`. Copy 0 is called `first`.
fn by_copy(expected: &Expected, shares: &[f64], first: &str) -> String {
    let name = |index: usize| if index == 0 { first } else { &expected.copies[index].name };
    let mut named: Vec<(&str, f64)> =
        shares.iter().enumerate().map(|(index, &share)| (name(index), share)).collect();
    named.retain(|(_, share)| *share > NEGLIGIBLE);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    match named.as_slice() {
        [(name, _)] => (*name).to_owned(),
        several => {
            let parts = several.iter().map(|(name, share)| format!("{name} {}", percent(*share)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Prints how much of the original's time the cache saves, and the most that its space allows.
/// Prints nothing without a cache.
pub fn print_gain(decision: &Decision) {
    let Some((expected, cache)) = decision.expected.as_ref().and_then(|e| Some((e, e.cache.as_ref()?))) else {
        return;
    };
    if let Some(alone) = expected.copies[0].alone {
        let (alone_s, elapsed_s) = (alone.alone_elapsed_s, decision.best().elapsed_s);
        let saved = 100.0 * (1.0 - elapsed_s / alone_s.max(f64::MIN_POSITIVE));
        println!(
            "With the cache the files take {elapsed_s:.3} s, without it in the same original {alone_s:.3} s: {:.1} % {}.",
            saved.abs(),
            if saved < 0.0 { "more" } else { "less" },
        );
    }
    let x = cache.time_of_hits;
    if x < 1.0 {
        println!(
            "Hits are x = {} of the time in the original by that model: if they took none, 1/(1-x) = {:.2} times as fast.",
            percent(x),
            1.0 / (1.0 - x),
        );
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
