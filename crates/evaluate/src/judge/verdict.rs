//! The rule by which what was found agrees with what was claimed.

use super::Found;

/// What is found may lie outside of the claimed range by so much, or by [`PART`] of the range's end, whichever is more.
const POINTS: f64 = 0.10;

/// See [`POINTS`].
const PART: f64 = 0.2;

/// A gain below this is none, whatever the repeats say.
const NOTHING: f64 = 0.02;

/// The rule in words, for the page.
pub const RULE: &str = "Agrees: same direction, and within the claimed range, widened at each end by 10 points or a \
    fifth of that end, whichever is more. Smaller, larger: same direction, below or above that. No difference: a gain or \
    loss was claimed, and what was found is below 2 points or within the spread of the repeats. Opposite: a loss where a \
    gain (or none) was claimed, or the reverse.";

/// Whether what was found agrees with what was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// In the claimed range, or nearly.
    Agrees,
    /// The same direction, but less.
    Smaller,
    /// The same direction, but more.
    Larger,
    /// Something was claimed, and nothing was found.
    NoDifference,
    /// A loss where a gain was claimed, or the reverse.
    Opposite,
    /// Nothing was found, because nothing was run.
    NotRun,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Self; 6] =
        [Self::Agrees, Self::Larger, Self::Smaller, Self::NoDifference, Self::Opposite, Self::NotRun];

    /// By [`RULE`]; `claimed` is from and to, in any order.
    pub fn of(claimed: (f64, f64), found: Option<&Found>) -> Self {
        let Some(found) = found else { return Self::NotRun };
        // A claimed loss is judged as the gain that it is the mirror of.
        let (low, high) = (claimed.0.min(claimed.1), claimed.0.max(claimed.1));
        let is_loss = low + high < 0.0;
        let (low, high, value) = if is_loss { (-high, -low, -found.value) } else { (low, high, found.value) };
        let nothing = NOTHING.max(found.spread);
        let slack = |end: f64| POINTS.max(PART * end.abs());
        if low > 0.0 && value.abs() <= nothing {
            return Self::NoDifference;
        }
        match value {
            _ if low > 0.0 && value < 0.0 => Self::Opposite,
            _ if value > high + slack(high) => Self::Larger,
            _ if value >= low - slack(low) => Self::Agrees,
            _ if value < 0.0 => Self::Opposite,
            _ => Self::Smaller,
        }
    }

    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Smaller => "smaller",
            Self::Larger => "larger",
            Self::NoDifference => "no difference",
            Self::Opposite => "opposite",
            Self::NotRun => "not run",
        }
    }

    /// A sign that tells it from the others without colour.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Agrees => "✓",
            Self::Smaller => "▾",
            Self::Larger => "▴",
            Self::NoDifference => "=",
            Self::Opposite => "✗",
            Self::NotRun => "–",
        }
    }
}
