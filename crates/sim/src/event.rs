//! Events, encoded as numbers. Events at the same time are processed in the order of these numbers.

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A process continues.
    Ready(u32),
    /// A process has closed a file.
    Closed(u32),
    /// A step of a file's background copying is done.
    Copied(u32),
    /// Time to check whether a file has data to copy.
    Look(u32),
    /// A sub-request in the network reaches its next step.
    Moves(u32),
}

impl Event {
    #[inline]
    pub fn bits(self) -> u64 {
        let (kind, number) = match self {
            Self::Ready(number) => (0, number),
            Self::Closed(number) => (1, number),
            Self::Copied(number) => (2, number),
            Self::Look(number) => (3, number),
            Self::Moves(number) => (4, number),
        };
        kind << 32 | u64::from(number)
    }

    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        let number = bits as u32;
        match bits >> 32 {
            0 => Self::Ready(number),
            1 => Self::Closed(number),
            2 => Self::Copied(number),
            3 => Self::Look(number),
            _ => Self::Moves(number),
        }
    }
}
