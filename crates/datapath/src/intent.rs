//! The intent to truncate: a line behind the text of `ID.manifest`, there while a truncate is on
//! its way.
//!
//! The line is the new size in 20 digits, and a newline. Anything else behind the text is what a
//! kill or a power cut left of writing or removing a line, and means none: a truncate begins after
//! its line was synced, and ends before it is removed. Who writes has the size lock alone.

use std::os::fd::BorrowedFd;

use stripewise_layout::MAX_OFFSET;
use stripewise_sys::{Stat, SysRef};

use crate::manifest::{HEAD_BYTES, Manifest};
use crate::{Result, anchor};

const DIGITS: usize = 20;
const LINE_BYTES: usize = DIGITS + 1;

/// Whether `ID.manifest` may hold an intent, from what stat says of it; its text has `text_bytes`.
pub(crate) fn is_possible(copy: &Stat, text_bytes: u64) -> bool {
    copy.st_size as u64 != text_bytes
}

/// The size, bytes, that a truncate on its way is to reach. `copy` is `ID.manifest`, and its text
/// is usually as long as the anchor's. Behind a damaged text there is none: [`note`] makes it whole
/// first.
///
/// # Errors
/// As fstat(2) and pread(2).
pub(crate) fn read(sys: &SysRef, copy: BorrowedFd<'_>, text_bytes: u64) -> Result<Option<u64>> {
    if !is_possible(&sys.stat(copy)?, text_bytes) {
        return Ok(None);
    }
    let Some(end) = end_of_text(sys, copy)? else { return Ok(None) };
    let mut line = [0; LINE_BYTES];
    let whole = anchor::read_full(sys, copy, &mut line, end)? == LINE_BYTES;
    Ok(if whole { parse(&line) } else { None })
}

/// Notes an intent, durably, behind the text of `anchor`, which has `text_bytes`.
///
/// # Errors
/// As pwrite(2) and fdatasync(2): then nothing may be cut.
pub(crate) fn note(
    sys: &SysRef,
    copy: BorrowedFd<'_>,
    anchor: BorrowedFd<'_>,
    text_bytes: u64,
    size: u64,
) -> Result<()> {
    let end = match end_of_text(sys, copy)? {
        Some(end) => end,
        None => {
            // A power cut took it: the file was never synced.
            let text = sys.read_start(anchor, text_bytes as usize)?;
            sys.write_all_at(copy, &text, 0)?;
            text.len() as u64
        }
    };
    if is_possible(&sys.stat(copy)?, end) {
        // The rest of another line and a part of this one might look whole.
        sys.truncate(copy, end)?;
    }
    sys.write_all_at(copy, line(size).as_bytes(), end)?;
    sys.sync_data(copy)
}

/// Forgets it, durably.
///
/// # Errors
/// As ftruncate(2) and fdatasync(2): then it may still be there.
pub(crate) fn forget(sys: &SysRef, copy: BorrowedFd<'_>) -> Result<()> {
    if let Some(end) = end_of_text(sys, copy)? {
        sys.truncate(copy, end)?;
    }
    sys.sync_data(copy)
}

/// The line that stands for an intent.
pub(crate) fn line(size: u64) -> String {
    format!("{size:0DIGITS$}\n")
}

/// The intent behind a text of `ID.manifest` that was read with all that follows.
pub(crate) fn in_text(bytes: &[u8]) -> Option<u64> {
    let end = Manifest::text_length(bytes, "").ok()?;
    parse(bytes.get(end..)?.first_chunk()?)
}

fn parse(line: &[u8; LINE_BYTES]) -> Option<u64> {
    let digits = line.strip_suffix(b"\n").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|&size| size <= MAX_OFFSET)
}

/// The length of the text, bytes; `None`: it is damaged.
fn end_of_text(sys: &SysRef, copy: BorrowedFd<'_>) -> Result<Option<u64>> {
    let head = sys.read_start(copy, HEAD_BYTES)?;
    Ok(Manifest::text_length(&head, "").ok().map(|length| length as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_or_none() {
        let whole: [u8; LINE_BYTES] = line(1234).as_bytes().try_into().unwrap();
        assert_eq!(parse(&whole), Some(1234));
        for damaged in 0..LINE_BYTES {
            for by in [b' ', 0, b'x'] {
                let mut line = whole;
                line[damaged] = by;
                assert_eq!(parse(&line), None, "byte {damaged} is {by}");
            }
        }
        let too_large: [u8; LINE_BYTES] = line(MAX_OFFSET + 1).as_bytes().try_into().unwrap();
        assert_eq!(parse(&too_large), None);
    }
}
