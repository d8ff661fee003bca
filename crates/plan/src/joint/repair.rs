//! Changes of a plan that the linear program cannot see: its rows are bounds on the time of a
//! stage, and a replay finds how long the requests of all its files really wait for one another.

use super::rows::Rows;
use super::set::{Set, moved_bytes};
use super::space::sum;
use super::stages::Stage;

/// Maximum number of replays of stages.
const REPLAYS_MAX: usize = 64;
/// A change must save this fraction of the time of its stages, because a replay of a sample is no
/// more exact.
const BETTER: f64 = 0.005;

/// Gives one set of a stage at a time another option, if replays find that faster and the files
/// still fit into `space`, bytes by server, and a limit on moving.
pub fn repair(sets: &[Set<'_>], rows: &Rows, space: &[u64], choices: &mut [usize]) {
    let mut left = REPLAYS_MAX;
    for stage in &rows.stages {
        for index in stage.sets() {
            let touched: Vec<&Stage> =
                rows.stages.iter().filter(|stage| stage.sets().contains(&index)).collect();
            let mut best_s = seconds(sets, &touched, choices, index);
            for option in by_time(&sets[index]) {
                if left == 0 {
                    return;
                }
                let before = std::mem::replace(&mut choices[index], option);
                if option == before || !fits(sets, rows, space, choices) {
                    choices[index] = before;
                    continue;
                }
                left = left.saturating_sub(touched.len());
                let seconds = seconds(sets, &touched, choices, index);
                if seconds < best_s * (1.0 - BETTER) { best_s = seconds } else { choices[index] = before }
            }
        }
    }
}

/// The options of a set, the fastest first.
fn by_time(set: &Set<'_>) -> Vec<usize> {
    let mut options: Vec<usize> = (0..set.options.len()).collect();
    options.sort_by(|&a, &b| set.options[a].seconds.total_cmp(&set.options[b].seconds));
    options
}

/// Seconds of some stages, and of a set outside of them.
fn seconds(sets: &[Set<'_>], stages: &[&Stage], choices: &[usize], index: usize) -> f64 {
    let placed = |index: usize| sets[index].placed(choices[index]);
    sets[index].options[choices[index]].outside_s
        + stages.iter().map(|stage| stage.elapsed_s(placed)).sum::<f64>()
}

fn fits(sets: &[Set<'_>], rows: &Rows, space: &[u64], choices: &[usize]) -> bool {
    let used = sum(sets.iter().zip(choices).map(|(set, &option)| set.bytes(option)));
    let is_within = rows.move_at_most.is_none_or(|limit| moved_bytes(sets, choices) <= limit);
    is_within && used.iter().zip(space).all(|(used, space)| used <= space)
}
