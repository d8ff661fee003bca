//! Creates files with native layouts for the data path's migration.

use std::fmt::{Debug, Formatter};
use std::os::fd::BorrowedFd;
use std::path::Path;

use stripewise_datapath::migrate::Maker;
use stripewise_drivers::{Actual, Driver, DriverError, TRIAL_PREFIX};
use stripewise_native::{NativeLayout, Stripe};
use stripewise_sys::{Fd, Mode, OFlags, Real, Sys};

/// Creates files with one layout.
pub struct WithLayout<'a> {
    pub driver: &'a dyn Driver,
    pub layout: NativeLayout,
}

impl WithLayout<'_> {
    /// Returns whether a file with this setting has the layout.
    pub fn is_met_by(&self, actual: &Actual) -> bool {
        self.driver.has(actual, &self.layout)
    }
}

impl Debug for WithLayout<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.description())
    }
}

impl Maker for WithLayout<'_> {
    fn description(&self) -> String {
        format!("{} {}", self.driver.name(), self.layout)
    }

    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String> {
        said(self.driver.read_back_open(path, open)).map(|actual| self.is_met_by(&actual))
    }

    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String> {
        said(self.driver.create_open(path, &self.layout, mode.as_raw_mode()))
    }
}

/// Creates files with the layout that their directory gives.
pub struct Inheriting<'a> {
    driver: &'a dyn Driver,
    /// The setting that the directory gives.
    given: Actual,
}

impl<'a> Inheriting<'a> {
    /// Determines a directory's setting by creating, inspecting and removing a file in it.
    ///
    /// # Errors
    /// The file cannot be created there, or the file system does not report its setting.
    pub fn in_directory(driver: &'a dyn Driver, dir: &Path) -> anyhow::Result<Self> {
        let trial = tempfile::Builder::new().prefix(TRIAL_PREFIX).tempfile_in(dir)?;
        Ok(Self { driver, given: driver.read_back(trial.path())? })
    }
}

impl Debug for Inheriting<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.description())
    }
}

impl Maker for Inheriting<'_> {
    fn description(&self) -> String {
        let layout = || self.given.layout.as_ref().map(ToString::to_string);
        let given = self.given.exact.clone().or_else(layout);
        format!("{} as its directory gives: {}", self.driver.name(), given.as_deref().unwrap_or("nothing"))
    }

    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String> {
        let actual = said(self.driver.read_back_open(path, open))?;
        Ok(match (&actual.exact, &self.given.exact) {
            (Some(exact), Some(given)) => exact == given,
            _ => actual.layout.as_ref().map(form) == self.given.layout.as_ref().map(form),
        })
    }

    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let made = Real.open(None, path, flags, mode);
        made.map_err(|errno| format!("{}: making a file: {errno}", path.display()))
    }
}

/// Creates files with a recorded setting, in the file system's own notation.
pub struct Exactly<'a> {
    pub driver: &'a dyn Driver,
    pub exact: &'a str,
}

impl Debug for Exactly<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.description())
    }
}

impl Maker for Exactly<'_> {
    fn description(&self) -> String {
        format!("{} exactly {}", self.driver.name(), self.exact)
    }

    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String> {
        said(self.driver.read_back_open(path, open)).map(|actual| actual.exact.as_deref() == Some(self.exact))
    }

    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String> {
        said(self.driver.create_exact(path, self.exact, mode.as_raw_mode()))
    }
}

fn said<T>(result: Result<T, DriverError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
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
