//! The rule that decides whether a result agrees with a claim.

use super::Found;

/// A result may lie outside of the claimed range by this much, or by [`PART`] of the nearer end of
/// the range, whichever is more.
const POINTS: f64 = 0.10;

/// Tolerance as a fraction of an end of the claimed range; see [`POINTS`].
const PART: f64 = 0.2;

/// A gain below this counts as no difference, regardless of the spread of the repeats.
const NOTHING: f64 = 0.02;

/// The rule as text for the page.
pub const RULE: &str = "Agrees: same direction, and within the claimed range, widened at each end by 10 points or a \
    fifth of that end, whichever is more. Smaller, larger: same direction, below or above that. No difference: a gain or \
    loss was claimed, and what was found is below 2 points or within the spread of the repeats. Opposite: a loss where a \
    gain (or none) was claimed, or the reverse.";

/// Whether a result agrees with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Within the claimed range, widened by the tolerance.
    Agrees,
    /// The same direction, but less than claimed.
    Smaller,
    /// The same direction, but more than claimed.
    Larger,
    /// A difference was claimed, and there is none.
    NoDifference,
    /// A loss where a gain was claimed, or the reverse.
    Opposite,
    /// There is no result, because nothing was run.
    NotRun,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Self; 6] =
        [Self::Agrees, Self::Larger, Self::Smaller, Self::NoDifference, Self::Opposite, Self::NotRun];

    /// Returns the verdict by [`RULE`]. `claimed` are the two ends of the range, in any order.
    pub fn of(claimed: (f64, f64), found: Option<&Found>) -> Self {
        let Some(found) = found else { return Self::NotRun };
        // A claimed loss is judged as the mirrored gain.
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

    /// Returns the verdict in one or two words.
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

    /// Returns a sign that distinguishes the verdict without color.
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
