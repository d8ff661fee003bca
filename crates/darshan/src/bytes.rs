//! Numbers of either byte order.

/// The byte order of the machine that wrote a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
}

/// Reads numbers one after the other. The caller provides as many bytes as it reads.
pub(crate) struct Fields<'a> {
    order: ByteOrder,
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(order: ByteOrder, bytes: &'a [u8]) -> Fields<'a> {
        Fields { order, bytes }
    }

    /// The next `len` bytes as they are.
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        taken
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.bytes.split_first_chunk().expect("the caller read all fields");
        self.bytes = rest;
        *taken
    }

    pub(crate) fn u32(&mut self) -> u32 {
        let bytes = self.array();
        if self.order == ByteOrder::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> u64 {
        let bytes = self.array();
        if self.order == ByteOrder::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
    }

    #[inline]
    pub(crate) fn i64(&mut self) -> i64 {
        self.u64().cast_signed()
    }

    #[inline]
    pub(crate) fn f64(&mut self) -> f64 {
        f64::from_bits(self.u64())
    }
}

/// The text before the first NUL. Bytes that are not UTF-8 become replacement characters.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
