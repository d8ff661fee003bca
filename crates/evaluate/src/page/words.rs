//! Numbers and places in words, the same in Markdown and HTML.

use stripewise_report::{Machine, units};

use crate::claim::{Claim, Experiment, Measure, Paper};
use crate::judge::{Found, Outcome, Verdict};
use crate::record::{Labels, Place, Record};

/// The heading of a place.
pub fn place(place: Place) -> &'static str {
    match place {
        Place::Simulated => "simulated",
        Place::Emulated => "emulated servers",
        Place::Disks => "slowed disks",
    }
}

/// What a place is.
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
            "real programs and real data, scaled down, on slowed disks with a real file system, whose times are no \
             formula of ours"
        }
    }
}

/// The paper's system.
pub fn paper(paper: Paper) -> &'static str {
    match paper {
        Paper::Cil => "CIL",
        Paper::Psa => "PSA",
        Paper::Sla => "SLA",
    }
}

/// A value of a claim's kind: gains have a sign, shares of all cases have none.
pub fn value(measure: &Measure, value: f64) -> String {
    // Tenths of a point would say more than is known.
    let rounded = (value * 100.0).round() / 100.0;
    match measure {
        Measure::BestPicked { .. } => units::percent(rounded),
        _ => units::signed_percent(rounded),
    }
}

/// What is claimed: `+67 %`, `+52 % to +65 %`.
pub fn claimed(claim: &Claim) -> String {
    let (from, to) = claim.claimed;
    let text = |end| value(&claim.measure, end);
    if from == to {
        return text(from);
    }
    format!("{} to {}", text(from), text(to))
}

/// What was found: `+62 % ±3`.
pub fn found(measure: &Measure, found: &Found) -> String {
    let points = (found.spread * 100.0).round();
    let spread = if points >= 1.0 { format!(" ±{points}") } else { String::new() };
    format!("{}{spread}", value(measure, found.value))
}

/// An outcome in a table: sign, value, and what is missing of it.
pub fn outcome(measure: &Measure, outcome: &Outcome) -> String {
    let Some(found_there) = &outcome.found else {
        return if outcome.missing > 0 { "– failed".to_owned() } else { "–".to_owned() };
    };
    let verdict = outcome.verdict;
    let missing = match outcome.missing {
        0 => String::new(),
        missing => format!(" ({} of {} cells)", found_there.cells, found_there.cells + missing),
    };
    format!("{} {}{missing}", verdict.sign(), found(measure, found_there))
}

/// The same, and of the largest of several cells which that is.
pub fn outcome_and_place(measure: &Measure, found: &Outcome) -> String {
    let at = found.found.as_ref().and_then(|found| found.at.as_ref());
    let at = at.map(|at| format!(" ({})", labels(at))).unwrap_or_default();
    format!("{}{at}", outcome(measure, found))
}

/// Verdicts of one place: `3 agree, 1 smaller`; none if nothing was run.
pub fn tally(verdicts: &[Verdict]) -> Option<String> {
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    if count(Verdict::NotRun) == verdicts.len() {
        return None;
    }
    let word = |verdict: Verdict, count: usize| match verdict {
        Verdict::Agrees if count > 1 => "agree",
        _ => verdict.name(),
    };
    let parts =
        Verdict::ALL.into_iter().map(|verdict| (verdict, count(verdict))).filter(|(_, count)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(verdict, count)| format!("{count}\u{a0}{}", word(verdict, count))).collect();
    Some(parts.join(", "))
}

/// Labels: `op read, size 64K`.
pub fn labels(labels: &Labels) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key} {value}")).collect();
    pairs.join(", ")
}

/// With a capital letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The heading of an experiment.
pub fn heading(experiment: &Experiment) -> String {
    format!("{}: {}", experiment.id, experiment.title)
}

/// The anchor that Markdown gives to [`heading`].
pub fn anchor(experiment: &Experiment) -> String {
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    heading(experiment).to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A machine.
pub fn machine(machine: &Machine) -> String {
    let cores = units::counted(machine.cores.into(), "processor", "processors");
    format!("{}, {cores}, {}, {}", machine.cpu, units::bytes(machine.memory_bytes), machine.system)
}

/// How many runs there are, and whether they were right.
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
