//! A limit on the bytes of existing files that a plan moves: one more row of the program.

use stripewise_allocation::Solution;

use super::composed::{Divided, compose};
use super::faster::{faster, solution};
use super::rows::Rows;
use super::set::{Set, moved_bytes};
use super::space::sum;

/// A limit on moving, and what more of it is worth.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MoveLimit {
    /// Maximum number of bytes of existing files whose layout changes.
    pub bytes: u64,
    /// Bytes of the files whose layout would change without the limit.
    pub unlimited_bytes: u64,
    /// Seconds that one more byte saves. It is a price: it holds for the next bytes, on average
    /// over many file sets.
    pub saves_s_per_byte: f64,
}

impl MoveLimit {
    /// A limit of `bytes`, of which `solution` has the price if it counts.
    pub(super) fn of(bytes: u64, unlimited_bytes: u64, rows: &Rows, solution: &Solution) -> Self {
        let price = |_| solution.prices.0[rows.move_row()];
        Self { bytes, unlimited_bytes, saves_s_per_byte: rows.move_at_most.map_or(0.0, price) }
    }

    /// A small part of what would be moved without the limit, a power of two in bytes, and the most
    /// that moving so much more saves, seconds.
    pub fn worth(&self) -> (u64, f64) {
        let unit = 1u64 << (self.unlimited_bytes / 16).max(1).ilog2();
        (unit, unit as f64 * self.saves_s_per_byte)
    }
}

/// The options of the sets, by index, of which no more than `limit` bytes are moved, and the
/// solution that they come from. If there is none or it is no faster, all files stay.
/// `composing` are the regions of the sets if layouts are composed.
pub fn within(
    limit: u64,
    (sets, composing): (&mut [Set<'_>], Option<&[Divided]>),
    rows: &mut Rows,
    space: &[u64],
) -> (Vec<usize>, Option<Solution>) {
    let fractions = fractions_that_fit(sets, space);
    sets.iter_mut().for_each(|set| set.limit_moves(fractions.as_deref(), rows));
    rows.move_at_most = Some(limit);
    let stay = vec![0; sets.len()];
    let mut found = solution(sets, rows, space);
    if let (Some(first), Some(divided)) = (&found, composing) {
        compose_for_moved((sets, divided), rows, space, first);
        found = solution(sets, rows, space);
    }
    let choices = found.as_ref().and_then(|solution| faster(sets, rows, space, (solution, &stay)));
    // The solver may exceed the limit by rounding.
    let choices = choices.filter(|choices| moved_bytes(sets, choices) <= limit);
    (choices.unwrap_or(stay), found)
}

/// Adds layouts of regions that share the space among the sets that a solution moves.
fn compose_for_moved(
    (sets, divided): (&mut [Set<'_>], &[Divided]),
    rows: &Rows,
    space: &[u64],
    solution: &Solution,
) {
    let were_fixed: Vec<bool> = sets.iter().map(|set| set.is_fixed).collect();
    for (set, choice) in sets.iter_mut().zip(&solution.choices) {
        set.is_fixed |= choice.column == 0;
    }
    compose(sets, divided, rows, space);
    sets.iter_mut().zip(were_fixed).for_each(|(set, was_fixed)| set.is_fixed = was_fixed);
}

/// By server: the fraction of its bytes in the present layouts that its space holds; `None` if it
/// holds all of them everywhere. Files may be where they are although the space does not suffice,
/// for example because their layouts are only assumed. Those that stay then fill the space, so that
/// no others come there.
fn fractions_that_fit(sets: &[Set<'_>], space: &[u64]) -> Option<Vec<f64>> {
    let used = sum(sets.iter().map(|set| set.bytes(0)));
    let fraction = |(&space, used): (&u64, u64)| if used > space { space as f64 / used as f64 } else { 1.0 };
    let fractions: Vec<f64> = space.iter().zip(used).map(fraction).collect();
    fractions.iter().any(|&fraction| fraction < 1.0).then_some(fractions)
}
