//! What survives a power cut.

use stripewise_random::Random;

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
