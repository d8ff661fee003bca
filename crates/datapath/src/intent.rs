//! The intent to truncate: a line after the text of `ID.manifest`, present while a truncate is in
//! progress.
//!
//! The line is the new size in 20 digits and a newline. Anything else after the text was left by a
//! kill or a power cut while a line was written or removed, and is no intent: a truncate begins
//! after its line is synced and ends before the line is removed. Only the holder of the exclusive
//! size lock writes the line.

use std::os::fd::BorrowedFd;

use stripewise_layout::MAX_OFFSET;
use stripewise_sys::{Stat, SysRef};

use crate::manifest::{HEAD_BYTES, Manifest};
use crate::{Result, anchor};

const DIGITS: usize = 20;
const LINE_BYTES: usize = DIGITS + 1;

/// Whether `ID.manifest` may hold an intent, judging by its stat result; its text has `text_bytes`.
pub(crate) fn is_possible(copy: &Stat, text_bytes: u64) -> bool {
    copy.st_size as u64 != text_bytes
}

/// The target size, bytes, of a truncate in progress. `copy` is `ID.manifest`, whose text is
/// usually as long as the anchor's. After a damaged text there is no intent: [`note`] repairs the
/// text first.
pub(crate) fn read(sys: &SysRef, copy: BorrowedFd<'_>, text_bytes: u64) -> Result<Option<u64>> {
    if !is_possible(&sys.stat(copy)?, text_bytes) {
        return Ok(None);
    }
    let Some(end) = end_of_text(sys, copy)? else { return Ok(None) };
    let mut line = [0; LINE_BYTES];
    let whole = anchor::read_full(sys, copy, &mut line, end)? == LINE_BYTES;
    Ok(if whole { parse(&line) } else { None })
}

/// Writes an intent durably after the text. If the text is missing or damaged, writes it first from
/// `anchor`, whose text has `text_bytes`.
///
/// # Errors
/// Same as pwrite(2) and fdatasync(2). Nothing may be cut then.
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
            // The file was never synced, and a power cut took the text.
            let text = sys.read_start(anchor, text_bytes as usize)?;
            sys.write_all_at(copy, &text, 0)?;
            text.len() as u64
        }
    };
    if is_possible(&sys.stat(copy)?, end) {
        // The rest of an earlier line, partly overwritten by this one, might look complete.
        sys.truncate(copy, end)?;
    }
    sys.write_all_at(copy, line(size).as_bytes(), end)?;
    sys.sync_data(copy)
}

/// Removes the intent durably.
///
/// # Errors
/// Same as ftruncate(2) and fdatasync(2). The intent may still be there then.
pub(crate) fn forget(sys: &SysRef, copy: BorrowedFd<'_>) -> Result<()> {
    if let Some(end) = end_of_text(sys, copy)? {
        sys.truncate(copy, end)?;
    }
    sys.sync_data(copy)
}

pub(crate) fn line(size: u64) -> String {
    format!("{size:0DIGITS$}\n")
}

/// The intent in the full content of `ID.manifest`.
pub(crate) fn in_text(bytes: &[u8]) -> Option<u64> {
    let end = Manifest::text_length(bytes, "").ok()?;
    parse(bytes.get(end..)?.first_chunk()?)
}

fn parse(line: &[u8; LINE_BYTES]) -> Option<u64> {
    let digits = line.strip_suffix(b"\n").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|&size| size <= MAX_OFFSET)
}

/// The length of the text, bytes; `None` if the text is damaged.
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
