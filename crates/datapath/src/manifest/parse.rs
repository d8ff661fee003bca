//! Parses manifests: checks every key, and each error names the key and the remedy.

use serde::Deserialize;
use stripewise_layout::MAX_OFFSET;
use stripewise_target::FileId;

use super::fields::{
    MAGIC, MAGIC_LINES, Manifest, ManifestError, PENDING_BYTES, TEXT_BYTES_MAX, TEXT_BYTES_MIN, check_size,
};
use super::format::{CHECKSUM_DIGITS, CHECKSUM_KEY, PENDING_KEY, checksum, value_offset};
use super::parse_copies::{self, TextCopy, TextOverlay};
use super::parse_layout::{RESTORE, TextRegion, TextTarget, layout_of, targets_of};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    length: u64,
    checksum: String,
    id: String,
    pending_truncate: String,
    path: String,
    created: String,
    #[serde(default)]
    anchor: String,
    #[serde(default)]
    target: Vec<TextTarget>,
    #[serde(default)]
    region: Vec<TextRegion>,
    overlay: Option<TextOverlay>,
    #[serde(default)]
    copy: Vec<TextCopy>,
}

impl Manifest {
    /// The length of the text that begins with `head` (the first [`super::HEAD_BYTES`] of the file,
    /// or the whole file).
    ///
    /// # Errors
    /// `head` does not begin with the magic line of a known format, or has no valid `length`.
    pub fn text_length(head: &[u8], file: &str) -> Result<usize, ManifestError> {
        text_length(head).map_err(|problem| ManifestError { file: file.into(), problem })
    }

    /// The offset of the [`PENDING_BYTES`] bytes of the `pending_truncate` value in a valid text.
    pub fn pending_offset(text: &[u8]) -> Option<usize> {
        value_offset(text, PENDING_KEY)
    }

    /// Parses `bytes`, which may continue after the text. Errors call the file `file`.
    ///
    /// # Errors
    /// One line with key, value and remedy. No input makes this panic.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, ManifestError> {
        parse(bytes).map_err(|problem| ManifestError { file: file.into(), problem })
    }
}

/// Parses a `pending_truncate` value. A mix of digits and blanks is left by an interrupted write:
/// the truncate had not begun yet or was already finished.
pub(super) fn parse_pending(value: &str) -> Result<Option<u64>, String> {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let blanks = value.bytes().filter(|&byte| byte == b' ').count();
    let size = value.parse().ok().filter(|&size| size <= MAX_OFFSET);
    match size {
        Some(size) if digits == PENDING_BYTES => Ok(Some(size)),
        _ if digits < PENDING_BYTES && digits + blanks == PENDING_BYTES => Ok(None),
        _ => Err(format!(
            "key `pending_truncate`: {value:?} is neither {PENDING_BYTES} blanks nor a size in as many digits; \
             {RESTORE}"
        )),
    }
}

/// The index of the magic line with which the text begins.
fn magic_line(text: &[u8]) -> Option<usize> {
    MAGIC_LINES.iter().position(|line| text.starts_with(line.as_bytes()))
}

fn text_length(head: &[u8]) -> Result<usize, String> {
    if !head.starts_with(MAGIC) {
        return Err("does not begin with the line `stripewise file, format N`; it is not a managed file".into());
    }
    if magic_line(head).is_none() {
        let rest = &head[MAGIC.len()..head.len().min(MAGIC.len() + 20)];
        let number =
            String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or(rest)).into_owned();
        return Err(format!(
            "is of format {number:?}, this version knows formats 1 and 2; use a newer stripewise"
        ));
    }
    let value = value_offset(head, "length = ").ok_or(format!("key `length` is missing; {RESTORE}"))?;
    let digits = head[value..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = std::str::from_utf8(&head[value..value + digits]).ok().and_then(|digits| digits.parse().ok());
    length
        .filter(|length| (TEXT_BYTES_MIN..=TEXT_BYTES_MAX).contains(length))
        .ok_or(format!("key `length`: must be a number from {TEXT_BYTES_MIN} to {TEXT_BYTES_MAX}; {RESTORE}"))
}

fn parse(bytes: &[u8]) -> Result<Manifest, String> {
    let length = text_length(bytes)?;
    let text = bytes.get(..length).ok_or_else(|| {
        format!("key `length`: says {length}, but only {} bytes are there; {RESTORE}", bytes.len())
    })?;
    verify_checksum(text)?;
    let text = std::str::from_utf8(text).map_err(|error| format!("is not UTF-8 ({error}); {RESTORE}"))?;
    let has_copies = magic_line(text.as_bytes()) == Some(1);
    let body = &text[TEXT_BYTES_MIN..];
    let parsed: Text = toml::from_str(body).map_err(|error| toml_problem(body, &error))?;
    if parsed.length != length as u64 || !parsed.checksum.starts_with("crc32:") {
        return Err(format!(
            "keys `length` and `checksum` must stand once, each on a line of its own; {RESTORE}"
        ));
    }
    let id = FileId::from_hex(&parsed.id)
        .ok_or_else(|| format!("key `id`: {:?} must be 32 hexadecimal digits; {RESTORE}", parsed.id))?;
    let tables = parsed.copy.iter().map(TextCopy::table_size);
    check_size(tables.chain([(parsed.region.len(), parsed.target.len())]))?;
    let copies = match parsed.overlay {
        Some(overlay) if has_copies => {
            Some(Box::new(parse_copies::read(overlay, parsed.copy, id, parsed.target.len())?))
        }
        None if !has_copies && parsed.copy.is_empty() => None,
        _ => {
            return Err(format!(
                "keys `overlay` and `copy`: manifests of format 2 have both, of format 1 none; {RESTORE}"
            ));
        }
    };
    let anchor = parsed.anchor.parse().map_err(|part| format!("key `anchor`: {part}; {RESTORE}"))?;
    Ok(Manifest {
        id,
        anchor,
        pending_truncate: parse_pending(&parsed.pending_truncate)?,
        path: parsed.path,
        created: parsed.created,
        layout: layout_of("", parsed.region, parsed.target.len())?,
        targets: targets_of("", parsed.target)?,
        copies,
    })
}

/// Quotes the line, because the parser's message does not always name the key.
fn toml_problem(body: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start).min(body.len());
    let number = body.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
    let line: String = body.lines().nth(number).unwrap_or_default().chars().take(60).collect();
    let message = error.message().replace('\n', " ");
    // Add one: the magic line is not part of the body.
    format!("line {} ({line:?}): {message}; {RESTORE}", number + 2)
}

fn verify_checksum(text: &[u8]) -> Result<(), String> {
    let at = value_offset(text, CHECKSUM_KEY).ok_or(format!("key `checksum` is missing; {RESTORE}"))?;
    let digits = text.get(at..at + CHECKSUM_DIGITS).unwrap_or_default();
    let (said, is) = (String::from_utf8_lossy(digits).into_owned(), format!("{:08x}", checksum(text)));
    if said == is {
        Ok(())
    } else {
        Err(format!("key `checksum`: says {said:?}, the text has {is:?}; {RESTORE}"))
    }
}
