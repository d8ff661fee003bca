//! What a try prints.

use std::fmt::Write;

use serde_json::{Value, json};
use stripewise_report::Predictions;
use stripewise_report::trial::{Repeated, Verdict};

use super::compare::{Compared, Times};
use super::state::{Phase, Trial};
use crate::output;

/// Maximum number of patterns in the table.
const ROWS_MAX: usize = 12;
/// Maximum number of patterns that are named as slower.
const SLOWER_MAX: usize = 3;

/// How a try ends, with what `plan` predicted if it made the plan.
pub enum Outcome {
    /// The plan changes nothing.
    Unchanged(Option<Predictions>),
    /// The new layouts are faster.
    Kept(Compared, Option<Predictions>),
    /// They are not.
    Undone(Compared, Option<Predictions>),
}

impl Outcome {
    fn parts(&self) -> (Option<&Compared>, Option<&Predictions>) {
        match self {
            Self::Unchanged(predictions) => (None, predictions.as_ref()),
            Self::Kept(compared, predictions) | Self::Undone(compared, predictions) => {
                (Some(compared), predictions.as_ref())
            }
        }
    }
}

/// The result for people.
pub fn text(outcome: &Outcome, trial: &Trial) -> String {
    let mut text = String::new();
    write_text(&mut text, outcome, trial).expect("a string takes any text");
    text
}

fn write_text(out: &mut String, outcome: &Outcome, trial: &Trial) -> std::fmt::Result {
    let (compared, predictions) = outcome.parts();
    let Some(compared) = compared else {
        let reason = predictions.and_then(|predictions| predictions.files.first()).map(|files| &files.reason);
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        return writeln!(
            out,
            "{}",
            output::wrapped(&format!("Nothing to try: the plan changes no layout{reason}."))
        );
    };
    writeln!(out, "{}\n", table(compared))?;
    if let Some(line) = predictions.and_then(|predictions| predicted(predictions, compared)) {
        writeln!(out, "{}", output::wrapped(&line))?;
    }
    writeln!(out, "{}", output::wrapped(&verdict(outcome, compared)))?;
    for line in slower(compared) {
        writeln!(out, "{}", output::wrapped(&line))?;
    }
    match outcome {
        Outcome::Kept(..) => writeln!(
            out,
            "{}\n  {}",
            if trial.state.native {
                "Programs need no part of stripewise. The way back:".to_owned()
            } else {
                format!(
                    "Run it from now on with `stripewise run -p {} -- ...`. The way back:",
                    trial.plan().display()
                )
            },
            trial.undo_command()
        ),
        _ => Ok(()),
    }
}

fn table(compared: &Compared) -> String {
    let mut table = output::table(["files", "s before", "s after", "saves"], [1, 2, 3]);
    for set in compared.sets.iter().take(ROWS_MAX) {
        table.add_row(row(&set.pattern, &set.times));
    }
    let more = compared.sets.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        table.add_row([format!("... and {more} more (--json)")]);
    }
    table.add_row(row("all of them", &compared.io));
    table.add_row(row("the whole command", &compared.wall));
    output::without_blanks(&table)
}

fn row(name: &str, times: &Times) -> [String; 4] {
    let saves = match times.difference.verdict {
        Verdict::Same => "same".to_owned(),
        Verdict::Faster | Verdict::Slower => format!("{:.0} %", 100.0 * times.difference.saved),
    };
    [name.to_owned(), seconds(&times.before), seconds(&times.after), saves]
}

/// The mean with its spread.
fn seconds(repeated: &Repeated) -> String {
    let spread = repeated.spread_s.map_or_else(String::new, |spread_s| format!(" ±{spread_s:.3}"));
    format!("{:.3}{spread}", repeated.mean_s)
}

/// What the plan promised, next to what came of it.
fn predicted(predictions: &Predictions, compared: &Compared) -> Option<String> {
    let (now_s, planned_s) = predictions.totals_s();
    let measured = 100.0 * compared.io.difference.saved;
    if let Some(why) = predictions.promise.and_then(|promise| promise.why_not()) {
        return Some(format!("No promise: {why}. So only the measurement counts: {measured:.0} % less."));
    }
    (now_s > 0.0).then(|| {
        format!(
            "The plan promised {now_s:.3} s before and {planned_s:.3} s after ({:.0} % less); measured was {:.0} % \
             less.",
            100.0 * (1.0 - planned_s / now_s),
            measured
        )
    })
}

fn verdict(outcome: &Outcome, compared: &Compared) -> String {
    let Times { before, after, difference } = &compared.io;
    let runs = format!("{} and {} runs", before.runs_s.len(), after.runs_s.len());
    let spread_s = difference.spread_s.unwrap_or_default();
    let saved_s = difference.saved_s.abs();
    if before.mean_s == 0.0 && after.mean_s == 0.0 {
        return "Undone: the command did no I/O on files of the plan, so nothing can be said. Is the plan one for this \
                command?"
            .to_owned();
    }
    match (outcome, difference.verdict) {
        (Outcome::Kept(..), _) => format!(
            "Kept: the new layouts save {saved_s:.3} s of I/O, and the spread of {runs} is {spread_s:.3} s."
        ),
        (_, Verdict::Slower) => format!(
            "Undone: the new layouts take {saved_s:.3} s more I/O, and the spread of {runs} is {spread_s:.3} s. The \
             files have their former layouts back."
        ),
        _ => format!(
            "Undone: the difference of {saved_s:.3} s of I/O is within the spread of {runs}, {spread_s:.3} s, so no \
             gain is certain. The files have their former layouts back."
        ),
    }
}

/// The patterns that got slower though all files together got faster.
fn slower(compared: &Compared) -> Vec<String> {
    let sets = compared.sets.iter().filter(|set| set.times.difference.verdict == Verdict::Slower);
    let names: Vec<&str> = sets.map(|set| set.pattern.as_str()).collect();
    if names.is_empty() || !compared.is_faster() {
        return Vec::new();
    }
    let more = names.len().saturating_sub(SLOWER_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = names.into_iter().take(SLOWER_MAX).collect::<Vec<_>>().join(", ");
    vec![format!("Slower are {names}{more}: leave them out with --only and patterns of the others.")]
}

/// The result for programs.
pub fn json(outcome: &Outcome, trial: &Trial) -> Value {
    let (compared, predictions) = outcome.parts();
    let mut value = state_json(trial);
    value["measured"] = json!(compared);
    value["predicted"] = json!(predictions.map(|predictions| &predictions.files));
    value["totals"] = json!(predictions.map(totals));
    value
}

/// The predicted time of all files together, and whether it is promised. Files that are used at the
/// same time take less than the sum of their times.
fn totals(predictions: &Predictions) -> Value {
    let (now_s, planned_s) = predictions.totals_s();
    json!({ "now_s": now_s, "planned_s": planned_s, "promise": predictions.promise })
}

/// The state of a try for programs.
pub fn state_json(trial: &Trial) -> Value {
    let can_undo = matches!(trial.state.phase, Phase::Changed | Phase::Kept);
    json!({
        "result": trial.state.phase,
        "dir": trial.dir.display().to_string(),
        "plan": trial.plan().display().to_string(),
        "undo": can_undo.then(|| trial.undo_command()),
    })
}

/// The state after a signal, and what to type.
pub fn interrupted(trial: &Trial) -> String {
    match trial.state.phase {
        Phase::Changed => format!(
            "interrupted: files may be in the layouts of {}; `{}` undoes it, and the same command continues",
            trial.plan().display(),
            trial.undo_command()
        ),
        _ => format!(
            "interrupted: nothing was changed, and there is nothing to undo; the same command continues with the runs \
             in {}",
            trial.dir.display()
        ),
    }
}
