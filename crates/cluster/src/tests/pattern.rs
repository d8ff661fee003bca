use proptest::prelude::*;

use crate::pattern::{escape, match_path};

fn matches(pattern: &str, path: &str) -> bool {
    match_path(pattern.as_bytes(), path.as_bytes(), None).is_some()
}

fn field(pattern: &str, path: &str, field: usize) -> Option<u64> {
    match_path(pattern.as_bytes(), path.as_bytes(), Some(field))
}

#[test]
fn wildcards() {
    assert!(matches("/data/out", "/data/out"));
    assert!(!matches("/data/out", "/data/outer"));
    assert!(!matches("/data/out", "/data/ou"));
    assert!(matches("/data/*", "/data/x.h5") && !matches("/data/*", "/data/a/x.h5"));
    assert!(matches("/data/**", "/data/a/x.h5") && matches("**.h5", "/data/a/x.h5"));
    assert!(matches("**/a*/x", "/q/b/a1/x") && matches("**/a*/x", "/a/b/a1/x"));
    assert!(matches("/d*a*b/c*", "/dxxaybab/c") && !matches("/d*a*b/c*", "/dxxaybac/c"));
    assert!(matches("/a\\*b", "/a*b") && !matches("/a\\*b", "/axb"));
    assert!(matches("/a\\<n>", "/a<n>") && !matches("/a\\<n>", "/a7"));
}

#[test]
fn numbers_are_whole_runs_of_digits() {
    assert!(
        matches("/out.<n>", "/out.0042") && !matches("/out.<n>", "/out.") && !matches("/out.<n>", "/out.4x")
    );
    assert!(!matches("/out.<n>2", "/out.42"), "the run of digits is taken whole");
    assert!(!matches("/out1<n>", "/out12"), "a run of digits does not begin in the middle");
    assert_eq!(field("/s<n>/r<n>.dat", "/s10/r007.dat", 0), Some(10));
    assert_eq!(field("/s<n>/r<n>.dat", "/s10/r007.dat", 1), Some(7));
    assert_eq!(field("/s<n>/r<n>.dat", "/s10/r007.dat", 2), Some(0));
    assert_eq!(field("/*<n>", "/abc12", 0), Some(12));
    let big = field("/<n>", "/18446744073709551617", 0);
    assert_eq!(big, Some(1), "numbers count modulo 2^64");
}

/// The definition, by exhaustive search.
fn brute(pattern: &[u8], path: &[u8], at: usize) -> bool {
    let rest = &path[at..];
    match pattern {
        [] => rest.is_empty(),
        [b'*', b'*', tail @ ..] => (at..=path.len()).any(|next| brute(tail, path, next)),
        [b'*', tail @ ..] => {
            let free = rest.iter().take_while(|&&byte| byte != b'/').count();
            (at..=at + free).any(|next| brute(tail, path, next))
        }
        [b'<', b'n', b'>', tail @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let whole = at == 0 || !path[at - 1].is_ascii_digit();
            digits > 0 && whole && brute(tail, path, at + digits)
        }
        [b'\\', byte, tail @ ..] | [byte, tail @ ..] => rest.first() == Some(byte) && brute(tail, path, at + 1),
    }
}

fn pattern() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("*"),
        Just("**"),
        Just("<n>"),
        Just("/"),
        Just("a"),
        Just("b"),
        Just("1"),
        Just("\\*"),
        Just("/a")
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn agrees_with_the_definition(pattern in pattern(), path in "[/ab1*]{0,10}") {
        let expected = brute(pattern.as_bytes(), path.as_bytes(), 0);
        prop_assert_eq!(matches(&pattern, &path), expected, "{} {}", pattern, path);
    }

    #[test]
    fn an_escaped_path_matches_itself(path in "[/ab1*<n>\\\\]{0,12}", other in "[/ab1*<n>\\\\]{0,12}") {
        prop_assert!(matches(&escape(&path), &path));
        prop_assert_eq!(matches(&escape(&path), &other), path == other);
    }

    #[test]
    fn never_panics(pattern: Vec<u8>, path: Vec<u8>) {
        let _ = match_path(&pattern, &path, Some(1));
    }
}

#[test]
fn many_wildcards_take_no_exponential_time() {
    let pattern = "*a".repeat(40) + "**b".repeat(20).as_str();
    assert!(!matches(&pattern, &"a".repeat(2000)));
}
