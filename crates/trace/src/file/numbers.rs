//! The file numbers of a row group: those of the names in its dictionary, one after the other
//! (`docs/formats/trace.md`). With them a reader knows the names' numbers without comparing names.

use std::path::Path;

use bytes::Bytes;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};

use super::library::{self, Source};
use crate::TraceError;

/// Key of the metadata's entry, a JSON array of [`Place`]s.
const KEY_NUMBERS: &str = "stripewise.file_numbers";

/// What is wrong with a trace whose file numbers cannot be right.
const WRONG: &str = "wrong file numbers";

/// Where the file numbers of a row group are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    /// Offset in the file, bytes.
    offset: u64,
    /// Length in the file, bytes.
    bytes: u32,
    /// Number of files that no earlier row group has.
    new: u32,
}

/// Encodes the file numbers of a trace, row group by row group.
///
/// A number is that of the next new file minus that of the file, in 7 bits per byte, the lowest
/// first; all bytes but the last have the highest bit set. So each new file takes a 0.
#[derive(Default)]
pub(super) struct Writer {
    next: u32,
    places: Vec<Place>,
    bytes: Vec<u8>,
}

impl Writer {
    /// Adds a file of the row group that no earlier one has. Returns its number.
    pub(super) fn add_new(&mut self) -> u32 {
        self.bytes.push(0);
        self.next += 1;
        self.next - 1
    }

    /// Adds a file of the row group that has this number.
    pub(super) fn add_known(&mut self, number: u32) {
        let mut back = self.next - number;
        while back >= 0x80 {
            self.bytes.push(back as u8 | 0x80);
            back >>= 7;
        }
        self.bytes.push(back as u8);
    }

    /// Ends the row group, whose numbers are written at this offset. Returns them.
    pub(super) fn end_group(&mut self, offset: u64) -> Vec<u8> {
        let before: u32 = self.places.iter().map(|place| place.new).sum();
        let bytes = std::mem::take(&mut self.bytes);
        self.places.push(Place { offset, bytes: bytes.len() as u32, new: self.next - before });
        bytes
    }

    /// The entry of the metadata.
    pub(super) fn to_key_value(&self) -> KeyValue {
        KeyValue::new(KEY_NUMBERS.to_string(), serde_json::json!(self.places).to_string())
    }
}

/// The file numbers of all row groups.
pub(super) struct Numbers {
    places: Vec<Place>,
    /// Of a trace of an earlier version, which does not have them; else they are in the file.
    made: Option<Bytes>,
}

impl Numbers {
    /// Those of the file's metadata; `None` if an earlier version wrote it. `rows` has the number
    /// of rows of each row group.
    pub(super) fn of_file(
        entries: &[KeyValue],
        rows: &[u64],
        file_bytes: u64,
    ) -> Result<Option<Numbers>, &'static str> {
        let entry = entries.iter().find(|entry| entry.key == KEY_NUMBERS);
        let Some(text) = entry.and_then(|entry| entry.value.as_deref()) else { return Ok(None) };
        let places: Vec<Place> = serde_json::from_str(text).map_err(|_| WRONG)?;
        // They do not overlap, so there are fewer files than bytes in the file.
        let mut free = 0;
        let mut is_possible = |(place, rows): (&Place, &u64)| {
            let (bytes, is_behind) = (u64::from(place.bytes), place.offset >= free);
            free = place.offset.saturating_add(bytes);
            is_behind
                && free <= file_bytes
                && place.new <= place.bytes
                && bytes <= rows.saturating_mul(BYTES_MAX)
        };
        let is_right = places.len() == rows.len() && places.iter().zip(rows).all(&mut is_possible);
        let numbers = Numbers { places, made: None };
        if is_right && u32::try_from(numbers.count()).is_ok() { Ok(Some(numbers)) } else { Err(WRONG) }
    }

    /// Those that were made for a trace of an earlier version, one row group after the other.
    pub(super) fn made(writer: Writer, bytes: Vec<u8>) -> Numbers {
        Numbers { places: writer.places, made: Some(bytes.into()) }
    }

    /// Number of files.
    pub(super) fn count(&self) -> u64 {
        self.places.iter().map(|place| u64::from(place.new)).sum()
    }

    /// The numbers of a row group.
    pub(super) fn of_group(&self, path: &Path, source: &Source, group: usize) -> Result<Group, TraceError> {
        let Place { offset, bytes, new } = self.places[group];
        let next = self.places[..group].iter().map(|place| place.new).sum();
        let bytes = match &self.made {
            Some(made) => made.slice(offset as usize..offset as usize + bytes as usize),
            None => library::call(path, || source.get_bytes(offset, bytes as usize))?,
        };
        Ok(Group { bytes, at: 0, next, end: next + new, is_wrong: false })
    }
}

/// Maximum number of bytes of one number.
const BYTES_MAX: u64 = 5;

/// The file numbers of a row group, in the order of its dictionary.
#[derive(Default)]
pub(super) struct Group {
    bytes: Bytes,
    at: usize,
    /// The number of the next new file.
    next: u32,
    /// The number of the first new file of the next row group.
    end: u32,
    /// A number was impossible.
    is_wrong: bool,
}

impl Group {
    /// The number of the next name, and whether no earlier row group has it; `None` if the numbers
    /// are not such as a trace writer makes them.
    pub(super) fn next(&mut self) -> Option<(u32, bool)> {
        let next = self.possible();
        self.is_wrong |= next.is_none();
        next
    }

    fn possible(&mut self) -> Option<(u32, bool)> {
        match self.back()? {
            0 => {
                let number = self.next;
                self.next += 1;
                (number < self.end).then_some((number, true))
            }
            back => Some((self.next.checked_sub(back)?, false)),
        }
    }

    fn back(&mut self) -> Option<u32> {
        let (mut back, mut shift) = (0u64, 0);
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            back |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return u32::try_from(back).ok();
            }
            if shift >= 7 * BYTES_MAX as u32 {
                return None;
            }
        }
    }

    /// The result of reading names with these numbers, whose error says so if a number is wrong.
    pub(super) fn explain<T>(&self, path: &Path, read: Result<T, TraceError>) -> Result<T, TraceError> {
        read.map_err(|error| if self.is_wrong { library::damaged(path, WRONG) } else { error })
    }

    /// Checks, after the last name, that all numbers were read and none is missing.
    pub(super) fn finish(&self, path: &Path) -> Result<(), TraceError> {
        if self.is_done() { Ok(()) } else { Err(library::damaged(path, WRONG)) }
    }

    fn is_done(&self) -> bool {
        self.at == self.bytes.len() && self.next == self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(bytes: &[u8], next: u32, end: u32) -> Group {
        Group { bytes: Bytes::copy_from_slice(bytes), next, end, ..Group::default() }
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let mut writer = Writer::default();
        (0..100_000).for_each(|number| assert_eq!(writer.add_new(), number));
        let first = writer.end_group(4);
        assert_eq!(first, vec![0; 100_000]);
        let known = [99_999, 99_872, 99_871, 5, 0, 83_616];
        known.into_iter().for_each(|number| writer.add_known(number));
        assert_eq!(writer.add_new(), 100_000);
        let mut numbers = group(&writer.end_group(0), 100_000, 100_001);
        known.into_iter().for_each(|number| assert_eq!(numbers.next(), Some((number, false))));
        assert!(!numbers.is_done());
        assert_eq!(numbers.next(), Some((100_000, true)));
        assert!(numbers.is_done());
        assert_eq!(numbers.next(), None);
    }

    #[test]
    fn impossible_numbers_are_noticed() {
        assert_eq!(group(&[0], 7, 7).next(), None, "more new files than there are");
        assert_eq!(group(&[8], 7, 8).next(), None, "a file before the first");
        assert_eq!(group(&[0x80], 7, 8).next(), None, "cut off");
        assert_eq!(group(&[0xff, 0xff, 0xff, 0xff, 0xff, 0], 7, 8).next(), None, "too long");
        assert_eq!(group(&[0xff, 0xff, 0xff, 0xff, 0x7f], 7, 8).next(), None, "beyond 32 bits");
        let mut few = group(&[1], 7, 8);
        assert_eq!((few.next(), few.is_done()), (Some((6, false)), false), "fewer new files");
    }
}
