//! Path patterns, which select the files of a rule, and how these are spread over its layouts.
//!
//! `<n>` is a complete run of digits; `*` matches any characters but `/`; `**` matches any
//! characters; `\` makes the next character ordinary. Matching allocates nothing and takes
//! O(pattern · path) in the worst case.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Matches `path` against `pattern` and returns the value of one `<n>` field.
///
/// With `field = Some(i)` the value of the `i`-th `<n>` (counted from 0) is returned modulo 2^64,
/// or 0 where the pattern has fewer. `None`: the path does not match.
pub fn match_path(pattern: &[u8], path: &[u8], field: Option<usize>) -> Option<u64> {
    let mut at = Cursor { pattern: 0, path: 0, fields: 0, number: 0 };
    // Positions to resume from after a mismatch: after the last `*` and the last `**`, each one
    // character further.
    let (mut star, mut double): (Option<Cursor>, Option<Cursor>) = (None, None);
    loop {
        let rest = &path[at.path..];
        let next = match &pattern[at.pattern..] {
            [] if rest.is_empty() => return Some(at.number),
            [] => None,
            [b'*', b'*', ..] => {
                at.pattern += 2;
                (star, double) = (None, Some(at));
                continue;
            }
            [b'*', ..] => {
                at.pattern += 1;
                star = Some(at);
                continue;
            }
            [b'<', b'n', b'>', ..] => at.after_number(path, field),
            [b'\\', byte, ..] => (rest.first() == Some(byte)).then(|| at.after(2, 1)),
            [byte, ..] => (rest.first() == Some(byte)).then(|| at.after(1, 1)),
        };
        at = match next.or_else(|| retry(path, &mut star, false)) {
            Some(cursor) => cursor,
            None => {
                star = None;
                retry(path, &mut double, true)?
            }
        };
    }
}

/// A pattern that matches only this path: special characters of patterns get a `\`.
///
/// Digits stay as they are, so that a caller may replace them by `<n>` afterwards.
pub fn escape(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '<' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The common beginning of all paths that the pattern matches.
pub fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] | [b'*', ..] | [b'<', b'n', b'>', ..] => return prefix,
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
                prefix.push(*byte);
                rest
            }
        };
    }
}

#[derive(Clone, Copy)]
struct Cursor {
    pattern: usize,
    path: usize,
    /// Number of `<n>`s passed.
    fields: usize,
    /// Value of the requested field.
    number: u64,
}

impl Cursor {
    fn after(self, pattern: usize, path: usize) -> Self {
        Self { pattern: self.pattern + pattern, path: self.path + path, ..self }
    }

    /// Past a `<n>` and the digits that it matches, if a run of digits begins here.
    fn after_number(self, path: &[u8], field: Option<usize>) -> Option<Self> {
        let rest = &path[self.path..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || (self.path > 0 && path[self.path - 1].is_ascii_digit()) {
            return None;
        }
        let mut next = Self { fields: self.fields + 1, ..self.after(3, digits) };
        if field == Some(self.fields) {
            next.number = rest[..digits]
                .iter()
                .fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
        }
        Some(next)
    }
}

/// Lets the wildcard just before `from` take one more character.
fn retry(path: &[u8], from: &mut Option<Cursor>, slashes: bool) -> Option<Cursor> {
    let cursor = from.as_mut()?;
    let taken = path.get(cursor.path)?;
    if *taken == b'/' && !slashes {
        return None;
    }
    cursor.path += 1;
    Some(*cursor)
}

/// Selects one of a rule's layouts for a file: `(number / stride) mod layouts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The index, from 0, of the `<n>` in the pattern that is the file's number; `None`: a hash of
    /// the path is its number.
    pub field: Option<usize>,
    /// Number of consecutive file numbers that get the same layout; at least 1.
    pub stride: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { field: None, stride: 1 }
    }
}

impl Spread {
    /// The index of the layout that the file at `path` gets among `layouts`; `None`: the path does
    /// not match `pattern`, or there are no layouts.
    pub fn index(&self, pattern: &str, path: &Path, layouts: usize) -> Option<usize> {
        let number = match_path(pattern.as_bytes(), path.as_os_str().as_bytes(), self.field)?;
        let number = if self.field.is_some() || layouts <= 1 { number } else { path_hash(path) };
        (number / self.stride.max(1)).checked_rem(layouts as u64).map(|index| index as usize)
    }
}

/// FNV-1a with 64 bits: the same in every version, so that all processes choose the same layout for
/// a file.
pub fn path_hash(path: &Path) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    path.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
