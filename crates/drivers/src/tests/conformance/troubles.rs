//! Layouts that the file system does not support, does not allow, or silently ignores.

use std::path::Path;

use stripewise_native::NativeLayout;

use super::bed::{Bed, Checked, NO_LAYOUTS, Verdict, ensure, listing, require_empty, require_layout, works};
use crate::driver::Driver;
use crate::error::DriverError;

/// More requests than any driver makes for one directory.
const REQUESTS_MOST: u64 = 200;

/// Prepares a directory and creates a file. Both must fail as expected and leave nothing.
fn require_failure(
    driver: &dyn Driver,
    dir: &Path,
    layout: &NativeLayout,
    expected: impl Fn(&DriverError) -> bool,
) -> Result<(), String> {
    let prepared = driver.prepare(&dir.join("new/target"), layout);
    let created = driver.create(&dir.join("file"), layout, 0o600);
    for (call, result) in [("prepare", prepared), ("create", created)] {
        match result {
            Err(error) if expected(&error) => {}
            other => return Err(format!("{call} with {layout}: {other:?}")),
        }
    }
    require_empty(dir)
}

pub fn unsupported(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    for layout in &bed.unsupported {
        let expected = |error: &DriverError| matches!(error, DriverError::Unsupported { .. });
        require_failure(driver, dir, layout, expected)?;
    }
    if bed.unsupported.is_empty() { Ok(Verdict::Skipped("it has every layout")) } else { Ok(Verdict::Passed) }
}

pub fn refused(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    for (layout, word) in &bed.refused {
        let expected = |error: &DriverError| error.to_string().contains(word);
        require_failure(driver, dir, layout, expected)?;
    }
    if bed.refused.is_empty() { Ok(Verdict::Skipped("it refuses nothing")) } else { Ok(Verdict::Passed) }
}

pub fn ignored(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let Some(ignore) = &bed.ignore_hints else {
        return Ok(Verdict::Skipped("this file system cannot be made to ignore hints"));
    };
    for layout in &bed.supported {
        ignore(true);
        let differs = |error: &DriverError| matches!(error, DriverError::Differs { .. });
        let failed = require_failure(driver, dir, layout, differs);
        ignore(false);
        failed?;
        // The same calls succeed when hints are obeyed.
        works("prepare", driver.prepare(&dir.join("target"), layout))?;
        works("remove", driver.remove(&dir.join("target")))?;
    }
    if bed.supported.is_empty() { NO_LAYOUTS } else { Ok(Verdict::Passed) }
}

pub fn without_rights_or_space(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let [layout, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    if let Some(forbidden) = &bed.forbidden {
        let mut failed = Err("the bed ran nothing".to_owned());
        let denied = |error: &DriverError| matches!(error, DriverError::Denied { .. });
        forbidden(dir, &mut || failed = require_failure(driver, dir, layout, denied));
        failed?;
    }
    if let Some(full) = &bed.full {
        // An empty file needs no space, so only a directory is tried.
        match driver.prepare(&dir.join("new/target"), full) {
            Err(DriverError::Full { .. }) => {}
            other => return Err(format!("prepare where there is no space: {other:?}")),
        }
        require_empty(dir)?;
    }
    match (&bed.forbidden, &bed.full) {
        (None, None) => Ok(Verdict::Skipped("nobody here is without rights, and nothing is full")),
        _ => Ok(Verdict::Passed),
    }
}

pub fn interrupted(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let Some(interrupt) = &bed.interrupt else {
        return Ok(Verdict::Skipped("this file system cannot be made to fail in the middle"));
    };
    let [layout, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    for after in 0..REQUESTS_MOST {
        let target = dir.join("target");
        interrupt(Some(after));
        let prepared = driver.prepare(&target, layout);
        interrupt(None);
        works("prepare again", driver.prepare(&target, layout))?;
        require_layout(driver, &target, layout)?;
        works("a new file", std::fs::write(target.join("file"), b"x"))?;
        require_layout(driver, &target.join("file"), layout)?;
        works("unlink", std::fs::remove_file(target.join("file")))?;
        // A trial file that could not be removed may remain: it is empty, and its name marks it as
        // a trial.
        for left in listing(&target)? {
            ensure!(left.to_string_lossy().contains(".stripewise-trial-"), "left behind: {}", left.display());
            works("unlink", std::fs::remove_file(left))?;
        }
        works("remove", driver.remove(&target))?;
        require_empty(dir)?;
        if prepared.is_ok() {
            ensure!(after > 0, "an interrupted file system did not stop it");
            return Ok(Verdict::Passed);
        }
    }
    Err(format!("more than {REQUESTS_MOST} requests for one directory"))
}
