//! Directories that are reached through symbolic links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::bed::{Bed, Checked, NO_LAYOUTS, Verdict, ensure, require_layout, works};
use crate::driver::Driver;

/// BeeGFS's tool compares the devices of a path's ancestors by lstat to find the mount
/// (`NewFromPath` in common/filesystem/fs.go of ThinkParQ/beegfs-go), so it takes the child of a
/// link for it. Up to 8.1 `entry set` of that child then changes the root of the file system
/// (`GetEntry` in ctl/pkg/ctl/entry/entry.go).
pub fn through_a_link(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    if bed.supported.is_empty() {
        return NO_LAYOUTS;
    }
    let Some(elsewhere) = &bed.elsewhere else { return Ok(Verdict::Skipped("every directory is on it")) };
    let (outside, inside) = (elsewhere.join("link"), dir.join("link"));
    for (name, link) in [("first", &outside), ("second", &inside)] {
        let real = dir.join(name);
        works("mkdir", fs::create_dir(&real))?;
        works("a link", symlink(&real, link))?;
        let checked = below_a_link(driver, bed, &real, link);
        works("removing the link", fs::remove_file(link))?;
        checked.map_err(|wrong| format!("through {}: {wrong}", link.display()))?;
    }
    Ok(Verdict::Passed)
}

fn below_a_link(driver: &dyn Driver, bed: &Bed, real: &Path, link: &Path) -> Result<(), String> {
    let layout = |path: &Path| works("read_back", driver.read_back(path)).map(|actual| actual.layout);
    let layouts = || Ok::<_, String>((layout(&bed.dir)?, layout(real)?));
    let before = layouts()?;
    ensure!(works("probe", driver.probe(link))?.is_some(), "said to be elsewhere");
    for layout in &bed.supported {
        works("prepare", driver.prepare(&link.join("target"), layout))?;
        require_layout(driver, &real.join("target"), layout)?;
        works("a new file", fs::write(real.join("target/written"), b"x"))?;
        for name in ["file", "target/file"] {
            works("create", driver.create(&link.join(name), layout, 0o600))?;
        }
        for name in ["file", "target/file", "target/written"] {
            require_layout(driver, &real.join(name), layout)?;
            require_layout(driver, &link.join(name), layout)?;
            works("unlink", fs::remove_file(real.join(name)))?;
        }
        works("remove", driver.remove(&link.join("target")))?;
        ensure!(!real.join("target").exists(), "the directory is left");
        let after = layouts()?;
        ensure!(after == before, "the directories above had {before:?}, now {after:?}");
    }
    for layout in &bed.files_only {
        works("create", driver.create(&link.join("file"), layout, 0o600))?;
        works("unlink", fs::remove_file(real.join("file")))?;
    }
    // The link itself names the directory.
    let top = layout(&bed.dir)?;
    works("prepare", driver.prepare(link, &bed.supported[0]))?;
    require_layout(driver, real, &bed.supported[0])?;
    ensure!(layout(&bed.dir)? == top, "the bed's directory has changed");
    Ok(())
}
