//! Expected gain of replicas.

use stripewise_cluster::Rule;
use stripewise_plan::{Background, Expected, ExpectedCopy};

use super::super::bars::Bars;
use crate::html::Html;
use crate::results::Candidate;

/// Draws the time of every copy alone, compared with the choice between them.
pub fn figures(h: &mut Html, rule: &Rule, expected: &Expected, background: Option<Background>) {
    let time = |name: String, elapsed_s: f64| Candidate {
        name,
        layout: String::new(),
        predicted_s: None,
        elapsed_s: Some(elapsed_s),
        measured_s: Vec::new(),
        verified: None,
    };
    let alone = |copy: &ExpectedCopy| Some(time(format!("{} alone", copy.name), copy.alone?.alone_elapsed_s));
    let mut candidates: Vec<Candidate> = expected.copies.iter().filter_map(alone).collect();
    let choice = format!("all {} copies, each request on the cheapest", expected.copies.len());
    candidates.push(time(choice.clone(), rule.elapsed_s));
    let copying_s = background.filter(|_| expected.close_waits).map_or(0.0, |background| background.seconds);
    if copying_s > 0.0 {
        let without = (rule.elapsed_s - copying_s).max(0.0);
        candidates.push(time("the same, if close did not wait".to_owned(), without));
    }
    let bars = Bars { candidates: &candidates, choice: &choice, present: "" };
    bars.figure(h, "Expected wall-clock time of each copy alone, and with the choice between them");
}
