//! `stripewise mount` shows a directory to programs that the library does not reach.
//!
//! The process that serves is this program again, under the preload library: managed files have
//! their bytes because the library gives them to it, as to any other program.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, anyhow, ensure};
use stripewise_cluster::Plan;
use stripewise_console::quoted;
use stripewise_mount::Options;

use crate::{files, preload, preparing};

/// Shows a directory with managed files to programs that the library does not reach
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mkdir view
  stripewise mount data view                view/f has the bytes of data/f, for any program: Go, static ones, tar, rsync
  fusermount3 -u view                       the end; SIGTERM to the process does the same
  stripewise mount -p plan.toml data view   and new files get the layouts of a plan
  fusermount3 -u view
  stripewise mount --read-only data view    nothing can be changed through it
  fusermount3 -u view

Needs FUSE (Debian: fuse3) and no root. Only the user who mounts sees the files. Programs under the library and programs of the
mount may use the same files at the same time: each sees what the other writes, and record locks exclude each other. Shared
memory maps are the exception: what is written in a map is seen elsewhere after msync or munmap, and a map may show what it has
read before. flock excludes programs of the mount only. Shared maps need Linux 6.6; docs/mount.md has the rest.")]
pub struct Args {
    /// The directory with the files
    dir: PathBuf,
    /// An empty directory, in which programs find them
    mountpoint: PathBuf,
    /// Give new files the layouts of this plan
    #[arg(short, long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// Refuse all changes
    #[arg(long)]
    read_only: bool,
    /// Number of requests that are served at the same time
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Stay in the foreground until the directory is unmounted
    #[arg(long)]
    foreground: bool,
    /// Append messages of the process that serves to this file [default: they are lost, except in
    /// the foreground]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Serve in this process, which runs under the library
    #[arg(long, hide = true)]
    serve: bool,
}

/// Returns after the directory is mounted; in the foreground, after it is unmounted.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.serve { serve(args) } else { start(args) }
}

/// Starts this program again, under the library.
fn start(args: &Args) -> anyhow::Result<ExitCode> {
    let (dir, mountpoint) = checked(args)?;
    let mut command =
        Command::new(std::env::current_exe().context("the path of this executable is not known")?);
    command.args(["mount", "--serve", "--threads"]).arg(args.threads.to_string());
    command.env("LD_PRELOAD", preload::ld_preload(&[preload::library()?]));
    if args.read_only {
        command.arg("--read-only");
    }
    if let Some(plan) = &args.plan {
        let path = plan.canonicalize().with_context(|| format!("plan {} cannot be read", plan.display()))?;
        preparing::prepare(&Plan::parse(&files::read(&path)?, &plan.display().to_string())?)?;
        command.env("STRIPEWISE_PLAN", path);
    }
    if let Some(log) = &args.log {
        let log = std::path::absolute(log).with_context(|| format!("--log {}", log.display()))?;
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .with_context(|| format!("--log {}", log.display()))?;
        command.arg("--log").arg(log);
    }
    if args.foreground {
        let error = command.arg("--foreground").args(["--"]).args([&dir, &mountpoint]).exec();
        return Err(error).context("this program cannot be run again");
    }
    let command = command.args(["--"]).args([&dir, &mountpoint]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("this program cannot be run again")?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut line)?;
    if line.is_empty() {
        // It has said why.
        child.wait()?;
        return Ok(ExitCode::FAILURE);
    }
    println!("{}", line.trim_end());
    println!("The end: fusermount3 -u {}", quoted(&mountpoint.display().to_string()));
    Ok(ExitCode::SUCCESS)
}

/// The absolute paths of the directory and of where it is mounted.
fn checked(args: &Args) -> anyhow::Result<(PathBuf, PathBuf)> {
    let dir = args.dir.canonicalize().with_context(|| args.dir.display().to_string())?;
    ensure!(dir.is_dir(), "{}: not a directory", dir.display());
    let shown = args.mountpoint.display();
    let of_mountpoint = |error: std::io::Error| {
        let quoted = quoted(&shown.to_string());
        match error.raw_os_error() {
            Some(libc::ENOENT) => anyhow!("{shown}: there is no such directory; make one: mkdir -p {quoted}"),
            Some(libc::ENOTCONN) => anyhow!(
                "{shown}: the process that served a mount has ended, and the mount is still there; remove it: fusermount3 -u \
                 {quoted}"
            ),
            _ => anyhow::Error::new(error).context(shown.to_string()),
        }
    };
    let mountpoint = args.mountpoint.canonicalize().map_err(of_mountpoint)?;
    let mut entries = std::fs::read_dir(&mountpoint).map_err(of_mountpoint)?;
    ensure!(
        !mountpoint.starts_with(&dir) && !dir.starts_with(&mountpoint),
        "{shown}: is {}, or one lies in the other, so the mount would show itself; mount elsewhere",
        dir.display()
    );
    ensure!(
        entries.next().is_none(),
        "{shown}: is not empty, and a mount would hide what is in it; choose an empty directory"
    );
    ensure!(
        Path::new("/dev/fuse").exists(),
        "/dev/fuse: is not there, so nothing can be mounted; FUSE has to be allowed on this machine (modprobe fuse), and \
         in a container (--device /dev/fuse)"
    );
    Ok((dir, mountpoint))
}

/// Mounts and serves.
fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let Args { dir, mountpoint, .. } = args;
    std::env::set_current_dir("/")?;
    let options = Options { read_only: args.read_only, threads: args.threads.into() };
    let told = || {
        let line = format!(
            "{} is mounted at {} (process {})",
            dir.display(),
            mountpoint.display(),
            std::process::id()
        );
        let _ = writeln!(std::io::stdout(), "{line}");
        if !args.foreground {
            leave_terminal();
        }
        if args.log.is_some() || !args.foreground {
            redirect(args.log.as_deref().unwrap_or(Path::new("/dev/null")), libc::STDERR_FILENO);
        }
    };
    stripewise_mount::serve(dir, mountpoint, &options, told)
        .map_err(explained)
        .with_context(|| format!("{} cannot be mounted at {}", dir.display(), mountpoint.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Becomes independent of the terminal and of whoever reads this process's output.
fn leave_terminal() {
    let _ = rustix::process::setsid();
    redirect(Path::new("/dev/null"), libc::STDOUT_FILENO);
}

/// Sends what is written to a standard descriptor to a file from now on.
fn redirect(path: &Path, descriptor: i32) {
    if let Ok(file) = OpenOptions::new().append(true).create(true).open(path) {
        // SAFETY: both are open, and nothing owns the standard ones.
        unsafe { libc::dup2(file.as_raw_fd(), descriptor) };
    }
}

/// An error of mounting, with its remedy.
fn explained(error: std::io::Error) -> anyhow::Error {
    let remedy = match error.kind() {
        ErrorKind::NotFound => "is fusermount3 there? (Debian: apt install fuse3)",
        ErrorKind::PermissionDenied => "may this user use /dev/fuse?",
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(remedy)
}
