//! What the file systems are asked to express.

use crate::cycle::Cycle;
use crate::names::Names;

/// The layouts to convert, and the names to use.
pub struct Subject<'a> {
    /// The regions of each layout that files take in turn.
    pub layouts: Vec<Vec<Cycle>>,
    pub names: Names<'a>,
}
