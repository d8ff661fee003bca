//! Fake file systems: a directory, and the fakes of the tools (`tests/fakes` in the repository).

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stripewise_native::NativeLayout;
use tempfile::TempDir;

use super::conformance::{Bed, without_rights};
use crate::tool::Tool;

/// Makes a script that can be run. Another process writes it: a child that another thread has just
/// forked would hold this process's descriptor of the script, and running it would fail with
/// ETXTBSY.
pub fn program(path: &Path, text: &str) -> Tool {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", path.display());
    Tool::at(path)
}

/// A fake file system.
pub struct Fake {
    state: TempDir,
    mount: TempDir,
    elsewhere: TempDir,
}

impl Fake {
    /// A fake file system that consists of what the lines of `configuration` list.
    pub fn new(configuration: &str) -> Self {
        let dir = || {
            let dir = TempDir::new().unwrap();
            // Readable for other users.
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
            dir
        };
        let fake = Self { state: dir(), mount: dir(), elsewhere: dir() };
        let text = format!("mount {}\n{configuration}", fake.mount.path().display());
        fs::write(fake.state.path().join("fake.conf"), text).unwrap();
        fake
    }

    /// A path on the fake file system.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mount.path().join(name)
    }

    /// A file of the fake's own state, such as one that injects a fault.
    pub fn state(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    /// A tool that works on the fake file system.
    pub fn tool(&self, name: &str) -> Tool {
        self.tool_of("", name)
    }

    /// A tool that behaves like that of a release; empty: the newest.
    pub fn tool_of(&self, release: &str, name: &str) -> Tool {
        let fakes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fakes");
        let fake = fakes.canonicalize().unwrap().join(name);
        let script = self.state.path().join(format!("{name}{release}"));
        let (state, fake) = (self.state.path().display(), fake.display());
        let release =
            if release.is_empty() { String::new() } else { format!("STRIPEWISE_FAKE_VERSION={release} ") };
        let text = format!("#!/bin/sh\nSTRIPEWISE_FAKE='{state}' {release}exec '{fake}' \"$@\"\n");
        program(&script, &text)
    }

    /// A bed for the conformance suite, without the refused layouts. Interrupts every call only
    /// where there are few calls for a directory (`few`), or where STRIPEWISE_LONG is set.
    pub fn bed(&self, supported: Vec<NativeLayout>, unsupported: Vec<NativeLayout>, few: bool) -> Bed {
        let (ignore, fail, user) = (self.state("ignore"), self.state("fail_after"), self.state("user"));
        let here = without_rights();
        let interrupt: Box<dyn Fn(Option<u64>)> = Box::new(move |after| match after {
            Some(after) => fs::write(&fail, after.to_string()).unwrap(),
            None => drop(fs::remove_file(&fail)),
        });
        Bed {
            dir: self.mount.path().to_owned(),
            elsewhere: Some(self.elsewhere.path().to_owned()),
            supported,
            unsupported,
            ignore_hints: Some(Box::new(move |on| {
                if on { fs::write(&ignore, "").unwrap() } else { fs::remove_file(&ignore).unwrap() }
            })),
            interrupt: (few || std::env::var_os("STRIPEWISE_LONG").is_some()).then_some(interrupt),
            forbidden: Some(Box::new(move |dir, run| {
                // The fake tools act as this user too.
                fs::write(&user, "65534").unwrap();
                here(dir, run);
                fs::remove_file(&user).unwrap();
            })),
            ..Bed::default()
        }
    }
}
