//! Formats numbers and names for the page and its drawings.

use stripewise_report::{Machine, units};

use crate::claim::{Claim, Experiment, Measure, Paper};
use crate::judge::{Found, Outcome, Verdict};
use crate::record::{Place, Record};
use crate::regret;

/// Returns the heading of a place.
pub fn place(place: Place) -> &'static str {
    match place {
        Place::Simulated => "simulated",
        Place::Emulated => "emulated servers",
        Place::Disks => "throttled disks",
    }
}

/// Describes a place.
pub fn about(place: Place) -> &'static str {
    match place {
        Place::Simulated => {
            "the published sizes in a discrete-event simulator, with the planner and the policies that the runtime has"
        }
        Place::Emulated => {
            "real MPI programs and real data, scaled down, on servers whose every access takes the time that the models' \
             formula says. The models are right about them by construction, so agreement here flatters: it shows that \
             planner and data path do what they should, not that real devices behave so"
        }
        Place::Disks => {
            "real programs and real data, scaled down, on throttled disks under a real file system. What a disk takes for a \
             request is given here, too (a startup and its bytes, one arm, first come first served), but not what the \
             file system, the kernel's queues and several processes at one arm make of it"
        }
    }
}

/// Returns the name of the paper's system.
pub fn paper(paper: Paper) -> &'static str {
    match paper {
        Paper::Cil => "CIL",
        Paper::Psa => "PSA",
        Paper::Sla => "SLA",
    }
}

/// Formats a claim's value: gains have a sign, fractions of all cases have none.
pub fn value(measure: &Measure, value: f64) -> String {
    // Tenths of a point would suggest more precision than there is.
    let rounded = (value * 100.0).round() / 100.0;
    match measure {
        Measure::BestPicked { .. } => units::percent(rounded),
        _ => units::signed_percent(rounded),
    }
}

/// Formats the claimed range: `+67 %`, `+52 % to +65 %`.
pub fn claimed(claim: &Claim) -> String {
    let (from, to) = claim.claimed;
    let text = |end| value(&claim.measure, end);
    if from == to {
        return text(from);
    }
    format!("{} to {}", text(from), text(to))
}

/// Formats a claim: `reads, up to: PSA over PA`.
pub fn claim(claim: &Claim) -> String {
    let what = &claim.what;
    match &claim.measure {
        Measure::Gain { scheme, over } | Measure::LargestGain { scheme, over } => {
            format!("{what}: {scheme} over {over}")
        }
        Measure::GainOverBest { scheme, over } => {
            format!("{what}: {scheme} over the best of {}", over.join(", "))
        }
        Measure::BestPicked { .. } => what.clone(),
    }
}

/// Formats a result: `+62 % ±3`.
pub fn found(measure: &Measure, found: &Found) -> String {
    let points = (found.spread * 100.0).round();
    let spread = if points >= 1.0 { format!("\u{a0}±{points}") } else { String::new() };
    format!("{}{spread}", value(measure, found.value))
}

/// Formats an outcome for a table: sign, value, and missing cells.
pub fn outcome(measure: &Measure, outcome: &Outcome) -> String {
    let Some(found_there) = &outcome.found else {
        return if outcome.missing > 0 { "– failed".to_owned() } else { "–".to_owned() };
    };
    let verdict = outcome.verdict;
    let missing = match outcome.missing {
        0 => String::new(),
        missing => format!(" ({} of {} cells)", found_there.cells, found_there.cells + missing),
    };
    format!("{}\u{a0}{}{missing}", verdict.sign(), found(measure, found_there))
}

/// Returns the labels of the cell with the largest value, as far as the claim does not state them.
pub fn which(claim: &Claim, outcome: &Outcome) -> Option<String> {
    let at = outcome.found.as_ref()?.at.as_ref()?;
    let more = labels(at.iter().filter(|(key, _)| !claim.labels.contains_key(*key)));
    (!more.is_empty()).then_some(more)
}

/// Formats the least and the most of the results: `−3 % to +62 %`.
pub fn range<'a>(found: impl Iterator<Item = (&'a Measure, f64)>) -> Option<String> {
    let mut found: Vec<(&Measure, f64)> = found.collect();
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (least, most) = (found.first()?, found.last()?);
    let (least, most) = (value(least.0, least.1), value(most.0, most.1));
    Some(if least == most { least } else { format!("{least} to {most}") })
}

/// States whether an experiment's claims hold at a place; `None` if none was judged. A gain larger
/// than claimed holds, but is mentioned.
pub fn holds(verdicts: &[Verdict]) -> Option<String> {
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let judged = verdicts.len() - count(Verdict::NotRun);
    let larger = count(Verdict::Larger);
    let more = if larger > 0 { format!("{larger} with more than claimed") } else { String::new() };
    match (count(Verdict::Agrees) + larger, judged) {
        (_, 0) => None,
        (good, judged) if good == judged && larger == 0 => Some("holds".to_owned()),
        (good, judged) if good == judged => Some(format!("holds ({more})")),
        (0, _) => Some("does not hold".to_owned()),
        (good, judged) if larger == 0 => Some(format!("holds in part ({good} of {judged})")),
        (good, judged) => Some(format!("holds in part ({good} of {judged}, {more})")),
    }
}

/// Returns the number of claims with each verdict, the best first.
pub fn tally(verdicts: &[Verdict]) -> Vec<(Verdict, usize)> {
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    Verdict::ALL.into_iter().map(|verdict| (verdict, count(verdict))).filter(|(_, count)| *count > 0).collect()
}

/// Caption of the table of [`choice_row`].
pub const CHOICES: &str = "How often each model picks the layout that is the fastest, or cannot be told from it, and what is lost \
    where it does not: regret is the part of the fastest layout's time by which the picked one takes longer.";

/// Columns of [`choice_row`].
pub const CHOICE_COLUMNS: [&str; 7] =
    ["where", "model", "cells", "cases", "best picked", "mean regret", "worst regret"];

/// Returns a row on how well a model chose at a place.
pub fn choice_row(at: Place, row: &regret::Row) -> Vec<String> {
    let tenths = |share: f64| units::percent((share * 1000.0).round() / 1000.0);
    vec![
        place(at).to_owned(),
        row.model.to_owned(),
        row.group.clone(),
        units::count(row.cases as u64),
        tenths(row.best),
        tenths(row.mean_regret),
        tenths(row.worst_regret),
    ]
}

/// Caption of a map.
pub const MAP: &str = "the fastest layout (H 1-DH, V 1-DV, 2 2-D); where the planner picked another one, ✗, which, and its regret";

/// Formats labels: `op read, size 64K`.
pub fn labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let pairs: Vec<String> = labels.into_iter().map(|(key, value)| format!("{key} {value}")).collect();
    pairs.join(", ")
}

/// Capitalizes the first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the heading of an experiment.
pub fn heading(experiment: &Experiment) -> String {
    format!("{}: {}", experiment.id, experiment.title)
}

/// Returns the anchor that Markdown gives to [`heading`].
pub fn anchor(experiment: &Experiment) -> String {
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    heading(experiment).to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Describes a machine.
pub fn machine(machine: &Machine) -> String {
    let cores = units::counted(machine.cores.into(), "processor", "processors");
    format!("{}, {cores}, {}, {}", machine.cpu, units::bytes(machine.memory_bytes), machine.system)
}

/// States how many runs there are, and whether their bytes were right.
pub fn runs(records: &[Record]) -> String {
    let count =
        |wanted: &dyn Fn(&Record) -> bool| records.iter().filter(|record| wanted(record)).count() as u64;
    let failed = count(&|record| record.failed.is_some());
    let (right, wrong) = (count(&|it| it.verified == Some(true)), count(&|it| it.verified == Some(false)));
    let mut text = units::count(records.len() as u64);
    if right + wrong > 0 {
        text +=
            &format!(", {} verified byte by byte, {} wrong", units::count(right + wrong), units::count(wrong));
    }
    if failed > 0 {
        text += &format!(", {} failed", units::count(failed));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_says_what_of_it_is_more_than_claimed() {
        use Verdict::{Agrees, Larger, NotRun, Opposite};
        for (verdicts, text) in [
            (vec![NotRun], None),
            (vec![Agrees, NotRun], Some("holds")),
            (vec![Agrees, Larger], Some("holds (1 with more than claimed)")),
            (vec![Opposite], Some("does not hold")),
            (vec![Agrees, Opposite], Some("holds in part (1 of 2)")),
            (vec![Agrees, Larger, Opposite], Some("holds in part (2 of 3, 1 with more than claimed)")),
        ] {
            assert_eq!(holds(&verdicts).as_deref(), text);
        }
    }
}
