//! Directories whose new files inherit a layout.

use std::fs;
use std::path::Path;

use super::bed::{Bed, Checked, NO_LAYOUTS, Verdict, ensure, require_empty, require_layout, works};
use crate::driver::Driver;

const CONTENT: &[u8] = b"what a user has written";

pub fn inherited(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    for (number, layout) in bed.supported.iter().enumerate() {
        let prepared = dir.join(format!("missing-{number}/target"));
        works("prepare", driver.prepare(&prepared, layout))?;
        require_empty(&prepared)?;
        require_layout(driver, &prepared, layout)?;
        let deeper = prepared.join("a/b");
        works("mkdir", fs::create_dir_all(&deeper))?;
        for file in [prepared.join("file"), deeper.join("file")] {
            works("a new file", fs::write(&file, CONTENT))?;
            require_layout(driver, &file, layout)?;
        }
        require_layout(driver, &deeper, layout)?;
    }
    if bed.supported.is_empty() { NO_LAYOUTS } else { Ok(Verdict::Passed) }
}

pub fn others_keep_theirs(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let [first, second, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    let (target, beside) = (dir.join("target"), dir.join("beside"));
    works("mkdir", fs::create_dir(&beside))?;
    let before = works("read_back", driver.read_back(&beside))?.layout;
    works("prepare", driver.prepare(&target, first))?;
    works("a new file", fs::write(target.join("old"), CONTENT))?;
    works("prepare with another layout", driver.prepare(&target, second))?;
    works("a new file", fs::write(target.join("new"), CONTENT))?;
    require_layout(driver, &target.join("old"), first)?;
    require_layout(driver, &target.join("new"), second)?;
    ensure!(works("reading", fs::read(target.join("old")))? == CONTENT, "a file's bytes have changed");
    let after = works("read_back", driver.read_back(&beside))?.layout;
    ensure!(after == before, "a directory beside it had {before:?}, now {after:?}");
    Ok(Verdict::Passed)
}

pub fn repeated(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let [layout, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    let target = dir.join("target");
    for _ in 0..3 {
        works("prepare", driver.prepare(&target, layout))?;
        require_empty(&target)?;
        require_layout(driver, &target, layout)?;
    }
    Ok(Verdict::Passed)
}

pub fn in_the_way(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let [layout, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    let file = dir.join("file");
    works("a new file", fs::write(&file, CONTENT))?;
    for path in [file.clone(), file.join("target")] {
        let prepared = driver.prepare(&path, layout);
        ensure!(prepared.is_err(), "{} was prepared though a file is in the way", path.display());
    }
    ensure!(works("reading", fs::read(&file))? == CONTENT, "the file's bytes have changed");
    Ok(Verdict::Passed)
}

pub fn failed(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let [layout, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    let target = dir.join("target");
    works("prepare", driver.prepare(&target, layout))?;
    let before = works("read_back", driver.read_back(&target))?;
    for (refused, _) in &bed.refused {
        ensure!(driver.prepare(&target, refused).is_err(), "{refused} was not refused");
        let after = works("read_back", driver.read_back(&target))?;
        ensure!(after == before, "after {refused}: {before:?} has become {after:?}");
    }
    if bed.refused.is_empty() { Ok(Verdict::Skipped("it refuses nothing")) } else { Ok(Verdict::Passed) }
}

pub fn removed(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let target = dir.join("target");
    works("remove of what is not there", driver.remove(&target))?;
    for layout in &bed.supported {
        works("prepare", driver.prepare(&target, layout))?;
        works("remove", driver.remove(&target))?;
        require_empty(dir)?;
    }
    works("mkdir", fs::create_dir(&target))?;
    works("remove of a directory without hints", driver.remove(&target))?;
    require_empty(dir)?;
    Ok(Verdict::Passed)
}

pub fn removed_around_files(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let [layout, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    let (target, file) = (dir.join("target"), dir.join("target/file"));
    works("prepare", driver.prepare(&target, layout))?;
    works("a new file", fs::write(&file, CONTENT))?;
    for _ in 0..2 {
        works("remove", driver.remove(&target))?;
        ensure!(works("reading", fs::read(&file))? == CONTENT, "a file's bytes have changed");
        require_layout(driver, &file, layout)?;
    }
    let (hinted, plain) = (driver.read_back(&target), driver.read_back(dir));
    let (hinted, plain) = (works("read_back", hinted)?.layout, works("read_back", plain)?.layout);
    ensure!(hinted == plain, "hints are left: {hinted:?}, the directory above has {plain:?}");
    Ok(Verdict::Passed)
}
