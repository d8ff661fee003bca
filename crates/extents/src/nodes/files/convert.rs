//! A journal of version 1 becomes one of version 2.

use std::os::fd::AsFd;

use stripewise_sys::{Errno, SysRef};

use super::super::record::encode_batches;
use super::super::{Batch, Record, Session};
use crate::error::io;
use crate::joining::collapsed;
use crate::journal::{COMMIT_BYTE, Header, Journal, Locked, Place, write_new};
use crate::{MapError, MapSpec, Result};

/// Writes the journal anew as version 2. The caller has the join lock. Returns the new journal,
/// with both locks.
///
/// # Errors
/// EBUSY if another node has the file open, or if processes of this node have it open or left their
/// map behind; EIO if this node's map was lost.
pub(super) fn convert(sys: &SysRef, spec: &MapSpec, place: &Place) -> Result<Locked> {
    // A writer of version 1 holds this lock while it declares that it has the file open. After the
    // conversion it finds another journal, and is refused.
    let commit = place.lock(COMMIT_BYTE, false)?;
    let journal = Journal::read_from(sys, commit.as_fd(), &place.path)?;
    // The map of this node may be newer than the journal.
    if spec.has_shared_state(sys)? {
        return Err(io(&spec.run_dir, "share between nodes, before this node has closed it,")(Errno::BUSY));
    }
    let spans = match &journal.opened {
        None => journal.spans.clone(),
        Some(node) if !node.is_same_machine(&spec.node) => {
            return Err(MapError::OtherNode { path: place.path.clone(), node: node.name.clone() });
        }
        Some(node) if node.boot == spec.node.boot => return Err(spec.lost()),
        Some(_) => collapsed(&journal),
    };
    let header = Header { last_session: Some(Session::NONE.0), ..journal.header() };
    let changes = Batch { author: Session::NONE, record: Record::Changes(spans) };
    let (bytes, _) = encode_batches(&[changes], 1);
    write_new(place, &header, &bytes, Some(commit.as_fd()), |_| {}).map(|(new, _)| new)
}
