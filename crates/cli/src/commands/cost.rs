//! `stripewise cost` prints the modeled cost of one request under one layout, term by term.

mod args;
mod evaluation;
mod foreign;
mod models;
mod params;
mod psa;

use std::process::ExitCode;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

pub use args::Args;
use evaluation::Evaluation;

/// Runs `stripewise cost`.
///
/// # Errors
/// A parameter is missing or impossible, or the cluster file cannot be read.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let evaluation = models::evaluate(args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&evaluation)?);
    } else {
        print_text(&evaluation);
    }
    Ok(ExitCode::SUCCESS)
}

fn print_text(evaluation: &Evaluation) {
    let Evaluation { request, parameters, servers_touched: k, sharing: q, cost, formulas, .. } = evaluation;
    let parameters: Vec<String> =
        parameters.iter().map(|(symbol, value)| format!("{symbol} = {value:e}")).collect();
    println!("{request}");
    println!("servers touched: k = {k}; processes that share each of them: q = {q}");
    println!("{}\n", parameters.join(", "));
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["term", "seconds", "formula"]);
    let terms = [
        ("establish", cost.establish_s),
        ("transfer", cost.transfer_s),
        ("startup", cost.startup_s),
        ("io", cost.io_s),
    ];
    for ((name, seconds), formula) in terms.into_iter().zip(formulas) {
        table.add_row([name, &format!("{seconds:.9}"), formula]);
    }
    table.add_row(["total", &format!("{:.9}", cost.total_s()), ""]);
    if let Some(seconds) = table.column_mut(1) {
        seconds.set_cell_alignment(CellAlignment::Right);
    }
    println!("{}", table.trim_fmt());
}
