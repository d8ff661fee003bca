//! What the programs `stripewise` and `stripewise-bench` have in common: signals that ask a command
//! to end, progress bars, and text files that are written whole or not at all.

pub mod files;
pub mod interrupt;
pub mod progress;
