//! Axis ticks at round numbers.

use std::ops::Range;

use crate::units::{self, SECONDS};

/// One tick: its position and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Position as a fraction of the axis (0 to 1).
    pub at: f64,
    /// Text of the label.
    pub label: String,
}

/// Returns about three to seven ticks at round times over `range` (seconds), all in the unit that
/// suits the axis.
pub fn seconds(range: Range<f64>) -> Vec<Tick> {
    let fits = SECONDS.into_iter().find(|(_, per_s)| range.end * per_s >= 1.0);
    let (unit, per_s) = fits.unwrap_or(SECONDS[0]);
    decimal(range.start * per_s..range.end * per_s, |value, decimals| {
        if value == 0.0 { format!("0\u{a0}{unit}") } else { format!("{value:.decimals$}\u{a0}{unit}") }
    })
}

/// Returns about three to seven ticks at powers of two of bytes over `0..=end`.
pub fn bytes(end: u64) -> Vec<Tick> {
    let step = (end / 4).max(1).checked_next_power_of_two().unwrap_or(1 << 63);
    // Rounding up may leave only three ticks; half the step then fits better.
    let step = if end / step < 3 { (step / 2).max(1) } else { step };
    (0..=end / step)
        .map(|index| Tick { at: (index * step) as f64 / end.max(1) as f64, label: units::bytes(index * step) })
        .collect()
}

/// Returns about three to seven ticks at round numbers over `0..=end`.
pub fn numbers(end: f64) -> Vec<Tick> {
    decimal(0.0..end, |value, decimals| format!("{value:.decimals$}"))
}

/// Returns ticks at powers of ten over `range` on a logarithmic axis, and also at 2 and 5 times
/// those if there are few.
pub fn logarithmic(range: Range<f64>) -> Vec<Tick> {
    let (start, end) = (range.start.log10(), range.end.log10());
    if !(start.is_finite() && end > start) {
        return vec![Tick { at: 0.0, label: units::number(range.start) }];
    }
    let steps: &[f64] = match end - start {
        below if below < 0.5 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        below if below < 2.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    // Keeps the number of ticks readable on long axes.
    let every = ((end - start) / 7.0).ceil().max(1.0) as i32;
    let powers = (start.floor() as i32..=end.ceil() as i32).filter(|power| power % every == 0);
    let values = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    let tick = |value: f64| Tick { at: (value.log10() - start) / (end - start), label: units::number(value) };
    values.map(tick).filter(|tick| (0.0..=1.0).contains(&tick.at)).collect()
}

/// Returns ticks at multiples of 1, 2 or 5 times a power of ten. `label` gets a tick's value and
/// the number of decimals that distinguishes it from its neighbors.
fn decimal(range: Range<f64>, label: impl Fn(f64, usize) -> String) -> Vec<Tick> {
    let length = range.end - range.start;
    if !(length > 0.0 && length.is_finite()) {
        return vec![Tick { at: 0.0, label: label(range.start, 3) }];
    }
    let power = 10f64.powf((length / 4.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| length / step <= 6.2);
    let step = step.unwrap_or(10.0 * power);
    let decimals = (-(step * 1.001).log10().floor()).max(0.0) as usize;
    // A thousandth of a step compensates for rounding errors at either end.
    let first = (range.start / step - 1e-3).ceil() as i64;
    let last = (range.end / step + 1e-3).floor() as i64;
    let at = |index: i64| ((index as f64 * step - range.start) / length).clamp(0.0, 1.0);
    (first..=last).map(|index| Tick { at: at(index), label: label(index as f64 * step, decimals) }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<String> {
        ticks.iter().map(|tick| tick.label.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(labels(&seconds(0.0..1.0)), ["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"]);
        assert_eq!(labels(&seconds(0.0..17.3)), ["0 s", "5 s", "10 s", "15 s"]);
        assert_eq!(labels(&bytes(16 << 30)), ["0 B", "4 GiB", "8 GiB", "12 GiB", "16 GiB"]);
        assert_eq!(labels(&seconds(0.0..0.0)), ["0 s"]);
        assert_eq!(labels(&seconds(0.0..0.0123)), ["0 ms", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms", "12 ms"]);
        assert_eq!(
            labels(&seconds(12.31..12.62)),
            ["12.35 s", "12.40 s", "12.45 s", "12.50 s", "12.55 s", "12.60 s"]
        );
    }

    #[test]
    fn marks_of_numbers_and_powers() {
        assert_eq!(labels(&numbers(250.0)), ["0", "50", "100", "150", "200", "250"]);
        assert_eq!(labels(&logarithmic(1.0..1e4)), ["1", "10", "100", "1000", "10000"]);
        assert_eq!(labels(&logarithmic(3.0..60.0)), ["5", "10", "20", "50"]);
        assert_eq!(logarithmic(10.0..1000.0)[1], Tick { at: 0.5, label: "100".into() });
    }

    proptest! {
        #[test]
        fn few_and_within_the_axis(start in 0f64..1e6, length in 1e-3f64..1e9, size in 1u64..) {
            for ticks in [seconds(start..start + length), bytes(size), numbers(length)] {
                prop_assert!((1..=8).contains(&ticks.len()), "{:?}", ticks);
                prop_assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.at)));
                prop_assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
            }
            let ticks = logarithmic(length..length * (2.0 + start));
            prop_assert!((1..=8).contains(&ticks.len()), "{:?}", ticks);
            prop_assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
        }
    }
}
