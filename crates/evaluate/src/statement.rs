//! Fills the tables of `docs/psa-and-pa.md` from the records, so that text and data cannot diverge:
//! most from those of X1, one from all cells with two kinds of servers.

use std::collections::BTreeMap;

use crate::joint::{self, PUBLISHED};
use crate::record::{Labels, Place, Record, amount};

/// The schemes in the columns after the first one.
const SCHEMES: [&str; 5] = ["PA", "PSA", "PSA <120K,8K>", "whole requests", "auto"];

/// Labels that a table's cells have.
type Of = &'static [(&'static str, &'static str)];

/// (name in the page, heading of the first column, labels of the rows' cells)
const TABLES: [(&str, &str, Of); 6] = [
    ("procs-0.3", "processes, startup 0.3 ms", &[("series", "procs"), ("startup_ms", "0.3")]),
    ("procs-8", "processes, startup 8 ms", &[("series", "procs"), ("startup_ms", "8")]),
    ("space", "share of the file on SServers", &[("series", "space")]),
    ("size", "bytes of a request", &[("series", "size")]),
    ("servers", "HServers : SServers", &[("series", "servers")]),
    ("ssd", "SSD", &[("series", "ssd"), ("op", "write")]),
];

/// Returns the page with its tables, which are between `<!-- table NAME -->` and `<!-- end -->`,
/// filled from the records.
pub fn filled(page: &str, records: &[Record]) -> String {
    let tables = TABLES.map(|(name, heading, labels)| (name, table(heading, labels, records)));
    let mut filled = page.to_owned();
    for (name, table) in tables.into_iter().chain([("joint", gains(records))]) {
        let begin = format!("<!-- table {name} -->\n");
        let Some(at) = filled.find(&begin).map(|at| at + begin.len()) else { continue };
        let Some(end) = filled[at..].find("<!-- end -->").map(|end| at + end) else { continue };
        filled.replace_range(at..end, &table);
    }
    filled
}

/// Returns a table of what the joint plan gains over the published schemes, by experiment in which
/// all of them were simulated.
fn gains(records: &[Record]) -> String {
    let mut text =
        format!("| experiment | {} |\n|---|{}\n", PUBLISHED.join(" | "), "---:|".repeat(PUBLISHED.len()));
    for of in joint::rows(records).chunk_by(|a, b| a.experiment == b.experiment) {
        let gain = |index: usize| joint::gain(of, |row| row.published_s[index]);
        let gains: Option<Vec<f64>> = (0..PUBLISHED.len()).map(gain).collect();
        let Some(gains) = gains else { continue };
        let gains: Vec<String> = gains.iter().map(|gain| format!("{:+.1} %", gain * 100.0)).collect();
        text += &format!("| {} | {} |\n", of[0].experiment, gains.join(" | "));
    }
    text
}

/// Returns a table with a row per value: DEF's seconds, and the gains of the other schemes over
/// DEF.
fn table(heading: &str, labels: Of, records: &[Record]) -> String {
    let is_in =
        |of: &Labels| labels.iter().all(|(key, value)| of.get(*key).is_some_and(|found| found == value));
    let mut rows: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let simulated =
        records.iter().filter(|record| record.experiment == "X1" && record.place == Place::Simulated);
    for record in simulated.filter(|record| is_in(&record.labels)) {
        let (Some(value), Some(seconds)) = (record.labels.get("value"), record.median_s()) else { continue };
        if !order.contains(&value.as_str()) {
            order.push(value);
        }
        rows.entry(value).or_default().insert(&record.scheme, seconds);
    }
    order.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    let mut text = format!(
        "| {heading} | DEF, s | {} |\n|---|---:|{}\n",
        SCHEMES.join(" | "),
        "---:|".repeat(SCHEMES.len())
    );
    for value in order {
        let row = &rows[value];
        let Some(def_s) = row.get("DEF") else { continue };
        let gain = |scheme: &&str| {
            row.get(*scheme).map_or("".to_owned(), |s| format!("{:+.1} %", (def_s / s - 1.0) * 100.0))
        };
        let gains: Vec<String> = SCHEMES.iter().map(gain).collect();
        text += &format!("| {value} | {def_s:.2} | {} |\n", gains.join(" | "));
    }
    text
}

/// Returns a sort key for numbers, sizes and ratios; other texts keep their order of appearance.
fn rank(value: &str) -> f64 {
    let number = |text: &str| amount(text).unwrap_or(0.0);
    value.split_once(['/', ':']).map_or(number(value), |(above, below)| number(above) / number(below))
}
