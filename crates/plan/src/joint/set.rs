//! A file set among others: the layouts that it may get, and the decision for one of them.

use stripewise_allocation::{Column, Region};

use super::rows::Rows;
use super::space::needed;
use super::stages::Placed;
use crate::candidate::{Candidate, Judged, Method};
use crate::choose::Decision;
use crate::evaluate::best_of;
use crate::existing;
use crate::options::Objective;
use crate::problem::Problem;
use crate::ties::{equals_present, simplest_of};

/// A file set and what it may get.
pub struct Set<'p> {
    /// Its index among all sets.
    pub index: usize,
    /// With all space for this set.
    pub problem: Problem<'p>,
    /// The decision in its share of the space, and with all space if that was planned.
    pub plans: Vec<Decision>,
    /// The present layout first.
    pub options: Vec<Pick>,
    /// It keeps its present layout whatever is possible.
    pub is_fixed: bool,
    /// The bytes of all sets, by which the space was shared out in the first plan.
    all_bytes: u64,
    /// The row of the limit on moving, if there is one.
    move_row: Option<u32>,
    /// By server: the bytes that count if the files stay, if they are not all of them.
    staying: Option<Vec<u64>>,
}

/// A layout that a set may get.
pub struct Pick {
    /// Index into [`Set::plans`], and of the candidate in it; `None`: the present layout.
    candidate: Option<(usize, usize)>,
    /// The time (or cost) by itself.
    pub seconds: f64,
    /// The part of it outside of stages.
    pub outside_s: f64,
    /// The use of the rows of stages.
    in_stages: Vec<(u32, f64)>,
    /// The bytes that the files need of each row.
    pub bytes: Vec<u64>,
    /// Bytes of existing files that are moved into this layout.
    pub moved: u64,
}

impl<'p> Set<'p> {
    /// A set with the candidates of these plans.
    pub fn new(
        (index, problem): (usize, Problem<'p>),
        plans: Vec<Decision>,
        rows: &Rows,
        (is_fixed, all_bytes): (bool, u64),
    ) -> Self {
        let (options, move_row, staying) = (Vec::new(), None, None);
        let mut set = Self { index, problem, plans, options, is_fixed, all_bytes, move_row, staying };
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
        let judged = &decision.candidates[index];
        let is_judged = judged.method == Method::Full || options.objective == Objective::Cost;
        let gains = is_judged && decision.gain_of(&self.problem, index) >= options.min_gain;
        let is_shared_best = plan == 0 && !decision.keep && index == decision.best;
        let differs = || is_shared_best || !equals_present(&self.problem, &decision.present, judged);
        if !self.is_fixed && gains && differs() {
            self.options.push(self.pick(Some((plan, index)), rows));
        }
    }

    fn pick(&self, candidate: Option<(usize, usize)>, rows: &Rows) -> Pick {
        let placed = self.place(candidate);
        let seconds = self.problem.options.objective.of(placed.judged);
        let (outside_s, in_stages) = rows.times(self.index, placed);
        let bytes = rows.sums(&self.bytes_of(candidate));
        let moved = candidate.map_or(0, |_| self.moved(&placed.judged.candidate));
        Pick { candidate, seconds, outside_s, in_stages, bytes, moved }
    }

    fn moved(&self, candidate: &Candidate) -> u64 {
        existing::moved_bytes(self.problem.set, candidate, self.problem.cluster)
    }

    /// Counts the bytes that are moved in a row of the program. Of the bytes that stay on each
    /// server, only these fractions count, if there are any.
    pub fn limit_moves(&mut self, fractions: Option<&[f64]>, rows: &Rows) {
        if let Some(fractions) = fractions {
            let of_server = |(bytes, fraction): (u64, &f64)| (bytes as f64 * fraction) as u64;
            let staying: Vec<u64> = self.bytes(0).into_iter().zip(fractions).map(of_server).collect();
            self.options[0].bytes = rows.sums(&staying);
            self.staying = Some(staying);
        }
        self.move_row = Some(rows.move_row() as u32);
    }

    fn place(&self, candidate: Option<(usize, usize)>) -> Placed<'_> {
        let plan = &self.plans[candidate.map_or(0, |(plan, _)| plan)];
        Placed { problem: &self.problem, judged: self.judged(candidate), count: plan.candidates.len() + 1 }
    }

    /// The set in one of its options, by its index.
    pub fn placed(&self, option: usize) -> Placed<'_> {
        self.place(self.options[option].candidate)
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
        if let (0, Some(staying)) = (option, &self.staying) {
            return staying.clone();
        }
        self.bytes_of(self.options[option].candidate)
    }

    fn bytes_of(&self, candidate: Option<(usize, usize)>) -> Vec<u64> {
        let problem = self.problem_of(candidate.map_or(0, |(plan, _)| plan));
        needed(&problem, &self.judged(candidate).candidate)
    }

    /// The problem of a plan, by its index.
    fn problem_of(&self, plan: usize) -> Problem<'p> {
        Problem { plan_bytes: if plan == 0 { self.all_bytes } else { self.problem.plan_bytes }, ..self.problem }
    }

    /// The index of the option that the set has in its share of the space.
    pub fn share(&self) -> usize {
        let shared = &self.plans[0];
        let is_it = |option: &Pick| !shared.keep && option.candidate == Some((0, shared.best));
        self.options.iter().position(is_it).unwrap_or(0)
    }

    /// Bytes of existing files that are moved if the set has its share of the space.
    pub fn moved_in_its_share(&self) -> u64 {
        let shared = &self.plans[0];
        if shared.keep { 0 } else { self.moved(&shared.best().candidate) }
    }

    /// The decision in its share of the space.
    pub fn in_its_share(self) -> Decision {
        self.plans.into_iter().next().expect("there is always this one")
    }

    /// The option that the rules for ties take instead of another one, by their indices.
    ///
    /// A set of a stage has only the exact rule. The error of the model is that of a set by itself.
    /// In a stage a set also delays others, so layouts that tie alone need not tie in the replay of
    /// all: a simpler one on a server that others need may cost the stage more than its own error.
    /// The rule would have to bound the replayed time of all sets over all simpler choices.
    pub fn settled(&self, index: usize) -> usize {
        let Some((plan, _)) = self.options[index].candidate else { return index };
        let alike: Vec<usize> = self.as_small(index, plan).collect();
        let of = if self.options[index].in_stages.is_empty() { simplest_of } else { best_of };
        let best = of(&self.problem, &self.plans[plan].candidates, &alike);
        let is_it = |option: &Pick| option.candidate == Some((plan, best));
        self.options.iter().position(is_it).unwrap_or(index)
    }

    /// The decision for an option, by its index.
    pub fn chosen(mut self, index: usize) -> Decision {
        let Some((plan, candidate)) = self.options[index].candidate else {
            let is_better = |option: &Pick| option.seconds < self.options[0].seconds;
            let (loses, is_limited) = (self.options.iter().any(is_better), self.move_row.is_some());
            let mut decision = self.in_its_share();
            if !decision.keep {
                let why = match (loses, is_limited) {
                    (true, false) => "the space that a better one needs saves more on other files",
                    (true, true) => "no better one is within the limit on moving and the space",
                    (false, _) => "no candidate is better",
                };
                (decision.keep, decision.reason) = (true, format!("keep the present layout: {why}"));
            }
            return decision;
        };
        let (has_rivals, problem) = (self.plans.len() > 1, self.problem_of(plan));
        let mut decision = self.plans.swap_remove(plan);
        decision.choose(&problem, candidate);
        let least_s = self.options.iter().map(|option| option.seconds).fold(f64::INFINITY, f64::min);
        if has_rivals && least_s < self.options[index].seconds * (1.0 - self.problem.options.min_gain.max(0.0))
        {
            decision.reason += match self.move_row {
                None => {
                    "; with more of the fast servers' space these files would take less time, but it saves more on other files"
                }
                Some(_) => {
                    "; a layout in which these files would take less time is not within the limit on moving and the space"
                }
            };
        }
        decision
    }

    /// The options as columns of the program; only the present layout of a set that keeps it.
    pub fn region(&self) -> Region {
        let column = |option: &Pick| {
            let mut column = column(option.outside_s, &option.bytes);
            column.uses.extend(&option.in_stages);
            column.uses.extend(self.move_row.map(|row| (row, option.moved as f64)));
            column
        };
        let options = if self.is_fixed { &self.options[..1] } else { &self.options[..] };
        Region { columns: options.iter().map(column).collect(), divisible: false }
    }

    /// The candidates of a plan that need no more space on any server, and within a limit no more
    /// moving, than the option `index`.
    fn as_small(&self, index: usize, plan: usize) -> impl Iterator<Item = usize> {
        // A row may be a whole tier.
        let most = self.bytes(index);
        (0..self.options.len()).filter_map(move |option| {
            let (of, candidate) = self.options[option].candidate?;
            let is_small = || self.bytes(option).iter().zip(&most).all(|(bytes, most)| bytes <= most);
            let is_moved = self.move_row.is_some() && self.options[option].moved > self.options[index].moved;
            (of == plan && !is_moved && is_small()).then_some(candidate)
        })
    }
}

/// A column that takes so many seconds and bytes of each row.
pub fn column(seconds: f64, bytes: &[u64]) -> Column {
    let uses = (0..).zip(bytes).filter(|(_, bytes)| **bytes > 0);
    Column { seconds, uses: uses.map(|(row, &bytes)| (row, bytes as f64)).collect() }
}

/// Bytes of existing files that are moved if the sets get these options.
pub fn moved_bytes(sets: &[Set<'_>], choices: &[usize]) -> u64 {
    let of_set = |(set, &option): (&Set<'_>, &usize)| set.options[option].moved;
    sets.iter().zip(choices).map(of_set).fold(0, u64::saturating_add)
}
