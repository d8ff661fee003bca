//! A logical file over its components.
