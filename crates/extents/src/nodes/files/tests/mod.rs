//! Tests of the engine on files.

mod crashes;
mod deaths;
mod faults;
mod maps;
mod model;
mod power_cut;
mod sessions;
mod sharing;
pub(crate) mod support;
mod versions;
