//! File-name patterns, which group files that serve the same purpose.

/// Extensions that end in a digit that is not a number of the file.
const EXTENSIONS_WITH_DIGITS: [&str; 15] = [
    "h4", "h5", "he4", "he5", "hdf4", "hdf5", "nc3", "nc4", "bz2", "lz4", "mp3", "mp4", "jp2", "md5", "sha256",
];

/// Minimum length of a hash, in hexadecimal digits.
const HASH_DIGITS: usize = 8;
/// Minimum number of places in a hash where a letter follows a digit or the reverse: `face2024` is
/// no hash.
const HASH_CHANGES: usize = 3;

/// The pattern of a path: every hash or UUID becomes `*` and every other run of digits `<n>`,
/// except in well-known extensions (`.h5`).
///
/// Files with the same pattern form one *group*: `/data/out.0001.h5` and `/data/out.0002.h5` are
/// both `/data/out.<n>.h5`.
pub fn pattern_of(path: &str) -> String {
    let split = path.rsplit_once('.').filter(|(_, extension)| EXTENSIONS_WITH_DIGITS.contains(extension));
    let stem = split.map_or(path, |(stem, _)| stem);
    let mut pattern = String::with_capacity(path.len() + 8);
    let mut rest = stem;
    while let Some(first) = rest.chars().next() {
        let word = &rest[..rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())];
        let taken = if let Some(uuid) = uuid(rest) {
            pattern.push('*');
            uuid
        } else if word.is_empty() {
            pattern.push(first);
            first.len_utf8()
        } else if is_hash(word) {
            pattern.push('*');
            word.len()
        } else {
            push_without_numbers(&mut pattern, word);
            word.len()
        };
        rest = &rest[taken..];
    }
    pattern + &path[stem.len()..]
}

/// The length of the UUID that a text, which begins with a word, begins with.
fn uuid(text: &str) -> Option<usize> {
    const FIELDS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_of_it = |c: char| c.is_ascii_hexdigit() || c == '-';
    let taken = &text[..text.find(|c: char| !is_of_it(c)).unwrap_or(text.len())];
    let ends = !text[taken.len()..].starts_with(char::is_alphanumeric);
    (ends && taken.split('-').map(str::len).eq(FIELDS)).then_some(taken.len())
}

/// Whether a word looks like a hash.
fn is_hash(word: &str) -> bool {
    let changes =
        word.as_bytes().windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    word.len() >= HASH_DIGITS
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && changes.count() >= HASH_CHANGES
}

fn push_without_numbers(pattern: &mut String, text: &str) {
    let mut in_digits = false;
    for c in text.chars() {
        match (in_digits, c.is_ascii_digit()) {
            (_, false) => pattern.push(c),
            (false, true) => pattern.push_str("<n>"),
            (true, true) => {}
        }
        in_digits = c.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::pattern_of;

    #[test]
    fn digit_runs_become_one_placeholder() {
        assert_eq!(pattern_of("/data/run12/out.0001"), "/data/run<n>/out.<n>");
        assert_eq!(pattern_of("/data/plain"), "/data/plain");
        assert_eq!(pattern_of(""), "");
        assert_eq!(pattern_of("7"), "<n>");
        assert_eq!(pattern_of("/ü1/2"), "/ü<n>/<n>");
    }

    #[test]
    fn hashes_become_any_text() {
        for (path, pattern) in [
            ("/c/0a1b2c3d4e5f60718293a4b5c6d7e8f9.bin", "/c/*.bin"),
            ("/c/550E8400-e29b-41d4-a716-446655440000", "/c/*"),
            ("/c/x-5380c1a9/part7", "/c/x-*/part<n>"),
            ("/c/5380c1a9-5380c1aa", "/c/*-*"),
            ("/c/550e8400-e29b-41d4-a716-446655440000x", "/c/<n>e<n>-e<n>b-<n>d<n>-a<n>-<n>x"),
            ("/c/face2024", "/c/face<n>"),
            ("/c/deadbeef", "/c/deadbeef"),
            ("/c/20231105-121314", "/c/<n>-<n>"),
            ("/c/a1b2", "/c/a<n>b<n>"),
            ("/c/xa1b2c3d4e5", "/c/xa<n>b<n>c<n>d<n>e<n>"),
            ("/c/a1b2c3d4e5x", "/c/a<n>b<n>c<n>d<n>e<n>x"),
            ("/c/üa1b2c3d4e5", "/c/üa<n>b<n>c<n>d<n>e<n>"),
            ("/c/-a1b2c3d4-", "/c/-*-"),
        ] {
            assert_eq!(pattern_of(path), pattern);
        }
    }

    #[test]
    fn digits_of_known_extensions_stay() {
        assert_eq!(pattern_of("/d/x12.h5"), "/d/x<n>.h5");
        assert_eq!(pattern_of("/d/x.h52"), "/d/x.h<n>");
        assert_eq!(pattern_of("/d/x.h5.3"), "/d/x.h<n>.<n>");
    }
}
