//! C1's maps: the fastest layout by size and number of processes, and where the planner picked
//! another one.

use std::collections::{BTreeMap, BTreeSet};

use stripewise_report::units;

use super::format;
use crate::record::amount;
use crate::regret::{Choice, Table};

/// The model whose choices are shown.
const SHOWN: &str = "the planner";

/// Map of one kind of access at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The place, and all labels of the cells but size and processes.
    pub title: String,
    /// Sizes along x.
    pub sizes: Vec<String>,
    /// For each number of processes, that number and the cells, in the order of the sizes.
    pub rows: Vec<Vec<String>>,
}

/// Returns the maps of a table.
pub fn of(table: &Table) -> Vec<Map> {
    let mut kinds: BTreeMap<String, Vec<&Choice>> = BTreeMap::new();
    for choice in &table.cells {
        let rest = choice.labels.iter().filter(|(key, _)| !["size", "procs"].contains(&key.as_str()));
        kinds.entry(format::labels(rest)).or_default().push(choice);
    }
    let place = format::capital(format::place(table.place));
    kinds.into_iter().map(|(kind, choices)| map(format!("{place}: {kind}"), &choices)).collect()
}

fn map(title: String, choices: &[&Choice]) -> Map {
    let sizes = values(choices, "size");
    let cell = |procs: &String, size: &String| {
        let is_it = |choice: &&&Choice| {
            choice.labels.get("procs") == Some(procs) && choice.labels.get("size") == Some(size)
        };
        choices.iter().find(is_it).map_or("–".to_owned(), |choice| spot(choice))
    };
    let row = |procs: String| {
        let cells: Vec<String> = sizes.iter().map(|size| cell(&procs, size)).collect();
        [vec![procs], cells].concat()
    };
    Map { title, rows: values(choices, "procs").into_iter().map(row).collect(), sizes }
}

/// Returns the values of a label in numerical order.
fn values(choices: &[&Choice], key: &str) -> Vec<String> {
    let values: BTreeSet<&String> = choices.iter().filter_map(|choice| choice.labels.get(key)).collect();
    let mut values: Vec<String> = values.into_iter().cloned().collect();
    let number = |value: &String| amount(value).unwrap_or(0.0);
    values.sort_by(|a, b| number(a).total_cmp(&number(b)));
    values
}

/// Returns the fastest layout, and another one that was picked with its regret: `H`, or
/// `H ✗V +12 %`.
fn spot(choice: &Choice) -> String {
    let best = letter(&choice.best);
    let Some(pick) = choice.picked.iter().find(|pick| pick.model == SHOWN && !pick.is_best) else {
        return best.to_string();
    };
    let regret = units::signed_percent((pick.regret * 1000.0).round() / 1000.0);
    format!("{best} ✗{} {regret}", letter(&pick.scheme))
}

/// Returns a layout as one letter: H for 1-DH, V for 1-DV, 2 for 2-D.
fn letter(scheme: &str) -> char {
    scheme.strip_prefix("1-D").and_then(|rest| rest.chars().next()).or(scheme.chars().next()).unwrap_or('?')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Place;
    use crate::regret::Pick;

    fn choice(size: &str, procs: &str, op: &str, best: &str, picked: &str, regret: f64) -> Choice {
        let labels = [("size", size), ("procs", procs), ("op", op)];
        Choice {
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            best: best.into(),
            picked: vec![Pick { model: SHOWN, scheme: picked.into(), is_best: best == picked, regret }],
        }
    }

    #[test]
    fn a_map_for_each_kind_of_access() {
        let cells = vec![
            choice("64K", "16", "read", "1-DV", "1-DV", 0.0),
            choice("64K", "4", "read", "1-DH", "2-D g=2", 0.123),
            choice("4K", "16", "read", "2-D", "2-D", 0.0),
            choice("4K", "16", "write", "1-DV", "1-DV", 0.0),
        ];
        let maps = of(&Table { place: Place::Disks, rows: Vec::new(), cells });
        let titles: Vec<&str> = maps.iter().map(|map| map.title.as_str()).collect();
        assert_eq!(titles, ["Throttled disks: op read", "Throttled disks: op write"]);
        assert_eq!(maps[0].sizes, ["4K", "64K"]);
        assert_eq!(maps[0].rows, [["4", "–", "H ✗2 +12.3\u{a0}%"], ["16", "2", "V"]]);
    }
}
