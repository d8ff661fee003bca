//! A file set among others: the layouts that it may get, and the decision for one of them.

use stripewise_allocation::{Choice, Column, Region};

use super::rows::Rows;
use crate::candidate::{Candidate, Judged, Method, bytes_by_target};
use crate::choose::Decision;
use crate::evaluate::best_of;
use crate::options::Objective;
use crate::problem::Problem;

/// A file set and what it may get.
pub struct Set<'p> {
    /// With all space for this set.
    pub problem: Problem<'p>,
    /// The decision in its share of the space, and with all space if that was planned.
    pub plans: Vec<Decision>,
    /// The present layout first.
    pub options: Vec<Pick>,
    /// It keeps its present layout whatever is possible.
    pub is_fixed: bool,
}

/// A layout that a set may get.
pub struct Pick {
    /// Index into [`Set::plans`], and of the candidate in it; `None`: the present layout.
    candidate: Option<(usize, usize)>,
    /// The time (or cost).
    pub seconds: f64,
    /// The bytes that the files need of each row.
    pub bytes: Vec<u64>,
}

impl<'p> Set<'p> {
    /// A set with the candidates of these plans.
    pub fn new(problem: Problem<'p>, plans: Vec<Decision>, rows: &Rows, is_fixed: bool) -> Self {
        let mut set = Self { problem, plans, options: Vec::new(), is_fixed };
        set.options.push(set.pick(None, rows));
        for plan in 0..set.plans.len() {
            set.plans[plan].picks.clone().into_iter().for_each(|index| set.admit(plan, index, rows));
        }
        set
    }

    /// Whether the last plan has a candidate with the same layouts.
    pub fn has(&self, candidate: &Candidate) -> bool {
        let same = |judged: &Judged| {
            judged.candidate.layouts == candidate.layouts && judged.candidate.overlay == candidate.overlay
        };
        self.plans.last().is_some_and(|plan| plan.candidates.iter().any(same))
    }

    /// Adds a candidate to the last plan.
    pub fn add(&mut self, judged: Judged, rows: &Rows) {
        let plan = self.plans.len() - 1;
        self.plans[plan].candidates.push(judged);
        self.admit(plan, self.plans[plan].candidates.len() - 1, rows);
    }

    /// Makes a candidate an option if it gains enough, as far as its time is known.
    fn admit(&mut self, plan: usize, index: usize, rows: &Rows) {
        let (decision, options) = (&self.plans[plan], self.problem.options);
        let is_judged =
            decision.candidates[index].method == Method::Full || options.objective == Objective::Cost;
        if !self.is_fixed && is_judged && decision.gain_of(&self.problem, index) >= options.min_gain {
            self.options.push(self.pick(Some((plan, index)), rows));
        }
    }

    fn pick(&self, candidate: Option<(usize, usize)>, rows: &Rows) -> Pick {
        let judged = self.judged(candidate);
        let seconds = self.problem.options.objective.of(judged);
        Pick { candidate, seconds, bytes: rows.sums(&bytes(&self.problem, &judged.candidate)) }
    }

    fn judged(&self, candidate: Option<(usize, usize)>) -> &Judged {
        match candidate {
            Some((plan, index)) => &self.plans[plan].candidates[index],
            None => &self.plans[0].present,
        }
    }

    /// The candidate of an option, by its index.
    pub fn candidate(&self, option: usize) -> &Candidate {
        &self.judged(self.options[option].candidate).candidate
    }

    /// The bytes of the files on each server if the set gets an option, by its index.
    pub fn bytes(&self, option: usize) -> Vec<u64> {
        bytes(&self.problem, self.candidate(option))
    }

    /// The index of the option that the set has in its share of the space.
    pub fn share(&self) -> usize {
        let shared = &self.plans[0];
        let is_it = |option: &Pick| !shared.keep && option.candidate == Some((0, shared.best));
        self.options.iter().position(is_it).unwrap_or(0)
    }

    /// The decision in its share of the space.
    pub fn in_its_share(self) -> Decision {
        self.plans.into_iter().next().expect("there is always this one")
    }

    /// The decision for a choice of the program.
    pub fn chosen(mut self, choice: Choice) -> Decision {
        let index = choice.column as usize;
        let Some((plan, candidate)) = self.options[index].candidate else {
            let is_better = |option: &Pick| option.seconds < self.options[0].seconds;
            let loses = self.options.iter().any(is_better);
            let mut decision = self.in_its_share();
            if !decision.keep {
                let why = match loses {
                    true => "the space that a better one needs saves more on other files",
                    false => "no candidate is better",
                };
                (decision.keep, decision.reason) = (true, format!("keep the present layout: {why}"));
            }
            return decision;
        };
        let alike: Vec<usize> = self.as_small(index, plan).collect();
        let has_rivals = self.plans.len() > 1;
        let mut decision = self.plans.swap_remove(plan);
        let best = best_of(&self.problem, &decision.candidates, &alike);
        decision.choose(&self.problem, if alike.is_empty() { candidate } else { best });
        let least_s = self.options.iter().map(|option| option.seconds).fold(f64::INFINITY, f64::min);
        if has_rivals && least_s < self.options[index].seconds * (1.0 - self.problem.options.min_gain.max(0.0))
        {
            decision.reason += "; with more of the fast servers' space these files would take less time, but it saves more on other files";
        }
        decision
    }

    /// The options as columns of the program.
    pub fn region(&self) -> Region {
        let column = |option: &Pick| column(option.seconds, &option.bytes);
        Region { columns: self.options.iter().map(column).collect(), divisible: false }
    }

    /// The candidates of a plan that need no more space on any server than the option `index`.
    fn as_small(&self, index: usize, plan: usize) -> impl Iterator<Item = usize> {
        // A row may be a whole tier.
        let most = self.bytes(index);
        (0..self.options.len()).filter_map(move |option| {
            let (of, candidate) = self.options[option].candidate?;
            let is_small = || self.bytes(option).iter().zip(&most).all(|(bytes, most)| bytes <= most);
            (of == plan && is_small()).then_some(candidate)
        })
    }
}

/// A column that takes so many seconds and bytes of each row.
pub fn column(seconds: f64, bytes: &[u64]) -> Column {
    let uses = (0..).zip(bytes).filter(|(_, bytes)| **bytes > 0);
    Column { seconds, uses: uses.map(|(row, &bytes)| (row, bytes as f64)).collect() }
}

/// The bytes of a set's files on each server.
pub fn bytes(problem: &Problem<'_>, candidate: &Candidate) -> Vec<u64> {
    let original = candidate.original(problem.set);
    let layouts = (&original.layouts[..], &original.layout_of[..]);
    bytes_by_target(&problem.set.files, layouts, problem.servers.count(), u64::MAX)
}
