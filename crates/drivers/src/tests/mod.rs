//! What tests of several drivers share: the suite of checks, the fakes of file systems' tools, and
//! a driver without a file system.

pub mod conformance;
pub mod fake;
pub mod null;
