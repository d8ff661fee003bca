//! A temporary directory in which tests run the program as a user does, and cluster files for it.

#![allow(dead_code, reason = "every test binary uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The program under test: that of the package whose tests these are.
const PROGRAM: &str = match option_env!("CARGO_BIN_EXE_stripewise") {
    Some(program) => program,
    None => match option_env!("CARGO_BIN_EXE_stripewise-bench") {
        Some(program) => program,
        None => panic!("no program to test"),
    },
};

/// A directory that is removed when the test ends.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn directory(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Returns `PROGRAM ARGUMENTS` in the directory, without settings from this process's
    /// environment.
    pub fn command(&self, arguments: impl Arguments) -> Command {
        let mut command = Command::new(PROGRAM);
        command.env_clear().current_dir(self.directory()).args(arguments.words());
        command
    }

    pub fn output(&self, arguments: impl Arguments) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// Runs the command, which must succeed, and returns its standard output.
    #[track_caller]
    pub fn run(&self, arguments: impl Arguments) -> Vec<u8> {
        let output = self.output(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// As [`Place::run`], returning text.
    #[track_caller]
    pub fn text(&self, arguments: impl Arguments) -> String {
        String::from_utf8(self.run(arguments)).unwrap()
    }

    /// As [`Place::run`], returning JSON.
    #[track_caller]
    pub fn json(&self, arguments: impl Arguments) -> Value {
        serde_json::from_slice(&self.run(arguments)).expect("JSON on standard output")
    }

    /// Runs the command, which must fail with exit code 1 and print one line on standard error and
    /// nothing else. Returns that line.
    #[track_caller]
    pub fn error(&self, arguments: impl Arguments) -> String {
        let output = self.output(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
        let name = Path::new(PROGRAM).file_name().unwrap().to_str().unwrap();
        let message = said.strip_prefix(&format!("{name}: ")).and_then(|said| said.strip_suffix('\n'));
        message.filter(|message| !message.contains('\n')).unwrap_or_else(|| panic!("{said}")).to_owned()
    }
}

/// Arguments of a command line.
pub trait Arguments {
    fn words(self) -> Vec<String>;
}

impl Arguments for &[&str] {
    fn words(self) -> Vec<String> {
        self.iter().map(|&word| word.to_owned()).collect()
    }
}

impl<const N: usize> Arguments for &[&str; N] {
    fn words(self) -> Vec<String> {
        self.as_slice().words()
    }
}

/// Splits at blanks, but not within single quotes.
impl Arguments for &str {
    fn words(self) -> Vec<String> {
        let quoted = |(index, part): (usize, &str)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        };
        self.split('\'').enumerate().flat_map(quoted).collect()
    }
}

impl Arguments for &String {
    fn words(self) -> Vec<String> {
        self.as_str().words()
    }
}

/// Returns the tables of a cluster file for one class of servers and its only tier, which has the
/// same name. `services` are α and β of random reads, sequential reads, random writes and
/// sequential writes.
pub fn tier(
    name: &str,
    services: [(f64, f64); 4],
    servers: &[PathBuf],
    capacity: &str,
    emulate: bool,
) -> String {
    let keys = ["read.random", "read.sequential", "write.random", "write.sequential"];
    let service = |(key, (startup_s, per_byte_s)): (&str, (f64, f64))| {
        format!("{key} = {{ startup_s = {startup_s:?}, per_byte_s = {per_byte_s:?} }}\n")
    };
    let services: String = keys.into_iter().zip(services).map(service).collect();
    format!(
        "[class.{name}]\n{services}[[tier]]\nname = {name:?}\nclass = {name:?}\ndriver = \"dirs\"\n\
         servers = {servers:?}\ncapacity_per_server = {capacity:?}\nemulate = {emulate}\n"
    )
}

/// Returns the paths `prefix0`, `prefix1`, ... without creating the directories.
pub fn directories(prefix: &str, count: usize) -> Vec<PathBuf> {
    (0..count).map(|index| format!("{prefix}{index}").into()).collect()
}
