//! Tests of the map as a whole.

mod basics;
mod delegate;
pub(crate) mod support;
