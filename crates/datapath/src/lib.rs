//! A logical file over its components.

pub mod manifest;
