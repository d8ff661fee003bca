//! A file system's own command-line tool.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use stripewise_native::shell;

use crate::error::{DriverError, Result};

/// Maximum number of characters of a tool's output in an error message.
const SHOWN: usize = 400;

/// Searched after PATH: administrators' tools are there, and users' PATHs often lack it.
const ADMINISTRATORS: &str = "/usr/sbin";

/// A program such as `lfs`. It runs in the C locale.
#[derive(Clone, Debug)]
pub struct Tool {
    program: OsString,
    /// Whether the program must not see an environment variable.
    hides: fn(&str) -> bool,
}

/// What a call of a tool printed, and how it ended.
pub struct Said {
    /// Its standard output.
    pub output: String,
    /// Its error output, not shortened.
    pub errors: String,
    /// Its error output as an error, if there is any.
    pub warning: Option<DriverError>,
    /// The error of a call that failed.
    pub error: Option<DriverError>,
}

impl Tool {
    /// The program called `name` in PATH or /usr/sbin, or the value of the variable
    /// `STRIPEWISE_NAME` (`pvfs2-xattr`: `STRIPEWISE_PVFS2_XATTR`).
    pub fn new(name: &str) -> Self {
        let variable = format!("STRIPEWISE_{}", name.to_uppercase().replace('-', "_"));
        Self::at(env::var_os(variable).filter(|path| !path.is_empty()).unwrap_or_else(|| name.into()))
    }

    /// The program at this path.
    pub fn at(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), hides: |_| false }
    }

    /// The program without the environment variables that `hides` names.
    pub fn hiding(self, hides: fn(&str) -> bool) -> Self {
        Self { hides, ..self }
    }

    /// Runs the program and returns its standard output. An error if it cannot be run, or ended
    /// with a status other than 0.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String> {
        let said = self.say(arguments)?;
        said.error.map_or(Ok(said.output), Err)
    }

    /// Runs the program, whose output may count even where it fails. An error if it cannot be run.
    pub fn say<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Said> {
        self.said(Command::new(&self.program), arguments)
    }

    /// As [`Tool::say`], for a call that changes a file or directory. The program is killed with
    /// this process: it could undo what a later process does. The kernel exempts programs that are
    /// installed setuid or setgid.
    pub fn change<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Said> {
        let mut command = Command::new(&self.program);
        bind(&mut command);
        self.said(command, arguments)
    }

    fn said<S: AsRef<OsStr>>(&self, mut command: Command, arguments: &[S]) -> Result<Said> {
        command.args(arguments).env("LC_ALL", "C").env("PATH", search_path()).stdin(Stdio::null());
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(self.hides)) {
            command.env_remove(name);
        }
        let output =
            command.output().map_err(|error| self.failed(arguments, format!("cannot be run: {error}"), b""))?;
        let how = match output.status.code() {
            Some(0) => None,
            Some(code) => Some(format!("ended with status {code}")),
            None => Some(format!("was killed ({})", output.status)),
        };
        let said = [&output.stderr[..], &output.stdout[..]].concat();
        let warned = !output.stderr.is_empty();
        Ok(Said {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
            warning: warned.then(|| self.failed(arguments, "warned".to_owned(), &output.stderr)),
            error: how.map(|how| self.failed(arguments, how, &said)),
        })
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

/// Lets the kernel kill the program when the thread that starts it ends. That thread waits for the
/// program, so it ends earlier only with the whole process.
fn bind(command: &mut Command) {
    let caller = std::process::id();
    let bound = move || {
        // SAFETY: the call takes no pointers.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // The caller may have ended before the request took effect.
        if std::os::unix::process::parent_id() != caller {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: `bound` makes system calls only; it neither allocates nor locks.
    unsafe { command.pre_exec(bound) };
}

/// PATH and [`ADMINISTRATORS`].
fn search_path() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    path.push(":");
    path.push(ADMINISTRATORS);
    path
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    /// Names the file into which [`change_slowly`] writes the program's process number.
    const NUMBER_FILE: &str = "STRIPEWISE_TEST_NUMBER_FILE";

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(60), "{what}");
            sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn what_it_sees_of_the_environment() {
        let sh = Tool::at("sh");
        let path = sh.run(&["-c", "echo $PATH"]).unwrap();
        assert!(path.ends_with(":/usr/sbin\n"), "{path}");
        let ask = ["-c", "echo ${CARGO_MANIFEST_DIR:-hidden}"];
        assert_ne!(sh.run(&ask).unwrap(), "hidden\n");
        assert_eq!(sh.hiding(|name| name.starts_with("CARGO_")).run(&ask).unwrap(), "hidden\n");
    }

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

    /// In the process that the test kills: a change that takes long.
    fn change_slowly(file: &str) {
        // The program writes the number at once, so that no reader sees a part of it.
        let script = format!("echo $$ > '{file}.new'; mv '{file}.new' '{file}'; exec sleep 600");
        let _ = Tool::at("/bin/sh").change(&["-c", &script]);
    }

    #[test]
    fn a_change_ends_with_its_caller() {
        if let Ok(file) = env::var(NUMBER_FILE) {
            return change_slowly(&file);
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("number");
        let mut caller = Command::new(env::current_exe().unwrap());
        caller.args(["--exact", "tool::tests::a_change_ends_with_its_caller"]);
        let mut caller = caller.env(NUMBER_FILE, &file).stdout(Stdio::null()).spawn().unwrap();
        wait_until("the program runs", || file.exists());
        let status = PathBuf::from(format!("/proc/{}/stat", fs::read_to_string(&file).unwrap().trim()));
        assert!(runs(&status));
        caller.kill().unwrap();
        caller.wait().unwrap();
        wait_until("the program has ended", || !runs(&status));
    }

    /// Whether a process has not ended. One that has may stay as a zombie.
    fn runs(status: &Path) -> bool {
        fs::read_to_string(status).is_ok_and(|text| !text.contains(") Z "))
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
