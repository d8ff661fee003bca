//! A directory as a FUSE file system.
//!
//! All calls are those of libc, by their symbols. What a library that is loaded before libc makes
//! of a file, programs find in the mount: under stripewise's preload library, managed files have
//! their bytes and all guarantees of the data path. This crate knows nothing of managed files.

mod attributes;
mod calls;
mod directory;
mod disk;
mod filesystem;
mod locks;
mod nodes;
mod opened;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use fuser::{Config, MountOption, Session, SessionUnmounter};
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};

use disk::Disk;
use filesystem::Mounted;

/// Signals that end the mount.
const ENDING: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

/// What a mount permits, and how much of it at once.
#[derive(Clone, Debug)]
pub struct Options {
    /// Refuse what changes files.
    pub read_only: bool,
    /// Number of threads that serve requests, at least 1.
    pub threads: usize,
}

/// Mounts a directory and serves it until it is unmounted, or until SIGHUP, SIGINT or SIGTERM
/// unmounts it. Calls `ready` when programs can use it. Where programs still use it after such a
/// signal, it disappears from their sight, and what they have open is served until they close it; a
/// second signal ends the process.
///
/// The process must have one thread. Its umask becomes 0, because the kernel applies that of each
/// program.
///
/// # Errors
/// The directory cannot be opened, or not be mounted. The kernel breaks off the connection.
pub fn serve(directory: &Path, mountpoint: &Path, options: &Options, ready: impl FnOnce()) -> io::Result<()> {
    let signals = SigSet::from_iter(ENDING);
    signals.thread_block()?;
    umask(Mode::empty());
    let root = File::open(directory)?;
    let mounted = Mounted::new(Disk::new(root.into())?);
    let mut session = Session::new(mounted, mountpoint, &config(directory, options))?;
    let unmounter = session.unmount_callable();
    let mountpoint = mountpoint.to_path_buf();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || wait(&signals, unmounter, &mountpoint))?;
    ready();
    session.run()
}

fn config(directory: &Path, options: &Options) -> Config {
    let mut config = Config::default();
    let access = if options.read_only { MountOption::RO } else { MountOption::RW };
    config.mount_options = vec![
        MountOption::FSName(directory.display().to_string()),
        MountOption::Subtype("stripewise".to_owned()),
        MountOption::NoDev,
        MountOption::NoSuid,
        access,
    ];
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = options.threads > 1;
    config
}

fn wait(signals: &SigSet, mut unmounter: SessionUnmounter, mountpoint: &PathBuf) {
    if signals.wait().is_err() {
        return;
    }
    if unmounter.unmount().is_err() {
        // Busy. Only root is asked to take it out of sight: for others `fusermount3` has done so.
        let _ = umount2(mountpoint, MntFlags::MNT_DETACH);
    }
    if signals.wait().is_ok() {
        std::process::exit(1);
    }
}
