//! Single files with a layout.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use stripewise_native::Stripe;
use stripewise_sys::{Real, Sys};

use super::bed::{Bed, Checked, NO_LAYOUTS, Verdict, ensure, listing, require_layout, works};
use crate::driver::Driver;
use crate::error::DriverError;
use crate::files;

const CONTENT: &[u8] = b"what a user has written";

pub fn created(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let prepared = dir.join("prepared");
    for (number, layout) in bed.supported.iter().enumerate() {
        // The file's own layout counts, regardless of the directory's.
        let other = &bed.supported[(number + 1) % bed.supported.len()];
        works("prepare", driver.prepare(&prepared, other))?;
        let confined = bed.inherits_pools && matches!(layout.stripe(), Some(Stripe::Listed { .. }));
        let homes = [(dir, 0o600), (dir, 0o640), (dir, 0o400), (&*prepared, 0o600)];
        for (home, mode) in homes.into_iter().filter(|(home, _)| !confined || *home == dir) {
            let file = home.join(format!("file-{number}-{mode:o}"));
            works("create", driver.create(&file, layout, mode))?;
            require_layout(driver, &file, layout)?;
            let metadata = works("stat", fs::metadata(&file))?;
            ensure!(metadata.len() == 0, "it has {} bytes", metadata.len());
            let got = metadata.permissions().mode() & 0o7777;
            // The umask may have removed some permissions.
            ensure!(got & !mode == 0 && got & 0o600 == mode & 0o600, "permissions {mode:o} became {got:o}");
            if mode & 0o200 != 0 {
                works("writing to it", fs::write(&file, CONTENT))?;
                ensure!(works("reading it", fs::read(&file))? == CONTENT, "reads otherwise than written");
                require_layout(driver, &file, layout)?;
            }
        }
    }
    if bed.supported.is_empty() { NO_LAYOUTS } else { Ok(Verdict::Passed) }
}

/// A file belongs to the group that open(2) would have given it: that of a setgid directory, or
/// else the process's. BeeGFS's tool is installed setgid, so its files would belong to its own
/// group (ctl/build/postinstall.sh and `newGroupFlag` of ThinkParQ/beegfs-go).
pub fn belonging(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    const OTHER_GROUP: u32 = 54321;
    let shared = dir.join("shared");
    works("mkdir", fs::create_dir(&shared))?;
    if Real.user() == 0 {
        works("chown", chown(&shared, None, Some(OTHER_GROUP)))?;
    }
    works("chmod", fs::set_permissions(&shared, fs::Permissions::from_mode(0o2775)))?;
    for (number, layout) in bed.supported.iter().chain(&bed.files_only).enumerate() {
        for home in [dir, &shared] {
            let (plain, made) = (home.join(format!("plain-{number}")), home.join(format!("made-{number}")));
            works("a new file", files::create_new(&Real, &plain, 0o640).map(drop))?;
            works("create", driver.create(&made, layout, 0o640))?;
            let of = |path: &Path| {
                let metadata = works("stat", fs::metadata(path))?;
                Ok::<_, String>((metadata.uid(), metadata.gid(), metadata.mode()))
            };
            let (plain, made) = (of(&plain)?, of(&made)?);
            ensure!(made == plain, "{layout}: owner, group and mode {made:?}, of any new file {plain:?}");
        }
    }
    if bed.supported.is_empty() { NO_LAYOUTS } else { Ok(Verdict::Passed) }
}

pub fn exists(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let [first, second, ..] = &bed.supported[..] else { return NO_LAYOUTS };
    let (empty, written, link) = (dir.join("empty"), dir.join("written"), dir.join("link"));
    works("create", driver.create(&empty, first, 0o600))?;
    works("a new file", fs::write(&written, CONTENT))?;
    works("a link", std::os::unix::fs::symlink(dir.join("nowhere"), &link))?;
    let before = (listing(dir)?, works("read_back", driver.read_back(&written))?);
    for path in [&empty, &written, &link, &dir.to_owned()] {
        match driver.create(path, second, 0o600) {
            Err(DriverError::Exists { .. }) => {}
            other => return Err(format!("create of {}, which exists: {other:?}", path.display())),
        }
    }
    require_layout(driver, &empty, first)?;
    ensure!(works("reading", fs::read(&written))? == CONTENT, "a file's bytes have changed");
    let after = (listing(dir)?, works("read_back", driver.read_back(&written))?);
    ensure!(after == before, "{before:?} has become {after:?}");
    Ok(Verdict::Passed)
}

pub fn missing(driver: &dyn Driver, bed: &Bed, dir: &Path) -> Checked {
    let read = driver.read_back(&dir.join("missing"));
    ensure!(read.is_err(), "it is said to have {read:?}");
    for layout in &bed.supported {
        let made = driver.create(&dir.join("missing/file"), layout, 0o600);
        ensure!(made.is_err(), "a file was made in a directory that is not there");
    }
    ensure!(listing(dir)?.is_empty(), "left behind: {:?}", listing(dir)?);
    Ok(Verdict::Passed)
}
