//! A driver without a file system passes; with any single defect it fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use stripewise_cluster::FileSystem;
use stripewise_native::{NativeLayout, Stripe};
use stripewise_sys::{Real, Sys};
use tempfile::TempDir;

use super::*;
use crate::tests::null::Null;
use crate::{Actual, DriverError, Probe};

const K: u64 = 1 << 10;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Readable for other users.
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// A bed for the null driver, and its directories.
fn null_bed() -> (Bed, [TempDir; 2]) {
    let (here, elsewhere) = (folder(), folder());
    let name = std::ffi::OsStr::new("user.stripewise.null.pools");
    Real.set_xattr(stripewise_sys::Kind::Named(None, here.path()), name, b"fast slow").unwrap();
    let servers = vec!["fast".to_owned()];
    let bed = Bed {
        dir: here.path().to_owned(),
        elsewhere: Some(elsewhere.path().to_owned()),
        supported: vec![NativeLayout::even(64 * K, 4, Some("fast")), NativeLayout::even(K, 1, Some("slow"))],
        unsupported: vec![NativeLayout::uniform(Stripe::Listed { width: K, servers })],
        refused: vec![(NativeLayout::even(K, 1, Some("lost")), "\"lost\"".to_owned())],
        forbidden: Some(without_rights()),
        ..Bed::default()
    };
    (bed, [here, elsewhere])
}

#[test]
fn the_null_driver_conforms() {
    let (bed, _folders) = null_bed();
    let outcome = conformance(&Null::default(), &bed);
    outcome.require("null");
    assert!(outcome.passed.len() >= 13, "{:?}", outcome.passed);
}

/// A defect of a driver.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    ProbeSeesItEverywhere,
    ProbeLeavesATrial,
    ProbeHidesRights,
    PrepareSetsNothing,
    PrepareOnlyOnce,
    PrepareMovesFiles,
    PrepareMakesFirst,
    PrepareLeavesWhatWasRefused,
    PrepareForgetsTheFormer,
    CreateSetsNothing,
    CreateIgnoresPermissions,
    CreateReplaces,
    ReadBackIsAlwaysTheSame,
    ReadBackOfNothing,
    RemoveDoesNothing,
    RemoveTakesFiles,
    RemoveLeavesHints,
}

struct Defective(Null, Wrong);

impl Driver for Defective {
    fn system(&self) -> Option<FileSystem> {
        None
    }

    fn probe(&self, dir: &Path) -> crate::Result<Option<Probe>> {
        let mut probe = self.0.probe(dir)?;
        match self.1 {
            Wrong::ProbeSeesItEverywhere => Ok(probe.or(Some(Probe::default()))),
            Wrong::ProbeLeavesATrial => {
                let _ = fs::write(dir.join(".trial"), "");
                Ok(probe)
            }
            Wrong::ProbeHidesRights => {
                probe.iter_mut().for_each(|probe| probe.rights.clear());
                Ok(probe)
            }
            _ => Ok(probe),
        }
    }

    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> crate::Result<()> {
        match self.1 {
            Wrong::PrepareSetsNothing => {
                let _ = fs::create_dir_all(dir);
                return Ok(());
            }
            Wrong::PrepareOnlyOnce if dir.exists() => return Err(DriverError::Exists { path: dir.to_owned() }),
            Wrong::PrepareMovesFiles if dir.join("old").exists() => {
                let _ = fs::remove_file(dir.join("old"));
                self.0.create(&dir.join("old"), layout, 0o600)?;
            }
            Wrong::PrepareMakesFirst => drop(fs::create_dir_all(dir)),
            _ => {}
        }
        let prepared = self.0.prepare(dir, layout);
        if matches!((self.1, &prepared), (Wrong::PrepareLeavesWhatWasRefused, Err(DriverError::Refused { .. })))
        {
            let _ = fs::create_dir_all(dir);
        }
        if let (Wrong::PrepareForgetsTheFormer, Err(DriverError::Refused { .. })) = (self.1, &prepared) {
            let _ = fs::create_dir(dir.join("keeps")).map(|()| self.0.remove(dir));
            let _ = fs::remove_dir(dir.join("keeps"));
        }
        prepared
    }

    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> crate::Result<()> {
        match self.1 {
            Wrong::CreateSetsNothing if !file.exists() => {
                fs::write(file, "")
                    .map_err(|_| DriverError::Elsewhere { path: file.to_owned(), system: "null" })?;
                fs::set_permissions(file, PermissionsExt::from_mode(mode)).unwrap();
                return Ok(());
            }
            Wrong::CreateIgnoresPermissions => return self.0.create(file, layout, 0o666),
            Wrong::CreateReplaces if file.is_file() => drop(fs::remove_file(file)),
            _ => {}
        }
        self.0.create(file, layout, mode)
    }

    fn read_back(&self, path: &Path) -> crate::Result<Actual> {
        let same = Actual { layout: Some(NativeLayout::even(64 * K, 4, Some("fast"))), ..Actual::default() };
        match self.1 {
            Wrong::ReadBackIsAlwaysTheSame => self.0.read_back(path).map(|_| same),
            Wrong::ReadBackOfNothing => self.0.read_back(path).or(Ok(same)),
            _ => self.0.read_back(path),
        }
    }

    fn remove(&self, dir: &Path) -> crate::Result<()> {
        match self.1 {
            Wrong::RemoveDoesNothing => Ok(()),
            Wrong::RemoveTakesFiles => {
                let _ = fs::remove_dir_all(dir);
                Ok(())
            }
            Wrong::RemoveLeavesHints if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) => {
                Ok(())
            }
            _ => self.0.remove(dir),
        }
    }
}

#[test]
fn every_defect_is_noticed_by_the_check_for_it() {
    // The checks pass without a defect, so that a failure shows only the defect.
    let (bed, _folders) = null_bed();
    let passed = conformance(&Null::default(), &bed).passed;
    for (wrong, check) in [
        (Wrong::ProbeSeesItEverywhere, "probe: elsewhere"),
        (Wrong::ProbeLeavesATrial, "probe: here"),
        (Wrong::ProbeHidesRights, "probe: without rights"),
        (Wrong::PrepareSetsNothing, "prepare: new files inherit, also further down"),
        (Wrong::PrepareOnlyOnce, "prepare: may be repeated"),
        (Wrong::PrepareMovesFiles, "prepare: files that are there keep what they have"),
        (Wrong::PrepareMakesFirst, "unsupported layouts: refused before anything is made"),
        (Wrong::PrepareLeavesWhatWasRefused, "refused layouts: said, and nothing is left"),
        (Wrong::PrepareForgetsTheFormer, "prepare: one that fails leaves the former hints"),
        (Wrong::CreateSetsNothing, "create: an empty file with its layout and permissions"),
        (Wrong::CreateIgnoresPermissions, "create: an empty file with its layout and permissions"),
        (Wrong::CreateReplaces, "create: a file that exists stays as it is"),
        (Wrong::ReadBackIsAlwaysTheSame, "prepare: new files inherit, also further down"),
        (Wrong::ReadBackOfNothing, "read back: what is not there"),
        (Wrong::RemoveDoesNothing, "remove: leaves nothing"),
        (Wrong::RemoveTakesFiles, "remove: keeps files"),
        (Wrong::RemoveLeavesHints, "remove: keeps files"),
    ] {
        assert!(passed.contains(&check), "{check}");
        let (bed, _folders) = null_bed();
        let failed = conformance(&Defective(Null::default(), wrong), &bed).failed;
        assert!(failed.iter().any(|(name, _)| *name == check), "{wrong:?}: {failed:?}");
    }
}
