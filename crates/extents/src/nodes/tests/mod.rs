//! Tests of the protocol for several nodes.

mod explore;
mod files;
pub mod format;
mod oracle;
mod ranges;
pub(crate) mod rules;
mod scenarios;
mod steps;
mod world;
