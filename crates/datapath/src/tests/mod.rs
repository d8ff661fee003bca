//! Tests of the whole crate, on the kernel's file system and on one that fails.

mod concurrent;
mod crash;
mod files;
mod model;
mod support;
