//! The decision for one of many sets.

use super::columns::{KindColumn, KindPlan, Taken};
use super::field::{Field, Place};
use super::kinds::Work;
use super::servers::layouts_for;
use crate::candidate::{Candidate, Judged};
use crate::choose::{Decision, reason_for};
use crate::options::Objective;
use crate::problem::Problem;
use crate::spread::spread_for;
use crate::workload::FileSet;

/// The decision for a set in its place, which takes this `share` of the time in its present layout.
pub fn decision(
    field: &Field<'_>,
    kinds: &[KindPlan],
    (set, place): (&FileSet, Place),
    share: f64,
) -> Decision {
    let kind = &kinds[place.kind as usize];
    let work: Work<'_> = &field.work();
    let judged = |column: usize| scaled(&kind.columns[column], kind.taken(set, column, work));
    let (present, column) = (judged(0), place.column as usize);
    let best = if column == 0 { present.clone() } else { in_place(field, judged(column), (set, place)) };
    let objective = field.options.objective;
    let (now_s, then_s) = (objective.of(&present), objective.of(&best));
    let gain = if now_s > 0.0 { 1.0 - then_s / now_s } else { 0.0 };
    let reason = reason(field, kind, (set, column), (&present, &best, gain, share));
    Decision {
        pattern: set.pattern.clone(),
        files: set.count() as usize,
        file_bytes: set.total_size(),
        requests: set.requests(),
        request_size: main_size(set),
        present,
        candidates: vec![best],
        picks: vec![0],
        best: 0,
        gain,
        tie: None,
        keep: column == 0,
        reason,
        notes: Vec::new(),
        expected: None,
    }
}

/// A layout judged for the pooled set, with the predictions for one set.
fn scaled(column: &KindColumn, Taken { elapsed_s, cost }: Taken) -> Judged {
    let judged = &column.judged;
    let fraction = elapsed_s / judged.elapsed_s.max(f64::MIN_POSITIVE);
    let (busiest_s, client_s) =
        (judged.busiest_s * fraction, judged.client_s.map(|seconds| seconds * fraction));
    Judged { elapsed_s, cost, busiest_s, client_s, ..judged.clone() }
}

/// A layout as a set in this place gets it.
fn in_place(field: &Field<'_>, judged: Judged, (set, place): (&FileSet, Place)) -> Judged {
    let layouts = layouts_for(field, &judged.candidate.layouts, place);
    let spread = spread_for(&judged.candidate.spread, set);
    Judged { candidate: Candidate { layouts, spread, ..judged.candidate }, ..judged }
}

/// The mean size of the requests that move the most bytes.
fn main_size(set: &FileSet) -> u64 {
    let main = set.groups.iter().max_by_key(|group| group.all_bytes());
    main.map_or(0, |group| group.bytes / group.count.max(1))
}

fn reason(
    field: &Field<'_>,
    kind: &KindPlan,
    (set, column): (&FileSet, usize),
    (present, best, gain, share): (&Judged, &Judged, f64, f64),
) -> String {
    let others = kind.kind.members.len() - 1;
    let like = match others {
        0 => String::new(),
        1 => "; one other set of files is used alike".to_owned(),
        _ => format!("; {others} other sets of files are used alike"),
    };
    if column > 0 {
        let problem = Problem { size: main_size(set), ..field.problem(set) };
        return reason_for(&problem, present, best, gain) + &like;
    }
    let what = match field.options.objective {
        Objective::Elapsed => "I/O time",
        Objective::Cost => "overall cost",
    };
    let why = match (kind.columns.len(), &kind.notes[..]) {
        (1, [note, ..]) => note.clone(),
        (1, []) if !kind.kind.is_sampled() => "too few requests of such files are known".to_owned(),
        (1, []) => {
            format!("these files take {:.4} % of the {what}, and those used alike less than 1 %", 100.0 * share)
        }
        _ => "no layout saves enough, or the space that it needs saves more on other files".to_owned(),
    };
    format!("keep the present layout: {why}{like}")
}
