//! Layouts in the parallel file systems' own terms. Pure: setting and reading them is the drivers' work.

pub mod cephfs;
mod layout;

pub use layout::{Component, NativeLayout, Stripe};
