//! Whether a directory is on such a file system, and what it offers.

use std::path::Path;

use super::bed::{Bed, Checked, Verdict, ensure, listing, require_empty, works};
use crate::driver::Driver;
use crate::error::DriverError;

pub fn here(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let probe = works("probe", driver.probe(dir))?.ok_or("the bed's directory is said to be elsewhere")?;
    ensure!(probe.system == driver.system(), "said to be on {:?}", probe.system);
    let real = works("the directory", dir.canonicalize())?;
    ensure!(
        real.starts_with(&probe.mount),
        "{} is not below the mount {}",
        real.display(),
        probe.mount.display()
    );
    let named = |name: &str| probe.pools.iter().any(|pool| pool.name == name);
    for layout in &bed.supported {
        if let Some(stripewise_native::Stripe::Even { pool: Some(pool), .. }) = layout.stripe() {
            ensure!(named(pool), "pool {pool} is not among {:?}", probe.pools);
        }
    }
    require_empty(dir)?;
    let missing = driver.probe(&dir.join("missing"));
    ensure!(missing.is_err(), "a directory that is not there: {missing:?}");
    Ok(Verdict::Passed)
}

pub fn elsewhere(driver: &dyn Driver, bed: &Bed, _dir: &Path) -> Checked {
    let Some(elsewhere) = &bed.elsewhere else { return Ok(Verdict::Skipped("every directory is on it")) };
    let before = listing(elsewhere)?;
    let probe = works("probe", driver.probe(elsewhere))?;
    ensure!(probe.is_none(), "{} is said to be here: {probe:?}", elsewhere.display());
    let refused = |call: &str, result: crate::error::Result<()>| match result {
        Err(DriverError::Elsewhere { .. }) => Ok(()),
        other => Err(format!("{call} elsewhere: {other:?}")),
    };
    for layout in &bed.supported {
        refused("prepare", driver.prepare(&elsewhere.join("new/deeper"), layout))?;
        refused("create", driver.create(&elsewhere.join("file"), layout, 0o600))?;
    }
    refused("read_back", driver.read_back(elsewhere).map(drop))?;
    refused("remove", driver.remove(elsewhere))?;
    ensure!(listing(elsewhere)? == before, "changed: {:?}", listing(elsewhere)?);
    Ok(Verdict::Passed)
}

pub fn without_rights(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let Some(forbidden) = &bed.forbidden else { return Ok(Verdict::Skipped("nobody here is without rights")) };
    let mut probed = None;
    forbidden(dir, &mut || probed = Some(driver.probe(dir)));
    let probe = works("probe", probed.ok_or("the bed ran nothing")?)?.ok_or("said to be elsewhere")?;
    ensure!(!probe.rights.is_empty(), "nothing is said of missing rights: {probe:?}");
    require_empty(dir)?;
    Ok(Verdict::Passed)
}
