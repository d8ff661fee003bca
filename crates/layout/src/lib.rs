//! Regions of stripe cycles: where the bytes of a file lie.
//!
//! A [`Layout`] is a list of [`Region`]s that together cover the file from byte 0 on; a region is a byte range
//! and a *stripe cycle*, a sequence of ([target](Stripe::target), [width](Stripe::width)) repeated round-robin.
//! The layouts of the papers are constructors of it ([`constructors`]); mapping a file extent to target extents
//! and back ([`Layout::pieces`], [`Layout::file_offset`]) is integer arithmetic.
//!
//! On every target the bytes of a file lie densely, in file order, in one component: the byte with component
//! offset `o` is the `o`-th byte of the file (counted from 0) that the layout puts on that target. So the
//! mapping is monotone per target, and the size of the file follows from the sizes of its components.
//!
//! Everything here is pure: no I/O, no clock, no globals. All types are immutable after construction and can be
//! shared between threads.

pub mod constructors;
mod layout;
mod pieces;
mod prepared;
mod sizes;

pub use layout::{Layout, LayoutError, MAX_OFFSET, MAX_TARGETS, Region, Stripe};
pub use pieces::{Piece, Pieces};

#[cfg(test)]
mod tests;
