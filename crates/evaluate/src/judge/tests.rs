//! Judges claims of all kinds by records made up for them.

use proptest::prelude::*;

use super::*;
use crate::claim::{Measure, Paper};
use crate::record::Labels;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn record(cell: &[(&str, &str)], scheme: &str, seconds: &[f64]) -> Record {
    Record {
        experiment: "P1".into(),
        place: Place::Simulated,
        labels: labels(cell),
        scheme: scheme.into(),
        parameters: String::new(),
        seconds: seconds.to_vec(),
        bytes: 1 << 20,
        verified: None,
        failed: None,
        layout: String::new(),
        details: [].into(),
    }
}

fn experiment(measure: Measure, about: &[(&str, &str)], claimed: (f64, f64)) -> Experiment {
    Experiment {
        id: "P1",
        paper: Paper::Psa,
        title: String::new(),
        setting: String::new(),
        claimed: String::new(),
        schemes: Vec::new(),
        explanation: "",
        claims: vec![Claim { what: String::new(), labels: labels(about), measure, claimed }],
        figures: Vec::new(),
        cells: |_| Vec::new(),
    }
}

fn gain() -> Measure {
    Measure::Gain { scheme: "PSA".into(), over: "DEF".into() }
}

const A: &[(&str, &str)] = &[("op", "read"), ("size", "4K")];
const B: &[(&str, &str)] = &[("op", "read"), ("size", "8K")];
const C: &[(&str, &str)] = &[("op", "write"), ("size", "8K")];

/// Returns the outcome of the only claim in the simulator.
fn outcome(experiment: &Experiment, records: &[Record]) -> Outcome {
    judge(experiment, records)[0].at(Place::Simulated).clone()
}

fn value(measure: Measure, records: &[Record]) -> f64 {
    outcome(&experiment(measure, &[], (0.0, 0.0)), records).found.unwrap().value
}

#[test]
fn a_gain_is_of_the_total_time_of_the_cells_that_it_is_about() {
    let records = [
        record(A, "DEF", &[3.0]),
        record(A, "PSA", &[1.0]),
        record(B, "DEF", &[3.0]),
        record(B, "PSA", &[3.0]),
        record(C, "DEF", &[1000.0]),
        record(C, "PSA", &[1.0]),
    ];
    let reads = experiment(gain(), &[("op", "read")], (0.5, 0.5));
    let outcome = outcome(&reads, &records);
    let found = outcome.found.unwrap();
    assert_eq!((found.value, found.spread, found.cells), (0.5, 0.0, 2));
    assert_eq!((outcome.missing, outcome.verdict), (0, Verdict::Agrees));
    let of_one = judge(&reads, &records)[0].at(Place::Emulated).clone();
    assert_eq!((of_one.found, of_one.verdict), (None, Verdict::NotRun));
}

#[test]
fn the_largest_gain_is_that_of_one_cell_and_says_which() {
    let records = [
        record(A, "DEF", &[3.0]),
        record(A, "PSA", &[1.0]),
        record(B, "DEF", &[30.0]),
        record(B, "PSA", &[20.0]),
    ];
    let largest = Measure::LargestGain { scheme: "PSA".into(), over: "DEF".into() };
    let found = outcome(&experiment(largest, &[], (1.0, 1.0)), &records).found.unwrap();
    assert_eq!((found.value, found.at, found.cells), (2.0, Some(labels(A)), 2));
}

#[test]
fn the_best_of_several_is_the_best_of_each_cell() {
    let times = [(A, 2.0, 4.0, 1.0), (B, 6.0, 3.0, 3.0)];
    let records: Vec<Record> = times
        .iter()
        .flat_map(|(cell, one, two, own)| {
            [record(cell, "1-DH", &[*one]), record(cell, "1-DV", &[*two]), record(cell, "replicas", &[*own])]
        })
        .collect();
    let over = vec!["1-DH".to_owned(), "1-DV".to_owned()];
    let found = value(Measure::GainOverBest { scheme: "replicas".into(), over }, &records);
    assert_eq!(found, 5.0 / 4.0 - 1.0);
}

#[test]
fn what_failed_or_gave_wrong_bytes_is_missing() {
    let mut records = vec![
        record(A, "DEF", &[2.0]),
        record(A, "PSA", &[1.0]),
        record(B, "DEF", &[9.0]),
        record(B, "PSA", &[1.0]),
        record(C, "DEF", &[9.0]),
    ];
    records[3].verified = Some(false);
    let all = experiment(gain(), &[], (1.0, 1.0));
    let found = outcome(&all, &records);
    assert_eq!((found.found.as_ref().unwrap().value, found.missing), (1.0, 2));
    records[1].failed = Some("no space".into());
    let none = outcome(&all, &records);
    assert_eq!((none.found, none.missing, none.verdict), (None, 3, Verdict::NotRun));
    records.push(record(A, "PSA", &[0.5]));
    assert_eq!(outcome(&all, &records).found.unwrap().value, 3.0, "the last record of a scheme counts");
}

#[test]
fn the_spread_of_repeats_is_carried_through() {
    // Medians 2 and 1, half spans 0.2 and 0.1: a tenth each.
    let records = [record(A, "DEF", &[1.8, 2.0, 2.2]), record(A, "PSA", &[0.9, 1.0, 1.1])];
    let found = outcome(&experiment(gain(), &[], (1.0, 1.0)), &records).found.unwrap();
    assert!((found.spread - 2.0 * 0.02f64.sqrt()).abs() < 1e-12, "{found:?}");
    // Two cells with the same times: the spread of the sum is a smaller fraction of it.
    let twice =
        [&records[..], &[record(B, "DEF", &[1.8, 2.0, 2.2]), record(B, "PSA", &[0.9, 1.0, 1.1])]].concat();
    let sum = outcome(&experiment(gain(), &[], (1.0, 1.0)), &twice).found.unwrap();
    assert!((sum.spread - found.spread / 2f64.sqrt()).abs() < 1e-12, "{sum:?}");
}

#[test]
fn a_prediction_picks_the_fastest_or_not() {
    let with = |cell, scheme: &str, seconds: &[f64], cost_s: f64, elapsed_s: f64| Record {
        details: [("cil_s".to_owned(), cost_s), ("elapsed_s".to_owned(), elapsed_s)].into(),
        ..record(cell, scheme, seconds)
    };
    let by = || Measure::BestPicked { by: "cil_s".into() };
    // A right prediction, a wrong one, and a wrong one that is indistinguishable from the fastest.
    let right = [with(A, "1-DH", &[1.0], 5.0, 5.0), with(A, "1-DV", &[2.0], 6.0, 6.0)];
    let wrong = [with(B, "1-DH", &[2.0, 2.1], 5.0, 5.0), with(B, "1-DV", &[1.0, 1.9], 6.0, 6.0)];
    let unclear = [with(C, "1-DH", &[1.8, 2.1], 5.0, 5.0), with(C, "1-DV", &[1.0, 1.9], 6.0, 6.0)];
    assert_eq!(value(by(), &right), 1.0);
    assert_eq!(value(by(), &wrong), 0.0);
    assert_eq!(value(by(), &unclear), 1.0);
    assert!((value(by(), &[&right[..], &wrong, &unclear].concat()) - 2.0 / 3.0).abs() < 1e-12);
    // A tie goes to the least expected time.
    assert_eq!(value(by(), &[with(A, "a", &[2.0], 5.0, 7.0), with(A, "b", &[1.0], 5.0, 6.0)]), 1.0);
    assert_eq!(value(by(), &[with(A, "a", &[2.0], 5.0, 6.0), with(A, "b", &[1.0], 5.0, 6.0)]), 0.0);
    // A cell without a prediction, or with a failed record, does not count.
    let mut failed = right.to_vec();
    failed[1].failed = Some("killed".into());
    let claim = experiment(by(), &[], (0.9, 0.9));
    assert_eq!((outcome(&claim, &failed).found, outcome(&claim, &failed).missing), (None, 1));
    assert_eq!(outcome(&claim, &[record(A, "1-DH", &[1.0]), record(A, "1-DV", &[1.0])]).found, None);
}

fn verdict(claimed: (f64, f64), value: f64, spread: f64) -> Verdict {
    Verdict::of(claimed, Some(&Found { value, spread, cells: 1, at: None }))
}

#[test]
fn the_rule() {
    use Verdict::*;
    for (claimed, value, spread, expected) in [
        ((0.67, 0.77), 0.67, 0.0, Agrees),
        // 67 points less a fifth are 53.6; 77 points plus a fifth are 92.4.
        ((0.67, 0.77), 0.54, 0.0, Agrees),
        ((0.67, 0.77), 0.53, 0.0, Smaller),
        ((0.67, 0.77), 0.92, 0.0, Agrees),
        ((0.67, 0.77), 0.93, 0.0, Larger),
        ((0.67, 0.77), 0.019, 0.0, NoDifference),
        ((0.67, 0.77), 0.3, 0.31, NoDifference),
        ((0.67, 0.77), -0.03, 0.0, Opposite),
        // Ten points are more than a fifth, but there must still be a difference.
        ((0.06, 0.13), 0.03, 0.0, Agrees),
        ((0.06, 0.13), 0.01, 0.0, NoDifference),
        ((0.06, 0.13), -0.03, 0.0, Opposite),
        ((0.06, 0.13), 0.24, 0.0, Larger),
        // No difference was claimed.
        ((0.0, 0.0), 0.0, 0.0, Agrees),
        ((0.0, 0.0), -0.09, 0.0, Agrees),
        ((0.0, 0.0), -0.11, 0.0, Opposite),
        ((0.0, 0.0), 0.11, 0.0, Larger),
        // A claimed loss is judged as the mirrored gain.
        ((-0.5, -0.3), -0.4, 0.0, Agrees),
        ((-0.3, -0.5), -0.7, 0.0, Larger),
        ((-0.5, -0.3), -0.1, 0.0, Smaller),
        ((-0.5, -0.3), 0.1, 0.0, Opposite),
        ((-0.5, -0.3), 0.01, 0.0, NoDifference),
        ((-1.0, 0.0), -0.01, 0.0, Agrees),
        ((-1.0, 0.0), 0.2, 0.0, Opposite),
    ] {
        assert_eq!(verdict(claimed, value, spread), expected, "{claimed:?} {value} {spread}");
    }
    assert_eq!(Verdict::of((0.1, 0.2), None), NotRun);
}

proptest! {
    /// A larger value never gets a lesser verdict.
    #[test]
    fn verdicts_follow_the_value(low in 0.03f64..2.0, more in 0f64..2.0, one in -1f64..6.0, two in -1f64..6.0) {
        let order = [Verdict::Opposite, Verdict::NoDifference, Verdict::Smaller, Verdict::Agrees, Verdict::Larger];
        let place = |value| {
            let verdict = verdict((low, low + more), value, 0.0);
            order.iter().position(|other| *other == verdict).unwrap()
        };
        prop_assert!(place(one.min(two)) <= place(one.max(two)));
    }
}
