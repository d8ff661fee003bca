//! Definitions of the published experiments: `experiments.toml` has their settings, claims and
//! figures, one module for each paper has their cells, and `explanations/` the reasons where
//! results differ.

mod cil;
pub mod devices;
mod making;
mod psa;
mod sla;
mod sweep;

use std::collections::BTreeMap;

use crate::cell::Cell;
use crate::claim::{Experiment, Scale};

macro_rules! table {
    ($($id:literal $cells:path;)*) => {
        [$(($id, $cells, include_str!(concat!("../explanations/", $id, ".md")))),*]
    };
}

/// Id, cells and explanation of every experiment.
type Row = (&'static str, fn(Scale) -> Vec<Cell>, &'static str);

/// C1 to S7 in the papers' order, then this project's X1 and X2.
const ALL: [Row; 20] = table! {
    "C1" cil::c1; "C2" cil::c2; "C3" cil::c3; "C4" cil::c4;
    "P1" psa::p1; "P2" psa::p2; "P3" psa::p3; "P4" psa::p4; "P5" psa::p5; "P6" psa::p6; "P7" psa::p7;
    "S1" sla::s1; "S2" sla::s2; "S3" sla::s3; "S4" sla::s4; "S5" sla::s5; "S6" sla::s6; "S7" sla::s7;
    "X1" sweep::x1; "X2" psa::x2;
};

/// Returns all experiments.
pub fn all() -> Vec<Experiment> {
    let described: BTreeMap<String, Experiment> =
        toml::from_str(include_str!("experiments.toml")).expect("the tests parse this file");
    let experiment = |(id, cells, explanation): Row| Experiment {
        id,
        cells,
        explanation: explanation.trim_ascii(),
        ..described[id].clone()
    };
    ALL.map(experiment).into()
}
