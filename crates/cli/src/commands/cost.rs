//! `stripewise cost` prints the modeled cost of one request under one layout, term by term.

mod args;
mod models;
mod params;

pub use args::Args;
use models::Evaluation;

use crate::output;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let evaluation = models::evaluate(args)?;
    if args.json {
        return output::json(&evaluation);
    }
    print_text(&evaluation);
    Ok(())
}

fn print_text(evaluation: &Evaluation) {
    let Evaluation { request, parameters, servers_touched: k, sharing: q, cost, formulas, .. } = evaluation;
    let parameters: Vec<String> =
        parameters.iter().map(|(symbol, value)| format!("{symbol} = {value:e}")).collect();
    println!("{request}");
    println!("servers touched: k = {k}; processes that share each of them: q = {q}");
    println!("{}\n", parameters.join(", "));
    let mut table = output::table(["term", "seconds", "formula"], [1]);
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
    println!("{}", table.trim_fmt());
}
