//! The set of layouts with the least total cost when the cheapest member serves each request. The
//! search is exact, by branch and bound.

/// Sets whose totals differ by less than this fraction are equal.
const TIE: f64 = 1e-12;
/// Number of additions after which a search stops with the best set found so far; a few seconds.
const WORK_MAX: u64 = 1 << 33;

/// A set of candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Indices of the candidates, ascending.
    pub members: Vec<usize>,
    /// The sum over all requests of the cost on the cheapest member, seconds.
    pub total: f64,
    /// No other set of this size is better by more than rounding.
    pub exact: bool,
}

/// The best set of exactly `size` candidates that `fits` accepts, or `None` if no set fits.
/// `costs[c][r]` is the cost of all requests of row r with candidate c. `fits` must reject every
/// superset of a set that it rejects. It takes `work` additions for each member of the set.
///
/// Of equally good sets, the one whose members are best by themselves wins: the first when
/// candidates are ordered by their totals, then by their indices.
pub fn best_set(costs: &[Vec<f64>], size: usize, work: u64, fits: impl Fn(&[usize]) -> bool) -> Option<Found> {
    if size == 0 || size > costs.len() {
        return None;
    }
    let rows = costs[0].len();
    let mut order: Vec<usize> = (0..costs.len()).collect();
    let total = |&candidate: &usize| costs[candidate].iter().sum::<f64>();
    order.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let sorted: Vec<&[f64]> = order.iter().map(|&candidate| &costs[candidate][..]).collect();
    let mut least_from = vec![vec![f64::INFINITY; rows]; sorted.len() + 1];
    for from in (0..sorted.len()).rev() {
        least_from[from] = smaller(sorted[from], &least_from[from + 1]);
    }
    let mut search = Search {
        order: &order,
        sorted,
        least_from,
        size,
        fits,
        fits_work: work,
        best: None,
        work: 0,
        chosen: Vec::new(),
    };
    search.extend(0, &vec![f64::INFINITY; rows]);
    let exact = search.work < WORK_MAX;
    let (total, mut members) = search.best?;
    members.sort_unstable();
    Some(Found { members, total, exact })
}

struct Search<'c, F> {
    /// Candidates, ordered by their own totals.
    order: &'c [usize],
    /// Their costs, in the same order.
    sorted: Vec<&'c [f64]>,
    /// Per place in the order: the least cost of every row with any candidate from there on.
    least_from: Vec<Vec<f64>>,
    size: usize,
    fits: F,
    /// Additions of `fits` for each member of a set.
    fits_work: u64,
    best: Option<(f64, Vec<usize>)>,
    work: u64,
    /// Candidates in the current set.
    chosen: Vec<usize>,
}

impl<F: Fn(&[usize]) -> bool> Search<'_, F> {
    /// Tries every way to complete the set with candidates from place `from` on. `costs` are the
    /// costs of the current set.
    fn extend(&mut self, from: usize, costs: &[f64]) {
        let missing = self.size - self.chosen.len();
        for place in from..=self.sorted.len() - missing {
            // Bound: no selection of the remaining candidates beats all of them together.
            if self.work >= WORK_MAX || !self.improves(sum_of_smaller(costs, &self.least_from[place])) {
                return;
            }
            self.chosen.push(self.order[place]);
            self.work += 2 * costs.len() as u64 + self.fits_work * self.chosen.len() as u64;
            if (self.fits)(&self.chosen) {
                if missing > 1 {
                    let costs = smaller(costs, self.sorted[place]);
                    self.extend(place + 1, &costs);
                } else {
                    let total = sum_of_smaller(costs, self.sorted[place]);
                    if self.improves(total) {
                        self.best = Some((total, self.chosen.clone()));
                    }
                }
            }
            self.chosen.pop();
        }
    }

    fn improves(&self, total: f64) -> bool {
        self.best.as_ref().is_none_or(|best| total < best.0 * (1.0 - TIE))
    }
}

fn smaller(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(&a, &b)| if b < a { b } else { a }).collect()
}

fn sum_of_smaller(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| if b < a { b } else { a }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All sets of `size` out of `candidates` candidates.
    fn all_sets(candidates: usize, size: usize) -> Vec<Vec<usize>> {
        let members = |bits: u32| (0..candidates).filter(move |c| bits & 1 << c != 0).collect::<Vec<_>>();
        (0..1u32 << candidates).filter(|bits| bits.count_ones() as usize == size).map(members).collect()
    }

    fn total(costs: &[Vec<f64>], set: &[usize]) -> f64 {
        let least = |row: usize| set.iter().map(|&c| costs[c][row]).fold(f64::INFINITY, f64::min);
        (0..costs[0].len()).map(least).sum()
    }

    fn costs() -> impl Strategy<Value = Vec<Vec<f64>>> {
        // Few distinct values, so that there are many ties.
        let cost = prop_oneof![(0u32..4).prop_map(f64::from), 0.0..10.0f64];
        (1usize..9, 1usize..12).prop_flat_map(move |(candidates, rows)| {
            prop::collection::vec(prop::collection::vec(cost.clone(), rows), candidates)
        })
    }

    proptest! {
        /// Compares with all subsets, whether or not `room` holds them.
        #[test]
        fn no_set_is_better(costs in costs(), size in 1usize..5, weights in prop::collection::vec(0u32..10, 9), room in 5u32..40) {
            let fits = |set: &[usize]| set.iter().map(|&c| weights[c]).sum::<u32>() <= room;
            let sets = all_sets(costs.len(), size).into_iter().filter(|set| fits(set));
            let least = sets.map(|set| total(&costs, &set)).reduce(f64::min);
            let found = best_set(&costs, size, 1, fits);
            prop_assert_eq!(found.is_some(), least.is_some());
            if let (Some(found), Some(least)) = (found, least) {
                prop_assert!(found.exact && fits(&found.members) && found.members.len() == size);
                prop_assert!((found.total - total(&costs, &found.members)).abs() < 1e-9);
                prop_assert!((found.total - least).abs() < 1e-9, "{} instead of {}", found.total, least);
            }
        }
    }

    #[test]
    fn of_equal_sets_the_best_by_themselves() {
        let costs = vec![vec![9.0, 1.0], vec![1.0, 3.0], vec![1.0, 2.0], vec![3.0, 1.0]];
        assert_eq!(best_set(&costs, 2, 1, |_| true).unwrap().members, [2, 3]);
        assert_eq!(best_set(&costs, 1, 1, |_| true).unwrap().members, [2]);
        assert_eq!(best_set(&costs, 5, 1, |_| true), None);
        assert_eq!(best_set(&costs, 2, 1, |_| false), None);
    }

    #[test]
    fn the_work_of_checking_the_space_ends_a_search() {
        let costs: Vec<Vec<f64>> = (0..9).map(|i| vec![f64::from(i), f64::from(9 - i)]).collect();
        assert!(best_set(&costs, 2, 1, |_| true).unwrap().exact);
        assert!(!best_set(&costs, 2, WORK_MAX / 8, |_| true).unwrap().exact);
    }
}
