//! The record of a run before it has results.

use std::collections::BTreeMap;

use crate::bound;
use crate::cell::{Cell, Scheme};
use crate::record::{Place, Record};

impl Record {
    /// Creates a record without results. Its details contain the cell's bound.
    pub fn of(place: Place, cell: &Cell, scheme: &Scheme) -> Self {
        Self {
            experiment: cell.experiment.to_owned(),
            place,
            labels: cell.labels.clone(),
            scheme: scheme.name(),
            parameters: cell.parameters(scheme),
            seconds: Vec::new(),
            bytes: 0,
            verified: None,
            failed: None,
            layout: String::new(),
            details: BTreeMap::from([(bound::LEAST_S.to_owned(), bound::least_s(cell))]),
        }
    }
}
