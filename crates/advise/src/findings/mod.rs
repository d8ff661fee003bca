//! What is slow in a job's I/O, and the remedy of each, the most severe first.

mod balance;
mod finding;
mod interfaces;
mod layout;
mod metadata;
mod requests;
pub mod thresholds;

pub use finding::{Finding, Severity};

use crate::facts::Facts;
use crate::layouts::LayoutAdvice;
use crate::storage::Storage;
use finding::Job;

/// All findings, the most severe first.
pub fn findings(facts: &Facts, storage: &Storage, layouts: &[LayoutAdvice]) -> Vec<Finding> {
    let job = Job { facts, storage, layouts };
    let rules: [fn(&Job<'_>) -> Vec<Finding>; 14] = [
        balance::slow_server,
        layout::layout,
        requests::small,
        requests::random,
        requests::misaligned,
        requests::repeated,
        metadata::metadata,
        interfaces::sieving,
        interfaces::above_system_calls,
        interfaces::independent,
        interfaces::without_mpi_io,
        interfaces::streams,
        interfaces::left_out,
        balance::stragglers,
    ];
    let mut found: Vec<Finding> = rules.iter().flat_map(|rule| rule(&job)).collect();
    // Those of the same severity and time stay in the order of the rules.
    found.sort_by(|a, b| a.severity.cmp(&b.severity).then(b.at_most_s.total_cmp(&a.at_most_s)));
    found
}
