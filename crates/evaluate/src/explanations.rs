//! Explanations of why an experiment's results differ from the claims: one short text each, shown
//! below its table.
//!
//! The texts are Markdown with paragraphs, lists (`- `), tables, `code`, **bold** and [links](…)
//! relative to `docs/`. The HTML page supports nothing else.

/// (experiment, text) of each file in `explanations/`.
const TEXTS: &[(&str, &str)] = &texts();

/// Returns the text of an experiment; empty for an unknown experiment, or if the table needs no
/// explanation.
pub fn of(experiment: &str) -> &'static str {
    TEXTS.iter().find(|(id, _)| *id == experiment).map_or("", |(_, text)| text.trim_ascii())
}

macro_rules! from_files {
    ($($id:literal)*) => {
        const fn texts() -> [(&'static str, &'static str); [$($id),*].len()] {
            [$(($id, include_str!(concat!("explanations/", $id, ".md")))),*]
        }
    };
}

from_files!("C1" "C2" "C3" "C4" "P1" "P2" "P3" "P4" "P5" "P6" "P7" "S1" "S2" "S3" "S4" "S5" "S6" "S7" "X1" "X2");
