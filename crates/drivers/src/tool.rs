//! A file system's own command-line tool.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use stripewise_native::shell;

use crate::error::{DriverError, Result};

/// Maximum number of characters of a tool's output in an error message.
const SHOWN: usize = 400;

/// A program such as `lfs`. It runs in the C locale.
#[derive(Clone, Debug)]
pub struct Tool(OsString);

impl Tool {
    /// The program called `name` in PATH, or the value of the variable `STRIPEWISE_NAME`
    /// (`pvfs2-xattr`: `STRIPEWISE_PVFS2_XATTR`).
    pub fn new(name: &str) -> Self {
        let variable = format!("STRIPEWISE_{}", name.to_uppercase().replace('-', "_"));
        Self(env::var_os(variable).filter(|path| !path.is_empty()).unwrap_or_else(|| name.into()))
    }

    /// The program at this path.
    pub fn at(program: impl Into<OsString>) -> Self {
        Self(program.into())
    }

    /// Runs the program and returns its standard output. An error if it cannot be run, or ended
    /// with a status other than 0.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String> {
        let output = Command::new(&self.0).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output();
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

    /// Runs the program and parses what it prints.
    pub fn ask<S: AsRef<OsStr>, T>(
        &self,
        arguments: &[S],
        parse: impl FnOnce(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        self.understood(arguments, &self.run(arguments)?, parse)
    }

    /// Parses what a call printed.
    pub fn understood<S: AsRef<OsStr>, T>(
        &self,
        arguments: &[S],
        output: &str,
        parse: impl FnOnce(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let odd = |what| format!("printed what is not understood ({what})");
        parse(output).map_err(|what| self.failed(arguments, odd(what), output.as_bytes()))
    }

    fn failed<S: AsRef<OsStr>>(&self, arguments: &[S], how: String, output: &[u8]) -> DriverError {
        let words = [self.0.as_os_str()].into_iter().chain(arguments.iter().map(AsRef::as_ref));
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
