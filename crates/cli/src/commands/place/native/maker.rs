//! Creates files with native layouts for the data path's migration.

use std::fmt::{Debug, Display, Formatter};
use std::os::fd::BorrowedFd;
use std::path::Path;

use stripewise_datapath::migrate::Maker;
use stripewise_drivers::{Actual, Driver, TRIAL_PREFIX, To};
use stripewise_native::{NativeLayout, Stripe};
use stripewise_sys::{Fd, Mode, OFlags, Real, Sys};

/// Creates files with a setting of one file system.
pub struct NativeMaker<'a> {
    pub driver: &'a dyn Driver,
    pub wanted: Wanted<'a>,
}

/// The setting of new files.
pub enum Wanted<'a> {
    Layout(NativeLayout),
    /// What their directory gives; [`Actual::pinned`] is the directory's.
    Inherited(Actual),
    /// A recorded setting, in the file system's own notation.
    Exact(&'a str),
}

impl<'a> NativeMaker<'a> {
    /// Determines what a directory gives by creating, inspecting and removing a file in it.
    pub fn inheriting(driver: &'a dyn Driver, dir: &Path) -> anyhow::Result<Self> {
        let trial = tempfile::Builder::new().prefix(TRIAL_PREFIX).tempfile_in(dir)?;
        let pinned = driver.read_back(dir)?.pinned;
        let given = Actual { pinned, ..driver.read_back(trial.path())? };
        Ok(Self { driver, wanted: Wanted::Inherited(given) })
    }

    /// Returns whether new files of the directory have the setting `exact`.
    pub fn gives(&self, exact: &str) -> bool {
        matches!(&self.wanted, Wanted::Inherited(given) if given.exact.as_deref() == Some(exact))
    }

    /// Returns whether a file with the setting `actual` needs no change.
    pub fn is_met_by(&self, actual: &Actual) -> bool {
        match &self.wanted {
            Wanted::Layout(layout) => self.driver.has(actual, layout),
            Wanted::Exact(exact) => actual.exact.as_deref() == Some(exact),
            Wanted::Inherited(given) => match (&actual.exact, &given.exact) {
                (Some(exact), Some(given)) => exact == given,
                _ => actual.layout.as_ref().map(form) == given.layout.as_ref().map(form),
            },
        }
    }
}

impl Display for Wanted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Layout(layout) => write!(f, "{layout}"),
            Self::Exact(exact) => write!(f, "exactly {exact}"),
            Self::Inherited(given) => {
                let given = given.exact.clone().or_else(|| given.layout.as_ref().map(ToString::to_string));
                write!(f, "as its directory gives: {}", given.as_deref().unwrap_or("nothing"))
            }
        }
    }
}

impl Debug for NativeMaker<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.description())
    }
}

impl NativeMaker<'_> {
    /// The layout for an existing file; `None`: only a new file can have it.
    fn to(&self) -> Option<To<'_>> {
        match &self.wanted {
            Wanted::Layout(layout) => Some(To::Layout(layout)),
            Wanted::Exact(exact) => Some(To::Exact(exact)),
            Wanted::Inherited(Actual { pinned: true, .. }) => None,
            Wanted::Inherited(given) => given.exact.as_deref().map(To::Exact),
        }
    }
}

impl Maker for NativeMaker<'_> {
    fn description(&self) -> String {
        format!("{} {}", self.driver.name(), self.wanted)
    }

    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String> {
        let actual = self.driver.read_back_open(path, open).map_err(|error| error.to_string())?;
        // The files that a placement leaves alone keep their layouts, also when it is undone.
        Ok(actual.left_alone.is_some() || self.is_met_by(&actual))
    }

    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String> {
        let made = match &self.wanted {
            Wanted::Layout(layout) => self.driver.create_open(path, layout, mode.as_raw_mode()),
            Wanted::Exact(exact) => self.driver.create_exact(path, exact, mode.as_raw_mode()),
            Wanted::Inherited(_) => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                let made = Real.open(None, path, flags, mode);
                return made.map_err(|errno| format!("{}: making a file: {errno}", path.display()));
            }
        };
        made.map_err(|error| error.to_string())
    }

    fn changes(&self) -> bool {
        self.to().is_some_and(|to| self.driver.can_change(to))
    }

    fn change(&self, path: &Path) -> Result<(), String> {
        let to = self.to().ok_or("new files get what their directory gives")?;
        self.driver.change(path, to).map_err(|error| error.to_string())
    }
}

/// Returns the layout without the names of servers. A file system that was given no servers picks
/// them in turn.
fn form(layout: &NativeLayout) -> NativeLayout {
    let mut form = layout.clone();
    for component in &mut form.components {
        if let Stripe::Listed { width, servers } = &component.stripe {
            let (width, count) = (*width, servers.len() as u32);
            component.stripe = Stripe::Even { width, count, pool: None };
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_were_taken_in_turn_make_no_difference() {
        let listed = |servers: &[&str], width| {
            let servers = servers.iter().map(|&server| server.to_owned()).collect();
            NativeLayout::uniform(Stripe::Listed { width, servers })
        };
        assert_eq!(form(&listed(&["0", "3"], 64)), form(&listed(&["2", "1"], 64)));
        assert_ne!(form(&listed(&["0", "3"], 64)), form(&listed(&["2"], 64)));
        assert_ne!(form(&listed(&["0"], 64)), form(&listed(&["0"], 128)));
        let pools = ["a", "b"].map(|pool| form(&NativeLayout::even(64, 2, Some(pool))));
        assert_ne!(pools[0], pools[1]);
    }
}
