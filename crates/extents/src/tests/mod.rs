//! Tests of the map as a whole.

mod basics;
mod support;
