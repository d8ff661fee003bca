//! The order of random requests.

use stripewise_random::Random;

/// The numbers below `count` (at least 4) in a random order in which no number follows its
/// predecessor, so that no request is sequential by accident.
pub(crate) fn scattered(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    let follows = |order: &[usize], index: usize| index > 0 && order[index] == order[index - 1] + 1;
    while let Some(index) = (1..count).find(|&index| follows(&order, index)) {
        order.swap(index, random.index(count));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scattered_order_has_every_number_once_and_no_successors() {
        for seed in 0..200 {
            let count = 4 + seed as usize % 40;
            let order = scattered(count, &mut Random(seed));
            assert!(order.windows(2).all(|pair| pair[1] != pair[0] + 1), "{order:?}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count));
        }
    }
}
