//! Tests of the map as a whole.

mod basics;
mod explore;
mod faults;
mod power_cut;
mod sessions;
pub(crate) mod support;
