//! Whether a program's I/O is faster in one layout of its files than in another: repeated runs, the
//! spread of their mean, and what can be said of the difference.

use serde::Serialize;

/// 97.5 % quantiles of Student's t distribution, for 1, 2, ... degrees of freedom: a mean is within
/// so many standard errors of the true one in 95 % of all cases.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The quantile for more degrees of freedom.
const NORMAL: f64 = 1.96;

/// The same seconds, measured in several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Repeated {
    /// Seconds of each run.
    pub runs_s: Vec<f64>,
    /// Their mean.
    pub mean_s: f64,
    /// The true mean is within this many seconds of `mean_s` in 95 % of all cases; `None` if there
    /// are fewer than two runs.
    pub spread_s: Option<f64>,
}

impl Repeated {
    /// The statistics of these runs.
    pub fn of(runs_s: Vec<f64>) -> Self {
        let mean_s = runs_s.iter().sum::<f64>() / runs_s.len().max(1) as f64;
        let mut repeated = Self { runs_s, mean_s, spread_s: None };
        let freedom = repeated.runs_s.len().saturating_sub(1) as f64;
        repeated.spread_s = repeated.error_squared().map(|square| quantile(freedom) * square.sqrt());
        repeated
    }

    /// The squared standard error of the mean.
    fn error_squared(&self) -> Option<f64> {
        let count = self.runs_s.len() as f64;
        let squares: f64 = self.runs_s.iter().map(|run_s| (run_s - self.mean_s).powi(2)).sum();
        (self.runs_s.len() >= 2).then(|| squares / (count - 1.0) / count)
    }
}

/// How much less time the runs after a change take than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean before minus mean after, seconds.
    pub saved_s: f64,
    /// The same as a fraction of the mean before; 0 if that is 0.
    pub saved: f64,
    /// The true difference is within this many seconds of `saved_s` in 95 % of all cases; `None` if
    /// there are too few runs.
    pub spread_s: Option<f64>,
    /// What can be said of it.
    pub verdict: Verdict,
}

/// What the runs say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster by more than the spread.
    Faster,
    /// Slower by more than the spread.
    Slower,
    /// The difference is within the spread.
    Same,
}

impl Difference {
    /// The difference between runs before and after a change (Welch's test).
    pub fn of(before: &Repeated, after: &Repeated) -> Self {
        let saved_s = before.mean_s - after.mean_s;
        let saved = if before.mean_s > 0.0 { saved_s / before.mean_s } else { 0.0 };
        let spread_s = before.error_squared().zip(after.error_squared()).map(|(one, other)| {
            let freedom = |square: f64, of: &Repeated| square.powi(2) / (of.runs_s.len() - 1) as f64;
            let sum = freedom(one, before) + freedom(other, after);
            let freedom = if sum > 0.0 { (one + other).powi(2) / sum } else { f64::INFINITY };
            quantile(freedom) * (one + other).sqrt()
        });
        let verdict = match spread_s {
            Some(spread_s) if saved_s > spread_s => Verdict::Faster,
            Some(spread_s) if -saved_s > spread_s => Verdict::Slower,
            _ => Verdict::Same,
        };
        Self { saved_s, saved, spread_s, verdict }
    }
}

/// The quantile for a number of degrees of freedom, rounded down.
fn quantile(freedom: f64) -> f64 {
    let index = (freedom.floor().max(1.0) as usize).saturating_sub(1);
    QUANTILES.get(index).copied().unwrap_or(NORMAL)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(before: &[f64], after: &[f64]) -> Verdict {
        Difference::of(&Repeated::of(before.to_vec()), &Repeated::of(after.to_vec())).verdict
    }

    #[test]
    fn the_spread_is_that_of_the_mean() {
        let repeated = Repeated::of(vec![1.0, 2.0, 3.0]);
        assert_eq!(repeated.mean_s, 2.0);
        // The standard deviation is 1.
        assert!((repeated.spread_s.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(Repeated::of(vec![1.0]).spread_s, None);
        assert_eq!(Repeated::of(Vec::new()).mean_s, 0.0);
    }

    #[test]
    fn only_more_than_the_spread_counts() {
        assert_eq!(verdict(&[1.0, 1.01, 0.99], &[0.5, 0.51, 0.49]), Verdict::Faster);
        assert_eq!(verdict(&[0.5, 0.51, 0.49], &[1.0, 1.01, 0.99]), Verdict::Slower);
        assert_eq!(verdict(&[1.0, 1.3, 0.7], &[0.9, 1.2, 0.6]), Verdict::Same);
        assert_eq!(verdict(&[1.0, 1.0], &[1.0, 1.0]), Verdict::Same);
        assert_eq!(verdict(&[1.0, 1.0], &[0.9, 0.9]), Verdict::Faster, "nothing varies");
    }

    #[test]
    fn a_single_run_says_nothing() {
        assert_eq!(verdict(&[10.0], &[1.0]), Verdict::Same);
        assert_eq!(verdict(&[10.0, 10.1], &[1.0]), Verdict::Same);
    }

    proptest! {
        #[test]
        fn exchanging_the_sides_exchanges_the_verdict(
            before in prop::collection::vec(0.1f64..10.0, 2..8),
            after in prop::collection::vec(0.1f64..10.0, 2..8),
        ) {
            let opposite = match verdict(&before, &after) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                Verdict::Same => Verdict::Same,
            };
            prop_assert_eq!(verdict(&after, &before), opposite);
        }
    }
}
