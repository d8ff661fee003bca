//! How the files of a rule are spread over several layouts.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::pattern::match_path;

/// Selects one of a rule's layouts for a file: `(number / stride) mod layouts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The index, from 0, of the `<n>` in the pattern that is the file's number; `None`: a hash of
    /// the path is its number.
    pub field: Option<usize>,
    /// Number of consecutive file numbers that get the same layout; at least 1.
    pub stride: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { field: None, stride: 1 }
    }
}

impl Spread {
    /// The index of the layout that the file at `path` gets among `layouts`; `None`: the path does
    /// not match `pattern`, or there are no layouts.
    pub fn index(&self, pattern: &str, path: &Path, layouts: usize) -> Option<usize> {
        let number = match_path(pattern.as_bytes(), path.as_os_str().as_bytes(), self.field)?;
        let number = if self.field.is_some() || layouts <= 1 { number } else { path_hash(path) };
        (number / self.stride.max(1)).checked_rem(layouts as u64).map(|index| index as usize)
    }
}

/// FNV-1a with 64 bits: the same in every version, so that all processes choose the same layout for
/// a file.
pub fn path_hash(path: &Path) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    path.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
