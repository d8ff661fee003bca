//! Measures servers and networks, and fits the parameters of the cost models (CIL §3.3,
//! *Estimation*).
//!
//! For each server, direction (read, write) and kind of access (random, sequential), it sends many
//! requests of each size from 4 KiB to 4 MiB, and fits the averages per size by `T = α + β · size`.
//! Reports list every measurement that does not fit.
//!
//! What opens, closes and small requests cost the client itself is fitted by `T = a + b · n` over
//! the number n of a file's objects ([`client`]).

pub mod client;
mod device;
mod fit;
pub mod network;
mod profile;
mod report;
mod stats;
mod testfile;

pub use client::{CallReport, ClientReport};
pub use device::{Options, Subject, measure};
pub use fit::{Line, fit_line};
pub use network::NetworkReport;
pub use profile::{combine, method, network_profile, stragglers};
pub use report::{CalibrateError, IoMode, KindReport, PointReport, ServerReport};
pub use stats::Summary;
