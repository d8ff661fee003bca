//! Which existing files a plan is for.

use std::path::{Path, PathBuf};

use stripewise_cluster::Plan;
use stripewise_datapath::Runtime;
use stripewise_datapath::check::walk;
use stripewise_layout::Layout;

use crate::managed;

/// How a file lies now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As a plain file.
    Plain,
    /// In another layout.
    Managed,
    /// Where the plan puts it.
    Placed,
}

impl State {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Managed => "in another layout",
            Self::Placed => "placed",
        }
    }
}

/// An existing file that a rule of the plan is for.
pub struct Candidate<'a> {
    pub path: PathBuf,
    pub layout: &'a Layout,
    /// The rule's.
    pub scheme: &'a str,
    pub size_bytes: u64,
    pub state: State,
}

/// The files below `given` (or without any, wherever the plan's patterns begin) that a rule gives a layout.
///
/// # Errors
/// One of `given` does not exist.
pub fn find<'a>(runtime: &Runtime, plan: &'a Plan, given: &[PathBuf]) -> anyhow::Result<Vec<Candidate<'a>>> {
    let mut roots = Vec::new();
    for path in given {
        // By the name that it was given, too: patterns may go through links.
        managed::existing(path)?;
        roots.push(std::path::absolute(path)?);
    }
    if given.is_empty() {
        let rules = plan.rules.iter().filter(|rule| !rule.layouts.is_empty());
        roots.extend(rules.map(|rule| beginning(&rule.pattern)).filter(|path| path.exists()));
        roots.sort();
        roots.dedup();
        let all = roots.clone();
        // A directory in another one is walked with it.
        roots.retain(|root| !all.iter().any(|other| other != root && root.starts_with(other)));
    }
    let listing = walk(runtime, &roots);
    for (path, errno) in &listing.unreadable {
        eprintln!("stripewise: {} is left out: {errno}", path.display());
    }
    let files = listing.anchors.iter().map(|path| (path, true));
    let files = files.chain(listing.plain.iter().map(|path| (path, false)));
    let mut found: Vec<_> =
        files.filter_map(|(path, managed)| candidate(runtime, plan, path, managed)).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn candidate<'a>(runtime: &Runtime, plan: &'a Plan, path: &Path, anchor: bool) -> Option<Candidate<'a>> {
    let real = path.canonicalize().ok()?;
    // The rule of the name that was given, or else of the one that it leads to.
    let rule = plan.rule_for(path).or_else(|| plan.rule_for(&real))?;
    let layout = rule.choose(path).or_else(|| rule.choose(&real))?;
    let manifest = if anchor { runtime.manifest_at(None, &real, true).ok().flatten() } else { None };
    let state = match manifest {
        Some(manifest) if runtime.is_placed(&manifest, layout) => State::Placed,
        Some(_) => State::Managed,
        None => State::Plain,
    };
    let size_bytes = match (anchor, runtime.open_file(&real)) {
        (true, Ok(Some(file))) => file.size().ok()?,
        _ => real.metadata().ok()?.len(),
    };
    Some(Candidate { path: real, layout, scheme: &rule.scheme, size_bytes, state })
}

/// The directory, or the one file, that everything a pattern matches is in.
fn beginning(pattern: &str) -> PathBuf {
    let mut literal = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => literal.extend(chars.next()),
            '*' => return up_to_slash(&literal),
            '<' if chars.as_str().starts_with("n>") => return up_to_slash(&literal),
            c => literal.push(c),
        }
    }
    literal.into()
}

fn up_to_slash(literal: &str) -> PathBuf {
    // A pattern that begins with `*` may mean any directory.
    PathBuf::from(literal.rfind('/').map_or("/", |slash| &literal[..=slash]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_begin_with_a_directory_or_are_a_file() {
        for (pattern, expected) in [
            ("/data/out.dat", "/data/out.dat"),
            ("/data/out.<n>", "/data/"),
            ("/data/r<n>/x*", "/data/"),
            ("/data/a\\*b/c*", "/data/a*b/"),
            ("/**", "/"),
            ("*/x", "/"),
            ("/data/<m>/x", "/data/<m>/x"),
        ] {
            assert_eq!(beginning(pattern), Path::new(expected), "{pattern}");
        }
    }
}
