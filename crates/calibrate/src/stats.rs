//! Statistics of repeated measurements.

use serde::Serialize;

/// A summary of the measurements of one point. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Mean of the measurements used.
    pub mean_s: f64,
    /// Standard deviation of the measurements used.
    pub stddev_s: f64,
    /// Median of all measurements.
    pub p50_s: f64,
    /// 99th percentile of all measurements.
    pub p99_s: f64,
    /// Number of measurements used.
    pub samples: u64,
    /// Number of measurements set aside: those farther from the median than both 8 robust standard
    /// deviations (1.4826 · the median distance from the median) and half of the median. On
    /// emulated servers, whose times are constant: those more than 2 % longer than the shortest,
    /// because the measuring thread woke up late.
    pub outliers: u64,
    /// Fraction of the measured time that the outliers took, 0 to 1.
    pub outlier_time: f64,
}

/// Distance from the median, in robust standard deviations, beyond which a measurement may be an
/// outlier.
const OUTLIER_DEVIATIONS: f64 = 8.0;
/// Relative distance from the median within which a measurement is never an outlier, because
/// devices jitter.
const OUTLIER_RELATIVE: f64 = 0.5;
/// Relative distance from the shortest measurement beyond which one is an outlier, where only the
/// clock jitters.
const LATE_RELATIVE: f64 = 0.02;

/// Summarizes measurements; all 0 when there are none. A `constant` operation always takes the same
/// time, and only its measurement is occasionally late.
pub(crate) fn summarize(mut samples_s: Vec<f64>, constant: bool) -> Summary {
    samples_s.sort_by(f64::total_cmp);
    let Some(p50_s) = median(&samples_s) else { return Summary::default() };
    let (center_s, limit_s) = if constant {
        (samples_s[0], LATE_RELATIVE * samples_s[0])
    } else {
        let mut distances: Vec<f64> = samples_s.iter().map(|sample| (sample - p50_s).abs()).collect();
        distances.sort_by(f64::total_cmp);
        let deviation_s = 1.4826 * median(&distances).unwrap_or(0.0);
        (p50_s, (OUTLIER_DEVIATIONS * deviation_s).max(OUTLIER_RELATIVE * p50_s))
    };
    let (used, outliers): (Vec<f64>, Vec<f64>) =
        samples_s.iter().partition(|&&sample| (sample - center_s).abs() <= limit_s);
    let total_s: f64 = samples_s.iter().sum();
    let mean_s = used.iter().sum::<f64>() / used.len() as f64;
    let variance = used.iter().map(|sample| (sample - mean_s).powi(2)).sum::<f64>();
    Summary {
        mean_s,
        stddev_s: (variance / (used.len().max(2) - 1) as f64).sqrt(),
        p50_s,
        // The smallest value that at least 99 % of all do not exceed.
        p99_s: samples_s[(samples_s.len() as f64 * 0.99).ceil() as usize - 1],
        samples: used.len() as u64,
        outliers: outliers.len() as u64,
        outlier_time: if total_s > 0.0 { outliers.iter().sum::<f64>() / total_s } else { 0.0 },
    }
}

/// The median of sorted values; for an even number of values, the mean of the middle two.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() & 1 == 0 { (sorted[middle - 1] + upper) / 2.0 } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summarize(samples_s: Vec<f64>) -> Summary {
        super::summarize(samples_s, false)
    }

    #[test]
    fn outliers_are_set_aside_and_counted() {
        let mut samples = vec![1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02, 0.98, 1.01, 0.99];
        let clean = summarize(samples.clone());
        assert_eq!((clean.samples, clean.outliers), (10, 0));
        assert!((clean.mean_s - 1.0).abs() < 1e-12);
        samples.push(90.0);
        let summary = summarize(samples);
        assert_eq!((summary.samples, summary.outliers), (10, 1));
        assert_eq!(summary.mean_s, clean.mean_s);
        assert!((summary.outlier_time - 0.9).abs() < 1e-9);
        assert_eq!(summary.p99_s, 90.0);
    }

    #[test]
    fn a_wide_distribution_has_no_outliers() {
        // A disk's rotational latency: uniform.
        let summary = summarize((0..1000).map(|index| 1.0 + f64::from(index) / 100.0).collect());
        assert_eq!(summary.outliers, 0);
        assert!((summary.mean_s - 5.995).abs() < 1e-9);
        assert!((summary.p50_s - 5.995).abs() < 1e-9);
        assert!((summary.p99_s - 10.89).abs() < 1e-9);
        assert!((summary.stddev_s - 10.0 / 12f64.sqrt()).abs() < 0.01);
    }

    #[test]
    fn of_something_constant_the_shortest_count() {
        let summary = super::summarize(vec![1.3, 1.01, 1.0, 1.2, 1.0, 1.4], true);
        assert_eq!((summary.samples, summary.outliers), (3, 3));
        assert!((summary.mean_s - 3.01 / 3.0).abs() < 1e-12);
        assert_eq!(super::summarize(Vec::new(), true), Summary::default());
    }

    #[test]
    fn few_measurements_are_no_trouble() {
        assert_eq!(summarize(Vec::new()), Summary::default());
        let one = summarize(vec![2.0]);
        assert_eq!((one.mean_s, one.stddev_s, one.p50_s, one.p99_s, one.samples), (2.0, 0.0, 2.0, 2.0, 1));
        let two = summarize(vec![1.0, 3.0]);
        assert_eq!(
            (two.mean_s, two.p50_s, two.samples, two.outliers),
            (2.0, 2.0, 2, 0),
            "neither is the outlier"
        );
        assert_eq!(summarize(vec![0.0, 0.0]).mean_s, 0.0);
    }
}
