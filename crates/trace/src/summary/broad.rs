//! Bounds the number of file groups. If too many file names differ in letters, groups are joined:
//! first all names in a directory, beginning with the directories that have the most patterns, then
//! everything below the directories of one depth. A directory with more than [`MAX_GROUPS`]
//! patterns is always one group: its names are made by programs, and the next run has others.

use std::hash::BuildHasher;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::{FileNames, pattern_of};

/// Maximum number of file groups of a directory, and of those that are planned one by one.
pub const MAX_GROUPS: usize = 512;

/// How much of a pattern the files of a group share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Breadth {
    /// The whole pattern.
    #[default]
    Pattern,
    /// The directory.
    Directory,
    /// The path up to this `/`, counted from 1; 0: nothing.
    Below(usize),
}

impl Breadth {
    /// The pattern of the group of a file with this pattern.
    pub fn of(self, pattern: &str) -> String {
        let directory = directory(pattern);
        match self {
            Breadth::Pattern => pattern.to_string(),
            Breadth::Directory => format!("{directory}*"),
            Breadth::Below(depth) => {
                let slashes = directory.match_indices('/').map(|(at, _)| at + 1);
                let end = slashes.take(depth).last().unwrap_or(0);
                format!("{}**", &directory[..end])
            }
        }
    }
}

/// The directory of a path, with the `/` after it.
fn directory(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |at| at + 1)]
}

/// The groups of a trace's files.
#[derive(Default)]
pub(super) struct Groups {
    /// Number of the group, by file.
    pub of_file: Vec<u32>,
    /// Pattern and breadth, by group, in order of first appearance.
    pub groups: IndexMap<String, Breadth>,
}

impl Groups {
    /// Groups files by pattern, in at most `limit` groups. Reads the names twice. Memory besides
    /// the result: a number for each of up to [`MAX_GROUPS`] patterns of a directory, and the names
    /// of the directories.
    pub(super) fn of<F: FileNames + ?Sized>(names: &F, limit: usize) -> Result<Groups, F::Error> {
        let joining = Joining::of(names, limit)?;
        let (of_file, groups) = (Vec::with_capacity(names.count()), IndexMap::new());
        let mut groups = Groups { of_file, groups };
        names.for_each(&mut |name| {
            let pattern = pattern_of(name);
            let breadth = joining.breadth(&pattern);
            let group = groups.groups.entry(breadth.of(&pattern));
            groups.of_file.push(group.index() as u32);
            group.or_insert(breadth);
        })?;
        Ok(groups)
    }
}

/// Which patterns are joined.
struct Joining {
    /// Directories whose files are one group each.
    whole: FxHashSet<String>,
    /// Number of `/` in a path beyond which nothing distinguishes groups.
    depth: usize,
}

impl Joining {
    /// Joins as many as it takes for at most `limit` groups.
    fn of<F: FileNames + ?Sized>(names: &F, limit: usize) -> Result<Joining, F::Error> {
        let directories = directories(names)?;
        let mut left: usize = directories.iter().map(|(_, patterns)| patterns).sum();
        let mut joining = Joining { whole: FxHashSet::default(), depth: usize::MAX };
        for (directory, patterns) in &directories {
            if left <= limit && *patterns <= MAX_GROUPS || *patterns == 1 {
                break;
            }
            left -= patterns - 1;
            joining.whole.insert(directory.clone());
        }
        if left > limit {
            // Each directory is one group by now.
            joining.limit_depth(&directories, limit);
        }
        Ok(joining)
    }

    /// Sets the largest depth with at most `limit` groups; 0 if there is none. It is found by
    /// bisection, because a name may have very many `/`: all files of a group are in one group at
    /// every smaller depth, so there are never more groups at a smaller depth.
    fn limit_depth(&mut self, directories: &[(String, usize)], limit: usize) {
        let deepest = directories.iter().map(|(directory, _)| depth_of(directory)).max().unwrap_or(0);
        let (mut fits, mut exceeds) = (0, deepest);
        while fits + 1 < exceeds {
            self.depth = fits.midpoint(exceeds);
            let groups = directories.iter().map(|(directory, _)| self.breadth(directory).of(directory));
            match groups.collect::<FxHashSet<String>>().len() <= limit {
                true => fits = self.depth,
                false => exceeds = self.depth,
            }
        }
        self.depth = fits;
    }

    /// The breadth of the group of a pattern.
    fn breadth(&self, pattern: &str) -> Breadth {
        if depth_of(pattern) > self.depth {
            Breadth::Below(self.depth)
        } else if self.whole.contains(directory(pattern)) {
            Breadth::Directory
        } else {
            Breadth::Pattern
        }
    }
}

fn depth_of(path: &str) -> usize {
    path.matches('/').count()
}

/// The directories of the names' patterns, with the number of patterns in each, counted up to one
/// more than [`MAX_GROUPS`]; the largest first.
fn directories<F: FileNames + ?Sized>(names: &F) -> Result<Vec<(String, usize)>, F::Error> {
    let mut seen = FxHashSet::default();
    let mut counts: FxHashMap<String, usize> = FxHashMap::default();
    names.for_each(&mut |name| {
        let pattern = pattern_of(name);
        let directory = directory(&pattern);
        let count = match counts.get_mut(directory) {
            Some(count) => count,
            None => counts.entry(directory.to_owned()).or_default(),
        };
        // Patterns with the same hash count as one. There may then be one group too many.
        *count += usize::from(*count <= MAX_GROUPS && seen.insert(FxBuildHasher.hash_one(&pattern)));
    })?;
    let mut directories: Vec<(String, usize)> = counts.into_iter().collect();
    directories.sort_unstable_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
    Ok(directories)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(names: &[String], limit: usize) -> Vec<String> {
        let Ok(groups) = Groups::of(names, limit);
        assert!(groups.groups.len() <= limit);
        assert_eq!(groups.of_file.len(), names.len());
        for (name, group) in names.iter().zip(&groups.of_file) {
            let (pattern, breadth) = groups.groups.get_index(*group as usize).unwrap();
            assert_eq!(breadth.of(&pattern_of(name)), *pattern);
        }
        groups.groups.into_keys().collect()
    }

    fn letters(number: usize) -> String {
        number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
    }

    #[test]
    fn few_patterns_stay_apart() {
        let names = ["/d/a1", "/d/b", "/d/a2"].map(String::from);
        assert_eq!(groups(&names, 2), ["/d/a<n>", "/d/b"]);
    }

    #[test]
    fn the_directory_with_the_most_patterns_is_joined_first() {
        let mut names: Vec<String> = (0..100).map(|i| format!("/d/many/{}", letters(i))).collect();
        names.extend(["/d/few/x", "/d/few/y", "/d/z"].map(String::from));
        assert_eq!(groups(&names, 50), ["/d/many/*", "/d/few/x", "/d/few/y", "/d/z"]);
        assert_eq!(groups(&names, 3), ["/d/many/*", "/d/few/*", "/d/z"]);
    }

    #[test]
    fn a_directory_with_too_many_patterns_is_one_group_whatever_the_limit() {
        let mut names: Vec<String> = (0..MAX_GROUPS).map(|i| format!("/d/few/{}", letters(i))).collect();
        names.extend((0..=MAX_GROUPS).map(|i| format!("/d/many/{}", letters(i))));
        let found = groups(&names, usize::MAX);
        assert_eq!((found.len(), found.last().unwrap().as_str()), (MAX_GROUPS + 1, "/d/many/*"));
    }

    #[test]
    fn many_directories_are_joined_from_the_deepest_on() {
        let mut names: Vec<String> = (0..100).map(|i| format!("/d/{}/x/y/f", letters(i))).collect();
        names.extend(["/d/z".into(), "plain".into()]);
        assert_eq!(groups(&names, 50), ["/d/**", "/d/z", "plain"]);
        names.extend((0..100).map(|i| format!("/{}/f", letters(i))));
        assert_eq!(groups(&names, 50), ["/**", "plain"]);
        names.extend((0..100).map(|i| format!("{}/f", letters(i))));
        assert_eq!(groups(&names, 50), ["**", "plain"]);
    }

    #[test]
    fn the_largest_depth_that_suffices_is_found() {
        let deep = |depth: usize| (0..100).map(move |i| format!("/{}{}/f", "d/".repeat(depth), letters(i)));
        for depth in 0..9 {
            let mut names: Vec<String> = deep(depth).collect();
            names.extend((0..9).map(|depth| format!("/{}z", "e/".repeat(depth))));
            let expected = format!("/{}**", "d/".repeat(depth));
            assert_eq!(groups(&names, 50)[0], expected);
        }
    }

    /// Trying one depth after the other would take minutes.
    #[test]
    fn a_very_deep_name_takes_few_attempts() {
        let mut names: Vec<String> = (0..513).map(|i| format!("/{}/x", letters(i))).collect();
        names.push("/".repeat(100_000));
        assert_eq!(groups(&names, 512), ["/**"]);
    }
}
