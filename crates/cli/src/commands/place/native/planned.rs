//! The planned native layout of existing files.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use stripewise_datapath::migrate::Goal;
use stripewise_datapath::parallel::{in_parallel, jobs_usual};
use stripewise_drivers::Actual;

use super::super::find::{Candidate, State};
use super::directories::Directory;
use super::former::Change;
use super::maker::{NativeMaker, Wanted};
use super::site::Site;
use crate::copying::Move;

/// An existing file with its planned layout, or why it cannot have one.
pub struct Planned<'a> {
    pub file: Candidate<'a>,
    pub maker: Result<NativeMaker<'a>, String>,
    /// The file has the layout already.
    pub there: bool,
    /// The file's complete present setting, if the file system reports one.
    pub exact: Option<String>,
}

impl Planned<'_> {
    /// Returns the move of the file, if it can have the layout.
    ///
    /// Files that have the layout are included: a run that was killed at its very end may have left
    /// something to finish.
    pub fn as_move(&self) -> Option<Move<'_>> {
        let goal = Goal::Native(self.maker.as_ref().ok()?);
        Some(self.file.as_move(goal))
    }

    /// Returns what the directory's record keeps of the file.
    pub fn as_change(&self) -> Change<'_> {
        let name = self.file.path.file_name().and_then(|name| name.to_str());
        Change { pattern: &self.file.rule.pattern, file: name.zip(self.exact.as_deref()) }
    }

    /// Returns the error of a file that cannot have the layout, which is also printed.
    pub fn impossible(&self) -> Option<Value> {
        let (path, why) = (self.file.path.display().to_string(), self.maker.as_ref().err()?);
        eprintln!("stripewise: {path}: stays as it is: {why}");
        Some(json!({ "path": path, "scheme": self.file.rule.scheme, "error": why }))
    }
}

/// Plans the layout of every existing file: that of new files in its directory, if these have a
/// single layout.
pub fn plan_files<'a>(
    site: &'a Site<'a>,
    found: Vec<Candidate<'a>>,
    directories: &[Directory<'_>],
) -> anyhow::Result<Vec<Planned<'a>>> {
    let real = |dir: &'_ Directory<'_>| dir.path.canonicalize().ok();
    let by_path: HashMap<PathBuf, &Directory<'_>> =
        directories.iter().filter_map(|dir| Some((real(dir)?, dir))).collect();
    let look = |file: &Candidate<'_>| match file.state {
        State::Plain => site.driver.read_back(&file.path),
        _ => Ok(Actual::default()),
    };
    let looked = in_parallel(&found, jobs_usual(), look);
    let plan_one = |(file, actual): (Candidate<'a>, stripewise_drivers::Result<Actual>)| {
        let parent = file.path.parent().and_then(|parent| by_path.get(parent));
        let of_rule = |dir: &&&Directory<'_>| dir.rules.iter().any(|rule| std::ptr::eq(*rule, file.rule));
        let beside = parent.filter(of_rule).and_then(|dir| dir.wanted.as_ref().ok());
        let layout = match beside {
            Some(layout) => Ok(layout.clone()),
            None => site.of_file(file.rule, &file.path, file.size_bytes),
        };
        let maker = layout
            .map(|layout| NativeMaker { driver: &*site.driver, wanted: Wanted::Layout(layout) })
            .map_err(|why| format!("{} cannot give it its layout because {why}", site.system.title()));
        let actual = actual?;
        let there = maker.as_ref().is_ok_and(|maker| maker.is_met_by(&actual));
        Ok(Planned { file, maker, there, exact: actual.exact })
    };
    found.into_iter().zip(looked).map(plan_one).collect()
}
