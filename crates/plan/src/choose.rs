//! From judged candidates to a decision: which layout, why, and whether a change is worth it.

use stripewise_cluster::{CopySpec, OverlayKind, Spread, size};
use stripewise_layout::constructors;
use stripewise_model::Op;

use crate::candidate::{Candidate, Judged};
use crate::error::PlanError;
use crate::evaluate::judge;
use crate::feasible;
use crate::form::{Form, Shape};
use crate::joint::Placed;
use crate::options::{Objective, Scheme};
use crate::planners::{self, Planner};
use crate::present::Present;
use crate::problem::{PAGE, Problem};
use crate::serving::expected::{Alone, Expected};
use crate::ties::{Tie, simplest_of};
use crate::workload::File;

/// File sets whose I/O takes less than this fraction of the total time are not worth a change.
pub const NEGLIGIBLE: f64 = 0.01;
/// Fraction of the time from which on what calls cost the client is told.
const NOTABLE_CLIENT: f64 = 0.05;
/// Maximum number of candidates that an error names.
const NAMES_MAX: usize = 500;

/// The decision for one file set.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The set's path pattern.
    pub pattern: String,
    /// Number of files.
    pub files: usize,
    /// Total size of the files, bytes.
    pub file_bytes: u64,
    /// Number of traced data requests that reached the servers.
    pub requests: u64,
    /// S: the request size that moves the most bytes.
    pub request_size: u64,
    /// The files' present layout.
    pub present: Judged,
    /// All candidates, in the order of the planners.
    pub candidates: Vec<Judged>,
    /// Indices of the candidates that compete.
    pub(crate) picks: Vec<usize>,
    /// Index of the best candidate in `candidates`.
    pub best: usize,
    /// The fraction of the present layout's time (or cost) that the best candidate saves; negative
    /// if it is slower.
    pub gain: f64,
    /// The layouts that the predictions cannot tell from the best one, if there are any.
    pub tie: Option<Tie>,
    /// The files should stay in their present layout.
    pub keep: bool,
    /// Why, in one sentence.
    pub reason: String,
    /// Planners that ran and could not plan, and candidates that were dropped, with the reasons.
    pub notes: Vec<String>,
    /// Predicted use of each copy, if the best candidate has several.
    pub expected: Option<Expected>,
}

impl Decision {
    /// A decision that is not made yet.
    fn among(problem: &Problem<'_>, present: Judged, candidates: Vec<Judged>) -> Self {
        Self {
            pattern: problem.set.pattern.clone(),
            files: problem.set.count() as usize,
            file_bytes: problem.set.total_size(),
            requests: problem.set.requests(),
            request_size: problem.size,
            present,
            candidates,
            picks: Vec::new(),
            best: 0,
            gain: 0.0,
            tie: None,
            keep: false,
            reason: String::new(),
            notes: Vec::new(),
            expected: None,
        }
    }

    /// The best candidate, whether or not it is worth a change.
    pub fn best(&self) -> &Judged {
        &self.candidates[self.best]
    }

    /// The candidates that compete: of a scheme that picks one, only that one.
    pub fn competing(&self) -> impl Iterator<Item = &Judged> {
        self.picks.iter().map(|&index| &self.candidates[index])
    }

    /// Takes another candidate for the best one, by its index.
    pub(crate) fn choose(&mut self, problem: &Problem<'_>, best: usize) {
        let asked_for = matches!(problem.options.scheme, Scheme::Named(_));
        self.best = best;
        self.gain = self.gain_of(problem, best);
        let field = (&self.candidates[..], &self.present);
        self.tie = Tie::of(problem, field, &self.picks, best).filter(|_| !asked_for);
        let ties_with_present = self.tie.as_ref().is_some_and(|tie| tie.present);
        self.keep = !asked_for && (self.gain < problem.options.min_gain || ties_with_present);
        let told = self.tie.as_ref().map(Tie::told);
        self.reason = match (self.keep, told) {
            (true, Some(told)) if ties_with_present => format!("keep the present layout: {told}"),
            (true, _) => {
                reason_against(problem, self.best(), self.gain)
                    + &of_client(problem, &self.present, self.best())
            }
            (false, Some(told)) => reason_for(problem, &self.present, self.best(), self.gain) + "; " + &told,
            (false, None) => reason_for(problem, &self.present, self.best(), self.gain),
        };
        self.expected = expected(problem, &self.best().candidate);
    }

    /// The fraction of the present layout's time (or cost) that a candidate saves.
    pub(crate) fn gain_of(&self, problem: &Problem<'_>, candidate: usize) -> f64 {
        let objective = problem.options.objective;
        let (now_s, then_s) = (objective.of(&self.present), objective.of(&self.candidates[candidate]));
        if now_s > 0.0 { 1.0 - then_s / now_s } else { 0.0 }
    }

    /// The layout that the files should have: the best candidate's or the present one.
    pub fn chosen(&self) -> &Judged {
        if self.keep { &self.present } else { &self.candidates[self.best] }
    }

    /// Takes the gain out of the reason for a change, if the model does not know the present time.
    pub fn withdraw_promise(&mut self, objective: Objective) {
        if !self.keep {
            self.reason = self.reason.replace(&saves(objective, self.gain), "is planned, without a promise");
        }
    }

    /// The set in a layout that was judged among the candidates.
    pub(crate) fn placed<'a>(&self, problem: &'a Problem<'a>, judged: &'a Judged) -> Placed<'a> {
        Placed { problem, judged, count: self.candidates.len() + 1 }
    }
}

/// Plans one file set.
///
/// # Errors
/// The requested planner cannot plan for this cluster, or no candidate has the requested name.
pub fn decide(problem: &Problem<'_>) -> Result<Decision, PlanError> {
    if problem.set.groups.is_empty() {
        return unused(problem);
    }
    let Field { mut candidates, picks, notes } = propose(problem)?;
    candidates.push(Candidate { notable: true, ..present(problem)? });
    let mut candidates = judge(problem, candidates);
    let present = candidates.pop().expect("the present layout was judged");
    let best = match &problem.options.scheme {
        Scheme::Named(name) => named(&candidates, name)?,
        _ => simplest_of(problem, &candidates, &picks),
    };
    let mut decision = Decision { picks, best, notes, ..Decision::among(problem, present, candidates) };
    decision.choose(problem, best);
    Ok(decision)
}

/// The decision for a set of which no request reached a server: it keeps its layout.
fn unused(problem: &Problem<'_>) -> Result<Decision, PlanError> {
    let judged = judge(problem, vec![Candidate { notable: true, ..present(problem)? }]).swap_remove(0);
    let requests = problem.set.memory.requests;
    let reason =
        format!("keep the present layout: memory served all {requests} requests, as their durations show");
    Ok(Decision { keep: true, reason, ..Decision::among(problem, judged.clone(), vec![judged]) })
}

/// Predicted use of each copy of a candidate, if it has several. For comparison it includes the
/// cost of each copy alone: of the original, and of replicas, which hold all bytes; cache copies do
/// not.
fn expected(problem: &Problem<'_>, candidate: &Candidate) -> Option<Expected> {
    let overlay = candidate.overlay.as_ref()?;
    let original = Candidate { overlay: None, ..candidate.clone() };
    let mut alone = vec![original];
    if overlay.kind == OverlayKind::Replicas {
        let copies = overlay.copies.iter();
        let single = |copy: &CopySpec| {
            Candidate::spread("replicas", copy.name.as_str(), copy.layouts.clone(), copy.spread)
        };
        alone.extend(copies.map(single));
    }
    let alone: Vec<Alone> = (judge(problem, alone).iter())
        .map(|judged| Alone { alone_predicted_s: judged.predicted_s(), alone_elapsed_s: judged.elapsed_s })
        .collect();
    let mut expected = Expected::of(problem, candidate, &alone)?;
    if let Some(cache) = &mut expected.cache {
        cache.layouts = planners::cache_layouts(problem, candidate);
    }
    Some(expected)
}

/// All candidates of the planners that run.
struct Field {
    candidates: Vec<Candidate>,
    /// Indices of those that compete for the decision.
    picks: Vec<usize>,
    /// Why planners or candidates are missing.
    notes: Vec<String>,
}

fn propose(problem: &Problem<'_>) -> Result<Field, PlanError> {
    let (mut candidates, mut picks, mut notes) = (Vec::<Candidate>::new(), Vec::new(), Vec::new());
    let only = match &problem.options.scheme {
        Scheme::Planner(name) => Some(name.as_str()),
        Scheme::Auto | Scheme::Named(_) => None,
    };
    let wanted = |planner: &&Planner| match only {
        Some(name) => name == planner.name,
        None => planner.by_default || problem.options.with.iter().any(|name| name == planner.name),
    };
    let asked: Vec<&Planner> = planners::ALL.iter().filter(wanted).collect();
    if asked.is_empty() {
        let names: Vec<&str> = planners::ALL.iter().map(|planner| planner.name).collect();
        let name = only.unwrap_or_default();
        return Err(PlanError::new(format!("there is no planner {name:?}; known: auto, {}", names.join(", "))));
    }
    for planner in asked {
        let mut proposal = match (planner.propose)(problem) {
            Ok(proposal) => proposal,
            Err(error) if only.is_none() => {
                notes.push(error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        notes.extend(feasible::filter(problem, planner.name, &mut proposal));
        for (index, mut candidate) in proposal.candidates.into_iter().enumerate() {
            let known = candidates.iter().position(|known| same(known, &candidate));
            let place = known.unwrap_or(candidates.len());
            if proposal.pick.is_none_or(|pick| pick == index) && !picks.contains(&place) {
                picks.push(place);
            }
            if known.is_some() {
                candidates[place].remarks.extend(candidate.remarks);
            } else {
                candidate.notable = is_looked_for(problem, &candidate.form) || proposal.pick == Some(index);
                candidates.push(candidate);
            }
        }
    }
    if candidates.is_empty() {
        let remedy = match &problem.options.native {
            Some(only) => format!(
                "{} has none of the layouts by itself; describe a tier by its pool (pool = \"...\", count = ...), over which \
                 it stripes: ",
                only.system.title()
            ),
            None => String::new(),
        };
        return Err(PlanError::new(format!("{remedy}{}", notes.join("; "))));
    }
    Ok(Field { candidates, picks, notes })
}

/// Whether users look for a candidate of this form: one of CIL's layouts over all servers, and in a
/// large cluster not each of its many group counts.
fn is_looked_for(problem: &Problem<'_>, form: &Form) -> bool {
    form.is_cil_over_all() && !(problem.is_large() && matches!(form.shape, Shape::TwoD(_)))
}

/// Whether two planners propose the same candidate. Some planners build on another's proposal.
fn same(one: &Candidate, other: &Candidate) -> bool {
    one.name == other.name && one.layouts == other.layouts && one.overlay == other.overlay
}

/// The present layout as a candidate.
pub fn present(problem: &Problem<'_>) -> Result<Candidate, PlanError> {
    match &problem.set.present {
        Present::Known { name, layouts, layout_of, .. } => {
            let known = |file: &File| layout_of.as_ref()?.get(&file.name).copied();
            let of = |file: &File| known(file).unwrap_or(0);
            let by_file = Some(problem.set.files.iter().map(of).collect());
            let (name, layouts) = (name.clone(), layouts.clone());
            Ok(Candidate { by_file, ..Candidate::spread("present", name, layouts, Spread::default()) })
        }
        Present::Def => {
            let def = planners::def(problem)?.candidates.swap_remove(0);
            Ok(Candidate { scheme: "present", ..def })
        }
        Present::Plain => {
            let target = planners::by_speed(problem)[0].1[0];
            let layout = constructors::on_one(target)?;
            let name = &problem.cluster.targets()[target as usize].name;
            Ok(Candidate::single("present", format!("plain files on {name} (assumed)"), layout))
        }
    }
}

/// Index of the candidate of this name. A candidate that overflows onto other servers also matches
/// its name without them (`1-DH` finds `1-DH, then hdd`).
fn named(candidates: &[Judged], name: &str) -> Result<usize, PlanError> {
    candidates.iter().position(|judged| judged.candidate.is_called(name)).ok_or_else(|| {
        let mut names: Vec<&str> = candidates.iter().map(|judged| judged.candidate.name.as_str()).collect();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        PlanError::new(format!("there is no candidate {name:?}; there are: {}{more}", names.join(", ")))
    })
}

/// Why a change is recommended or, if the user requested it, how it compares.
pub fn reason_for(problem: &Problem<'_>, present: &Judged, best: &Judged, gain: f64) -> String {
    let group = problem.main_group();
    let server = problem.cluster.name_of(best.busiest);
    let load = 100.0 * best.busiest_s / best.elapsed_s.max(f64::MIN_POSITIVE);
    let change = if gain >= 0.0 {
        saves(problem.options.objective, gain)
    } else {
        format!(
            "was asked for, although it takes {:.0} % more {} than the present layout",
            -gain * 100.0,
            problem.options.objective.name()
        )
    };
    let pages = match problem.is_mapped() {
        true => format!("; programs map the files, so stripes are multiples of {}", size::format(PAGE)),
        false => String::new(),
    };
    format!(
        "{} {change} ({}): {} process{} {} {} at a time, each request is served by {:.1} server{}, and the busiest \
         server, {server}, works {:.0} % of the time",
        best.candidate.name,
        present.candidate.name,
        group.procs,
        if group.procs == 1 { "" } else { "es" },
        if group.op == Op::Read { "read" } else { "write" },
        size::format(problem.size),
        best.servers_per_request,
        if best.servers_per_request > 1.05 { "s" } else { "" },
        load.min(100.0),
    ) + &pages
        + &of_client(problem, present, best)
}

/// The words for a gain in a reason.
fn saves(objective: Objective, gain: f64) -> String {
    format!("saves {:.0} % of the {} of the present layout", gain * 100.0, objective.name())
}

/// What calls cost the client in the best layout and in the present one, if that is a notable part
/// of the time of one of them.
fn of_client(problem: &Problem<'_>, present: &Judged, best: &Judged) -> String {
    let is_notable = |judged: &Judged| judged.client_s.is_some_and(|s| s >= NOTABLE_CLIENT * judged.elapsed_s);
    match (present.client_s, best.client_s) {
        (Some(now_s), Some(then_s))
            if problem.options.objective == Objective::Elapsed && (is_notable(present) || is_notable(best)) =>
        {
            let [and, memory] = match problem.set.has_memory_time() {
                true => [",", " and requests that memory serves"],
                false => [" and", ""],
            };
            format!(
                "; opens, closes, stats{and} the data path{memory} keep the client busy for {then_s:.3} s of {:.3} s, now for \
                 {now_s:.3} s of {:.3} s",
                best.elapsed_s, present.elapsed_s
            )
        }
        _ => String::new(),
    }
}

/// Why no change is recommended.
fn reason_against(problem: &Problem<'_>, best: &Judged, gain: f64) -> String {
    let saves = if gain > 0.0 { format!("{:.1} %", gain * 100.0) } else { "nothing".to_owned() };
    format!(
        "keep the present layout: the best candidate, {}, would save {saves} of its {}, and a change must save {:.1} %",
        best.candidate.name,
        problem.options.objective.name(),
        problem.options.min_gain * 100.0
    )
}
