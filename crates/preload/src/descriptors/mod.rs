//! What descriptors and names refer to: how a managed file is recognized, and what the library
//! remembers of each descriptor.

pub mod access;
pub mod adopt;
pub mod entry;
pub mod paths;
pub mod record;
pub mod seen;
pub mod sniff;
pub mod subject;
pub mod table;
