//! Decides at open, by the path, whether a file is recorded.

use stripewise_trace::scope::is_software;

/// The patterns of a trace, separated by `:`.
#[derive(Clone, Copy)]
pub struct Filter<'a> {
    pub only: &'a [u8],
    pub exclude: &'a [u8],
    /// The directory of the spool itself.
    pub spool: &'a [u8],
    /// The directory for temporary files in addition to `/tmp`. MPI libraries keep the files of a
    /// running job there.
    pub temporary: &'a [u8],
}

impl Filter<'_> {
    /// Whether calls on the file are recorded. If there are `only` patterns, one of them must
    /// match; else the file must not belong to software or the system. In both cases no `exclude`
    /// pattern may match.
    pub fn wants(&self, path: &[u8]) -> bool {
        let inside_spool = path.strip_prefix(self.spool).is_some_and(|rest| rest.first() == Some(&b'/'));
        let ours = || !is_software(path) && !self.is_of_mpi(path);
        let wanted = if self.only.is_empty() { ours() } else { any_matches(self.only, path) };
        wanted && !inside_spool && !any_matches(self.exclude, path)
    }

    /// Whether the file is in a session directory of Open MPI, directly below the directory for
    /// temporary files: `ompi.HOST.UID/pid.PID/...` of version 4 (`jf.JOB` under a resource
    /// manager), or `openmpi-sessions-UID@HOST_0/...` of older versions.
    fn is_of_mpi(&self, path: &[u8]) -> bool {
        let base = self.temporary.strip_suffix(b"/").unwrap_or(self.temporary);
        let below = |base: &[u8]| path.strip_prefix(base)?.strip_prefix(b"/");
        let rest = Some(base).filter(|base| !base.is_empty()).and_then(below).or_else(|| below(b"/tmp"));
        let mut parts = rest.unwrap_or_default().split(|byte| *byte == b'/');
        let (Some(first), Some(second)) = (parts.next(), parts.next()) else { return false };
        let session = first.strip_prefix(b"ompi.").and_then(|name| name.rsplit(|byte| *byte == b'.').next());
        let of_job = |prefix: &[u8]| second.strip_prefix(prefix).is_some_and(is_number);
        let version_4 = session.is_some_and(is_number) && (of_job(b"pid.") || of_job(b"jf."));
        let old =
            first.strip_prefix(b"openmpi-sessions-").and_then(|name| name.split(|byte| *byte == b'@').next());
        version_4 || old.is_some_and(is_number)
    }
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn any_matches(patterns: &[u8], path: &[u8]) -> bool {
    patterns.split(|byte| *byte == b':').any(|pattern| !pattern.is_empty() && matches(pattern, path))
}

/// Matches a pattern without `/` against the last component of the path, others against the whole
/// path.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    glob(pattern, if pattern.contains(&b'/') { path } else { name })
}

/// `?` matches any character except `/`, `*` any number of these, and `**` any number of any
/// characters.
///
/// Two positions for backtracking, one per kind of star, keep the time at O(pattern * text) and the
/// memory at O(1).
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        match (&pattern[p..], text.get(t)) {
            ([b'*', b'*', ..], _) => {
                p += 2;
                (star, double) = (None, Some((p, t)));
            }
            ([b'*', ..], _) => {
                p += 1;
                star = Some((p, t));
            }
            ([], None) => return true,
            ([b'?', ..], Some(c)) if *c != b'/' => (p, t) = (p + 1, t + 1),
            ([c, ..], Some(d)) if c == d => (p, t) = (p + 1, t + 1),
            _ => match (star, double) {
                (Some((after, from)), _) if text.get(from).is_some_and(|c| *c != b'/') => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                (_, Some((after, from))) if from < text.len() => {
                    (star, double) = (None, Some((after, from + 1)));
                    (p, t) = (after, from + 1);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter<'a>(only: &'a str, exclude: &'a str) -> Filter<'a> {
        Filter {
            only: only.as_bytes(),
            exclude: exclude.as_bytes(),
            spool: b"/data/t.spool",
            temporary: b"/scratch/tmp/",
        }
    }

    #[test]
    fn by_default_data_is_recorded_and_software_is_not() {
        let filter = filter("", "");
        for path in ["/data/x", "/home/u/run.so1/x", "/tmp/out.h5", "/scratch/etc/x", "/procession"] {
            assert!(filter.wants(path.as_bytes()), "{path}");
        }
        for path in [
            "/proc/self/maps",
            "/dev/shm/x",
            "/etc/passwd",
            "/opt/lib/libm.so",
            "/opt/lib/libm.so.6",
            "/home/u/a/__pycache__/x.pyc",
            "/home/u/.venv/lib/python3.11/os.py",
            "/tmp/ompi.host.0/pid.7/contact.txt",
            "/scratch/tmp/ompi.node.example.org.1000/jf.12/0/hwloc.sm",
            "/tmp/openmpi-sessions-1000@host_0/7/0/contact",
            "/data/t.spool/n-1-2.log",
        ] {
            assert!(!filter.wants(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn only_the_sessions_of_open_mpi_are_left_out() {
        let filter = filter("", "");
        for path in [
            "/home/u/ompi.results/x",
            "/data/ompi.host.0/pid.7/x",
            "/tmp/ompi.results/x",
            "/tmp/ompi.host.0",
            "/tmp/ompi.host.0/x",
            "/tmp/ompi.host.0/pid.7x/x",
            "/tmp/u/ompi.host.0/pid.7/x",
            "/data/openmpi-sessions-1/x",
            "/tmp/openmpi-sessions-mine/x",
            "/data/pmix-1/x",
            "/scratch/tmpompi.host.0/pid.7/x",
        ] {
            assert!(filter.wants(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn patterns_choose() {
        let only = filter("*.h5:/etc/**", "/data/scratch/*");
        assert!(only.wants(b"/data/x.h5") && only.wants(b"/etc/a/b"));
        assert!(!only.wants(b"/data/x.h6") && !only.wants(b"/data/scratch/x.h5"));
        assert!(only.wants(b"/data/scratch/deep/x.h5"));
        assert!(!filter("**", "").wants(b"/data/t.spool/x"));
        assert!(filter("", "::").wants(b"/data/x"));
    }

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "ab/c", false),
            ("a**c", "ab/c", true),
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/b/c", false),
            ("/a/**/c", "/a/b/b/c", true),
            ("**/x*y", "/p/xq/xay", true),
            ("**/x*y", "/p/xay/b", false),
            ("?", "/", false),
            ("?", "?", true),
            ("a?c", "abc", true),
            ("*a*b", "xxaxxaxb", true),
            ("*a*b", "xxaxxaxbc", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    /// The same language, implemented by plain recursion.
    fn reference(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', b'*', rest @ ..], _) => (0..=text.len()).any(|i| reference(rest, &text[i..])),
            ([b'*', rest @ ..], _) => {
                let end = text.iter().position(|c| *c == b'/').unwrap_or(text.len());
                (0..=end).any(|i| reference(rest, &text[i..]))
            }
            ([b'?', rest @ ..], [c, tail @ ..]) if *c != b'/' => reference(rest, tail),
            ([p, rest @ ..], [c, tail @ ..]) if p == c && *p != b'?' => reference(rest, tail),
            _ => false,
        }
    }

    #[test]
    fn globs_are_what_recursion_says() {
        // All patterns and texts of up to 5 characters from a small alphabet.
        let word = |mut n: usize, alphabet: &[u8]| {
            let mut word = Vec::new();
            while n > 0 {
                word.push(alphabet[n % alphabet.len()]);
                n /= alphabet.len();
            }
            word
        };
        for p in 0..1024 {
            let pattern = word(p, b"a*/?");
            for t in 0..243 {
                let text = word(t, b"a/b");
                assert_eq!(glob(&pattern, &text), reference(&pattern, &text), "{pattern:?} {text:?}");
            }
        }
    }
}
