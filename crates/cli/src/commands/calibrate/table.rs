//! Text output of `calibrate`.

use std::fmt::Write;

use comfy_table::Table;
use stripewise_calibrate::{KindReport, NetworkReport, ServerReport, stragglers};
use stripewise_cluster::size;
use stripewise_model::Access;

use super::measuring::Calibrated;
use crate::output;

/// Returns the complete report; with `points`, also the measurements of every request size.
pub fn report(calibrated: &Calibrated, points: bool) -> String {
    let mut out = String::new();
    for server in &calibrated.servers {
        server_text(&mut out, server, points);
    }
    for straggler in stragglers(&calibrated.servers) {
        let _ = writeln!(out, "warning: {straggler}");
    }
    if let Some(network) = &calibrated.network {
        network_text(&mut out, network);
    }
    for note in &calibrated.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let _ = writeln!(out, "Profile written to {}", calibrated.output.display());
    out
}

fn server_text(out: &mut String, server: &ServerReport, points: bool) {
    let ServerReport { target, class, mode, elapsed_s, .. } = server;
    let _ = writeln!(out, "{target} (class {class}): {}; {elapsed_s:.0} s", mode.describe());
    let mut table =
        table(["", "alpha ms", "±", "beta ns/B", "±", "MB/s", "residual", "R²", "requests", "outliers"]);
    for kind in &server.kinds {
        let line = &kind.line;
        table.add_row([
            name(kind),
            format!("{:.4}", line.startup_s * 1e3),
            format!("{:.4}", line.startup_error_s * 1e3),
            format!("{:.4}", line.per_byte_s * 1e9),
            format!("{:.4}", line.per_byte_error_s * 1e9),
            if line.per_byte_s > 0.0 { format!("{:.0}", 1e-6 / line.per_byte_s) } else { "-".to_owned() },
            format!("{:.1} %", line.residual_relative * 100.0),
            format!("{:.4}", line.r_squared),
            kind.requests().to_string(),
            kind.outliers().to_string(),
        ]);
    }
    finish(out, table);
    for kind in &server.kinds {
        for warning in &kind.warnings {
            let _ = writeln!(out, "warning: {}: {warning}", name(kind));
        }
    }
    if points {
        server.kinds.iter().for_each(|kind| points_text(out, kind));
    }
    let _ = writeln!(out);
}

fn points_text(out: &mut String, kind: &KindReport) {
    let _ = writeln!(out, "\n{}, ms:", name(kind));
    let mut table = table(["size", "mean", "stddev", "p50", "p99", "off the line", "requests", "outliers"]);
    for point in &kind.points {
        let summary = &point.summary;
        let ms = |seconds: f64| format!("{:.4}", seconds * 1e3);
        table.add_row([
            size::format(point.bytes),
            ms(summary.mean_s),
            ms(summary.stddev_s),
            ms(summary.p50_s),
            ms(summary.p99_s),
            format!("{:+.1} %", point.residual * 100.0),
            point.requests.to_string(),
            summary.outliers.to_string(),
        ]);
    }
    finish(out, table);
}

fn network_text(out: &mut String, network: &NetworkReport) {
    let NetworkReport { server, establish, per_byte_s, per_byte_error_s, .. } = network;
    let _ = writeln!(
        out,
        "network to {server}: e = {:.4} ms ± {:.4} ({} connections), t = {:.4} ns/B ± {:.4} ({} transfers)\n",
        establish.mean_s * 1e3,
        establish.stddev_s * 1e3,
        establish.samples,
        per_byte_s * 1e9,
        per_byte_error_s * 1e9,
        network.transfers(),
    );
}

fn name(kind: &KindReport) -> String {
    let access = match kind.access {
        Access::Random => "random",
        Access::Sequential => "sequential",
    };
    format!("{} {access}", output::op_name(kind.op))
}

/// Creates a table with right-aligned numbers.
fn table<const N: usize>(header: [&str; N]) -> Table {
    output::table(header, 1..N)
}

fn finish(out: &mut String, table: Table) {
    let _ = writeln!(out, "{}", table.trim_fmt());
}
