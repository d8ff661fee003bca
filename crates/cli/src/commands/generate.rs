//! `stripewise generate` writes the man pages and the completions of shells, for an installation.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap_complete::Shell;

/// Writes man pages and completions of shells (`tools/install.sh`)
#[derive(clap::Args)]
pub struct Args {
    /// The `share` directory of an installation
    share: PathBuf,
}

/// Where each shell looks for completions, below `share`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];
const MAN: &str = "man/man1";
const NAME: &str = "stripewise";

/// Prints the path of each file that it has written.
pub fn run(args: &Args, mut program: clap::Command) -> anyhow::Result<()> {
    let dir = made(&args.share, MAN)?;
    clap_mangen::generate_to(program.clone(), &dir).with_context(|| dir.display().to_string())?;
    for entry in std::fs::read_dir(&dir)? {
        let page = entry?;
        if page.file_name().as_encoded_bytes().starts_with(NAME.as_bytes()) {
            println!("{}", page.path().display());
        }
    }
    for (shell, place) in COMPLETIONS {
        let dir = made(&args.share, place)?;
        let file = clap_complete::generate_to(shell, &mut program, NAME, &dir);
        println!("{}", file.with_context(|| dir.display().to_string())?.display());
    }
    Ok(())
}

fn made(share: &Path, place: &str) -> anyhow::Result<PathBuf> {
    let dir = share.join(place);
    std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    Ok(dir)
}
