//! Why an experiment's results differ from what was claimed: one short text each, shown under its table.
//!
//! In Markdown: paragraphs, lists (`- `), tables, `code`, **bold** and [links](…) relative to `docs/`; the page in HTML
//! understands no more than that.

/// (experiment, text) of each file in `explanations/`.
const TEXTS: &[(&str, &str)] = &texts();

/// The text of an experiment; empty if it is explained by the table alone, or unknown.
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
