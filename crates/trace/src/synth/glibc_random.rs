//! The generator of glibc's `srandom` and `random`, which determines IOR's random offsets.

/// An additive feedback generator of degree 31.
#[derive(Clone)]
pub(super) struct Random {
    state: [u32; 31],
    next: usize,
}

impl Random {
    /// The state after `srandom(seed)`.
    pub(super) fn new(seed: u32) -> Random {
        let mut state = [0; 31];
        let mut word = i64::from(if seed == 0 { 1 } else { seed } as i32);
        for slot in &mut state {
            *slot = word as u32;
            // A Lehmer generator. The remainder has the sign of a C division and is then made
            // positive.
            word = 16807 * word % 0x7fff_ffff;
            if word < 0 {
                word += 0x7fff_ffff;
            }
        }
        // The first three numbers count as the newest.
        let mut random = Random { state, next: 3 };
        for _ in 0..310 {
            random.next();
        }
        random
    }

    /// The next number, as from `random()`.
    pub(super) fn next(&mut self) -> u64 {
        // `state[next]` is 31 numbers old. The number that is 3 numbers old stands 3 places before
        // it.
        let recent = self.state[(self.next + 28) % 31];
        let sum = self.state[self.next].wrapping_add(recent);
        self.state[self.next] = sum;
        self.next = (self.next + 1) % 31;
        u64::from(sum >> 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;
    use crate::synth::tests::c_library::CRandom;

    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        for seed in [0, 1, 2, 42, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let (mut ours, mut theirs) = (Random::new(seed), CRandom::new(seed));
            for i in 0..1000 {
                assert_eq!(ours.next(), theirs.next(), "seed {seed}, number {i}");
            }
        }
    }
}
