//! Ids of logical files.

use std::fmt;

use stripewise_sys::{Result, Sys};

/// Identifies a file's objects: 128 random bits, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub [u8; 16]);

impl FileId {
    /// A new random id.
    ///
    /// # Errors
    /// When the kernel has no random bytes.
    pub fn random(sys: &dyn Sys) -> Result<Self> {
        let mut bytes = [0; 16];
        sys.random(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Parses 32 lower-case hexadecimal digits.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        if digits.len() != 32 || !digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        u128::from_str_radix(hex, 16).ok().map(|id| Self(id.to_be_bytes()))
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        let id = FileId::random(&stripewise_sys::Real).unwrap();
        assert_ne!(id, FileId::random(&stripewise_sys::Real).unwrap());
        assert_eq!(FileId::from_hex(&id.to_string()), Some(id));
        for bad in
            ["", "0", &"g".repeat(32), &"A".repeat(32), &"0".repeat(33), "+0000000000000000000000000000000"]
        {
            assert_eq!(FileId::from_hex(bad), None, "{bad}");
        }
    }
}
