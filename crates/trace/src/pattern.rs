//! File-name patterns, which group files that serve the same purpose.

/// Extensions that end in a digit that is not a number of the file.
const EXTENSIONS_WITH_DIGITS: [&str; 15] = [
    "h4", "h5", "he4", "he5", "hdf4", "hdf5", "nc3", "nc4", "bz2", "lz4", "mp3", "mp4", "jp2", "md5", "sha256",
];

/// The pattern of a path: every run of digits becomes `<n>`, except in well-known extensions
/// (`.h5`).
///
/// Files with the same pattern form one *group*: `/data/out.0001.h5` and `/data/out.0002.h5` are
/// both `/data/out.<n>.h5`.
pub fn pattern_of(path: &str) -> String {
    let split = path.rsplit_once('.').filter(|(_, extension)| EXTENSIONS_WITH_DIGITS.contains(extension));
    let stem = split.map_or(path, |(stem, _)| stem);
    let mut pattern = String::with_capacity(path.len() + 8);
    let mut in_digits = false;
    for c in stem.chars() {
        match (in_digits, c.is_ascii_digit()) {
            (_, false) => pattern.push(c),
            (false, true) => pattern.push_str("<n>"),
            (true, true) => {}
        }
        in_digits = c.is_ascii_digit();
    }
    pattern + &path[stem.len()..]
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
    fn digits_of_known_extensions_stay() {
        assert_eq!(pattern_of("/d/x12.h5"), "/d/x<n>.h5");
        assert_eq!(pattern_of("/d/x.h52"), "/d/x.h<n>");
        assert_eq!(pattern_of("/d/x.h5.3"), "/d/x.h<n>.<n>");
    }
}
