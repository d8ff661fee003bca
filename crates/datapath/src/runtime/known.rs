//! Cache of parsed manifests: a manifest text that this process has parsed before is not parsed
//! again.
//!
//! The text is still read from the file each time and compared in full, so an entry is never stale.

use crate::anchor::Anchored;
use crate::key::FileKey;

/// Number of entries; each file maps to one by its device and inode number. At most 0.3 MiB of
/// text, plus the parsed manifests.
const PLACES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct KnownManifests(Vec<Option<(Box<[u8]>, Anchored)>>);

impl KnownManifests {
    /// The manifest of file `key`, if its text, which starts `head`, is known.
    pub fn find(&self, key: FileKey, head: &[u8]) -> Option<Anchored> {
        let (text, anchored) = self.0.get(place(key))?.as_ref()?;
        // The text contains its own length, so a prefix match is a full match.
        head.starts_with(text).then(|| anchored.clone())
    }

    /// Stores the manifest of file `key` whose text starts `head`.
    pub fn note(&mut self, key: FileKey, head: &[u8], anchored: &Anchored) {
        // Texts longer than `head` are rare and not cached.
        let Some(text) = head.get(..anchored.text_bytes as usize) else { return };
        self.0.resize_with(PLACES, Default::default);
        self.0[place(key)] = Some((text.into(), anchored.clone()));
    }
}

fn place(key: FileKey) -> usize {
    (key.inode ^ key.device) as usize % PLACES
}
