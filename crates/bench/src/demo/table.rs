//! Prints the results for people.

use comfy_table::{CellAlignment, Table, presets};
use stripewise_report::{Candidate, Results, Workload};

use super::servers;
use super::workspace::Workspace;

/// Prints a table and a verdict per workload, and the locations of the output files.
pub fn print(results: &Results, work: &Workspace) {
    println!("\n{}.\n", servers::sentence());
    for workload in &results.workloads {
        print_workload(workload);
    }
    println!("Every byte of every run was read back and right.");
    println!("Results: {}", work.path("results.json").display());
    println!("Report:  {}", work.path("report.html").display());
    println!(
        "Not shown here: files with several copies, replicas or a cache on the SSDs (docs/guide.md, step 8)."
    );
}

fn print_workload(workload: &Workload) {
    println!("{}: {}", workload.name, workload.description);
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "candidate", "layout", "predicted s", "measured s", "error"]);
    for column in 3..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for candidate in &workload.candidates {
        table.add_row(row(workload, candidate));
    }
    println!("{table}\n{}\n", verdict(workload));
}

fn row(workload: &Workload, candidate: &Candidate) -> [String; 6] {
    let seconds = |value: Option<f64>| value.map_or("-".to_string(), |s| format!("{s:.2}"));
    let percent = |value: Option<f64>| value.map_or("-".to_string(), |e| format!("{:+.1} %", 100.0 * e));
    [
        if candidate.name == workload.choice { "choice".to_string() } else { String::new() },
        candidate.name.clone(),
        candidate.layout.clone(),
        seconds(candidate.elapsed_s),
        seconds(candidate.median_s()),
        percent(candidate.relative_error()),
    ]
}

/// Returns a sentence on how the planner's choice performed.
fn verdict(workload: &Workload) -> String {
    let Some((best, behind)) = workload.behind_best() else { return "Not measured.".to_string() };
    let against_best = match behind {
        behind if behind <= 0.0 => "the best measured".to_string(),
        behind => format!("{:.1} % behind the best measured ({})", 100.0 * behind, best.name),
    };
    let speed_up = workload.speed_up();
    let speed_up =
        speed_up.map_or(String::new(), |x| format!(", {x:.2} times as fast as {}", workload.present));
    format!("The choice, {}, is {against_best}{speed_up}.", workload.choice)
}
