//! What cannot be simulated.

use stripewise_model::ModelError;

/// Why a simulation cannot begin; one line with the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A tier's class has no parameters.
    #[error("tier {tier}: class {class} has no parameters: add [class.{class}] to the cluster, or calibrate")]
    NoClass {
        /// The tier's name.
        tier: String,
        /// Its class.
        class: String,
    },
    /// The plan was made for another number of servers.
    #[error(
        "the plan has {plan} servers and the simulated cluster {cluster}: simulate the cluster that the plan was made for"
    )]
    OtherCluster {
        /// Servers of the plan.
        plan: usize,
        /// Servers that are simulated.
        cluster: usize,
    },
    /// No rule of the plan places the file.
    #[error("{path}: no rule of the plan places it: plan for a trace with this file, or leave it out")]
    NotPlaced {
        /// The file.
        path: String,
    },
    /// A layout names a server that is not there.
    #[error("{path}: its layout uses server {target} of {servers}: make the plan anew")]
    UnknownTarget {
        /// The file.
        path: String,
        /// The server.
        target: u32,
        /// How many there are.
        servers: usize,
    },
    /// Parameters of the models.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An option that is none.
    #[error("{0}")]
    Option(&'static str),
}
