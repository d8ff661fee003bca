//! C1's maps: the fastest layout by size and number of processes, and where the planner picked
//! another one.

use std::collections::BTreeMap;

use super::format;
use super::series::amount;
use crate::record::{Labels, Place};
use crate::regret::{Choice, Table};

/// The model whose choices are shown.
const SHOWN: &str = "the planner";

/// Map of one kind of access at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Place of the runs.
    pub place: Place,
    /// The cells, by all labels but size and processes.
    pub title: String,
    /// Sizes along x.
    pub sizes: Vec<String>,
    /// Numbers of processes along y.
    pub procs: Vec<String>,
    /// The cells, by processes and then by size.
    pub spots: Vec<Vec<Option<Spot>>>,
}

/// One cell of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot {
    /// The fastest layout.
    pub best: String,
    /// The layout picked instead and its regret, if it is distinguishable from the fastest.
    pub wrong: Option<(String, f64)>,
}

/// Returns the maps of a table.
pub fn of(table: &Table) -> Vec<Map> {
    let mut kinds: BTreeMap<String, Vec<&Choice>> = BTreeMap::new();
    for choice in &table.cells {
        let rest: Labels = choice
            .labels
            .iter()
            .filter(|(key, _)| !["size", "procs"].contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        kinds.entry(format::labels(&rest)).or_default().push(choice);
    }
    kinds.into_iter().map(|(title, choices)| map(table.place, title, &choices)).collect()
}

fn map(place: Place, title: String, choices: &[&Choice]) -> Map {
    let (sizes, procs) = (values(choices, "size"), values(choices, "procs"));
    let at = |procs: &String, size: &String| {
        let is_it = |choice: &&&Choice| {
            choice.labels.get("procs") == Some(procs) && choice.labels.get("size") == Some(size)
        };
        choices.iter().find(is_it).map(|choice| spot(choice))
    };
    let spots = procs.iter().map(|procs| sizes.iter().map(|size| at(procs, size)).collect()).collect();
    Map { place, title, sizes, procs, spots }
}

fn values(choices: &[&Choice], key: &str) -> Vec<String> {
    let mut values: Vec<String> = choices.iter().filter_map(|choice| choice.labels.get(key).cloned()).collect();
    values.sort_by(|a, b| {
        let (x, y) = (amount(a).unwrap_or(0.0), amount(b).unwrap_or(0.0));
        x.total_cmp(&y).then_with(|| a.cmp(b))
    });
    values.dedup();
    values
}

fn spot(choice: &Choice) -> Spot {
    let wrong = choice.picked.iter().find(|pick| pick.model == SHOWN && !pick.is_best);
    Spot { best: choice.best.clone(), wrong: wrong.map(|pick| (pick.scheme.clone(), pick.regret)) }
}

/// Returns a layout as one letter: H for 1-DH, V for 1-DV, 2 for 2-D.
pub fn letter(scheme: &str) -> char {
    scheme.strip_prefix("1-D").and_then(|rest| rest.chars().next()).or(scheme.chars().next()).unwrap_or('?')
}

impl Spot {
    /// Returns `H`, or `H ✗V +12 %` if another layout was picked.
    pub fn text(&self) -> String {
        let Some((picked, regret)) = &self.wrong else { return letter(&self.best).to_string() };
        let regret = stripewise_report::units::signed_percent((regret * 1000.0).round() / 1000.0);
        format!("{} ✗{} {regret}", letter(&self.best), letter(picked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regret::Pick;

    fn choice(size: &str, procs: &str, op: &str, best: &str, picked: &str, regret: f64) -> Choice {
        let labels = [("size", size), ("procs", procs), ("op", op)];
        Choice {
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            best: best.into(),
            picked: vec![Pick { model: SHOWN.into(), scheme: picked.into(), is_best: best == picked, regret }],
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
        assert_eq!(maps.iter().map(|map| map.title.as_str()).collect::<Vec<_>>(), ["op read", "op write"]);
        let reads = &maps[0];
        assert_eq!((reads.sizes.join(" "), reads.procs.join(" ")), ("4K 64K".into(), "4 16".into()));
        let texts: Vec<Vec<String>> = reads
            .spots
            .iter()
            .map(|row| row.iter().map(|spot| spot.as_ref().map_or("-".into(), Spot::text)).collect())
            .collect();
        assert_eq!(texts, [["-", "H ✗2 +12.3\u{a0}%"], ["2", "V"]]);
    }
}
