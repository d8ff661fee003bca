//! What the file systems are asked to express.

use crate::cycle::Cycle;
use crate::names::Names;

/// What is to be expressed.
pub struct Subject<'a> {
    /// Per layout that files take in turn: its regions.
    pub layouts: Vec<Vec<Cycle>>,
    pub names: Names<'a>,
}
