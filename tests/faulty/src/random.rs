//! Reproducible random numbers.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

/// How many unsynced changes survive a power cut. Chosen so that tests often see the extremes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    Nothing,
    Everything,
    Some,
}

impl Kept {
    pub fn choose(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Nothing,
            1 => Self::Everything,
            _ => Self::Some,
        }
    }

    pub fn keeps(self, random: &mut Random) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Some => random.coin(),
        }
    }
}
