//! Tests of the whole crate, on the kernel's file system and on one that fails.

mod files;
mod support;
