//! The verdict on each plan: what changes, what that is expected to gain, and where the most.

use maud::{Markup, html};
use stripewise_cluster::{KEEP, Rule};

use super::parts::{Table, anchor, sentence};
use crate::{PlanView, Report, units};

/// Maximum number of rows; the section on layouts has all patterns.
const ROWS_MAX: usize = 12;

/// A pattern of files whose times are known.
struct Row<'v> {
    rule: &'v Rule,
    choice: &'v str,
    now_s: f64,
}

impl Row<'_> {
    fn keeps(&self) -> bool {
        self.rule.scheme == KEEP
    }

    fn planned_s(&self) -> f64 {
        if self.keeps() { self.now_s } else { self.rule.elapsed_s }
    }

    fn saved_s(&self) -> f64 {
        self.now_s - self.planned_s()
    }
}

/// Whether the times of any plan's files are known.
pub fn wanted(report: &Report<'_>) -> bool {
    report.plans.iter().any(|view| !rows(view).is_empty())
}

pub fn section(report: &Report<'_>) -> Markup {
    html! {
        @for (index, view) in report.plans.iter().enumerate() {
            @let rows = rows(view);
            @if !rows.is_empty() { (card(view, index, &rows)) }
        }
    }
}

/// The patterns with predictions, those that save the most first.
fn rows(view: &PlanView) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (rule, details) in view.plan.rules.iter().zip(&view.details) {
        let present = details.candidates.iter().find(|candidate| candidate.name == details.present);
        if let Some(now_s) = present.and_then(|present| present.elapsed_s) {
            rows.push(Row { rule, choice: &details.choice, now_s });
        }
    }
    rows.sort_by(|a, b| b.saved_s().total_cmp(&a.saved_s()));
    rows
}

fn card(view: &PlanView, index: usize, rows: &[Row<'_>]) -> Markup {
    let (now_s, planned_s) = match &view.joint {
        Some(joint) => (joint.now_s, joint.planned_s),
        None => (rows.iter().map(|row| row.now_s).sum(), rows.iter().map(Row::planned_s).sum()),
    };
    let refusal = view.promise.and_then(|promise| promise.refusal());
    let less = units::percent(1.0 - planned_s / now_s.max(f64::MIN_POSITIVE));
    let is_promised = refusal.is_none();
    let saved = |row: &&Row<'_>| is_promised.then(|| row.saved_s() / row.now_s.max(f64::MIN_POSITIVE));
    let changed: Vec<&Row<'_>> = rows.iter().filter(|row| !row.keeps()).collect();
    let (kept, more) = (rows.len() - changed.len(), changed.len().saturating_sub(ROWS_MAX));
    let why = rows.first().map(|row| format!("{}: {}", row.rule.pattern, row.rule.reason));
    let table =
        Table::new("The files that change, those that save the most first.", changed.iter().take(ROWS_MAX))
            .head("Files", |row| html! { code { (row.rule.pattern) } })
            .text("Planned layout", |row| row.choice)
            .number("now", |row| Some(row.now_s), units::seconds)
            .number("planned", |row| Some(row.planned_s()), units::seconds)
            .number("saves", |row| saved(row), units::percent);
    html! {
        div.card {
            h3 { "Plan " a href={ "#" (anchor("plan", index)) } { (view.name) } }
            p {
                @if let Some(refusal) = refusal { (refusal) " " } @else {
                    "All files: " b { (units::seconds(now_s)) } " expected now, " b { (units::seconds(planned_s)) }
                    " planned: " (less) " less. "
                }
                (sentence(&why.unwrap_or_default()))
            }
            @if !changed.is_empty() { (table) }
            @if more > 0 { p { (units::counted(more as u64, "more pattern of files", "more patterns of files")) " below." } }
            @if kept > 0 {
                p { (units::counted(kept as u64, "pattern of files keeps its layout", "patterns of files keep their layout")) "." }
            }
        }
    }
}
