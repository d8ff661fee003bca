//! What the drivers that run a file system's own tools have in common.

use std::path::Path;

use stripewise_cluster::FileSystem;
use stripewise_native::{Call, NativeLayout};
use stripewise_sys::{Fd, Real, Sys};

use crate::driver::{Actual, Driver, Probe, To, never_said, open_new};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::mounts::mount_of;
use crate::tool::Tool;

/// A file system that is told layouts by its own command-line tools, which know where it is
/// mounted.
pub trait Tooled: Send + Sync {
    const SYSTEM: FileSystem;
    /// The file system's types in the mount table.
    const KINDS: &'static [&'static str];
    /// The meaning of errors: the first entry applies of which a text is in the tool's output, or
    /// is how the tool ended.
    const REFUSALS: &'static [(&'static [&'static str], Refusal)];
    /// What to do where a file has another layout than the requested one.
    const REMEDY: &'static str;
    /// What a tool reports about a path on the file system.
    type Report;

    /// The tool called `name`.
    fn tool(&self, name: &str) -> &Tool;

    /// What a tool reports about an existing path; `None`: it is on another file system.
    fn report(&self, path: &Path) -> Result<Option<Self::Report>>;

    /// Adds to a directory's probe what the tools tell, and the rights that this user lacks.
    fn describe(&self, dir: &Path, report: Self::Report, probe: &mut Probe);

    /// Refuses pools and servers that the file system does not have. A tool may accept these.
    fn allows(&self, _path: &Path, _report: &Self::Report, _layout: &NativeLayout) -> Result<()> {
        Ok(())
    }

    /// Creates a file as [`Driver::create`] does. `calls` set the layout.
    fn make(&self, file: &Path, layout: &NativeLayout, calls: &[Call], mode: u32) -> Result<()> {
        self.make_by_tool(file, layout, calls, mode)
    }

    /// The layout of an existing path, in the terms of the requested one where several are right.
    fn found(&self, path: &Path, asked: Option<&NativeLayout>) -> Result<Actual>;

    /// Takes the hints of a directory away.
    fn forget(&self, dir: &Path) -> Result<()>;

    /// Runs `change`, which gives a directory the hints for a layout. Where it fails, the former
    /// hints of the directory are put back.
    fn restoring(
        &self,
        dir: &Path,
        _layout: &NativeLayout,
        change: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let former = self.found(dir, None)?;
        change().map_err(|error| match self.found(dir, None) {
            // Putting back hints that never changed could lose what the tools do not tell of them.
            Ok(now) if now == former => error,
            _ => error.after(dir, self.give_back(dir, &former), || self.by_hand(dir, &former)),
        })
    }

    /// Gives a directory the hints that it had.
    fn give_back(&self, dir: &Path, former: &Actual) -> Result<()> {
        match (&former.exact, &former.layout) {
            (Some(exact), _) => self.put_back(dir, exact),
            (None, Some(layout)) => self.set(dir, &Self::calls(layout, dir, true)?),
            (None, None) => self.forget(dir),
        }
    }

    /// The calls with which a person gives a directory the hints that it had.
    fn by_hand(&self, dir: &Path, former: &Actual) -> Result<Vec<Call>> {
        let exact = former.exact.iter().find_map(|exact| self.exact_calls(dir, exact).ok());
        match (exact, &former.layout) {
            (Some(calls), _) => Ok(calls),
            (None, Some(layout)) => Self::calls(layout, dir, true),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The calls that give `path` the layout of [`Actual::exact`].
    fn exact_calls(&self, path: &Path, exact: &str) -> Result<Vec<Call>> {
        Err(never_said(path, exact))
    }

    /// As [`Tooled::exact_calls`], for a new file.
    fn exact_file_calls(&self, file: &Path, exact: &str) -> Result<Vec<Call>> {
        self.exact_calls(file, exact)
    }

    /// Gives an existing directory its former layout again, as [`Actual::exact`] had it.
    fn put_back(&self, dir: &Path, exact: &str) -> Result<()> {
        self.set(dir, &self.exact_calls(dir, exact)?)?;
        self.verify_exact(dir, exact)
    }

    /// The calls that change an existing file as [`Driver::change`] does; `None`: the file system
    /// sets layouts on new files only.
    fn change_calls(&self, _file: &Path, _to: To<'_>) -> Option<Result<Vec<Call>>> {
        None
    }

    /// Gives a file that `error` left in a wrong layout its former one again.
    fn change_back(&self, file: &Path, former: &Actual, error: DriverError) -> DriverError {
        let exact = former.exact.as_deref().unwrap_or_default();
        if self.found(file, None).is_ok_and(|now| now.exact == former.exact) {
            return error;
        }
        let new_only = || Err(DriverError::refused(file, exact, "only a new file can have this layout"));
        let calls = || self.change_calls(file, To::Exact(exact)).unwrap_or_else(new_only);
        let changed = calls().and_then(|calls| self.set(file, &calls));
        error.after(file, changed.and_then(|()| self.verify_exact(file, exact)), calls)
    }

    fn verify_exact(&self, path: &Path, exact: &str) -> Result<()> {
        let got = self.found(path, None)?.exact;
        if got.as_deref() == Some(exact) {
            return Ok(());
        }
        let got = got.unwrap_or_else(|| "nothing".to_owned());
        Err(DriverError::refused(path, exact, format!("it got {got:?} instead; {}", Self::REMEDY)))
    }

    fn require(&self, path: &Path) -> Result<Self::Report> {
        self.report(path)?.ok_or_else(|| DriverError::elsewhere(path, Self::SYSTEM))
    }

    /// What a call of `tool` with an option and an existing path reports; `None`: the call failed
    /// because the path is on another file system.
    fn ask_about<T>(
        &self,
        tool: &Tool,
        option: &str,
        path: &Path,
        parse: fn(&str) -> std::result::Result<T, String>,
    ) -> Result<Option<T>> {
        let said = files::for_tools(path).and_then(|path| tool.run(&[option, path]));
        let understood = |text: String| tool.understood(&[option.as_ref(), path], &text, parse);
        self.unless_elsewhere(path, said)?.map(understood).transpose()
    }

    /// The answer of a tool about an existing path; `None`: the tool failed because the path is on
    /// another file system.
    fn unless_elsewhere<T>(&self, path: &Path, answer: Result<T>) -> Result<Option<T>> {
        match answer {
            Err(error) => match mount_of(path)? {
                Some(mount) if Self::KINDS.contains(&mount.kind.as_str()) => Err(error),
                _ => Ok(None),
            },
            answer => answer.map(Some),
        }
    }

    /// The calls that set a layout ([`stripewise_native::calls`]).
    fn calls(layout: &NativeLayout, path: &Path, is_dir: bool) -> Result<Vec<Call>> {
        files::for_tools(path)?;
        stripewise_native::calls(Self::SYSTEM, layout, path, is_dir)
            .map_err(|problem| DriverError::unsupported(Self::SYSTEM, layout, problem))
    }

    /// Runs calls that set the layout of `path`.
    fn set(&self, path: &Path, calls: &[Call]) -> Result<()> {
        calls.iter().try_for_each(|call| {
            let said = self.tool(&call[0]).change(&call[1..])?;
            let place = &call[call.len() - 1];
            if let Some(error) = said.error {
                let text = without_names(&[said.errors, said.output].join(" "), place);
                return Err(explained(Self::REFUSALS, path, call, error, &text));
            }
            let text = without_names(&said.errors, place);
            // A tool may only warn where it did not do what it was told.
            match said.warning.map(|warning| explained(Self::REFUSALS, path, call, warning, &text)) {
                None | Some(DriverError::Tool { .. }) => Ok(()),
                Some(refused) => Err(refused),
            }
        })
    }

    /// Compares the layout of a path with the requested one.
    fn verify(&self, path: &Path, asked: &NativeLayout) -> Result<()> {
        DriverError::compare(path, asked, self.found(path, Some(asked))?.layout, Self::REMEDY)
    }

    /// Lets the tool create a file. It might also give a layout to an existing file that has none,
    /// which may belong to another program.
    fn make_by_tool(&self, file: &Path, layout: &NativeLayout, calls: &[Call], mode: u32) -> Result<()> {
        self.make_checked(file, calls, mode, &|| self.verify(file, layout))
    }

    /// As [`Tooled::make_by_tool`]; `check` compares the layout.
    fn make_checked(
        &self,
        file: &Path,
        calls: &[Call],
        mode: u32,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        files::must_not_exist(&Real, file)?;
        self.set(file, calls).inspect_err(|error| self.discard(file, error))?;
        let made = check().and_then(|()| files::give_mode(&Real, file, mode));
        // A file with bytes is another program's, made since: Lustre says nothing of that where a
        // composite is set.
        if made.is_err() && files::look(&Real, file).is_ok_and(|stat| stat.st_size == 0) {
            let _ = Real.unlink(HERE, file);
        }
        made
    }

    /// Removes what a failed call left of a new file.
    fn discard(&self, _file: &Path, _error: &DriverError) {}

    /// Tries whether this user may prepare a directory with `layout` here; `what` names it.
    fn try_out(&self, dir: &Path, what: &str, layout: &NativeLayout, probe: &mut Probe)
    where
        Self: Sized,
    {
        let tried = files::scratch(&Real, dir).and_then(|trial| {
            let prepared = self.prepare(&trial, layout);
            files::remove_if_empty(&Real, &trial)?;
            prepared
        });
        if let Err(error) = tried {
            probe.rights.push(format!("{what} cannot be set here: {error}"));
        }
    }
}

impl<T: Tooled> Driver for T {
    fn system(&self) -> Option<FileSystem> {
        Some(T::SYSTEM)
    }

    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        files::look(&Real, dir)?;
        let Some(report) = self.report(dir)? else { return Ok(None) };
        let mount = mount_of(dir)?.map(|mount| mount.point).unwrap_or_default();
        let mut probe = Probe { system: Some(T::SYSTEM), mount, ..Probe::default() };
        self.describe(dir, report, &mut probe);
        Ok(Some(probe))
    }

    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()> {
        let calls = Self::calls(layout, dir, true)?;
        let existing = files::existing(&Real, dir)?;
        self.allows(dir, &self.require(&existing)?, layout)?;
        let change = || {
            self.set(dir, &calls)?;
            self.verify(dir, layout)?;
            files::try_out(&Real, dir, |trial| self.verify(trial, layout))
        };
        files::prepare(&Real, dir, || self.restoring(dir, layout, &mut { change }))
    }

    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()> {
        let calls = Self::calls(layout, file, false)?;
        self.allows(file, &self.require(files::parent(file))?, layout)?;
        self.make(file, layout, &calls, mode)
    }

    fn create_exact(&self, file: &Path, exact: &str, mode: u32) -> Result<Fd> {
        let calls = self.exact_file_calls(file, exact)?;
        self.require(files::parent(file))?;
        self.make_checked(file, &calls, mode, &|| self.verify_exact(file, exact))?;
        open_new(file)
    }

    fn can_change(&self, to: To<'_>) -> bool {
        self.change_calls(Path::new("file"), to).is_some_and(|calls| calls.is_ok())
    }

    fn change(&self, file: &Path, to: To<'_>) -> Result<()> {
        let Some(calls) = self.change_calls(file, to) else {
            return Err(DriverError::elsewhere(file, T::SYSTEM));
        };
        let (calls, report) = (calls?, self.require(file)?);
        if let To::Layout(layout) = to {
            self.allows(file, &report, layout)?;
        }
        let former = self.found(file, None)?;
        self.set(file, &calls)?;
        let verified = match to {
            To::Layout(layout) => self.verify(file, layout),
            To::Exact(exact) => self.verify_exact(file, exact),
        };
        verified.map_err(|error| self.change_back(file, &former, error))
    }

    fn prepare_exact(&self, dir: &Path, exact: &str) -> Result<()> {
        self.require(dir)?;
        self.put_back(dir, exact)
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        files::look(&Real, path)?;
        let found = self.found(path, None);
        if found.is_err() {
            self.require(path)?;
        }
        found
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        if !files::exists(&Real, dir) {
            return Ok(());
        }
        self.require(dir)?;
        files::remove_if_empty(&Real, dir)?;
        if files::exists(&Real, dir) { self.forget(dir) } else { Ok(()) }
    }
}

/// What an error of a tool means.
pub enum Refusal {
    /// The file exists.
    Exists,
    /// This user may not do the operation; the remedy.
    Denied(&'static str, &'static str),
    /// There is no space for the operation; the remedy.
    Full(&'static str, &'static str),
    /// The file system does not have one of the call's values. The remedy follows the tool's
    /// output.
    Value(&'static str),
}

/// What a tool printed on one line, without the names in a path, which may read like errors.
pub fn without_names(printed: &str, path: &str) -> String {
    let mut text = printed.replace(path, "");
    let mut names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    // A name may be the beginning of another one.
    names.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        text = text.replace(&format!("/{name}"), "/");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Converts the error of a call to one with a remedy, where its meaning is known. `text` is
/// everything that the tool printed, [`without_names`].
pub fn explained(
    refusals: &[(&[&str], Refusal)],
    path: &Path,
    call: &[String],
    error: DriverError,
    text: &str,
) -> DriverError {
    let DriverError::Tool { output, how, .. } = &error else { return error };
    let says = |word: &&str| text.contains(word) || how == word;
    let Some((_, refusal)) = refusals.iter().find(|(texts, _)| texts.iter().any(says)) else { return error };
    match *refusal {
        Refusal::Exists => DriverError::Exists { path: path.to_owned() },
        Refusal::Denied(doing, remedy) => DriverError::denied(path, doing, remedy),
        Refusal::Full(doing, remedy) => {
            DriverError::Full { path: path.to_owned(), doing: doing.to_owned(), remedy: remedy.to_owned() }
        }
        Refusal::Value(remedy) => {
            let options = call[..call.len() - 1].iter().skip_while(|word| !word.starts_with('-'));
            let value = options.map(String::as_str).collect::<Vec<_>>().join(" ");
            DriverError::refused(path, &value, format!("{output}; {remedy}"))
        }
    }
}
