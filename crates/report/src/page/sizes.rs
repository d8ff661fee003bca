//! The histogram of request sizes.

use std::collections::BTreeMap;

use stripewise_trace::summary::Sizes;

use crate::draw;
use crate::html::Html;
use crate::units;

/// Up to this number, distinct sizes are shown individually; more are grouped by powers of two.
const SIZES_SHOWN: usize = 12;

/// Requests of one size, or of a range of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The size, or `FROM to below TO`.
    pub name: String,
    /// Number of reads and of writes.
    pub requests: [u64; 2],
}

/// Returns the rows by ascending size: exact sizes if there are few, else powers of two.
pub fn rows(reads: &Sizes, writes: &Sizes) -> Vec<Row> {
    let mut exact: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for (op, sizes) in [reads, writes].into_iter().enumerate() {
        for (size, count) in sizes.by_count() {
            exact.entry(size).or_default()[op] += count;
        }
    }
    let all_exact = reads.rounded.is_empty() && writes.rounded.is_empty();
    if all_exact && exact.len() <= SIZES_SHOWN {
        return exact.into_iter().map(|(size, requests)| Row { name: units::bytes(size), requests }).collect();
    }
    let mut rounded: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for (size, requests) in exact {
        let row = rounded.entry(size.max(1).ilog2()).or_default();
        row[0] += requests[0];
        row[1] += requests[1];
    }
    let name = |power: u32| match 1u64.checked_shl(power + 1) {
        Some(end) => format!("{} to below {}", units::bytes(1 << power), units::bytes(end)),
        None => format!("{} and more", units::bytes(1 << power)),
    };
    rounded.into_iter().map(|(power, requests)| Row { name: name(power), requests }).collect()
}

/// Draws one bar per row, with reads followed by writes.
pub fn bars(h: &mut Html, rows: &[Row]) {
    let most = rows.iter().map(|row| row.requests[0] + row.requests[1]).max().unwrap_or(0).max(1) as f64;
    h.element("div", &[("class", "bars tight sizes")], |h| {
        for row in rows {
            let [reads, writes] = row.requests;
            let text = match (reads, writes) {
                (reads, 0) => units::counted(reads, "read", "reads"),
                (0, writes) => units::counted(writes, "write", "writes"),
                _ => format!(
                    "{}, {}",
                    units::counted(reads, "read", "reads"),
                    units::counted(writes, "write", "writes")
                ),
            };
            h.element("div", &[], |h| {
                h.leaf("span", &[("class", "size")], &row.name);
                h.leaf("span", &[("class", "soft")], &text);
            });
            h.element("div", &[], |h| {
                draw::drawing(h, "one", 16, &format!("{}: {text}", row.name), |h| {
                    let (middle, end) = (reads as f64 / most, (reads + writes) as f64 / most);
                    for (class, range) in [("read", (0.0, middle)), ("write", (middle, end))] {
                        draw::rect(h, class, range, (1.0, draw::BAR_HEIGHT), &text);
                    }
                });
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(exact: &[(u64, u64)], rounded: &[(u64, u64)]) -> Sizes {
        Sizes { exact: exact.iter().copied().collect(), rounded: rounded.iter().copied().collect() }
    }

    #[test]
    fn few_sizes_are_shown_as_they_are() {
        let rows = rows(&sizes(&[(65536, 10), (100, 1)], &[]), &sizes(&[(65536, 5)], &[]));
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["100\u{a0}B", "64\u{a0}KiB"]);
        assert_eq!(rows[1].requests, [10, 5]);
    }

    #[test]
    fn many_sizes_are_put_together_and_none_is_lost() {
        let exact: Vec<(u64, u64)> = (1..60).map(|i| (i * 1000, i)).collect();
        let rows = rows(&sizes(&exact, &[(1 << 20, 7)]), &sizes(&[(u64::MAX, 2)], &[]));
        assert!(rows.iter().any(|row| row.name == "32\u{a0}KiB to below 64\u{a0}KiB"));
        assert_eq!(rows.last().unwrap().name, "8\u{a0}EiB and more");
        let reads: u64 = rows.iter().map(|row| row.requests[0]).sum();
        assert_eq!(reads, (1..60).sum::<u64>() + 7);
        assert_eq!(rows.last().unwrap().requests, [0, 2]);
    }
}
