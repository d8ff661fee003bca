//! The lower bound that prices prove (Lagrangean relaxation).

use rayon::prelude::*;

use crate::program::{Column, Program, Region, Row};

/// What a unit of each row costs: seconds per second of a time row, seconds per byte of a space
/// row; not negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(pub Vec<f64>);

impl Prices {
    /// No row costs anything, except that each phase's time is shared evenly by its rows.
    pub(crate) fn even(program: &Program) -> Self {
        let ones = Self(program.rows.iter().map(|row| f64::from(matches!(row, Row::Time { .. }))).collect());
        ones.of_weights(program)
    }

    /// The nearest valid prices: none is negative, and those of the rows of a phase add up to its
    /// weight.
    pub(crate) fn of_weights(mut self, program: &Program) -> Self {
        let mut sums = vec![0.0; program.weights.len()];
        for (price, row) in self.0.iter_mut().zip(&program.rows) {
            *price = if price.is_finite() { price.max(0.0) } else { 0.0 };
            if let Row::Time { phase } = row {
                sums[*phase as usize] += *price;
            }
        }
        for (price, row) in self.0.iter_mut().zip(&program.rows) {
            if let Row::Time { phase } = row {
                let (sum, weight) = (sums[*phase as usize], program.weights[*phase as usize]);
                *price *= if sum > 0.0 { weight / sum } else { 0.0 };
            }
        }
        self
    }

    /// What a column costs, seconds.
    pub(crate) fn of(&self, column: &Column) -> f64 {
        column.seconds + column.uses.iter().map(|&(row, used)| used * self.0[row as usize]).sum::<f64>()
    }

    /// The index of the cheapest column of a region, the first of several, and its cost.
    pub(crate) fn cheapest(&self, region: &Region) -> (u32, f64) {
        let costs = (0..).zip(region.columns.iter().map(|column| self.of(column)));
        costs.fold((0, f64::INFINITY), |best, this| if this.1 < best.1 { this } else { best })
    }

    /// What all space costs, seconds.
    pub(crate) fn of_space(&self, program: &Program) -> f64 {
        let of_row = |(row, price): (u32, &f64)| program.space(row).unwrap_or(0.0) * price;
        (0..).zip(&self.0).map(of_row).sum()
    }
}

/// The lower bound on the value of any plan, in seconds, that these prices prove, and every
/// region's cheapest column. The prices of a phase must add up to no more than its weight.
///
/// For a plan, T_f is at least each use of its time rows and no space is overused, so its value is
/// at least `sum_r cost(r, its column) - sum_i price_i bytes_i`; the cheapest columns cost no more.
/// This holds for fractional plans, too.
pub fn bound(program: &Program, prices: &Prices) -> (f64, Vec<u32>) {
    let cheapest: Vec<(u32, f64)> = program.regions.par_iter().map(|region| prices.cheapest(region)).collect();
    // Not a parallel sum: its order, and so the last bits, would differ from run to run.
    let cost: f64 = cheapest.iter().map(|&(_, cost)| cost).sum();
    (cost - prices.of_space(program), cheapest.into_iter().map(|(column, _)| column).collect())
}
