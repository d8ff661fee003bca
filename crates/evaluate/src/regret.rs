//! C1: how often each model picks the layout that turns out best, and the loss where it does not.
//!
//! *Regret* is the additional time of the picked layout as a fraction of the best layout's time. A
//! layout is *indistinguishable* from the best if its fastest repeat takes no longer than the
//! slowest repeat of the best. Simulated times have no repeats, and are indistinguishable within
//! [`ALIKE`].

use std::collections::BTreeMap;

use crate::pick;
use crate::record::{Labels, Place, Record};

/// Simulated times that differ by less than this fraction are indistinguishable: simulated service
/// times vary by ±1 %, so another seed gives another order.
pub const ALIKE: f64 = 0.005;

/// Results of C1 at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub place: Place,
    /// One row per model and group of cells, including the group of all cells.
    pub rows: Vec<Row>,
    /// Every cell with at least two layouts.
    pub cells: Vec<Choice>,
}

/// How well a model chose in a group of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub model: &'static str,
    /// The group: `random reads, Ethernet`, or `all`.
    pub group: String,
    pub cases: usize,
    /// Fraction of cells in which the model picked the best layout, or one that is
    /// indistinguishable from it.
    pub best: f64,
    pub mean_regret: f64,
    pub worst_regret: f64,
}

/// The best layout and the models' choices in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub labels: Labels,
    /// Name of the fastest layout.
    pub best: String,
    pub picked: Vec<Pick>,
}

/// A model's choice in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    pub model: &'static str,
    /// The layout that the model predicts to be fastest.
    pub scheme: String,
    /// Whether this is the best layout, or indistinguishable from it.
    pub is_best: bool,
    /// Additional time as a fraction of the best layout's time.
    pub regret: f64,
}

/// A model: its name, the record detail with its prediction, and the relative difference up to
/// which it considers predictions equal. Among equal predictions, the layout with the least second
/// detail is picked.
struct Model {
    name: &'static str,
    by: &'static str,
    equal: f64,
    then: &'static str,
}

const MODELS: [Model; 3] = [
    Model { name: "CIL's formula", by: "cil_s", equal: pick::EQUAL, then: "elapsed_s" },
    // As in the planner: predictions of times are no more exact than this.
    Model { name: "the planner", by: "elapsed_s", equal: 0.005, then: "cil_s" },
    Model { name: "the simulator", by: "simulated_s", equal: pick::EQUAL, then: "elapsed_s" },
];

/// Returns the tables of C1, one for each place with records.
pub fn tables<'r>(records: impl IntoIterator<Item = &'r Record> + Clone) -> Vec<Table> {
    let of_place = |place| {
        let choices = choices(records.clone().into_iter().filter(|record| record.place == place));
        let rows = MODELS.iter().flat_map(|model| rows(model.name, &choices)).collect();
        (!choices.is_empty()).then_some(Table { place, rows, cells: choices })
    };
    Place::ALL.into_iter().filter_map(of_place).collect()
}

fn choices<'r>(records: impl Iterator<Item = &'r Record>) -> Vec<Choice> {
    let mut cells: BTreeMap<&Labels, Vec<&Record>> = BTreeMap::new();
    for record in records.filter(|record| record.experiment == "C1" && record.median_s().is_some()) {
        cells.entry(&record.labels).or_default().push(record);
    }
    let cells = cells.into_iter().filter(|(_, records)| records.len() > 1);
    cells.filter_map(|(labels, cell)| choice(labels, &cell)).collect()
}

fn choice(labels: &Labels, cell: &[&Record]) -> Option<Choice> {
    let time_s = |record: &Record| record.median_s().unwrap_or(f64::INFINITY);
    let best = pick::fastest(cell)?;
    let pick = |model: &Model| {
        // The simulator is not judged on the times that it computed.
        let judged_by_itself = best.place == Place::Simulated && model.by == "simulated_s";
        let picked = pick::first(cell, model.by, model.equal, model.then).filter(|_| !judged_by_itself)?;
        let alike = if picked.seconds.len() > 1 || best.seconds.len() > 1 { 0.0 } else { ALIKE };
        Some(Pick {
            model: model.name,
            scheme: picked.scheme.clone(),
            is_best: pick::is_alike(picked, best, alike),
            regret: time_s(picked) / time_s(best) - 1.0,
        })
    };
    let picked = MODELS.iter().filter_map(pick).collect();
    Some(Choice { labels: labels.clone(), best: best.scheme.clone(), picked })
}

fn rows(model: &'static str, choices: &[Choice]) -> Vec<Row> {
    let mut groups: BTreeMap<String, Vec<&Pick>> = BTreeMap::new();
    for choice in choices {
        let Some(pick) = choice.picked.iter().find(|pick| pick.model == model) else { continue };
        for group in ["all".to_owned(), group(&choice.labels)] {
            groups.entry(group).or_default().push(pick);
        }
    }
    let row = |(group, picks): (String, Vec<&Pick>)| {
        let cases = picks.len();
        Row {
            model,
            group,
            cases,
            best: picks.iter().filter(|pick| pick.is_best).count() as f64 / cases as f64,
            mean_regret: picks.iter().map(|pick| pick.regret).sum::<f64>() / cases as f64,
            worst_regret: picks.iter().map(|pick| pick.regret).fold(0.0, f64::max),
        }
    };
    groups.into_iter().map(row).collect()
}

/// Returns the group of a cell, such as `random reads, Ethernet`.
fn group(labels: &Labels) -> String {
    let of = |key: &str| labels.get(key).map_or("", String::as_str);
    let ops = if of("op").is_empty() { String::new() } else { format!(" {}s", of("op")) };
    match of("network") {
        "" => format!("{}{ops}", of("access")),
        network => format!("{}{ops}, {network}", of("access")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record with the times of its repeats and the predictions of CIL's formula and the
    /// planner.
    fn record(place: Place, size: &str, scheme: &str, seconds: &[f64], cil_s: f64, elapsed_s: f64) -> Record {
        Record {
            experiment: "C1".into(),
            place,
            labels: [("size", size), ("access", "random"), ("op", "read")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            scheme: scheme.into(),
            parameters: String::new(),
            seconds: seconds.to_vec(),
            bytes: 1,
            verified: None,
            failed: None,
            layout: String::new(),
            details: [("cil_s".to_owned(), cil_s), ("elapsed_s".to_owned(), elapsed_s)].into(),
        }
    }

    fn row<'t>(table: &'t Table, model: &str) -> &'t Row {
        table.rows.iter().find(|row| row.model == model && row.group == "all").unwrap()
    }

    #[test]
    fn shares_and_regrets() {
        let at = Place::Emulated;
        let records = [
            record(at, "4K", "1-DH", &[2.0], 2.0, 1.0),
            record(at, "4K", "1-DV", &[1.0], 1.0, 2.0),
            record(at, "1M", "1-DH", &[1.0], 1.0, 1.0),
            record(at, "1M", "1-DV", &[1.5], 2.0, 2.0),
        ];
        let tables = tables(&records);
        assert_eq!((tables.len(), tables[0].place, tables[0].cells.len()), (1, at, 2));
        let cil = row(&tables[0], "CIL's formula");
        assert_eq!((cil.cases, cil.best, cil.mean_regret, cil.worst_regret), (2, 1.0, 0.0, 0.0));
        // The planner picks 1-DH for 4K, too, which takes twice as long.
        let planner = row(&tables[0], "the planner");
        assert_eq!(
            (planner.cases, planner.best, planner.mean_regret, planner.worst_regret),
            (2, 0.5, 0.5, 1.0)
        );
        assert!(tables[0].rows.iter().any(|row| row.group == "random reads" && row.cases == 2));
        assert!(tables[0].rows.iter().all(|row| row.model != "the simulator"));
    }

    #[test]
    fn what_the_repeats_do_not_tell_apart_is_as_good() {
        let picks = |a: &[f64], b: &[f64]| {
            let records =
                [record(Place::Disks, "4K", "a", a, 1.0, 1.0), record(Place::Disks, "4K", "b", b, 2.0, 2.0)];
            let choice = &tables(&records)[0].cells[0];
            (choice.best.clone(), choice.picked[0].scheme.clone(), choice.picked[0].is_best)
        };
        assert_eq!(picks(&[1.1, 1.2, 1.3], &[0.9, 1.0, 1.11]), ("b".into(), "a".into(), true));
        assert_eq!(picks(&[1.2, 1.2, 1.3], &[0.9, 1.0, 1.11]), ("b".into(), "a".into(), false));
        assert_eq!(picks(&[1.004], &[1.0]), ("b".into(), "a".into(), true));
        assert_eq!(picks(&[1.006], &[1.0]), ("b".into(), "a".into(), false));
    }

    #[test]
    fn ties_of_a_model_are_broken_as_the_planner_breaks_them() {
        let records = [
            record(Place::Emulated, "4K", "a", &[1.0], 2.0, 1.000),
            record(Place::Emulated, "4K", "b", &[1.0], 1.0, 1.004),
            record(Place::Emulated, "4K", "c", &[1.0], 0.5, 1.006),
        ];
        let picked = &tables(&records)[0].cells[0].picked;
        assert_eq!(picked[1].scheme, "b", "within 0.5 % the least cost");
        assert_eq!(picked[0].scheme, "c");
    }

    #[test]
    fn failed_and_lonely_records_do_not_count_and_the_simulator_is_not_its_own_judge() {
        let mut alone = vec![record(Place::Emulated, "4K", "a", &[1.0], 1.0, 1.0)];
        assert_eq!(tables(&alone), []);
        alone.push(record(Place::Emulated, "4K", "b", &[], 1.0, 1.0));
        assert_eq!(tables(&alone), []);
        let with_simulated = |place| {
            let mut records =
                [record(place, "4K", "a", &[1.0], 1.0, 1.0), record(place, "4K", "b", &[2.0], 2.0, 2.0)];
            records.iter_mut().for_each(|record| {
                record.details.insert("simulated_s".into(), record.seconds[0]);
            });
            tables(&records)[0].cells[0].picked.len()
        };
        assert_eq!((with_simulated(Place::Emulated), with_simulated(Place::Simulated)), (3, 2));
    }
}
