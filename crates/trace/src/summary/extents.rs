//! How far each file was accessed, and whether by several processes.

use crate::Request;

/// The extents and users of all files. Memory: 12 bytes for each.
pub(super) struct Extents {
    /// End of the farthest byte that was read or written, by file.
    ends: Vec<u64>,
    /// By file: the process that moved data, [`NONE`] or [`SEVERAL`].
    users: Vec<u32>,
}

const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

impl Extents {
    pub(super) fn new(files: usize) -> Extents {
        Extents { ends: vec![0; files], users: vec![NONE; files] }
    }

    /// Adds a read or write.
    pub(super) fn add(&mut self, request: &Request) {
        let (end, user) = (&mut self.ends[request.file as usize], &mut self.users[request.file as usize]);
        *end = request.offset.saturating_add(request.bytes()).max(*end);
        *user = if [NONE, request.process].contains(user) { request.process } else { SEVERAL };
    }

    /// The extent of each file, bytes, and whether it has several users.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, bool)> {
        self.ends.iter().zip(&self.users).map(|(&end, &user)| (end, user == SEVERAL))
    }
}
