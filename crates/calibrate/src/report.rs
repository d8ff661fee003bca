//! The measurements of one server, or why there are none.

use serde::Serialize;
use stripewise_model::{Access, Op};

use crate::fit::Line;
use crate::stats::Summary;

/// Why a measurement failed: one line that names the directory or host, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct CalibrateError {
    /// A directory or an address.
    pub place: String,
    /// The problem and the remedy.
    pub problem: String,
}

impl CalibrateError {
    pub(crate) fn new(place: impl ToString, problem: impl ToString) -> Self {
        Self { place: place.to_string(), problem: problem.to_string() }
    }
}

/// How the measurement bypasses the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IoMode {
    /// O_DIRECT.
    Direct,
    /// The file system refuses O_DIRECT: O_DSYNC writes, and the cache is dropped before each
    /// series of reads.
    Buffered,
    /// The directory is in memory: it is the page cache.
    Memory,
    /// The times are those of an emulated server; the I/O itself goes to the page cache.
    Emulated,
}

impl IoMode {
    /// A description for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Direct => "direct I/O",
            Self::Buffered => "through the page cache (no O_DIRECT here): synchronous writes, cold reads",
            Self::Memory => "the directory lies in memory, there is no device to measure",
            Self::Emulated => "emulated server",
        }
    }
}

/// The complete report on one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerReport {
    /// `tier/index`.
    pub target: String,
    /// The server's class.
    pub class: String,
    /// How the page cache was bypassed.
    pub mode: IoMode,
    /// Random and sequential reads, random and sequential writes.
    pub kinds: Vec<KindReport>,
    /// Duration of the measurement, seconds.
    pub elapsed_s: f64,
}

/// One direction and kind of access.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindReport {
    /// Read or write.
    pub op: Op,
    /// Random or sequential.
    pub access: Access,
    /// α and β.
    pub line: Line,
    /// One report per request size, ascending.
    pub points: Vec<PointReport>,
    /// Reasons to distrust the line.
    pub warnings: Vec<String>,
}

/// One request size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointReport {
    /// Size of a request, bytes.
    pub bytes: u64,
    /// Number of measured requests. Each request is a sample; on emulated servers a series is.
    pub requests: u64,
    /// The measurements.
    #[serde(flatten)]
    pub summary: Summary,
    /// (measured mean - fitted) / fitted.
    pub residual: f64,
}

/// Warn if a mean deviates from the line by more than this fraction.
const RESIDUAL_MAX: f64 = 0.15;
/// Warn if outliers took more than this fraction of the time.
const OUTLIER_TIME_MAX: f64 = 0.05;
/// Warn if a size has fewer measurements than this.
const SAMPLES_MIN: u64 = 5;

impl KindReport {
    /// Fits the line through the averages of the points, and sets the residuals of these.
    pub(crate) fn new(op: Op, access: Access, mode: IoMode, mut points: Vec<PointReport>) -> Self {
        let means: Vec<_> = points.iter().map(|point| (point.bytes, point.summary.mean_s)).collect();
        let line = crate::fit::fit_line(&means);
        points.iter_mut().for_each(|it| it.residual = line.residual(it.bytes, it.summary.mean_s));
        let warnings = warnings(&line, mode, &points);
        Self { op, access, line, points, warnings }
    }

    /// Number of measured requests.
    pub fn requests(&self) -> u64 {
        self.points.iter().map(|point| point.requests).sum()
    }

    /// Number of measurements used.
    pub fn samples(&self) -> u64 {
        self.points.iter().map(|point| point.summary.samples).sum()
    }

    /// Number of measurements set aside.
    pub fn outliers(&self) -> u64 {
        self.points.iter().map(|point| point.summary.outliers).sum()
    }
}

fn warnings(line: &Line, mode: IoMode, points: &[PointReport]) -> Vec<String> {
    let mut warnings = Vec::new();
    let size = |point: &PointReport| stripewise_cluster::size::format(point.bytes);
    let worst = points.iter().max_by(|one, two| one.residual.abs().total_cmp(&two.residual.abs()));
    if let Some(point) = worst.filter(|point| point.residual.abs() > RESIDUAL_MAX) {
        warnings.push(format!(
            "alpha + beta * size does not fit: requests of {} take {:.0} % {} than the line says; \
             a cache, a limit on requests or bytes per second, or other load on the server",
            size(point),
            point.residual.abs() * 100.0,
            if point.residual > 0.0 { "longer" } else { "less" }
        ));
    }
    if line.clamped {
        warnings.push("the best line has a negative parameter, which was set to 0".to_owned());
    }
    let share = |point: &&PointReport| point.summary.outlier_time > OUTLIER_TIME_MAX;
    if let Some(point) = points.iter().find(share).filter(|_| mode != IoMode::Emulated) {
        warnings.push(format!(
            "{} outliers among requests of {} took {:.0} % of their time and are left out of the average",
            point.summary.outliers,
            size(point),
            point.summary.outlier_time * 100.0
        ));
    }
    let few = |point: &&PointReport| point.summary.samples < SAMPLES_MIN;
    if let Some(point) = points.iter().find(few).filter(|_| mode != IoMode::Emulated) {
        warnings.push(format!(
            "only {} measurements of {} requests; give it more time with --seconds-per-point",
            point.summary.samples,
            size(point)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(mean_s: f64) -> Summary {
        Summary { mean_s, samples: 100, ..Summary::default() }
    }

    fn point(bytes: u64, requests: u64, summary: Summary) -> PointReport {
        PointReport { bytes, requests, summary, residual: 0.0 }
    }

    #[test]
    fn a_clean_line_has_no_warnings() {
        let points: Vec<_> = (12..=22)
            .map(|shift| point(1 << shift, 100, summary(1e-4 + f64::from(1 << shift) * 1e-8)))
            .collect();
        let report = KindReport::new(Op::Read, Access::Random, IoMode::Direct, points);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        assert_eq!((report.samples(), report.requests(), report.outliers()), (1100, 1100, 0));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let throttled: Vec<_> = (12..=22)
            .map(|shift| point(1 << shift, 100, summary((1.0f64 / 120.0).max(f64::from(1 << shift) / 60e6))))
            .collect();
        let report = KindReport::new(Op::Read, Access::Random, IoMode::Direct, throttled);
        assert!(report.warnings[0].contains("does not fit"), "{:?}", report.warnings);
        let mut few = summary(1.0);
        (few.samples, few.outliers, few.outlier_time) = (2, 3, 0.5);
        let report = KindReport::new(
            Op::Read,
            Access::Random,
            IoMode::Direct,
            vec![point(4096, 5, few), point(8192, 100, summary(0.5))],
        );
        let all = report.warnings.join("\n");
        for word in ["negative", "outliers among requests of 4K", "only 2"] {
            assert!(all.contains(word), "{all}");
        }
    }
}
