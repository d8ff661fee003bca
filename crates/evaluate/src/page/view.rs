//! Content of the page, independent of Markdown.

use super::format;
use super::series::{Chart, charts};
use crate::claim::{Experiment, Paper};
use crate::judge::{Judgement, Verdict, judge};
use crate::record::{Document, Place, Record};
use crate::{bound, regret};
use stripewise_report::units;

/// Maximum number of claims for which the overview shows each value.
const FEW: usize = 4;

/// Content of the page.
pub struct View<'a> {
    /// The documents by place.
    pub documents: Vec<(Place, &'a Document)>,
    /// One section per experiment.
    pub sections: Vec<Section<'a>>,
}

/// Section on an experiment.
pub struct Section<'a> {
    /// The published experiment.
    pub experiment: &'a Experiment,
    /// Its claims with the verdicts.
    pub judgements: Vec<Judgement<'a>>,
    /// Bound on the gain of each claim, by place.
    pub bounds: Vec<[Option<f64>; 3]>,
    /// Its figures.
    pub charts: Vec<Chart<'a>>,
    /// For C1: how well the models chose.
    pub choices: Vec<regret::Table>,
    /// Summary of its runs, by place.
    pub runs: Vec<(Place, String)>,
    /// Summary of its failures, by place.
    pub failures: Vec<String>,
    /// Explanation of disagreements, in Markdown.
    pub explanation: &'static str,
}

impl<'a> View<'a> {
    /// Creates the view of these experiments from these documents.
    pub fn of(experiments: &'a [Experiment], documents: &'a [Document]) -> Self {
        let place_of = |document: &Document| document.records.first().map(|record| record.place);
        let mut documents: Vec<(Place, &Document)> =
            documents.iter().filter_map(|document| Some((place_of(document)?, document))).collect();
        documents.sort_by_key(|(place, _)| *place);
        let records = |place: Place| -> &'a [Record] {
            documents.iter().find(|(at, _)| *at == place).map_or(&[], |(_, document)| &document.records)
        };
        let all = Place::ALL.map(records);
        let sections =
            experiments.iter().map(|experiment| Section::of(experiment, experiments, &all)).collect();
        Self { documents, sections }
    }

    /// Returns all figures.
    pub fn figures(&self) -> impl Iterator<Item = &Chart<'a>> {
        self.sections.iter().flat_map(|section| &section.charts)
    }
}

impl<'a> Section<'a> {
    fn of(experiment: &'a Experiment, all: &'a [Experiment], records: &[&'a [Record]; 3]) -> Self {
        let own = records.map(|records| {
            records.iter().filter(|record| record.experiment == experiment.id).collect::<Vec<_>>()
        });
        let schemes = schemes_of(experiment.paper, all);
        let look_of = |scheme: &str| schemes.iter().position(|known| *known == scheme).unwrap_or(0);
        let places = || Place::ALL.into_iter().zip(&own);
        let own_records: Vec<Record> = own.concat().into_iter().cloned().collect();
        let choices = if experiment.id == "C1" { regret::tables(&own_records) } else { Vec::new() };
        Self {
            experiment,
            judgements: judge(experiment, &own_records),
            choices,
            bounds: experiment
                .claims
                .iter()
                .map(|claim| own.each_ref().map(|records| bound::of(claim, records)))
                .collect(),
            charts: charts(experiment, &own, look_of),
            runs: places().filter_map(|(place, records)| Some((place, what_was_run(records)?))).collect(),
            failures: places().filter_map(|(place, records)| what_failed(place, records)).collect(),
            explanation: experiment.explanation,
        }
    }

    /// Returns the verdicts at a place; `None` if nothing was run there.
    pub fn verdicts(&self, place: Place) -> Option<Vec<Verdict>> {
        let verdicts: Vec<Verdict> =
            self.judgements.iter().map(|judgement| judgement.at(place).verdict).collect();
        verdicts.iter().any(|verdict| *verdict != Verdict::NotRun).then_some(verdicts)
    }

    /// Summarizes the values at a place: each value if there are few claims, else their range.
    pub fn values(&self, place: Place) -> String {
        let measured =
            || self.judgements.iter().map(|judgement| (&judgement.claim.measure, judgement.at(place)));
        if self.judgements.len() <= FEW {
            let of = |(measure, outcome)| format::outcome(measure, outcome);
            return measured().map(of).collect::<Vec<_>>().join(", ");
        }
        let found = measured().filter_map(|(measure, outcome)| Some((measure, outcome.found.as_ref()?.value)));
        format::range(found).unwrap_or_default()
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

    /// Returns a row of the table of claims.
    pub fn claim_row(&self, index: usize) -> Vec<String> {
        let judgement = &self.judgements[index];
        let mut cells = vec![format::claim(judgement.claim), format::claimed(judgement.claim)];
        for (number, place) in Place::ALL.into_iter().enumerate() {
            let outcome = judgement.at(place);
            let which = format::which(judgement.claim, outcome).map(|which| format!(" ({which})"));
            cells.push(format::outcome(&judgement.claim.measure, outcome) + &which.unwrap_or_default());
            if self.has_bounds(place) {
                let bound = self.bounds[index][number];
                cells
                    .push(bound.map_or("–".to_owned(), |bound| format::value(&judgement.claim.measure, bound)));
            }
        }
        cells
    }

    fn has_bounds(&self, place: Place) -> bool {
        let number = Place::ALL.iter().position(|known| *known == place).unwrap_or(0);
        self.bounds.iter().any(|bounds| bounds[number].is_some())
    }

    /// States in words whether the claims hold, place by place.
    pub fn verdict(&self) -> String {
        let parts: Vec<String> = Place::ALL
            .into_iter()
            .filter_map(|place| {
                Some(format!("{}: {}", format::place(place), format::holds(&self.verdicts(place)?)?))
            })
            .collect();
        match (parts.is_empty(), self.judgements.is_empty()) {
            (false, _) => parts.join("; "),
            (true, true) => "nothing was claimed".to_owned(),
            (true, false) => "not run".to_owned(),
        }
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
    let mut cells: Vec<_> = records.iter().map(|record| &record.labels).collect();
    cells.sort();
    cells.dedup();
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

/// Maximum number of characters shown of an error.
const SHOWN: usize = 160;

fn what_failed(place: Place, records: &[&Record]) -> Option<String> {
    let why = |record: &&&Record| record.failed.is_some() || record.verified == Some(false);
    let failed: Vec<&&Record> = records.iter().filter(why).collect();
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
