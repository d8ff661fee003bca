//! Path patterns, which select the files of a rule.
//!
//! `<n>` is a complete run of digits; `*` matches any characters but `/`; `**` matches any
//! characters; `\` makes the next character ordinary. Matching allocates nothing and takes
//! O(pattern · path) in the worst case.

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
        match step(pattern, path, &mut at, field) {
            Step::Matched => return Some(at.number),
            Step::Went => {}
            Step::Star => star = Some(at),
            Step::DoubleStar => (star, double) = (None, Some(at)),
            Step::Mismatch => match retry(path, &mut star, false) {
                Some(cursor) => at = cursor,
                None => {
                    star = None;
                    at = retry(path, &mut double, true)?;
                }
            },
        }
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

enum Step {
    Matched,
    Went,
    Star,
    DoubleStar,
    Mismatch,
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

fn step(pattern: &[u8], path: &[u8], at: &mut Cursor, field: Option<usize>) -> Step {
    let (pattern, rest) = (&pattern[at.pattern..], &path[at.path..]);
    match pattern {
        [] => {
            if rest.is_empty() {
                Step::Matched
            } else {
                Step::Mismatch
            }
        }
        [b'*', b'*', ..] => {
            at.pattern += 2;
            Step::DoubleStar
        }
        [b'*', ..] => {
            at.pattern += 1;
            Step::Star
        }
        [b'<', b'n', b'>', ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 || (at.path > 0 && path[at.path - 1].is_ascii_digit()) {
                return Step::Mismatch;
            }
            if field == Some(at.fields) {
                at.number = rest[..digits].iter().fold(0, |number: u64, digit| {
                    number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
                });
            }
            at.fields += 1;
            at.pattern += 3;
            at.path += digits;
            Step::Went
        }
        [b'\\', byte, ..] => literal(*byte, 2, rest, at),
        [byte, ..] => literal(*byte, 1, rest, at),
    }
}

fn literal(byte: u8, pattern_len: usize, rest: &[u8], at: &mut Cursor) -> Step {
    if rest.first() != Some(&byte) {
        return Step::Mismatch;
    }
    at.pattern += pattern_len;
    at.path += 1;
    Step::Went
}
