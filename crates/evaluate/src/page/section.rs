//! What the page says about one experiment.

use std::collections::BTreeSet;

use stripewise_report::units;

use super::format;
use super::series::{Chart, charts};
use crate::claim::{Experiment, Paper};
use crate::joint;
use crate::judge::{Judgement, Verdict, judge};
use crate::record::{Document, Labels, Place, Record};

/// Maximum number of claims for which the overview shows each value.
const FEW: usize = 4;

/// Maximum number of characters shown of an error.
const SHOWN: usize = 160;

/// Section on an experiment.
pub struct Section<'a> {
    pub experiment: &'a Experiment,
    /// The records of its own schemes, and all that failed, in the order of [`Place::ALL`].
    pub records: [Vec<&'a Record>; 3],
    /// Its cells under the joint plan.
    pub plans: Vec<joint::Row>,
    /// Its claims with the verdicts.
    pub judgements: Vec<Judgement<'a>>,
    pub charts: Vec<Chart<'a>>,
}

impl<'a> Section<'a> {
    /// `documents` are in the order of [`Place::ALL`].
    pub fn of(
        experiment: &'a Experiment,
        all: &'a [Experiment],
        documents: &[Option<&'a Document>; 3],
    ) -> Self {
        let all_records = documents.map(|document| {
            let records = document.into_iter().flat_map(|document| &document.records);
            records.filter(|record| record.experiment == experiment.id).collect::<Vec<_>>()
        });
        // The others are in the section on the joint plan, but for their failures.
        let is_own = |record: &&Record| experiment.schemes.contains(&record.scheme) || record.failed.is_some();
        let records = all_records.each_ref().map(|of| of.iter().copied().filter(is_own).collect::<Vec<_>>());
        let schemes = schemes_of(experiment.paper, all);
        let look_of = |scheme: &str| schemes.iter().position(|known| *known == scheme).unwrap_or(0);
        Self {
            judgements: judge(experiment, records.iter().flatten().copied()),
            charts: charts(experiment, &records, look_of),
            plans: joint::rows(all_records.iter().flatten().copied()),
            experiment,
            records,
        }
    }

    /// Returns the verdicts at a place; `None` if nothing was run there.
    fn verdicts(&self, place: Place) -> Option<Vec<Verdict>> {
        let verdicts: Vec<Verdict> =
            self.judgements.iter().map(|judgement| judgement.at(place).verdict).collect();
        verdicts.iter().any(|verdict| *verdict != Verdict::NotRun).then_some(verdicts)
    }

    /// Formats the number of verdicts at a place by sign, and the values: each value if there are
    /// few claims, else their range.
    pub fn found(&self, place: Place) -> String {
        let Some(verdicts) = self.verdicts(place) else { return "–".to_owned() };
        let signs: Vec<String> = format::tally(&verdicts)
            .iter()
            .map(|(verdict, count)| format!("{count}\u{a0}{}", verdict.sign()))
            .collect();
        let measured = self.judgements.iter().map(|judgement| (&judgement.claim.measure, judgement.at(place)));
        let values = if self.judgements.len() <= FEW {
            let of = |(measure, outcome)| format::outcome(measure, outcome);
            measured.map(of).collect::<Vec<_>>().join(", ")
        } else {
            let found =
                measured.filter_map(|(measure, outcome)| Some((measure, outcome.found.as_ref()?.value)));
            format::range(found).unwrap_or_default()
        };
        format!("{}: {values}", signs.join(" "))
    }

    /// Returns the column names of the table of claims.
    pub fn columns(&self) -> Vec<&'static str> {
        let mut columns = vec!["claim", "claimed"];
        for place in Place::ALL {
            columns.push(format::place(place));
            if self.has_bounds(place) {
                columns.push("bound");
            }
        }
        columns
    }

    /// Returns the row of a claim in the table of claims.
    pub fn claim_row(&self, Judgement { claim, outcomes }: &Judgement<'_>) -> Vec<String> {
        let mut cells = vec![format::claim(claim), format::claimed(claim)];
        for outcome in outcomes {
            let which = format::which(claim, outcome).map(|which| format!(" ({which})"));
            cells.push(format::outcome(&claim.measure, outcome) + &which.unwrap_or_default());
            if self.has_bounds(outcome.place) {
                let bound = outcome.bound.map(|bound| format::value(&claim.measure, bound));
                cells.push(bound.unwrap_or("–".to_owned()));
            }
        }
        cells
    }

    fn has_bounds(&self, place: Place) -> bool {
        self.judgements.iter().any(|judgement| judgement.at(place).bound.is_some())
    }

    /// States in words whether the claims hold, place by place.
    pub fn verdict(&self) -> String {
        let holds =
            |place| Some(format!("{}: {}", format::place(place), format::holds(&self.verdicts(place)?)?));
        let parts: Vec<String> = Place::ALL.into_iter().filter_map(holds).collect();
        match (parts.is_empty(), self.judgements.is_empty()) {
            (false, _) => parts.join("; "),
            (true, true) => "nothing was claimed".to_owned(),
            (true, false) => "not run".to_owned(),
        }
    }

    /// Summarizes the runs at every place with runs.
    pub fn runs(&self) -> impl Iterator<Item = (Place, String)> {
        let places = Place::ALL.into_iter().zip(&self.records);
        places.filter_map(|(place, records)| Some((place, what_was_run(records)?)))
    }

    /// Summarizes the failures at every place with failures.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        let places = Place::ALL.into_iter().zip(&self.records);
        places.filter_map(|(place, records)| what_failed(place, records))
    }
}

/// Returns the schemes of a paper's figures without duplicates, in order. A scheme's index is its
/// look in all figures of the paper.
fn schemes_of(paper: Paper, all: &[Experiment]) -> Vec<&str> {
    let all = all.iter().filter(|experiment| experiment.paper == paper);
    let mut schemes: Vec<&str> = Vec::new();
    for scheme in all.flat_map(|experiment| &experiment.schemes) {
        if !schemes.contains(&scheme.as_str()) {
            schemes.push(scheme);
        }
    }
    schemes
}

/// Summarizes the runs: number of cells and schemes, sizes, repeats, and whether the bytes were
/// right.
fn what_was_run(records: &[&Record]) -> Option<String> {
    let cells: BTreeSet<&Labels> = records.iter().map(|record| &record.labels).collect();
    let bytes = || records.iter().map(|record| record.bytes).filter(|bytes| *bytes > 0);
    let range = match (bytes().min()?, bytes().max()?) {
        (least, most) if least == most => units::bytes(least),
        (least, most) => format!("{} to {}", units::bytes(least), units::bytes(most)),
    };
    let repeats = records.iter().map(|record| record.seconds.len()).max()?;
    let mut text = format!(
        "{}, {}, {range} each",
        units::counted(cells.len() as u64, "cell", "cells"),
        units::counted(records.len() as u64, "run", "runs"),
    );
    if repeats > 1 {
        text += &format!(", median of {repeats} repeats");
    }
    let checked = records.iter().filter(|record| record.verified.is_some()).count();
    let right = records.iter().filter(|record| record.verified == Some(true)).count();
    match (checked, right) {
        (0, _) => {}
        (checked, right) if checked == right && checked == records.len() => text += ", every byte verified",
        (checked, right) => text += &format!(", {checked} of them verified, {right} right"),
    }
    Some(text)
}

fn what_failed(place: Place, records: &[&Record]) -> Option<String> {
    let failed: Vec<&&Record> = records.iter().filter(|record| record.is_bad()).collect();
    let first = failed.first()?;
    let reason = first.failed.as_deref().unwrap_or("bytes were wrong");
    let reason: String = reason.lines().next().unwrap_or_default().chars().take(SHOWN).collect();
    Some(format!(
        "{}: {} of {} runs failed, first {} ({}): {reason}",
        format::place(place),
        failed.len(),
        records.len(),
        first.scheme,
        format::labels(&first.labels),
    ))
}
