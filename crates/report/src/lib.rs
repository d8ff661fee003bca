//! Results of measurements ([`Results`]), and one self-contained HTML page of what an application does, how its
//! files are laid out, and what was predicted and measured.
//!
//! Pure: data in, text out. No I/O, no clock; the same input gives the same bytes.

pub mod results;

pub use results::{Candidate, Machine, Results, ResultsError, Servers, Workload};
