//! Layouts: where the bytes of a file are stored, as regions of stripe cycles.
//!
//! A [`Layout`] is a list of [`Region`]s that together cover the file from byte 0. A region is a
//! byte range with a *stripe cycle*: a sequence of ([target](Stripe::target),
//! [width](Stripe::width)) that repeats round-robin. The layouts of the papers are constructed by
//! [`constructors`]. Mapping a file extent to target extents and back ([`Layout::pieces`],
//! [`Layout::file_offset`]) is integer arithmetic.
//!
//! On each target the bytes of a file are stored densely, in file order, in one object. The byte at
//! object offset `o` is the `o`-th byte of the file, counted from 0, that the layout puts on that
//! target. So the mapping is monotone per target, and the size of the file follows from the sizes
//! of its objects.
//!
//! The crate is pure: no I/O, no clock, no globals. All types are immutable after construction and
//! may be shared by threads.

pub mod constructors;
mod layout;
mod pieces;
mod prepared;
mod region;
mod sizes;

pub use layout::{Layout, LayoutError};
pub use pieces::{Piece, Pieces};
pub use region::{MAX_OFFSET, MAX_TARGETS, Region, Stripe};

#[cfg(test)]
mod tests;
