//! The verdict: five lines of at most 80 columns that say what is slow, why, what to type, what
//! that gains and how sure this is.

use serde::Serialize;

use crate::facts::{Facts, FileFacts, Source};
use crate::findings::thresholds::{CALLS_JUDGED, NOTABLE_SHARE, TIME_JUDGED_S};
use crate::findings::{Finding, Severity};
use crate::storage::{Origin, Storage};
use crate::text::{at_most, bytes, count, number, percent, seconds, shortened};

/// Columns of a line.
pub const WIDTH: usize = 80;
/// Columns of a line's label.
const LABEL: usize = 6;

/// How sure an advice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The log shows it.
    High,
    /// The log shows the cause; the gain depends on something that was not measured.
    Fair,
    /// The log lacks data, or the advice rests on assumptions.
    Low,
}

/// The five lines, without their labels.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What is slow.
    pub slow: String,
    /// What was found.
    pub why: String,
    /// What to type.
    pub todo: String,
    /// What it gains.
    pub gain: String,
    /// How sure this is.
    pub confidence: Confidence,
    /// The reason for the confidence.
    pub sure: String,
}

impl Verdict {
    /// The five lines, each with its label and at most [`WIDTH`] columns.
    pub fn lines(&self) -> [String; 5] {
        let level = match self.confidence {
            Confidence::High => "high",
            Confidence::Fair => "fair",
            Confidence::Low => "low",
        };
        let sure = format!("{level}: {}", self.sure);
        let lines = [
            ("Slow:", &self.slow),
            ("Why:", &self.why),
            ("Type:", &self.todo),
            ("Gain:", &self.gain),
            ("Sure:", &sure),
        ];
        lines.map(|(label, text)| format!("{label:LABEL$}{}", shortened(text, WIDTH - LABEL)))
    }
}

/// The verdict on a job.
pub fn verdict(facts: &Facts, storage: &Storage, findings: &[Finding]) -> Verdict {
    if !facts.has_io() {
        return without_io(facts);
    }
    let is_short = facts.io_share().is_some_and(|share| share < NOTABLE_SHARE)
        || (facts.runtime_s.is_some() && facts.busiest_s() < TIME_JUDGED_S);
    match findings.first() {
        Some(_) if is_short => hardly(facts),
        Some(finding) => of_finding(facts, storage, finding),
        None if is_short => hardly(facts),
        None => without_cause(facts),
    }
}

fn without_io(facts: &Facts) -> Verdict {
    let left_out = facts.left_out;
    let why = match left_out.files {
        0 => "the log counts no reads and writes at all".to_owned(),
        files => {
            format!("only logs, software or standard streams: {}, {}", number(files), bytes(left_out.bytes))
        }
    };
    Verdict {
        slow: match facts.incomplete.is_empty() {
            true => "nothing: the job does no I/O on data files".into(),
            false => "not known: what is left of the log has no I/O on data files".into(),
        },
        why,
        todo: "nothing to advise".into(),
        gain: if facts.incomplete.is_empty() { "none".into() } else { "not known".into() },
        confidence: if facts.incomplete.is_empty() { Confidence::High } else { Confidence::Low },
        sure: incomplete(facts).unwrap_or_else(|| "the names of the files tell their purpose".into()),
    }
}

/// The I/O hardly counts.
fn hardly(facts: &Facts) -> Verdict {
    let share = facts.io_share().unwrap_or(0.0);
    let runtime_s = facts.runtime_s.unwrap_or(0.0);
    Verdict {
        slow: format!("nothing much: I/O takes {} of the run ({})", percent(share), seconds(runtime_s)),
        why: match share < NOTABLE_SHARE {
            true => format!("the busiest process does I/O for {} only", seconds(facts.busiest_s())),
            false => format!("{} of I/O is no more than runs differ by", seconds(facts.busiest_s())),
        },
        todo: match share < NOTABLE_SHARE {
            true => "nothing: look at the program's other work first".into(),
            false => "nothing: take the log of a longer run".into(),
        },
        gain: format!("{} of the run, with all I/O gone", at_most(share)),
        confidence: match (facts.incomplete.is_empty(), share < NOTABLE_SHARE) {
            (true, true) => Confidence::High,
            (true, false) => Confidence::Fair,
            (false, _) => Confidence::Low,
        },
        sure: incomplete(facts).unwrap_or_else(|| "times are those in the log".into()),
    }
}

fn without_cause(facts: &Facts) -> Verdict {
    let calls = facts.files.iter().map(FileFacts::calls).fold(0, u64::saturating_add);
    Verdict {
        slow: slow(facts),
        why: match calls < CALLS_JUDGED {
            true => format!("no known cause: {} show no pattern", count(calls, "request")),
            false => "no known cause: requests are large, in order and shared out evenly".into(),
        },
        todo: "nothing known; compare with the file system's peak rate".into(),
        gain: bound(facts.io_share()),
        confidence: Confidence::Fair,
        sure: incomplete(facts)
            .unwrap_or_else(|| "what is not in the log may be slow: network, other jobs".into()),
    }
}

fn of_finding(facts: &Facts, storage: &Storage, finding: &Finding) -> Verdict {
    let todo = match finding.commands.first() {
        Some(command) if command.text.len() <= WIDTH - LABEL => command.text.clone(),
        // The remedy of a layout is the command.
        Some(command) if finding.speedup.is_some() => format!("(whole below) {}", command.text),
        _ => finding.remedy.clone(),
    };
    let gain = match finding.speedup {
        Some(speedup) if finding.at_most_share.is_none() => {
            format!("at least: not known; the model says {speedup:.1} times as fast")
        }
        Some(speedup) => {
            let share = finding.at_most_share.unwrap_or(0.0);
            format!("{} of the run (model: {speedup:.1} times as fast); at least: not known", at_most(share))
        }
        None => bound(finding.at_most_share),
    };
    let (confidence, sure) = sure(facts, storage, finding);
    Verdict { slow: slow(facts), why: finding.what.clone(), todo, gain, confidence, sure }
}

/// All that could be gained.
fn bound(share: Option<f64>) -> String {
    match share {
        Some(share) => format!("{} of the run; at least: not known", at_most(share)),
        None => "not known: the log has no run time".into(),
    }
}

/// What takes the time: `writes: 49 s of 117 s (42 %) in the busiest process, 2T`.
fn slow(facts: &Facts) -> String {
    let sum = |of: fn(&FileFacts) -> f64| facts.files.iter().map(of).sum::<f64>();
    let [read, written] = facts.bytes();
    let kinds = [
        ("reads", sum(|file| file.data[0].time_s), Some(read)),
        ("writes", sum(|file| file.data[1].time_s), Some(written)),
        ("opens, closes and stats", sum(|file| file.meta_s), None),
    ];
    let (name, sum_s, moved) =
        kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are three kinds");
    let moved = moved.map_or(String::new(), |moved| format!(", {}", bytes(moved)));
    if sum_s <= 0.0 {
        return format!("not known: the log has no times ({} read, {} written)", bytes(read), bytes(written));
    }
    let time_s = facts.of_busiest_s(sum_s);
    let of_run = match facts.runtime_s {
        Some(runtime_s) => {
            format!(" of {} ({})", seconds(runtime_s), percent((time_s / runtime_s).min(1.0)))
        }
        None => String::new(),
    };
    let up_to = if facts.is_busiest_a_bound() { "up to " } else { "" };
    format!("{name}: {up_to}{}{of_run} in the busiest process{moved}", seconds(time_s))
}

fn incomplete(facts: &Facts) -> Option<String> {
    facts.incomplete.first().map(|reason| format!("the log is incomplete: {reason}"))
}

fn sure(facts: &Facts, storage: &Storage, finding: &Finding) -> (Confidence, String) {
    if let Some(reason) = incomplete(facts) {
        return (Confidence::Low, reason);
    }
    if facts.source == Source::Synthetic && finding.speedup.is_none() {
        return (Confidence::Low, "a synthetic trace: no program ran".into());
    }
    if finding.severity == Severity::Note && finding.speedup.is_none() {
        return (Confidence::Low, "the log counts it, but does not tell that it costs time".into());
    }
    let (speed, measured) = storage.speed();
    let single = matches!(facts.source, Source::Recorded | Source::Extended);
    match finding.speedup {
        None => {
            let source = if single { "every call is in the log" } else { "counted by Darshan" };
            (Confidence::Fair, format!("{source}; what it costs is a bound, not a forecast"))
        }
        Some(_) if storage.assumed_servers => {
            (Confidence::Low, format!("{} servers are assumed, {speed}", storage.servers()))
        }
        Some(_) if measured && single => (Confidence::High, speed),
        Some(_) if single => (Confidence::Fair, speed),
        Some(_) => {
            let how = if storage.origin == Origin::Deduced { "deduced; " } else { "" };
            let calls = match facts.source {
                Source::Synthetic => "no program ran",
                _ => "calls guessed from counters",
            };
            (Confidence::Low, format!("{how}{speed}; {calls}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_fit(text in "\\PC{0,200}") {
            let verdict = Verdict {
                slow: text.clone(),
                why: text.clone(),
                todo: text.clone(),
                gain: text.clone(),
                confidence: Confidence::Low,
                sure: text,
            };
            for line in verdict.lines() {
                prop_assert!(line.chars().count() <= WIDTH);
            }
        }
    }

    #[test]
    fn without_io_there_is_nothing_to_advise() {
        let storage = Storage::deduced(&Facts::default());
        let verdict = verdict(&Facts::default(), &storage, &[]);
        assert_eq!((verdict.todo.as_str(), verdict.gain.as_str()), ("nothing to advise", "none"));
    }
}
