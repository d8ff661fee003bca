//! Division by a number that is known long before: a multiplication instead.

/// A divisor with its reciprocal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    value: u64,
    /// ⌊(2^64 - 1) / value⌋
    reciprocal: u64,
}

impl Divisor {
    /// `value` is at least 1.
    pub fn new(value: u64) -> Self {
        Self { value, reciprocal: u64::MAX / value }
    }

    pub fn value(self) -> u64 {
        self.value
    }

    /// (n / value, n % value)
    #[inline]
    pub fn div_rem(self, n: u64) -> (u64, u64) {
        // The reciprocal is less than 1 below 2^64 / value, so the quotient is at most 1 too small.
        let quotient = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = n - quotient * self.value;
        if rest >= self.value { (quotient + 1, rest - self.value) } else { (quotient, rest) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(n: u64, value: u64) {
        assert_eq!(Divisor::new(value).div_rem(n), (n / value, n % value), "{n} / {value}");
    }

    #[test]
    fn is_exact_at_the_edges() {
        let edges =
            [1, 2, 3, 5, 1 << 16, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
        for value in edges {
            for n in edges.iter().flat_map(|&n| [n - 1, n, n.wrapping_add(1)]) {
                check(n, value);
            }
        }
    }

    proptest! {
        #[test]
        fn is_exact(n: u64, value in 1u64.., multiple: u64, shift in 0u32..64) {
            let small = (value >> shift).max(1);
            check(n, small);
            // Around multiples of the divisor, where a quotient one off would show.
            let near = multiple / small * small;
            check(near, small);
            check(near.wrapping_sub(1), small);
        }
    }
}
