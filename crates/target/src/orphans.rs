//! What lies on a target: for fsck.

use stripewise_sys::SysRef;

use crate::{FileId, Target, TargetError};

/// A file in the component directories of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The logical file it belongs to.
    pub id: FileId,
    /// Component number, or `None` for the manifest copy.
    pub component: Option<u32>,
    /// Bytes of its size.
    pub size: u64,
    /// Seconds since 1970 of its last change.
    pub modified_s: i64,
}

/// All components and manifest copies on a target, by id, then number (the manifest copy first).
/// Other files there are left out.
///
/// # Errors
/// [`TargetError::Io`] when a directory cannot be read.
pub fn list_components(sys: &SysRef, target: &Target) -> Result<Vec<Found>, TargetError> {
    let _ = (sys, target);
    todo!()
}
