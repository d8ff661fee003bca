//! Tests of the whole crate, on the kernel's file system and on a failing one.

#![allow(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

mod beside;
mod check;
mod concurrent;
mod copies;
mod copies_rest;
mod crash;
mod files;
mod holes;
mod migrate;
mod model;
mod native;
mod never_synced;
mod piece;
mod pools;
mod rebuilt;
mod refusals;
mod removal;
mod replaced;
pub(crate) mod setup;
mod space;
pub(crate) mod support;
