//! Prefetch hints (the paper's C_flag), which the last process that leaves the map passes to the
//! next one that joins it.
//!
//! The hints are stored in a file next to the journal. It is never synced, ignored if anything is
//! wrong with it, and removed once it has been read. While processes have the file open, the hints
//! are in the index.

use std::fmt::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use stripewise_sys::OFlags;

use crate::joined::Joined;
use crate::journal::Place;
use crate::shared::Word;
use crate::{CopyId, Mask, Result, Span};

const MAGIC: &str = "stripewise wanted, format 1";
/// Maximum number of ranges, and of bytes, that are kept.
const RANGES_MAX: usize = 1 << 16;
const BYTES_MAX: usize = 4 << 20;
/// Number of ranges that one transaction adds.
const AT_ONCE: usize = 128;

/// Name of the file: `ID.extents.hints`.
pub(crate) fn name(place: &Place) -> PathBuf {
    place.beside(".wanted")
}

/// Stores the hints, unless the file has lost its last name. Errors are ignored.
pub(crate) fn keep(joined: &Joined) {
    if joined.shared.is(Word::Unlinked) {
        return;
    }
    let Ok(hints) = listed(joined) else { return };
    if hints.is_empty() {
        return;
    }
    if let Ok(file) = joined.place.create_anew(&name(&joined.place)) {
        let _ = joined.sys.write_all_at(file.as_fd(), format(&joined.spec.id, &hints).as_bytes(), 0);
    }
}

/// Reads the hints that an earlier process stored, and removes them.
pub(crate) fn recall(joined: &Joined) {
    let (sys, dir) = (&joined.sys, Some(joined.place.dir.as_fd()));
    let name = name(&joined.place);
    let Ok(file) = joined.place.open(&name, OFlags::RDONLY) else { return };
    let bytes = sys.read_start(file.as_fd(), BYTES_MAX).unwrap_or_default();
    let hints = parse(&bytes, &joined.spec.id).unwrap_or_default();
    if put(joined, &hints).is_ok() {
        let _ = sys.unlink(dir, &name);
    }
}

/// Removes the stored hints.
pub(crate) fn remove(place: &Place) {
    let _ = place.sys.unlink(Some(place.dir.as_fd()), Path::new(&name(place)));
}

fn listed(joined: &Joined) -> Result<Vec<Span>> {
    let txn = joined.read()?;
    let mut hints = Vec::new();
    joined.index.hints.visit(&txn, 0..u64::MAX, |entry| {
        hints.push(entry.span());
        hints.len() < RANGES_MAX
    })?;
    Ok(hints)
}

fn put(joined: &Joined, hints: &[Span]) -> Result<()> {
    for spans in hints.chunks(AT_ONCE) {
        let mut txn = joined.write()?;
        for span in spans {
            for copy in span.mask.iter().filter(|copy| copy.index() < joined.spec.copies) {
                joined.index.add_hint(&mut txn, span.range(), copy)?;
            }
        }
        txn.commit()?;
    }
    Ok(())
}

fn format(id: &[u8; 16], hints: &[Span]) -> String {
    let mut text = format!("{MAGIC}\nid {:032x}\n", u128::from_be_bytes(*id));
    for span in hints {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {} {}", span.start, span.end, span.mask.bits());
    }
    let sum = crc32fast::hash(text.as_bytes());
    let _ = writeln!(text, "crc32 {sum:08x}");
    text
}

fn parse(bytes: &[u8], id: &[u8; 16]) -> Option<Vec<Span>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once("crc32 ")?;
    if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(body.as_bytes()) {
        return None;
    }
    let ranges = body.strip_prefix(&format!("{MAGIC}\nid {:032x}\n", u128::from_be_bytes(*id)))?;
    ranges.lines().map(range).collect()
}

fn range(line: &str) -> Option<Span> {
    let mut words = line.split(' ').map(str::parse::<u64>);
    let mut next = || words.next()?.ok();
    let (start, end, bits) = (next()?, next()?, next()?);
    let mask = Mask::from_bits(u8::try_from(bits).ok()?).without(CopyId::ORIGINAL);
    (start < end && !mask.is_empty()).then_some(Span::new(start..end, mask))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Select;
    use crate::tests::support::*;

    fn hints(map: &crate::Map) -> Vec<(u64, u64)> {
        let listed = map.list(Select::Hinted(copy(1)), 0..1000, 10).unwrap();
        listed.iter().map(|span| (span.start, span.end)).collect()
    }

    #[test]
    fn hints_are_there_in_the_next_session() {
        let mut stage = Stage::cached();
        let (one, two) = (stage.join(), stage.join());
        one.add_hint(10..20, copy(1)).unwrap();
        two.add_hint(30..40, copy(1)).unwrap();
        one.leave(nothing).unwrap();
        let file = stage.disk.path().join("f.extents.wanted");
        assert!(!file.exists(), "somebody still has it open");
        two.leave(nothing).unwrap();
        assert!(file.exists());
        stage.spec.create = false;
        let map = stage.join();
        assert_eq!(hints(&map), [(10, 20), (30, 40)]);
        assert!(!file.exists());
        map.leave(nothing).unwrap();
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() = b'x';
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(hints(&stage.join()), [], "damaged");
        let map = stage.join();
        map.add_hint(10..20, copy(1)).unwrap();
        std::fs::write(&file, "x").unwrap();
        crate::repair::remove(&real(), &stage.spec).unwrap();
        map.leave(nothing).unwrap();
        assert!(!file.exists());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let _ = parse(&bytes, &ID);
            let hints = [Span::new(1..5, only(1)), Span::new(7..9, mask(&[1, 2]))];
            let mut text = format(&ID, &hints).into_bytes();
            prop_assert_eq!(parse(&text, &ID), Some(hints.to_vec()));
            let at = at.index(text.len());
            let old = std::mem::replace(&mut text[at], byte);
            prop_assert!(old == byte || parse(&text, &ID) != Some(hints.to_vec()) || byte.eq_ignore_ascii_case(&old));
        }
    }
}
