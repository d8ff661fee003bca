//! Asks before `place` touches more than a user may expect: the files that a pattern matches may be
//! more than those that the traced program used.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::bail;
use stripewise_report::predictions::Moves;

use super::Args;
use super::find::{self, Candidate};

/// Number of files that are moved without a question.
const FILES_MAX: usize = 1000;

/// Asks if there is reason to, before these files are moved; without a terminal the answer is no.
///
/// # Errors
/// The files are not to be moved.
pub fn confirm(moved: &[&Candidate<'_>], args: &Args) -> anyhow::Result<()> {
    let reasons = reasons(moved, rustix::process::geteuid().as_raw()).join("; ");
    if args.yes || reasons.is_empty() {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        bail!("{reasons}: look at them with --dry-run, and place them with --yes");
    }
    eprint!("{reasons}. Place them? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was moved"),
    }
}

/// What a user of this id may not expect.
fn reasons(moved: &[&Candidate<'_>], user: u32) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut of_others = moved.iter().filter(|file| file.owner != user);
    if let Some(first) = of_others.next() {
        let path = first.path.display();
        reasons.push(match of_others.count() {
            0 => format!("{path} belongs to another user ({})", first.owner),
            more => format!("{path} and {more} more files belong to other users"),
        });
    }
    if moved.len() > FILES_MAX {
        let bytes = moved.iter().map(|file| file.size_bytes).sum();
        let moves = find::format(Moves { files: moved.len(), bytes });
        reasons.push(format!("the plan's patterns match {moves}"));
    }
    reasons
}
