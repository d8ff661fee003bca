//! An evaluated request: its cost, and the values that explain it.

use serde::{Serialize, Serializer};
use stripewise_model::{Cost, Network, Service};

use super::args::Model;

/// A cost and the values needed to understand it.
#[derive(Serialize)]
pub struct Evaluation {
    pub model: Model,
    /// One line that describes the evaluated request.
    pub request: String,
    /// The parameters used (e, t, alpha, beta), by symbol.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(String, f64)>,
    /// Number of servers that the request touches: k or w in the papers.
    pub servers_touched: u32,
    /// q: number of processes that share each server.
    pub sharing: u32,
    #[serde(flatten)]
    pub cost: Cost,
    /// Formulas of the four terms in the papers' symbols, with the values filled in.
    pub formulas: [String; 4],
}

fn as_map<S: Serializer>(pairs: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(symbol, value)| (symbol, value)))
}

/// Returns the parameters of a network, by symbol.
pub fn of_network(network: Network) -> [(String, f64); 2] {
    [("e".to_owned(), network.establish_s), ("t".to_owned(), network.per_byte_s)]
}

/// Returns the parameters of a server, by the given symbols of α and β.
pub fn of_service(symbols: [&str; 2], service: Service) -> [(String, f64); 2] {
    [(symbols[0].to_owned(), service.startup_s), (symbols[1].to_owned(), service.per_byte_s)]
}
