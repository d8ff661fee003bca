//! Plans by the linear program that are faster than others.

use stripewise_allocation::{Solution, solve};

use super::repair::repair;
use super::rows::Rows;
use super::set::Set;
use super::space::sum;
use super::stages::{Placed, total_s};

/// Fractions of the space to plan for, one after the other, where it counts by tier, until the
/// files fit on every server.
const SPACES: [f64; 3] = [1.0, 0.9, 0.75];

/// The options of a solution, by index, after ties and repairs; `None` if `others` are as fast.
pub fn faster(
    sets: &[Set<'_>],
    rows: &Rows,
    space: &[u64],
    (solution, others): (&Solution, &[usize]),
) -> Option<Vec<usize>> {
    let settled = sets.iter().zip(&solution.choices).map(|(set, choice)| set.settled(choice.column as usize));
    let mut choices: Vec<usize> = settled.collect();
    repair(sets, rows, space, &mut choices);
    (seconds(sets, rows, &choices) < seconds(sets, rows, others)).then_some(choices)
}

/// Seconds (or cost) of all sets, each in the option with this index.
fn seconds(sets: &[Set<'_>], rows: &Rows, choices: &[usize]) -> f64 {
    let placed: Vec<Placed<'_>> = sets.iter().zip(choices).map(|(set, &option)| set.placed(option)).collect();
    total_s(&rows.stages, &placed)
}

/// The solution, if one is found whose files fit on every server.
pub fn solution(sets: &[Set<'_>], rows: &Rows, space: &[u64]) -> Option<Solution> {
    let sums = rows.sums(space);
    let mut bound_s = None;
    for fraction in SPACES {
        let space_of_rows = sums.iter().map(|&bytes| bytes as f64 * fraction);
        let program = rows.program(space_of_rows, sets.iter().map(Set::region).collect());
        let solution = solve(&program).ok()?;
        let bound_s = *bound_s.get_or_insert(solution.bound_s);
        let chosen = sets.iter().zip(&solution.choices);
        let used = sum(chosen.map(|(set, choice)| set.bytes(choice.column as usize)));
        if used.iter().zip(space).all(|(used, space)| used <= space) {
            return Some(Solution { bound_s, ..solution });
        }
    }
    None
}
