//! Converts reports to the profile that models read.

use std::collections::BTreeMap;

use stripewise_cluster::profile::{Fit, MeasuredClass, MeasuredNetwork};
use stripewise_model::ClassParams;

use crate::device::Options;
use crate::fit::fit_line;
use crate::network::NetworkReport;
use crate::report::{IoMode, KindReport, ServerReport};

/// The classes of the measured servers. Several servers of a class are averaged, size by size.
pub fn combine(reports: &[ServerReport]) -> BTreeMap<String, MeasuredClass> {
    let mut servers: BTreeMap<&str, Vec<&ServerReport>> = BTreeMap::new();
    for report in reports {
        servers.entry(&report.class).or_default().push(report);
    }
    servers.into_iter().map(|(class, reports)| (class.to_owned(), class_of(&reports))).collect()
}

fn class_of(reports: &[&ServerReport]) -> MeasuredClass {
    let names: Vec<&str> = reports.iter().map(|report| report.target.as_str()).collect();
    let fit = |op, access| {
        let kinds: Vec<&KindReport> = reports
            .iter()
            .flat_map(|report| &report.kinds)
            .filter(|kind| kind.op == op && kind.access == access)
            .collect();
        fit_of(&kinds)
    };
    MeasuredClass {
        target: names.join(", "),
        direct_io: reports.iter().all(|report| report.mode == IoMode::Direct),
        fits: ClassParams::of(fit),
    }
}

/// The line through the sizes' averages over all servers.
fn fit_of(kinds: &[&KindReport]) -> Fit {
    let sizes = kinds.iter().map(|kind| kind.points.len()).min().unwrap_or(0);
    let average = |index: usize| {
        let means = kinds.iter().map(|kind| kind.points[index].summary.mean_s);
        (kinds[0].points[index].bytes, means.sum::<f64>() / kinds.len() as f64)
    };
    let line = fit_line(&(0..sizes).map(average).collect::<Vec<_>>());
    Fit {
        service: line.service(),
        startup_spread_s: line.startup_error_s,
        per_byte_spread_s: line.per_byte_error_s,
        residual_relative: line.residual_relative,
        samples: kinds.iter().map(|kind| kind.samples()).sum(),
        outliers: kinds.iter().map(|kind| kind.outliers()).sum(),
    }
}

/// e and t, in the form of a profile.
pub fn network_profile(report: &NetworkReport) -> MeasuredNetwork {
    MeasuredNetwork {
        establish_s: report.establish.mean_s,
        per_byte_s: report.per_byte_s,
        establish_spread_s: report.establish.stddev_s,
        per_byte_spread_s: report.per_byte_error_s,
        samples: report.establish.samples + report.transfers(),
    }
}

/// Servers that deviate from the average of their class by more than this fraction are listed.
const STRAGGLER: f64 = 0.2;

/// One line for each server and kind of access that deviates from its class.
pub fn stragglers(reports: &[ServerReport]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports {
        let class: Vec<&ServerReport> = reports.iter().filter(|other| other.class == report.class).collect();
        for (index, kind) in report.kinds.iter().enumerate() {
            let mean_s = |kind: &KindReport| {
                kind.points.iter().map(|point| point.summary.mean_s.ln()).sum::<f64>()
                    / kind.points.len() as f64
            };
            let all = class.iter().map(|report| mean_s(&report.kinds[index])).sum::<f64>() / class.len() as f64;
            let ratio = (mean_s(kind) - all).exp();
            if (ratio - 1.0).abs() > STRAGGLER {
                let slower = if ratio > 1.0 { "slower" } else { "faster" };
                lines.push(format!(
                    "{}: {:?} {:?} is {:.0} % {slower} than the average of class {}; a tier should have equal servers",
                    report.target,
                    kind.op,
                    kind.access,
                    (ratio - 1.0).abs() * 100.0,
                    report.class
                ));
            }
        }
    }
    lines
}

/// A description of the measurement in one line, for people.
pub fn method(options: &Options, reports: &[ServerReport]) -> String {
    let text = stripewise_cluster::size::format;
    if reports.is_empty() {
        return "network only".to_owned();
    }
    let mut modes: Vec<&str> = reports.iter().map(|report| report.mode.describe()).collect();
    modes.sort_unstable();
    modes.dedup();
    format!(
        "sizes {} to {}, up to {} repeats and {} s per size and kind, {} test file; {}",
        text(options.sizes[0]),
        text(options.sizes[options.sizes.len() - 1]),
        options.repeats,
        options.seconds_per_point,
        text(options.file_size),
        modes.join("; ")
    )
}
