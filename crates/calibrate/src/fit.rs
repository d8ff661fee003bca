//! The line T = α + β · size through measured averages.

use serde::Serialize;
use stripewise_model::Service;

/// A weighted least-squares line, and its quality of fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// α, seconds; not negative.
    pub startup_s: f64,
    /// β, seconds per byte; not negative.
    pub per_byte_s: f64,
    /// Standard error of α, seconds.
    pub startup_error_s: f64,
    /// Standard error of β, seconds per byte.
    pub per_byte_error_s: f64,
    /// Root mean square of (measured - fitted) / fitted over the sizes.
    pub residual_relative: f64,
    /// Fraction of the (weighted) variation between sizes that the line explains, at most 1.
    pub r_squared: f64,
    /// Whether the best line had a negative α or β, which was set to 0.
    pub clamped: bool,
}

impl Line {
    /// α and β.
    pub fn service(&self) -> Service {
        Service { startup_s: self.startup_s, per_byte_s: self.per_byte_s }
    }

    /// (measured - fitted) / fitted at one point.
    pub fn residual(&self, bytes: u64, measured_s: f64) -> f64 {
        let fitted_s = self.service().busy_s(bytes);
        if fitted_s > 0.0 { (measured_s - fitted_s) / fitted_s } else { 0.0 }
    }
}

/// Fits a line through (bytes, seconds). The fit minimizes relative errors: a point's weight is 1 /
/// seconds², so that 4 KiB requests count as much as those of 4 MiB, which take a hundred times
/// longer.
///
/// Points of 0 seconds or less are omitted; with fewer than two sizes the line is flat.
pub fn fit_line(points: &[(u64, f64)]) -> Line {
    let points: Vec<(f64, f64)> =
        points.iter().filter(|point| point.1 > 0.0).map(|&(bytes, seconds)| (bytes as f64, seconds)).collect();
    if points.is_empty() {
        return Line::default();
    }
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x, y) / (y * y)).sum::<f64>();
    let (weights, sum_x, sum_y) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y));
    let (sum_xx, sum_xy) = (sum(|x, _| x * x), sum(|x, y| x * y));
    let determinant = weights * sum_xx - sum_x * sum_x;
    let flat = (sum_y / weights, 0.0);
    let best = if determinant > f64::EPSILON * weights * sum_xx {
        let startup_s = (sum_xx * sum_y - sum_x * sum_xy) / determinant;
        (startup_s, (weights * sum_xy - sum_x * sum_y) / determinant)
    } else {
        flat
    };
    let (startup_s, per_byte_s) = match best {
        (startup_s, _) if startup_s < 0.0 => (0.0, sum_xy / sum_xx),
        (_, per_byte_s) if per_byte_s < 0.0 => flat,
        best => best,
    };
    let count = points.len() as f64;
    let fitted = |x: f64| startup_s + x * per_byte_s;
    let squares = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x, y).powi(2)).sum::<f64>();
    let unexplained = squares(&|x, y| (y - fitted(x)) / y);
    let variation = squares(&|_, y| (y - flat.0) / y);
    let has_errors = count > 2.0 && determinant > 0.0;
    let error =
        |sum: f64| if has_errors { (unexplained / (count - 2.0) * sum / determinant).sqrt() } else { 0.0 };
    Line {
        startup_s,
        per_byte_s,
        startup_error_s: error(sum_xx),
        per_byte_error_s: error(weights),
        residual_relative: (squares(&|x, y| (y - fitted(x)) / fitted(x)) / count).sqrt(),
        r_squared: if variation > 0.0 { 1.0 - unexplained / variation } else { 1.0 },
        clamped: best.0 < 0.0 || best.1 < 0.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes() -> Vec<u64> {
        (12..=22).map(|shift| 1 << shift).collect()
    }

    fn points(startup_s: f64, per_byte_s: f64) -> Vec<(u64, f64)> {
        sizes().into_iter().map(|bytes| (bytes, startup_s + bytes as f64 * per_byte_s)).collect()
    }

    /// The weighted sum of squares that the fit minimizes.
    fn objective(points: &[(u64, f64)], startup_s: f64, per_byte_s: f64) -> f64 {
        points.iter().map(|&(x, y)| ((y - startup_s - x as f64 * per_byte_s) / y).powi(2)).sum()
    }

    proptest! {
        #[test]
        fn an_exact_line_is_found(startup_s in 1e-6..1e-1, per_byte_s in 1e-11..1e-6) {
            let line = fit_line(&points(startup_s, per_byte_s));
            prop_assert!((line.startup_s / startup_s - 1.0).abs() < 1e-6, "{:?}", line);
            prop_assert!((line.per_byte_s / per_byte_s - 1.0).abs() < 1e-6, "{:?}", line);
            prop_assert!(line.residual_relative < 1e-9 && line.r_squared > 1.0 - 1e-9 && !line.clamped);
        }

        /// No nearby line with nonnegative α and β is better.
        #[test]
        fn nothing_near_by_is_better(noise in prop::collection::vec(0.3f64..3.0, 11), steps in prop::collection::vec(-0.5f64..0.5, 2)) {
            let points: Vec<_> =
                points(1e-4, 1e-8).into_iter().zip(noise).map(|((x, y), noise)| (x, y * noise)).collect();
            let line = fit_line(&points);
            let best = objective(&points, line.startup_s, line.per_byte_s);
            let other = (line.startup_s + steps[0] * 1e-4, line.per_byte_s + steps[1] * 1e-8);
            if other.0 >= 0.0 && other.1 >= 0.0 {
                prop_assert!(best <= objective(&points, other.0, other.1) * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn impossible_parameters_are_set_to_zero_and_said() {
        let falling = fit_line(&[(4096, 2.0), (8192, 1.5), (16384, 1.0)]);
        assert!(falling.clamped && falling.per_byte_s == 0.0 && falling.startup_s > 1.0);
        let steep = fit_line(&[(4096, 1e-3), (8192, 1.0), (16384, 5.0)]);
        assert!(steep.clamped && steep.startup_s == 0.0 && steep.per_byte_s > 0.0);
    }

    #[test]
    fn too_few_points_give_a_flat_line() {
        assert_eq!(fit_line(&[]).service(), Service { startup_s: 0.0, per_byte_s: 0.0 });
        assert_eq!(fit_line(&[(4096, 2.0)]).service(), Service { startup_s: 2.0, per_byte_s: 0.0 });
        assert_eq!(fit_line(&[(4096, 2.0), (8192, 0.0)]).startup_s, 2.0);
    }

    #[test]
    fn a_throttled_disk_does_not_fit() {
        // A throttled disk takes max(1/IOPS, size/bandwidth). Measured on throttled disks: 25 to 41
        // % off.
        let throttled: Vec<_> =
            sizes().into_iter().map(|bytes| (bytes, (1.0f64 / 120.0).max(bytes as f64 / 60e6))).collect();
        let line = fit_line(&throttled);
        let worst = throttled.iter().map(|&(x, y)| line.residual(x, y).abs()).fold(0.0, f64::max);
        assert!(worst > 0.2, "{worst}");
    }

    #[test]
    fn standard_errors_are_those_of_many_repeats() {
        let mut random = stripewise_random::Random(1);
        let mut noise = || {
            let sum: f64 = (0..12).map(|_| random.next_u64() as f64 / u64::MAX as f64).sum();
            (sum - 6.0) * 0.02
        };
        let runs: Vec<Line> = (0..2000)
            .map(|_| {
                let noisy: Vec<_> =
                    points(1e-4, 1e-8).into_iter().map(|(x, y)| (x, y * (1.0 + noise()))).collect();
                fit_line(&noisy)
            })
            .collect();
        let spread = |value: fn(&Line) -> f64| {
            let mean = runs.iter().map(value).sum::<f64>() / runs.len() as f64;
            (runs.iter().map(|line| (value(line) - mean).powi(2)).sum::<f64>() / runs.len() as f64).sqrt()
        };
        let typical = |value: fn(&Line) -> f64| {
            (runs.iter().map(|line| value(line).powi(2)).sum::<f64>() / runs.len() as f64).sqrt()
        };
        let startup = spread(|line| line.startup_s) / typical(|line| line.startup_error_s);
        let per_byte = spread(|line| line.per_byte_s) / typical(|line| line.per_byte_error_s);
        assert!((startup - 1.0).abs() < 0.1 && (per_byte - 1.0).abs() < 0.1, "{startup} {per_byte}");
    }
}
