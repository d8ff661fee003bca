//! Parses page headers before the Parquet library acts on them. The parser knows the subset of
//! Thrift's compact protocol that a trace writer uses and rejects everything else, so the library
//! only sees headers that this module understands.

/// Maximum nesting depth of a header.
const DEPTH_MAX: u32 = 8;

const I32: u8 = 5;
const STRUCT: u8 = 12;

/// Page types and encodings of Parquet.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const DELTA_BINARY_PACKED: i64 = 5;
const RLE_DICTIONARY: i64 = 8;

/// A parsed page header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub is_dictionary: bool,
    /// The page's values are indices into a dictionary.
    pub needs_dictionary: bool,
    pub values: u64,
    /// Size of the page in the file, without this header, bytes.
    pub compressed_bytes: u64,
    /// Size of the page in memory, bytes.
    pub uncompressed_bytes: u64,
    /// Size of this header, bytes.
    pub header_bytes: u64,
}

impl PageHeader {
    /// Parses the header at the start of `bytes`; `None` if it is cut off or not such as a trace
    /// writer makes it.
    pub fn parse(bytes: &[u8]) -> Option<PageHeader> {
        let mut input = Input { bytes, at: 0 };
        let (mut kind, mut uncompressed, mut compressed) = (None, None, None);
        let (mut data, mut dictionary) = (None, None);
        let mut last = 0;
        while let Some((id, type_)) = input.field(&mut last)? {
            match (id, type_) {
                (1, I32) => kind = Some(input.number()?),
                (2, I32) => uncompressed = Some(input.size()?),
                (3, I32) => compressed = Some(input.size()?),
                (5, STRUCT) => data = Some(input.page_details()?),
                (7, STRUCT) => dictionary = Some(input.page_details()?),
                _ => return None,
            }
        }
        let (values, encoding) = match (kind?, data, dictionary) {
            (DATA_PAGE, Some(details), None) | (DICTIONARY_PAGE, None, Some(details)) => details,
            _ => return None,
        };
        let is_dictionary = dictionary.is_some();
        let allowed: &[i64] = match is_dictionary {
            true => &[PLAIN, PLAIN_DICTIONARY],
            false => &[PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY],
        };
        allowed.contains(&encoding).then_some(PageHeader {
            is_dictionary,
            needs_dictionary: !is_dictionary && [PLAIN_DICTIONARY, RLE_DICTIONARY].contains(&encoding),
            values,
            compressed_bytes: compressed?,
            uncompressed_bytes: uncompressed?,
            header_bytes: input.at as u64,
        })
    }
}

/// Input bytes, read from the start. Every method returns `None` if they are cut off or invalid.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        let value = (value >> 1) as i64 ^ -((value & 1) as i64);
        // The library truncates longer numbers to 32 bits.
        i32::try_from(value).is_ok().then_some(value)
    }

    fn size(&mut self) -> Option<u64> {
        u64::try_from(self.number()?).ok()
    }

    /// The next field's id and type; `Some(None)` after the last field. Ids must ascend, as all
    /// writers emit them.
    fn field(&mut self, last: &mut i16) -> Option<Option<(i16, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let (delta, type_) = (i16::from(head >> 4), head & 0x0f);
        *last = last.checked_add(delta)?;
        (delta != 0).then_some(Some((*last, type_)))
    }

    /// The number of values and their encoding from the header of a data or dictionary page.
    fn page_details(&mut self) -> Option<(u64, i64)> {
        let (mut values, mut encoding, mut last) = (None, None, 0);
        while let Some((id, type_)) = self.field(&mut last)? {
            match (id, type_) {
                (1, I32) => values = Some(self.size()?),
                (2, I32) => encoding = Some(self.number()?),
                _ => self.skip(type_, DEPTH_MAX)?,
            }
        }
        Some((values?, encoding?))
    }

    fn skip(&mut self, type_: u8, depth: u32) -> Option<()> {
        match type_ {
            // A boolean; its type is its value.
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.unsigned()?),
            8 => {
                let end = usize::try_from(self.unsigned()?).ok().and_then(|len| self.at.checked_add(len))?;
                self.at = (end <= self.bytes.len()).then_some(end)?;
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, type_)) = self.field(&mut last)? {
                    self.skip(type_, depth.checked_sub(1)?)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::PageHeader;

    /// A data page of 300 values in RLE_DICTIONARY, 1000 bytes in memory and 100 in the file.
    const DATA: [u8; 19] =
        [0x15, 0, 0x15, 0xd0, 0x0f, 0x15, 0xc8, 0x01, 0x2c, 0x15, 0xd8, 0x04, 0x15, 0x10, 0x15, 6, 0x15, 6, 0];

    #[test]
    fn a_page_header_is_understood_or_refused() {
        let mut bytes = DATA.to_vec();
        bytes.push(0);
        let header = PageHeader {
            is_dictionary: false,
            needs_dictionary: true,
            values: 300,
            compressed_bytes: 100,
            uncompressed_bytes: 1000,
            header_bytes: 20,
        };
        assert_eq!(PageHeader::parse(&bytes), Some(header));
        (0..bytes.len()).for_each(|len| assert_eq!(PageHeader::parse(&bytes[..len]), None, "{len} bytes"));
        bytes[1] = 4;
        assert_eq!(PageHeader::parse(&bytes), None, "a dictionary without its header");
    }
}
