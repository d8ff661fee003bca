//! Manifests that this process has read before: a text that is met again is not parsed again.
//!
//! The text is read from the file each time and compared whole, so what is remembered is never old.

use crate::anchor::Anchored;
use crate::runtime::FileKey;

/// How many are remembered, in the place that the file's number gives each: at most 0.3 MiB of text, and what it says.
const PLACES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct KnownManifests(Vec<Option<(Box<[u8]>, Anchored)>>);

impl KnownManifests {
    /// What the text says with which `head` (the first bytes of the file `key`) begins.
    pub fn find(&self, key: FileKey, head: &[u8]) -> Option<Anchored> {
        let (text, anchored) = self.0.get(place(key))?.as_ref()?;
        // The text says itself how long it is.
        head.starts_with(text).then(|| anchored.clone())
    }

    /// Remembers what the text in `head` says.
    pub fn note(&mut self, key: FileKey, head: &[u8], anchored: &Anchored) {
        // Longer ones are rare, and read in pieces.
        let Some(text) = head.get(..anchored.text_bytes as usize) else { return };
        self.0.resize_with(PLACES, Default::default);
        self.0[place(key)] = Some((text.into(), anchored.clone()));
    }
}

fn place(key: FileKey) -> usize {
    (key.inode ^ key.device) as usize % PLACES
}
