//! Chooses one column (a layout) per region of the files, so that the space of the servers suffices
//! and the whole workload takes the least time, and proves how good the choice is.
//!
//! # The program
//!
//! A *region* is a part of the data that gets one layout. Each of its *columns* is a layout that it
//! may get, with the seconds that it takes by itself and its use of what the regions share
//! ([`Row`]): the space of servers, and their time in the phases of the workload. With x(r, l) = 1
//! if region r gets column l:
//!
//! ```text
//! minimise   sum_f w_f T_f + sum_r,l x(r,l) seconds(r,l)
//! subject to sum_l x(r,l) = 1                               for every region r
//!            sum_r,l x(r,l) use(r,l,i) <= T_f               for every time row i of phase f
//!            sum_r,l x(r,l) use(r,l,i) <= bytes_i           for every space row i
//!            0 <= x(r,l)
//! ```
//!
//! A region of even density may be cut, so a fractional x is a plan for it ([`Region::divisible`]).
//!
//! # The way to a solution
//!
//! 1. [`bound`]: with a price for each row the regions no longer depend on each other, and each
//!    takes its cheapest column (Lagrangean relaxation). That gives a lower bound, whatever the
//!    prices are.
//! 2. `generate`: finds the prices with the highest bound by column generation (Dantzig and Wolfe
//!    1960). The restricted program is solved by Clarabel, an interior-point solver.
//! 3. `round`: makes a plan of the fractional solution and improves it, one region at a time.
//! 4. `branch`: if the bound leaves a gap, searches the columns that the gap does not rule out, as
//!    far as a budget allows.
//!
//! ```
//! # use stripewise_allocation::{Column, Program, Region, Row, solve};
//! let column = |seconds, bytes| Column { seconds, uses: vec![(0, bytes)] };
//! let random = Region { columns: vec![column(9.0, 0.0), column(0.5, 16.0)], divisible: false };
//! let in_order = Region { columns: vec![column(0.6, 0.0), column(0.2, 240.0)], divisible: false };
//! let rows = vec![Row::Space { bytes: 24.0 }];
//! let solution = solve(&Program { weights: vec![], rows, regions: vec![random, in_order] })?;
//! assert_eq!(solution.choices.iter().map(|choice| choice.column).collect::<Vec<_>>(), [1, 0]);
//! assert!((solution.seconds - 1.1).abs() < 1e-9 && solution.bound_s <= solution.seconds);
//! # Ok::<(), stripewise_allocation::AllocationError>(())
//! ```
//!
//! Pure: no I/O, no clock. The same program gives the same solution.

mod bound;
mod branch;
mod generate;
mod master;
mod program;
mod round;
mod usage;

#[cfg(test)]
mod tests;

pub use bound::{Prices, bound};
pub use program::{AllocationError, Choice, Column, Program, Region, Row};

/// A solution of a [`Program`].
#[derive(Clone, Debug)]
pub struct Solution {
    /// What every region gets.
    pub choices: Vec<Choice>,
    /// The value of these choices, seconds.
    pub seconds: f64,
    /// No choices have a value below this one, seconds. It also holds if regions are divided.
    pub bound_s: f64,
    /// The prices that prove the bound. Those of space rows are what another byte would save.
    pub prices: Prices,
}

/// Solves a program.
///
/// # Errors
/// The program is not valid, or the space does not suffice.
pub fn solve(program: &Program) -> Result<Solution, AllocationError> {
    program.check()?;
    let relaxed = generate::relaxed(program)?;
    let mut found = round::plan(program, &relaxed);
    branch::improve(&mut found, &relaxed);
    if let Some((row, bytes)) = found.fullest() {
        return Err(AllocationError::Full { row, bytes });
    }
    let seconds = found.seconds();
    let bound_s = relaxed.bound_s.min(seconds);
    Ok(Solution { choices: found.choices, seconds, bound_s, prices: relaxed.prices })
}
