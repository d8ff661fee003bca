//! Sizes in bytes, written as `64K`, `1G`, ... (binary: K is 1024).

use thiserror::Error;

const UNITS: [(&str, u32); 4] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];

/// A text that is not a size. The message names the text and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a size: write bytes, or a whole number with K, M, G or T (binary), like 64K or 1G")]
pub struct SizeError(String);

/// Parses a size in bytes: a whole number, then optionally K, M, G or T (either case, `iB` may
/// follow; binary).
///
/// # Errors
/// Any other text, or more than 2^64 - 1 bytes.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    parse_size(text.trim()).ok_or_else(|| SizeError(shorten(text)))
}

fn parse_size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = &text[digits..];
    let unit = unit.strip_suffix("iB").filter(|unit| !unit.is_empty()).unwrap_or(unit);
    let shift = match unit {
        "" => 0,
        unit => UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name))?.1,
    };
    number.checked_mul(1 << shift)
}

/// The shortest exact form, with the largest unit that divides `bytes`; [`parse`] reads it back.
pub fn format(bytes: u64) -> String {
    let exact = UNITS.iter().rev().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match exact {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// At most 60 characters of a text, for messages.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_binary() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("64KiB", 64 << 10),
            ("3M", 3 << 20),
            ("16G", 16 << 30),
            (" 1T ", 1 << 40),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn other_texts_are_named_in_the_error() {
        for text in ["", "K", "64Q", "64KB", "64iB", "-1", "1.5G", "1 K", "99999999999T", "0x10", "64Kß"] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn format_takes_the_largest_exact_unit() {
        assert_eq!(format(0), "0");
        assert_eq!(format(1023), "1023");
        assert_eq!(format(120 << 10), "120K");
        assert_eq!(format(1536 << 20), "1536M");
        assert_eq!(format(u64::MAX), u64::MAX.to_string());
    }

    proptest! {
        #[test]
        fn format_reads_back(bytes: u64, shift in 0u32..60) {
            let bytes = bytes >> shift << (shift / 2);
            prop_assert_eq!(parse(&format(bytes)), Ok(bytes));
        }

        #[test]
        fn never_panics(text in "\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
