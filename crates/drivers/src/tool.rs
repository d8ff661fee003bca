//! A file system's own command-line tool.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use stripewise_cluster::FileSystem;
use stripewise_native::{Call, NativeLayout, shell};

use crate::error::{DriverError, Result};
use crate::files::for_tools;

/// Maximum number of characters of a tool's output in an error message.
const SHOWN: usize = 400;

/// A program such as `lfs`. It runs in the C locale.
#[derive(Clone, Debug)]
pub struct Tool {
    program: OsString,
}

impl Tool {
    /// The program called `name` in PATH, or the value of the variable `STRIPEWISE_NAME`
    /// (`pvfs2-xattr`: `STRIPEWISE_PVFS2_XATTR`).
    pub fn new(name: &str) -> Self {
        let variable = format!("STRIPEWISE_{}", name.to_uppercase().replace('-', "_"));
        Self { program: env::var_os(variable).filter(|path| !path.is_empty()).unwrap_or_else(|| name.into()) }
    }

    /// The program at this path.
    pub fn at(program: impl Into<OsString>) -> Self {
        Self { program: program.into() }
    }

    /// Whether the program can be run.
    pub fn is_there(&self) -> bool {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.arg("--version").status().is_ok()
    }

    /// Runs the program and returns its standard output.
    ///
    /// # Errors
    /// [`DriverError::Tool`]: the program cannot be run, or ended with a status other than 0.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String> {
        let output =
            Command::new(&self.program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output();
        let output = output.map_err(|error| self.failed(arguments, format!("cannot be run: {error}"), b""))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let how = match output.status.code() {
            Some(code) => format!("ended with status {code}"),
            None => format!("was killed ({})", output.status),
        };
        let said = [&output.stderr[..], &output.stdout[..]].concat();
        Err(self.failed(arguments, how, &said))
    }

    /// The error for output of this call that is not understood.
    pub fn not_understood<S: AsRef<OsStr>>(&self, arguments: &[S], what: &str, output: &str) -> DriverError {
        self.failed(arguments, format!("printed what is not understood ({what})"), output.as_bytes())
    }

    fn failed<S: AsRef<OsStr>>(&self, arguments: &[S], how: String, output: &[u8]) -> DriverError {
        let words = [self.program.as_os_str()].into_iter().chain(arguments.iter().map(AsRef::as_ref));
        let command = words.map(|word| shell(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
        let text = String::from_utf8_lossy(output);
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let output = match line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line,
        };
        DriverError::Tool { command, how, output }
    }
}

/// The commands of a file system's tools that give a layout to a directory's new files or to a new
/// file.
///
/// # Errors
/// [`DriverError::Unsupported`], and a path that tools cannot be given.
pub fn calls(system: FileSystem, layout: &NativeLayout, path: &Path, is_dir: bool) -> Result<Vec<Call>> {
    for_tools(path)?;
    stripewise_native::calls(system, layout, path, is_dir)
        .map_err(|problem| DriverError::unsupported(system, layout, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_or_how_it_failed() {
        let sh = Tool::at("/bin/sh");
        assert_eq!(sh.run(&["-c", "echo $LC_ALL"]).unwrap(), "C\n");
        let error = sh.run(&["-c", "echo out; echo no such  pool >&2; exit 3"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`/bin/sh -c \"echo out; echo no such  pool >&2; exit 3\"` ended with status 3: no such pool out"
        );
        let error = sh.run(&["-c", "kill -9 $$"]).unwrap_err();
        assert!(error.to_string().contains("was killed"), "{error}");
    }

    #[test]
    fn one_that_is_missing_is_said() {
        let none = Tool::at("/nowhere/lfs");
        assert!(!none.is_there() && Tool::at("/bin/sh").is_there());
        let error = none.run(&["--version"]).unwrap_err().to_string();
        assert!(error.starts_with("`/nowhere/lfs --version` cannot be run: No such file"), "{error}");
    }

    #[test]
    fn long_output_is_cut() {
        let error =
            Tool::at("/bin/sh").run(&["-c", "head -c 9000 /dev/zero | tr '\\0' x; exit 1"]).unwrap_err();
        let DriverError::Tool { output, .. } = error else { panic!("{error}") };
        assert_eq!(output.len(), SHOWN + 3);
    }
}
