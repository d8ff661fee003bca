//! Tests of the map as a whole.

mod basics;
mod delegate;
mod explore;
pub(crate) mod support;
