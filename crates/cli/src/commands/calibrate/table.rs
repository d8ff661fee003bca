//! Text output of `calibrate`.

use comfy_table::Table;
use stripewise_calibrate::{KindReport, NetworkReport, ServerReport, stragglers};
use stripewise_cluster::size;
use stripewise_model::Access;

use super::Calibrated;
use crate::output;

/// Prints the complete report; with `points`, also the measurements of every request size.
pub fn print(calibrated: &Calibrated, points: bool) {
    for server in &calibrated.servers {
        print_server(server, points);
    }
    for straggler in stragglers(&calibrated.servers) {
        println!("warning: {straggler}");
    }
    if let Some(network) = &calibrated.network {
        print_network(network);
    }
    for note in &calibrated.notes {
        println!("note: {note}");
    }
    println!("Profile written to {}", calibrated.output.display());
}

fn print_server(server: &ServerReport, points: bool) {
    let ServerReport { target, class, mode, elapsed_s, .. } = server;
    println!("{target} (class {class}): {}; {elapsed_s:.0} s", mode.describe());
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
    println!("{}", table.trim_fmt());
    for kind in &server.kinds {
        for warning in &kind.warnings {
            println!("warning: {}: {warning}", name(kind));
        }
    }
    if points {
        server.kinds.iter().for_each(|kind| print_points(kind));
    }
    println!();
}

fn print_points(kind: &KindReport) {
    println!("\n{}, ms:", name(kind));
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
    println!("{}", table.trim_fmt());
}

fn print_network(network: &NetworkReport) {
    let NetworkReport { server, establish, per_byte_s, per_byte_error_s, .. } = network;
    println!(
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
