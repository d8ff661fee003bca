//! `stripewise cost` prints the modeled cost of one request under one layout, term by term.

mod args;
mod foreign;
mod models;
mod params;
mod psa;

use std::process::ExitCode;

use serde::{Serialize, Serializer};
use stripewise_model::{Cost, Network, Service};

pub use args::Args;
use args::Model;

use crate::output;

/// A cost and the values needed to understand it.
#[derive(Serialize)]
struct Evaluation {
    model: Model,
    /// One line that describes the evaluated request.
    request: String,
    /// The parameters used (e, t, alpha, beta), by symbol.
    #[serde(serialize_with = "as_map")]
    parameters: Vec<(String, f64)>,
    /// Number of servers that the request touches: k or w in the papers.
    servers_touched: u32,
    /// q: number of processes that share each server.
    sharing: u32,
    #[serde(flatten)]
    cost: Cost,
    /// Formulas of the four terms in the papers' symbols, with the values filled in.
    formulas: [String; 4],
}

fn as_map<S: Serializer>(pairs: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(symbol, value)| (symbol, value)))
}

/// Returns the parameters of a network, by symbol.
fn of_network(network: Network) -> [(String, f64); 2] {
    [("e".to_owned(), network.establish_s), ("t".to_owned(), network.per_byte_s)]
}

/// Returns the parameters of a server, by the given symbols of α and β.
fn of_service(symbols: [&str; 2], service: Service) -> [(String, f64); 2] {
    [(symbols[0].to_owned(), service.startup_s), (symbols[1].to_owned(), service.per_byte_s)]
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let evaluation = models::evaluate(args)?;
    if args.json {
        output::json(&evaluation)?;
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
