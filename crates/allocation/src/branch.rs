//! Search of the columns that the bound does not rule out (branch and bound).

use crate::generate::Relaxed;
use crate::program::{Choice, Program};
use crate::round::{self, is_better};
use crate::usage::Usage;

/// Maximum number of choices that are tried.
const BUDGET: usize = 200_000;

/// Maximum number of regions whose columns are searched.
const REGIONS_MAX: usize = 256;

/// Searches for a better plan of whole regions, completely if the budget suffices, and then for
/// better cuts.
pub fn improve(found: &mut Usage<'_>, relaxed: &Relaxed) {
    let mut search = Search::new(found, relaxed);
    let mut usage = found.clone();
    search.below(&mut usage, 0, 0.0);
    if let Some(choices) = search.found {
        *found = Usage::new(found.program, choices);
        round::improve(found, relaxed);
    }
}

/// A region with several columns that are possible, each with what it costs more than the cheapest
/// one, seconds; the cheapest first.
struct Open {
    region: usize,
    columns: Vec<(u32, f64)>,
}

struct Search {
    open: Vec<Open>,
    /// By depth, and one more: what the open regions from there on use at least of each row.
    least: Vec<Vec<f64>>,
    /// By row: what all regions use that have a choice.
    used: Vec<f64>,
    bound_s: f64,
    /// Rank of the best plan.
    best: (f64, f64),
    found: Option<Vec<Choice>>,
    budget: usize,
}

impl Search {
    fn new(found: &Usage<'_>, relaxed: &Relaxed) -> Self {
        let program = found.program;
        let seconds = if found.overuse() > 0.0 { f64::INFINITY } else { found.seconds() };
        let eligible = round::eligible(program, relaxed, seconds).into_iter().enumerate();
        let open = eligible.map(|(region, columns)| Open { region, columns });
        let mut open: Vec<Open> = open.filter(|open| open.columns.len() > 1).collect();
        // Where a wrong column costs most, first.
        open.sort_by(|a, b| b.columns[1].1.total_cmp(&a.columns[1].1).then(a.region.cmp(&b.region)));
        open.truncate(REGIONS_MAX);
        let mut least = vec![vec![0.0; program.rows.len()]];
        for open in open.iter().rev() {
            let mut of_all = least.last().expect("it has one at least").clone();
            add_least(program, open, &mut of_all);
            least.push(of_all);
        }
        least.reverse();
        let mut decided = found.clone();
        open.iter().for_each(|open| decided.remove(open.region));
        let used = decided.into_used();
        Self { open, least, used, bound_s: relaxed.bound_s, best: found.rank(), found: None, budget: BUDGET }
    }

    /// Tries all columns of the open regions from `depth` on. Those before cost `excess_s` more
    /// than the bound counts.
    fn below(&mut self, usage: &mut Usage<'_>, depth: usize, excess_s: f64) {
        let Some(open) = self.open.get(depth) else {
            let rank = usage.rank();
            if is_better(rank, self.best) {
                (self.best, self.found) = (rank, Some(usage.choices.clone()));
            }
            return;
        };
        let (region, columns) = (open.region, open.columns.clone());
        let before = usage.choices[region];
        for (column, excess) in columns {
            let at_least = (0.0, self.bound_s + excess_s + excess);
            if self.budget == 0 || !is_better(at_least, self.best) {
                break;
            }
            self.budget -= 1;
            self.count(usage.program, region, column, 1.0);
            if self.may_fit(usage.program, depth + 1) {
                usage.set(region, Choice::whole(column));
                self.below(usage, depth + 1, excess_s + excess);
            }
            self.count(usage.program, region, column, -1.0);
        }
        usage.set(region, before);
    }

    fn count(&mut self, program: &Program, region: usize, column: u32, sign: f64) {
        let uses = &program.regions[region].columns[column as usize].uses;
        uses.iter().for_each(|&(row, used)| self.used[row as usize] += sign * used);
    }

    /// Whether the space may suffice for the regions from `depth` on.
    fn may_fit(&self, program: &Program, depth: usize) -> bool {
        let fits =
            |(row, used): (u32, f64)| program.space(row).is_none_or(|bytes| used <= bytes * (1.0 + 1e-9));
        (0..).zip(self.used.iter().zip(&self.least[depth]).map(|(used, least)| used + least)).all(fits)
    }
}

/// Adds the least use of every row by one of the columns of a region.
fn add_least(program: &Program, open: &Open, to: &mut [f64]) {
    let columns = &program.regions[open.region].columns;
    let used = |column: u32, row: u32| {
        let uses = &columns[column as usize].uses;
        uses.iter().find(|(of, _)| *of == row).map_or(0.0, |(_, used)| *used)
    };
    // A row that the first column does not use has a least use of 0.
    for &(row, _) in &columns[open.columns[0].0 as usize].uses {
        let least = open.columns.iter().map(|&(column, _)| used(column, row)).fold(f64::INFINITY, f64::min);
        to[row as usize] += least;
    }
}
