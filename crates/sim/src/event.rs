//! What happens, as a number: events at the same time happen in the order of these.

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A process goes on.
    Ready(u32),
    /// A process has closed a file.
    Closed(u32),
    /// A step of a file's background copying is done.
    Copied(u32),
    /// It is time to look whether there is something to copy.
    Look(u32),
    /// A sub-request on its way goes on.
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
