//! Decodes the values of a data page: plain numbers, indices into a dictionary, and differences.
//!
//! The Parquet library decodes one column type at a time and makes an owned string of every value
//! of a string column. A trace has a few distinct strings, so its columns are read as numbers
//! here: `None` from any function means that the page is not such as a trace writer makes it.

use bytes::Bytes;

/// The encoded values of a page, read from the start.
pub(super) enum Values {
    /// Little-endian numbers of 4 or 8 bytes.
    Plain { input: Input, width: usize },
    /// Indices into the dictionary of the column.
    Indices(Indices),
    /// Differences to the previous value.
    Deltas(Deltas),
}

impl Values {
    /// Appends the next `count` values.
    pub(super) fn read(&mut self, count: usize, dictionary: &[i64], out: &mut Vec<i64>) -> Option<()> {
        match self {
            Values::Plain { input, width } => plain(input, *width, count, out),
            Values::Indices(indices) => indices.read(count, dictionary, out),
            Values::Deltas(deltas) => deltas.read(count, out),
        }
    }
}

fn plain(input: &mut Input, width: usize, count: usize, out: &mut Vec<i64>) -> Option<()> {
    let bytes = input.take(count.checked_mul(width)?)?;
    let number = |bytes: &[u8]| match bytes.try_into() {
        Ok(long) => i64::from_le_bytes(long),
        Err(_) => i64::from(i32::from_le_bytes(bytes.try_into().expect("4 or 8 bytes"))),
    };
    out.extend(bytes.chunks_exact(width).map(number));
    Some(())
}

/// The bytes of a page and a position in them.
pub(super) struct Input {
    bytes: Bytes,
    at: usize,
}

impl Input {
    pub(super) fn new(bytes: Bytes) -> Input {
        Input { bytes, at: 0 }
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(count)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A number of 7 bits per byte, the lowest first.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        self.varint().map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn size(&mut self) -> Option<usize> {
        self.varint()?.try_into().ok()
    }
}

/// Bits per byte.
const BYTE_BITS: usize = 8;

/// `count` numbers of `width` bits each, packed from the lowest bit on.
#[derive(Clone, Copy, Default)]
struct Packed {
    /// Position of the next number in the page, bits.
    bit: usize,
    width: usize,
    count: usize,
}

impl Packed {
    /// The next `count` numbers, which take up whole bytes in the input.
    fn take(input: &mut Input, count: usize, width: usize) -> Option<Packed> {
        let bit = input.at * BYTE_BITS;
        input.take(count.checked_mul(width)?.div_ceil(BYTE_BITS))?;
        Some(Packed { bit, width, count })
    }

    /// The number `index` places after the next one.
    #[inline]
    fn number(self, bytes: &[u8], index: usize) -> u64 {
        let bit = self.bit + index * self.width;
        let mask = u64::MAX.checked_shr(64 - self.width as u32).unwrap_or(0);
        let (at, shift) = (bit / BYTE_BITS, bit % BYTE_BITS);
        // Up to seven bits lie before the number in its first byte.
        if self.width <= 64 - (BYTE_BITS - 1) {
            return load(bytes, at) >> shift & mask;
        }
        let wide = u128::from(load(bytes, at)) | u128::from(load(bytes, at + 8)) << 64;
        (wide >> shift) as u64 & mask
    }

    /// Continues behind the next `count` numbers.
    fn skip(&mut self, count: usize) {
        self.bit += count * self.width;
        self.count -= count;
    }
}

/// The eight bytes at `at`, as far as there are any; zeros follow the last byte of the page.
#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => {
            let rest = bytes.get(at..).unwrap_or_default();
            rest.iter().rev().fold(0, |number, byte| number << BYTE_BITS | u64::from(*byte))
        }
    }
}

/// Indices into a dictionary, as runs of equal ones and of packed ones.
pub(super) struct Indices {
    input: Input,
    width: usize,
    /// The current run: equal indices, or packed ones.
    equal: (usize, i64),
    packed: Packed,
}

impl Indices {
    pub(super) fn new(mut input: Input) -> Option<Indices> {
        let width = usize::from(input.byte()?);
        (width <= 32).then(|| Indices { input, width, equal: (0, 0), packed: Packed::default() })
    }

    fn read(&mut self, count: usize, dictionary: &[i64], out: &mut Vec<i64>) -> Option<()> {
        let mut left = count;
        while left > 0 {
            if self.equal.0 > 0 {
                let count = left.min(self.equal.0);
                out.extend(std::iter::repeat_n(self.equal.1, count));
                self.equal.0 -= count;
                left -= count;
            } else if self.packed.count > 0 {
                let count = left.min(self.packed.count);
                let (packed, bytes, mut is_known) = (self.packed, &self.input.bytes[..], true);
                out.extend((0..count).map(|at| {
                    let value = dictionary.get(packed.number(bytes, at) as usize);
                    is_known &= value.is_some();
                    value.copied().unwrap_or_default()
                }));
                if !is_known {
                    return None;
                }
                self.packed.skip(count);
                left -= count;
            } else {
                self.next_run(dictionary)?;
            }
        }
        Some(())
    }

    fn next_run(&mut self, dictionary: &[i64]) -> Option<()> {
        let header = self.input.size()?;
        let count = header >> 1;
        if header & 1 == 1 {
            self.packed = Packed::take(&mut self.input, count.checked_mul(BYTE_BITS)?, self.width)?;
        } else {
            let bytes = self.input.take(self.width.div_ceil(BYTE_BITS))?;
            self.equal = (count, *dictionary.get(load(bytes, 0) as usize)?);
        }
        (count > 0).then_some(())
    }
}

/// Numbers as differences (DELTA_BINARY_PACKED): blocks with a least difference each, of miniblocks
/// with a width each.
pub(super) struct Deltas {
    input: Input,
    miniblock_values: usize,
    miniblocks: usize,
    /// Values that have not been returned; the first of all is `value`, before `started`.
    left: usize,
    started: bool,
    value: i64,
    least: i64,
    /// Widths of the block's miniblocks that have not begun, the next one last.
    widths: Vec<u8>,
    packed: Packed,
}

impl Deltas {
    /// The differences of a page of `values` values.
    pub(super) fn new(mut input: Input, values: usize) -> Option<Deltas> {
        let (block, miniblocks) = (input.size()?, input.size()?);
        let (left, value) = (input.size()?, input.zigzag()?);
        let miniblock_values = block.checked_div(miniblocks)?;
        // Miniblocks are whole bytes, and not larger than a page.
        let plausible = miniblock_values > 0
            && miniblock_values.is_multiple_of(BYTE_BITS)
            && block <= 1 << 16
            && left == values;
        let widths = Vec::new();
        let packed = Packed::default();
        plausible.then_some(Deltas {
            input,
            miniblock_values,
            miniblocks,
            left,
            started: false,
            value,
            least: 0,
            widths,
            packed,
        })
    }

    fn read(&mut self, count: usize, out: &mut Vec<i64>) -> Option<()> {
        let mut left = count;
        self.left = self.left.checked_sub(count)?;
        if left > 0 && !self.started {
            self.started = true;
            out.push(self.value);
            left -= 1;
        }
        while left > 0 {
            if self.packed.count == 0 {
                self.next_miniblock(left + self.left)?;
            }
            let count = left.min(self.packed.count);
            let (packed, bytes, mut value) = (self.packed, &self.input.bytes[..], self.value);
            out.extend((0..count).map(|at| {
                value = value.wrapping_add(self.least).wrapping_add(packed.number(bytes, at) as i64);
                value
            }));
            self.value = value;
            self.packed.skip(count);
            left -= count;
        }
        Some(())
    }

    /// Begins a miniblock. `left` values are expected from here on; the last miniblock of a page
    /// may end with the last of them.
    fn next_miniblock(&mut self, left: usize) -> Option<()> {
        if self.widths.is_empty() {
            self.least = self.input.zigzag()?;
            self.widths.extend(self.input.take(self.miniblocks)?.iter().rev());
        }
        let width = usize::from(self.widths.pop()?);
        let count = left.min(self.miniblock_values);
        let whole = self.miniblock_values * width / BYTE_BITS;
        let rest = self.input.bytes.len() - self.input.at;
        self.packed = Packed { bit: self.input.at * BYTE_BITS, width, count };
        let needed = (count * width).div_ceil(BYTE_BITS);
        (width <= 64 && needed <= rest).then(|| self.input.at += whole.min(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(bytes: &[u8], make: impl Fn(Input) -> Option<Values>, dictionary: &[i64]) -> Option<Vec<i64>> {
        let mut values = make(Input::new(Bytes::copy_from_slice(bytes)))?;
        let mut out = Vec::new();
        // In two steps, so that a run is interrupted.
        values.read(3, dictionary, &mut out)?;
        values.read(7, dictionary, &mut out)?;
        Some(out)
    }

    #[test]
    fn indices_come_in_runs() {
        // Width 2: five times index 1, then eight packed indices.
        let bytes = [2, 10, 1, 3, 0b11_10_01_00, 0b00_01_10_11];
        let indices = |input| Some(Values::Indices(Indices::new(input)?));
        let found = values(&bytes, indices, &[7, 8, 9, 10]);
        assert_eq!(found, Some(vec![8, 8, 8, 8, 8, 7, 8, 9, 10, 10]));
        assert_eq!(values(&bytes, indices, &[7, 8]), None, "an index beyond the dictionary");
        (0..5).for_each(|len| assert_eq!(values(&bytes[..len], indices, &[7, 8, 9, 10]), None));
        assert_eq!(values(&[0, 20], indices, &[5]), Some(vec![5; 10]), "one entry takes no bits");
    }

    #[test]
    fn differences_add_up() {
        // One miniblock of eight values: 10, then -1 (least) + 0..8 in 3 bits, then a second block.
        let first = [8, 1, 10, 20, 1, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let bytes = [&first[..], &[6, 0]].concat();
        let deltas = |input| Some(Values::Deltas(Deltas::new(input, 10)?));
        let found = values(&bytes, deltas, &[]);
        assert_eq!(found, Some(vec![10, 9, 9, 10, 12, 15, 19, 24, 30, 33]));
        (0..11).for_each(|len| assert_eq!(values(&bytes[..len], deltas, &[]), None, "{len} bytes"));
    }

    #[test]
    fn plain_numbers_are_little_endian() {
        let bytes: Vec<u8> = (0..10).flat_map(|i: i32| (i - 5).to_le_bytes()).collect();
        let plain = |input| Some(Values::Plain { input, width: 4 });
        assert_eq!(values(&bytes, plain, &[]), Some((-5..5).collect()));
        assert_eq!(values(&bytes[..39], plain, &[]), None);
    }
}
