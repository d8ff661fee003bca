//! From the relaxed solution to a plan with few cuts.

use crate::generate::Relaxed;
use crate::program::{Choice, Program};
use crate::usage::Usage;

/// A change must lower the value by more than this fraction, so that rounding errors do not count.
const BETTER: f64 = 1e-9;
/// Fractions of a region that are not worth a cut.
const CUT_MIN: f64 = 1e-3;
/// Maximum number of passes over all regions.
const PASSES: usize = 50;
/// Number of steps in which the place of a cut is searched; each leaves two thirds.
const STEPS: usize = 48;

/// The columns of every region that a better plan can have: with any other the bound is above the
/// value `seconds`.
pub fn eligible(program: &Program, relaxed: &Relaxed, seconds: f64) -> Vec<Vec<(u32, f64)>> {
    let most = seconds - relaxed.bound_s;
    let of_region = |region: &crate::Region| {
        let least = relaxed.prices.cheapest(region).1;
        let excess =
            (0..).zip(&region.columns).map(|(index, column)| (index, relaxed.prices.of(column) - least));
        let mut columns: Vec<(u32, f64)> = excess.filter(|&(_, excess)| excess <= most).collect();
        columns.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        columns
    };
    program.regions.iter().map(of_region).collect()
}

/// A plan near the relaxed solution, better than all that differ from it in one region. Its space
/// may not suffice.
pub fn plan<'p>(program: &'p Program, relaxed: &Relaxed) -> Usage<'p> {
    let mut usage = Usage::new(program, rounded(program, relaxed));
    improve(&mut usage, relaxed);
    usage
}

/// Improves a plan by changes of one region at a time.
pub fn improve(usage: &mut Usage<'_>, relaxed: &Relaxed) {
    for _ in 0..PASSES {
        let most = if usage.overuse() > 0.0 { f64::INFINITY } else { usage.seconds() };
        let eligible = eligible(usage.program, relaxed, most);
        let mut is_better = false;
        for (region, columns) in eligible.iter().enumerate() {
            for &(column, _) in columns {
                is_better |= try_whole(usage, region, column) || try_cut(usage, region, column);
            }
        }
        usage.count_anew();
        if !is_better {
            break;
        }
    }
}

/// Whole regions, so that all together use about what the relaxed solution uses: each takes the
/// column of its mixture that leaves the least difference so far.
fn rounded(program: &Program, relaxed: &Relaxed) -> Vec<Choice> {
    let mut difference = vec![0.0; program.rows.len()];
    let unit = Units::new(program);
    let mut choices = Vec::with_capacity(program.regions.len());
    for (region, fractions) in program.regions.iter().zip(&relaxed.fractions) {
        for &(column, fraction) in fractions.iter().filter(|_| fractions.len() > 1) {
            unit.add(&region.columns[column as usize], -fraction, &mut difference);
        }
        let best = match fractions[..] {
            [(only, _)] => only,
            _ => {
                let left = |column: u32| unit.left(&region.columns[column as usize], &difference);
                let best = fractions.iter().min_by(|a, b| left(a.0).total_cmp(&left(b.0)));
                let best = best.map_or(0, |(column, _)| *column);
                unit.add(&region.columns[best as usize], 1.0, &mut difference);
                best
            }
        };
        choices.push(Choice::whole(best));
    }
    choices
}

/// What one unit of each row counts, so that rows can be compared.
struct Units(Vec<f64>);

impl Units {
    fn new(program: &Program) -> Self {
        let mut most = vec![f64::MIN_POSITIVE; program.rows.len()];
        for column in program.regions.iter().flat_map(|region| &region.columns) {
            column.uses.iter().for_each(|&(row, used)| most[row as usize] = used.max(most[row as usize]));
        }
        Self(most.into_iter().map(|most| 1.0 / most).collect())
    }

    fn add(&self, column: &crate::Column, times: f64, difference: &mut [f64]) {
        column
            .uses
            .iter()
            .for_each(|&(row, used)| difference[row as usize] += times * used * self.0[row as usize]);
    }

    /// By how much the sum of squares changes if a column is added.
    fn left(&self, column: &crate::Column, difference: &[f64]) -> f64 {
        let of_row = |&(row, used): &(u32, f64)| {
            let (before, more) = (difference[row as usize], used * self.0[row as usize]);
            (before + more).powi(2) - before.powi(2)
        };
        column.uses.iter().map(of_row).sum()
    }
}

/// Whether `new` is better than `old`, as [`Usage::rank`] gives them.
pub fn is_better(new: (f64, f64), old: (f64, f64)) -> bool {
    if new.0 != old.0 {
        return new.0 < old.0 * (1.0 - BETTER);
    }
    new.1 < old.1 - BETTER * old.1.abs()
}

fn try_whole(usage: &mut Usage<'_>, region: usize, column: u32) -> bool {
    let choice = Choice::whole(column);
    if usage.choices[region] == choice {
        return false;
    }
    keep_if_better(usage, region, choice)
}

fn keep_if_better(usage: &mut Usage<'_>, region: usize, choice: Choice) -> bool {
    let old = usage.rank();
    let before = usage.set(region, choice);
    let is_better = is_better(usage.rank(), old);
    if !is_better {
        usage.set(region, before);
    }
    is_better
}

/// Tries to give a part of a region another column. The place of the cut is where the value is
/// least: it is convex in the fraction.
fn try_cut(usage: &mut Usage<'_>, region: usize, column: u32) -> bool {
    let first = usage.choices[region].column;
    if !usage.program.regions[region].divisible || column == first {
        return false;
    }
    let cut = |fraction: f64| Choice { column: first, other: Some((column, fraction)) };
    let (mut low, mut high) = (0.0, 1.0);
    let before = usage.choices[region];
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        usage.set(region, cut(left));
        let of_left = usage.rank();
        usage.set(region, cut(right));
        let of_right = usage.rank();
        if of_left <= of_right { high = right } else { low = left }
    }
    usage.set(region, before);
    // On the side of the search where the space suffices.
    let fraction = if usage_fits(usage, region, cut(high), before) { high } else { low };
    (CUT_MIN..=1.0 - CUT_MIN).contains(&fraction) && keep_if_better(usage, region, cut(fraction))
}

fn usage_fits(usage: &mut Usage<'_>, region: usize, choice: Choice, before: Choice) -> bool {
    usage.set(region, choice);
    let fits = usage.overuse() == 0.0;
    usage.set(region, before);
    fits
}
