//! Finds the existing files to which a plan applies.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stripewise_cluster::pattern::{literal_prefix, match_path};
use stripewise_cluster::{Plan, Rule, RuleIndex};
use stripewise_datapath::migrate::Goal;
use stripewise_datapath::parallel::{in_parallel, jobs_usual};
use stripewise_datapath::{Runtime, Shape};
use stripewise_report::predictions::Moves;

use crate::copying::Move;
use crate::managed;
use crate::output::human;

/// Name of the record of a directory's former native layout. No file whose name starts with it is
/// ever a file of a plan.
pub const RECORD: &str = ".stripewise-native.toml";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Plain,
    /// Managed, with a layout other than the planned one.
    Managed,
    /// Managed, with the planned layout.
    Placed,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Managed => "in another layout",
            Self::Placed => "placed",
        }
    }
}

/// An existing file that matches a rule of the plan.
pub struct Candidate<'a> {
    pub path: PathBuf,
    pub shape: Shape<'a>,
    pub rule: &'a Rule,
    pub size_bytes: u64,
    /// Some user has permission to execute the file.
    pub executable: bool,
    /// User id of the file's owner.
    pub owner: u32,
    pub state: State,
}

impl Candidate<'_> {
    /// The kernel can run the file, and could not once it is managed.
    fn is_program(&self) -> bool {
        self.state == State::Plain && self.executable
    }

    pub fn as_move<'a>(&'a self, goal: Goal<'a>) -> Move<'a> {
        Move { path: &self.path, size_bytes: self.size_bytes, goal, scheme: Some(&self.rule.scheme) }
    }
}

/// Returns what is moved: every file that is not in its layout already, as a whole.
pub fn moves(found: &[Candidate<'_>]) -> Moves {
    let moved = || found.iter().filter(|file| file.state != State::Placed);
    Moves { files: moved().count(), bytes: moved().map(|file| file.size_bytes).sum() }
}

/// Formats what is moved for people.
pub fn format(Moves { files, bytes }: Moves) -> String {
    let plural = if files == 1 { "" } else { "s" };
    format!("{} in {files} file{plural}", human(bytes))
}

/// Returns the files below `given`, or without any below the paths that the plan's patterns match,
/// to which a rule gives a layout. Executable plain files are included only if they are named.
pub fn find<'a>(runtime: &Runtime, plan: &'a Plan, given: &[PathBuf]) -> anyhow::Result<Vec<Candidate<'a>>> {
    let mut found = find_all(runtime, plan, given)?;
    let named: Vec<_> = given.iter().filter_map(|path| path.canonicalize().ok()).collect();
    // Scripts appear in traces and plans because their shell reads them, but the kernel cannot
    // execute a manifest.
    found.retain(|file| {
        let leave = file.is_program() && !named.contains(&file.path);
        if leave {
            let path = file.path.display();
            eprintln!("stripewise: {path} is left out: it is executable; name it if it is data all the same");
        }
        !leave
    });
    Ok(found)
}

/// Returns the files that [`find`] returns if none is named, and says nothing of the others.
pub fn find_data<'a>(runtime: &Runtime, plan: &'a Plan) -> anyhow::Result<Vec<Candidate<'a>>> {
    let mut found = find_all(runtime, plan, &[])?;
    found.retain(|file| !file.is_program());
    Ok(found)
}

/// Returns the same files as [`find`], and executable files too.
pub fn find_all<'a>(
    runtime: &Runtime,
    plan: &'a Plan,
    given: &[PathBuf],
) -> anyhow::Result<Vec<Candidate<'a>>> {
    let (mut roots, index) = (Vec::new(), RuleIndex::of(plan));
    for path in given {
        // The path is used as given, because patterns may go through symbolic links.
        managed::existing(path)?;
        roots.push(std::path::absolute(path)?);
    }
    if given.is_empty() {
        roots = roots_of(plan, &index);
        roots.sort();
        // The walk of a root covers all roots below it, which follow it.
        roots.dedup_by(|below, root| below.starts_with(root));
    }
    let listing = managed::listing(runtime, &roots);
    let files = listing.anchors.iter().map(|path| (path, true));
    let files = files.chain(listing.plain.iter().map(|path| (path, false)));
    let (roots, mut known) = (roots.iter().map(PathBuf::as_path).collect(), HashMap::new());
    let files: Vec<_> = files
        .filter_map(|(path, managed)| Some((path, real_path(path, &roots, &mut known)?, managed)))
        .collect();
    let candidates = in_parallel(&files, jobs_usual(), |(path, real, managed)| {
        let rule = index.rule_for(plan, path).or_else(|| index.rule_for(plan, real))?;
        candidate(runtime, rule, path, real.clone(), *managed)
    });
    let mut found: Vec<_> = candidates.into_iter().flatten().collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Resolves symbolic links in the path of a file that a walk from the roots has found. Roots that
/// are symbolic links are followed; the walk below them follows none. Each directory is resolved
/// once, because every path component costs the file system a lookup.
fn real_path(
    path: &Path,
    roots: &HashSet<&Path>,
    directories: &mut HashMap<PathBuf, Option<PathBuf>>,
) -> Option<PathBuf> {
    if roots.contains(path) {
        return path.canonicalize().ok();
    }
    let (directory, name) = (path.parent()?, path.file_name()?);
    let real = directories.entry(directory.to_owned()).or_insert_with(|| directory.canonicalize().ok());
    Some(real.as_ref()?.join(name))
}

/// Returns the existing paths that rules with layouts match. A directory in which only names differ
/// is listed once for all rules.
fn roots_of(plan: &Plan, index: &RuleIndex) -> Vec<PathBuf> {
    let (mut roots, mut listed) = (Vec::new(), HashSet::new());
    let has_layouts = |path: &PathBuf| index.rule_for(plan, path).is_some_and(|rule| !rule.layouts.is_empty());
    for rule in plan.rules.iter().filter(|rule| !rule.layouts.is_empty()) {
        match directory_of(&rule.pattern) {
            Some(directory) if listed.contains(&directory) => {}
            Some(directory) => {
                roots.extend(entries(&directory).filter(has_layouts));
                listed.insert(directory);
            }
            None => roots.extend(expand(&rule.pattern)),
        }
    }
    roots
}

/// Returns the only directory in which a pattern matches several names; `None`: there may be
/// several, or the pattern matches one name only.
fn directory_of(pattern: &str) -> Option<PathBuf> {
    let (directory, name) = pattern.rsplit_once('/').filter(|_| pattern.starts_with('/'))?;
    let names: Vec<OsString> = directory.split('/').map(literal).collect::<Option<_>>()?;
    let has_several = literal(name).is_none() && !name.contains("**");
    has_several.then(|| std::iter::once(OsString::from("/")).chain(names).collect())
}

/// Returns the candidate for a file to which this rule applies. The rule for its given path has
/// precedence over that for `real`, the path without symbolic links.
fn candidate<'a>(
    runtime: &Runtime,
    rule: &'a Rule,
    path: &Path,
    real: PathBuf,
    anchor: bool,
) -> Option<Candidate<'a>> {
    if real.file_name().is_some_and(|name| name.as_bytes().starts_with(RECORD.as_bytes())) {
        return None;
    }
    let shape = Shape::of(rule, path).or_else(|| Shape::of(rule, &real))?;
    let manifest = if anchor { runtime.manifest_at(None, &real, true).ok().flatten() } else { None };
    let state = match manifest {
        Some(manifest) if runtime.is_placed(&manifest, shape) => State::Placed,
        Some(_) => State::Managed,
        None => State::Plain,
    };
    let metadata = real.metadata().ok()?;
    let managed = if anchor { runtime.open_file(&real).ok().flatten() } else { None };
    let size_bytes = match managed {
        Some(file) => file.size().ok()?,
        None => metadata.len(),
    };
    let executable = metadata.mode() & 0o111 != 0;
    let owner = metadata.uid();
    Some(Candidate { path: real, shape, rule, size_bytes, executable, owner, state })
}

/// Returns the existing paths that a pattern matches. For a pattern with `**`, returns the
/// directories below which matching files may be.
///
/// Lists only directories that the pattern leads through, because a pattern may start at the root
/// of a large file system.
pub fn expand(pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    let mut end = 0;
    for component in pattern.split('/') {
        end += component.len() + 1;
        // A pattern without a leading slash may match in any directory.
        if component.contains("**") || !pattern.starts_with('/') {
            break;
        }
        let prefix = &pattern.as_bytes()[..end - 1];
        paths = match literal(component) {
            Some(name) => paths.iter().map(|path| path.join(&name)).filter(|path| path.exists()).collect(),
            None => paths.iter().flat_map(|path| entries(path)).filter(|path| matches(prefix, path)).collect(),
        };
    }
    paths
}

fn matches(pattern: &[u8], path: &Path) -> bool {
    match_path(pattern, path.as_os_str().as_bytes(), None).is_some()
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Returns the only name that a component of a pattern matches; `None` if it has a wildcard.
fn literal(component: &str) -> Option<OsString> {
    // The appended slash is in the prefix exactly if no wildcard comes before it.
    let mut name = literal_prefix(format!("{component}/").as_bytes());
    (name.pop() == Some(b'/')).then(|| OsString::from_vec(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_lead_to_what_exists() {
        let top = tempfile::tempdir().unwrap();
        for name in ["r1/x.dat", "r1/y.dat", "r22/x.dat", "other/x.dat", "r1/deep/x.dat", "a*b/c1", "a+b/c1"] {
            let path = top.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        for (pattern, expected) in [
            ("r1/x.dat", &["r1/x.dat"][..]),
            ("r1/z.dat", &[]),
            ("r<n>/x.dat", &["r1/x.dat", "r22/x.dat"]),
            ("*/x.dat", &["other/x.dat", "r1/x.dat", "r22/x.dat"]),
            ("r1/*", &["r1/deep", "r1/x.dat", "r1/y.dat"]),
            ("a\\*b/c<n>", &["a*b/c1"]),
            ("r<n>/**", &["r1", "r22"]),
            ("r<n>/de**x", &["r1", "r22"]),
            ("r<m>/x.dat", &[]),
        ] {
            let escaped = stripewise_cluster::pattern::escape(top.path().to_str().unwrap());
            let mut found = expand(&format!("{escaped}/{pattern}"));
            found.sort();
            let expected: Vec<_> = expected.iter().map(|name| top.path().join(name)).collect();
            assert_eq!(found, expected, "{pattern}");
        }
        assert_eq!(expand("/**"), [Path::new("/")]);
        assert_eq!(expand("*/x"), [Path::new("/")]);
    }
}
