//! Reproducible random numbers for orders and contents.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index + 1));
        }
    }
}

/// The numbers below `count` (at least 4) in a random order in which no number follows its
/// predecessor, so that no request is sequential by accident.
pub(crate) fn scattered(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    let follows = |order: &[usize], index: usize| index > 0 && order[index] == order[index - 1] + 1;
    while let Some(index) = (1..count).find(|&index| follows(&order, index)) {
        order.swap(index, random.below(count));
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
