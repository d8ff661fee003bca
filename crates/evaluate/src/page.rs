//! The page on the results: Markdown, with its drawings as separate SVG files.
//!
//! Deterministic: the same records give the same bytes.

mod chart;
mod drawing;
mod format;
mod look;
mod maps;
mod markdown;
mod plans;
mod section;
mod series;

#[cfg(test)]
mod tests;

use crate::claim::Experiment;
use crate::record::{Document, Place};
use section::Section;
pub use series::DRAWINGS;

/// The page on the experiments, and its drawings.
#[derive(Clone, Debug, PartialEq)]
pub struct Pages {
    /// Text of `evaluation.md`.
    pub markdown: String,
    /// (name, text) of the drawings that the Markdown page shows, in [`DRAWINGS`].
    pub drawings: Vec<(String, String)>,
}

/// Returns whether a file name is that of a drawing that [`render`] may have made, such as
/// `C1-2.svg`.
pub fn is_drawing(name: &str) -> bool {
    let parts = name.strip_suffix(".svg").and_then(|stem| stem.split_once('-'));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    parts.is_some_and(|(id, number)| {
        id.starts_with(|c: char| c.is_ascii_uppercase()) && digits(&id[1..]) && digits(number)
    })
}

/// Renders the page on `experiments` from `documents`, which hold at most one document per place,
/// in any order.
pub fn render(experiments: &[Experiment], documents: &[Document]) -> Pages {
    let of = |place: Place| {
        let is_of = |document: &&Document| document.records.first().is_some_and(|first| first.place == place);
        documents.iter().find(is_of)
    };
    let documents = Place::ALL.map(of);
    let section = |experiment| Section::of(experiment, experiments, &documents);
    let sections: Vec<Section<'_>> = experiments.iter().map(section).collect();
    let charts = sections.iter().flat_map(|section| &section.charts);
    Pages {
        drawings: charts.map(|chart| (chart.file_name.clone(), drawing::alone(chart))).collect(),
        markdown: markdown::page(&documents, &sections),
    }
}
