//! One plan for all file sets: the space of the servers goes where it saves the most.
//!
//! First every set is planned as if it had a share of the space in proportion to its size. If the
//! space is scarce, every set is planned once more as if it had all of it. All candidates of both
//! kinds are columns of a linear program whose rows are the space of the servers
//! (`stripewise_allocation`). Its solution takes no longer than the sets with their shares do, and
//! its bound tells how much longer it takes than any other choice of these candidates could.

use stripewise_allocation::{Choice, Column, Program, Region, Row, Solution, solve};
use stripewise_cluster::Cluster;

use crate::candidate::{Candidate, Judged, Method, bytes_by_target};
use crate::choose::{Decision, decide};
use crate::error::PlanError;
use crate::evaluate::best_of;
use crate::options::{Objective, Options, Scheme};
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::{FileSet, Workload};

/// Maximum number of servers whose space is counted one by one, and of servers times file sets. In
/// larger clusters the space of a tier counts as one.
const SERVERS_MAX: usize = 256;
const SERVERS_OF_SETS_MAX: usize = 1 << 18;
/// Fractions of the space to plan for, one after the other, where it counts by tier, until the
/// files fit on every server.
const SPACES: [f64; 3] = [1.0, 0.9, 0.75];

/// The whole workload under a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// The time (or cost) in the present layouts, seconds.
    pub now_s: f64,
    /// The time (or cost) in the planned layouts, seconds.
    pub planned_s: f64,
    /// No choice of the candidates that fits takes less, seconds.
    pub bound_s: f64,
    /// What more space is worth.
    pub space: Vec<SpaceValue>,
}

/// What more space on a tier is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct SpaceValue {
    /// The tier.
    pub tier: String,
    /// Seconds that one more byte saves, if it is spread evenly over the tier's servers. It is a
    /// price: it holds for the next bytes, on average over many file sets.
    pub saves_s_per_byte: f64,
}

/// Plans all sets together. `shared` are the decisions for sets that share the space in proportion
/// to their sizes; `fixed` tells which sets keep their present layout whatever is possible.
///
/// # Errors
/// A set that can be planned in its share cannot be planned in all of the space, which is a defect.
pub fn jointly(
    workload: &Workload,
    (cluster, servers): (&Cluster, &Servers),
    options: &Options,
    shared: Vec<Decision>,
    fixed: &[bool],
) -> Result<(Vec<Decision>, Option<Joint>), PlanError> {
    let is_for_all = options.scheme == Scheme::Auto && options.native.is_none() && options.with.is_empty();
    if !is_for_all || shared.len() < 2 {
        return Ok((shared, None));
    }
    let needed = workload.file_sets.iter().map(FileSet::total_size).fold(0, u64::saturating_add);
    let is_scarce = servers.capacities.iter().any(|&capacity| capacity < needed);
    let rows = Rows::new(cluster, servers, shared.len());
    let mut sets = Vec::with_capacity(shared.len());
    for ((set, decision), &is_fixed) in workload.file_sets.iter().zip(shared).zip(fixed) {
        let problem = Problem::new(set, cluster, servers, options, set.total_size());
        let mut plans = vec![decision];
        if is_scarce && !is_fixed {
            plans.push(decide(&problem)?);
        }
        sets.push(Set::new(problem, plans, &rows, is_fixed));
    }
    let Some(solution) = rows.solve(&sets) else {
        return Ok((sets.into_iter().map(Set::in_its_share).collect(), None));
    };
    let now_s = sets.iter().map(|set| options.objective.of(&set.plans[0].present)).sum();
    let joint = Joint {
        now_s,
        planned_s: solution.seconds,
        bound_s: solution.bound_s,
        space: rows.values(cluster, &solution),
    };
    let chosen = sets.into_iter().zip(&solution.choices).map(|(set, choice)| set.chosen(*choice)).collect();
    Ok((chosen, Some(joint)))
}

/// A file set and what it may get.
struct Set<'p> {
    problem: Problem<'p>,
    /// The decision in its share of the space, and with all space if that was planned.
    plans: Vec<Decision>,
    options: Vec<Pick>,
}

/// A layout that a set may get.
struct Pick {
    /// Index into [`Set::plans`], and of the candidate in it; `None`: the present layout.
    candidate: Option<(usize, usize)>,
    seconds: f64,
    /// Bytes by row.
    bytes: Vec<u64>,
}

impl<'p> Set<'p> {
    fn new(problem: Problem<'p>, plans: Vec<Decision>, rows: &Rows, is_fixed: bool) -> Self {
        let objective = problem.options.objective;
        let pick = |candidate, judged: &Judged| Pick {
            candidate,
            seconds: objective.of(judged),
            bytes: rows.sums(&bytes(&problem, &judged.candidate)),
        };
        let mut options = vec![pick(None, &plans[0].present)];
        if !is_fixed {
            for (plan, decision) in plans.iter().enumerate() {
                let gains = |index: &usize| {
                    let is_judged = decision.candidates[*index].method == Method::Full || objective == Objective::Cost;
                    is_judged && decision.gain_of(&problem, *index) >= problem.options.min_gain
                };
                let all = (0..decision.candidates.len()).filter(gains);
                options.extend(all.map(|index| pick(Some((plan, index)), &decision.candidates[index])));
            }
        }
        Self { problem, plans, options }
    }

    /// The bytes of the files on each server if the set gets an option, by its index.
    fn bytes(&self, option: usize) -> Vec<u64> {
        let judged = match self.options[option].candidate {
            Some((plan, index)) => &self.plans[plan].candidates[index],
            None => &self.plans[0].present,
        };
        bytes(&self.problem, &judged.candidate)
    }

    /// The index of the option that the set has in its share of the space.
    fn share(&self) -> usize {
        let shared = &self.plans[0];
        let is_it = |option: &Pick| !shared.keep && option.candidate == Some((0, shared.best));
        self.options.iter().position(is_it).unwrap_or(0)
    }

    fn in_its_share(self) -> Decision {
        self.plans.into_iter().next().expect("there is always this one")
    }

    /// The decision for a choice of the program.
    fn chosen(mut self, choice: Choice) -> Decision {
        let index = choice.column as usize;
        let Some((plan, candidate)) = self.options[index].candidate else {
            let is_better = |option: &Pick| option.seconds < self.options[0].seconds;
            let loses = self.options.iter().any(is_better);
            let mut decision = self.in_its_share();
            if loses {
                decision.keep = true;
                decision.reason = "keep the present layout: the space that a better one needs saves more on other files".into();
            }
            return decision;
        };
        let alike: Vec<usize> = self.as_small(index, plan).collect();
        let mut decision = self.plans.swap_remove(plan);
        let best = best_of(&self.problem, &decision.candidates, &alike);
        decision.choose(&self.problem, if alike.is_empty() { candidate } else { best });
        let least_s = self.options.iter().map(|option| option.seconds).fold(f64::INFINITY, f64::min);
        if least_s < self.options[index].seconds * (1.0 - self.problem.options.min_gain.max(0.0)) {
            decision.reason += "; with more of the fast servers' space these files would take less time, but it saves more on other files";
        }
        decision
    }

    /// The candidates of a plan that need no more space on any server than the option `index`.
    fn as_small(&self, index: usize, plan: usize) -> impl Iterator<Item = usize> {
        let most = &self.options[index].bytes;
        self.options.iter().filter_map(move |option| {
            let (of, candidate) = option.candidate?;
            let is_small = option.bytes.iter().zip(most).all(|(bytes, most)| bytes <= most);
            (of == plan && is_small).then_some(candidate)
        })
    }
}

/// The bytes of a set's files on each server.
fn bytes(problem: &Problem<'_>, candidate: &Candidate) -> Vec<u64> {
    let original = candidate.original(problem.set);
    let layouts = (&original.layouts[..], &original.layout_of[..]);
    bytes_by_target(&problem.set.files, layouts, problem.servers.count(), u64::MAX)
}

/// The space of the servers as rows of the program.
struct Rows {
    /// By server.
    row_of: Vec<u32>,
    /// By server, bytes.
    capacities: Vec<u64>,
    count: usize,
}

impl Rows {
    fn new(cluster: &Cluster, servers: &Servers, sets: usize) -> Self {
        let tier = |server: u32| cluster.tier_of(server).unwrap_or(0) as u32;
        let all = 0..servers.count() as u32;
        let is_large = servers.count() > SERVERS_MAX || servers.count() * sets > SERVERS_OF_SETS_MAX;
        let row_of: Vec<u32> = all.map(|server| if is_large { tier(server) } else { server }).collect();
        let count = row_of.iter().map(|row| row + 1).max().unwrap_or(0) as usize;
        Self { row_of, capacities: servers.capacities.clone(), count }
    }

    /// Bytes by row.
    fn sums(&self, bytes: &[u64]) -> Vec<u64> {
        let mut sums = vec![0u64; self.count];
        for (&row, &bytes) in self.row_of.iter().zip(bytes) {
            sums[row as usize] = sums[row as usize].saturating_add(bytes);
        }
        sums
    }

    /// The solution, if one is found whose files fit on every server. What they use now, or would
    /// use with shares of the space, counts as fitting.
    fn solve(&self, sets: &[Set<'_>]) -> Option<Solution> {
        let mut space = self.capacities.clone();
        for of_set in [|_: &Set<'_>| 0, |set: &Set<'_>| set.share()] {
            let used = self.used(sets.iter().map(|set| set.bytes(of_set(set))));
            space.iter_mut().zip(used).for_each(|(space, used)| *space = used.max(*space));
        }
        let sums = self.sums(&space);
        let regions = sets.iter().map(region).collect();
        let mut program = Program { weights: Vec::new(), rows: Vec::new(), regions };
        let mut bound_s = None;
        for fraction in SPACES {
            program.rows = sums.iter().map(|&bytes| Row::Space { bytes: bytes as f64 * fraction }).collect();
            let Ok(solution) = solve(&program) else { continue };
            let bound_s = *bound_s.get_or_insert(solution.bound_s);
            let chosen = sets.iter().zip(&solution.choices);
            let used = self.used(chosen.map(|(set, choice)| set.bytes(choice.column as usize)));
            if used.iter().zip(&space).all(|(used, space)| used <= space) {
                return Some(Solution { bound_s, ..solution });
            }
        }
        None
    }

    /// The bytes on each server, summed.
    fn used(&self, all: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
        all.fold(vec![0u64; self.capacities.len()], |mut sums, bytes| {
            sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
            sums
        })
    }

    /// What more space on each tier is worth.
    fn values(&self, cluster: &Cluster, solution: &Solution) -> Vec<SpaceValue> {
        let mean_price = |tier: usize| {
            let targets = cluster.targets_of(tier);
            let prices = targets.clone().map(|server| solution.prices.0[self.row_of[server as usize] as usize]);
            prices.sum::<f64>() / targets.len().max(1) as f64
        };
        let value = |(tier, name): (usize, &String)| SpaceValue { tier: name.clone(), saves_s_per_byte: mean_price(tier) };
        cluster.tiers.iter().map(|tier| &tier.name).enumerate().map(value).collect()
    }
}

fn region(set: &Set<'_>) -> Region {
    let column = |option: &Pick| {
        let uses = (0..).zip(&option.bytes).filter(|(_, bytes)| **bytes > 0);
        Column { seconds: option.seconds, uses: uses.map(|(row, &bytes)| (row, bytes as f64)).collect() }
    };
    Region { columns: set.options.iter().map(column).collect(), divisible: false }
}
