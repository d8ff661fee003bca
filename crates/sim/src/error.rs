//! Errors of setting up a simulation.

use stripewise_model::ModelError;

/// The reason why a simulation cannot begin, as one line with the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The class of a tier has no parameters.
    #[error("tier {tier}: class {class} has no parameters: add [class.{class}] to the cluster, or calibrate")]
    NoClass {
        /// Name of the tier.
        tier: String,
        /// Name of its class.
        class: String,
    },
    /// The plan was made for another number of servers.
    #[error(
        "the plan has {plan} servers and the simulated cluster {cluster}: simulate the cluster that the plan was made for"
    )]
    OtherCluster {
        /// Number of servers in the plan.
        plan: usize,
        /// Number of servers simulated.
        cluster: usize,
    },
    /// No rule of the plan places the file.
    #[error("{path}: no rule of the plan places it: plan for a trace with this file, or leave it out")]
    NotPlaced {
        /// Path of the file.
        path: String,
    },
    /// A layout names a server that does not exist.
    #[error("{path}: its layout uses server {target} of {servers}: make the plan anew")]
    UnknownTarget {
        /// Path of the file.
        path: String,
        /// Number of the server.
        target: u32,
        /// Number of servers.
        servers: usize,
    },
    /// Invalid parameters of the models.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An invalid option.
    #[error("{0}")]
    Option(&'static str),
}
