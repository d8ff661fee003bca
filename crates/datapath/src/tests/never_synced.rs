//! A power cut may leave nothing, an empty file or an unreadable file of one that was created and
//! never synced. `fsck` reports whatever is left with a remedy that works.

use std::path::{Path, PathBuf};

use stripewise_layout::{Layout, Region, Stripe};
use stripewise_sys::OFlags;
use stripewise_sys::fd::close_public;

use super::crash::at_every_point_of;
use super::setup::Setup;
use super::support::*;
use crate::check::{Finding, Options, check, walk};
use crate::{Errno, Opened, Result, Runtime};

const LOOK: Options = Options {
    repair: false,
    remove_orphans: false,
    take_over: false,
    compare: false,
    drop_dirty: false,
    adopt: false,
    orphan_age_s: 0,
};
const REPAIR: Options = Options { repair: true, ..LOOK };
const REMOVE: Options = Options { remove_orphans: true, ..LOOK };

/// The findings of `stripewise fsck -p PLAN DIRECTORY`.
fn fsck(stage: &Stage, options: Options) -> Vec<Finding> {
    let runtime = stage.runtime();
    let targets: Vec<PathBuf> = stage.plan.cluster.targets().into_iter().map(|target| target.path).collect();
    let mut listing = walk(&runtime, &[stage.root.path().join("files")]);
    // Pretend that the whole file system was checked: without identities there is no other proof
    // that these files are gone.
    listing.roots.push("/".into());
    check(&runtime, &listing, &targets, options, &mut |_| {}).findings
}

/// Three targets, and a manifest of three pages, any of which may be lost.
fn long() -> Layout {
    let region = |n: u64| Region {
        start: n * 10,
        end: (n < 199).then_some(n * 10 + 10),
        cycle: vec![Stripe { target: n as u32 % 3, width: 7 }, Stripe { target: (n as u32 + 1) % 3, width: 2 }],
    };
    Layout::new((0..200).map(region).collect()).unwrap()
}

fn synced_file(stage: &Stage) {
    let opened = open(&stage.runtime(), &stage.path("other"), CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    opened.file.sync(false).unwrap();
}

fn create_and_write(runtime: &Runtime, path: &Path) -> Result<()> {
    open(runtime, path, CREATE)?.file.write(&pattern(2, 300), 0, 1).map(drop)
}

/// Whether opening the file fails with EIO.
fn is_unreadable(stage: &Stage) -> bool {
    match stage.runtime().open(None, &stage.path("f"), OFlags::RDONLY, MODE) {
        Ok(Opened::Managed(raw, file)) => {
            let bytes = file.all().unwrap();
            assert!(bytes.iter().zip(pattern(2, 300)).all(|(&is, written)| is == 0 || is == written));
            close_public(raw);
            false
        }
        Ok(Opened::Plain(raw)) => {
            close_public(raw);
            false
        }
        Err(Errno::NOENT) => false,
        Err(error) => {
            assert_eq!(error, Errno::IO);
            true
        }
    }
}

fn has_remedy(finding: &Finding) -> bool {
    let remedies = ["`fsck --repair`", "fsck --repair FILE`", "`fsck --remove-orphans`", "`stripewise rm -f`"];
    remedies.iter().any(|remedy| finding.text.contains(remedy))
}

fn fsck_helps(stage: &Stage) {
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let found = fsck(stage, LOOK);
    assert!(found.iter().all(has_remedy), "{found:#?}");
    if is_unreadable(stage) {
        assert!(found.iter().any(|finding| finding.path == path && finding.kind.is_problem()), "{found:#?}");
    }
    fsck(stage, REPAIR);
    for finding in fsck(stage, LOOK) {
        if finding.text.contains("`stripewise rm -f`") {
            assert_eq!(finding.path, path);
            runtime.unlink(None, &path).unwrap();
        }
    }
    fsck(stage, REMOVE);
    let left = fsck(stage, LOOK);
    assert!(left.is_empty(), "{left:#?}");
    assert!(!is_unreadable(stage));
    let other = open(&stage.runtime(), &stage.path("other"), OFlags::RDONLY).unwrap();
    assert_eq!(other.file.all().unwrap(), pattern(1, 300));
    // The name can be used again.
    let _ = runtime.unlink(None, &path);
    let again = open(&stage.runtime(), &path, CREATE | OFlags::EXCL).unwrap();
    again.file.write(&pattern(3, 300), 0, 1).unwrap();
    assert_eq!(again.file.all().unwrap(), pattern(3, 300));
    let left = fsck(stage, LOOK);
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn fsck_names_what_is_left_and_helps() {
    for layout in [small, long] {
        at_every_point_of(&Setup::single(layout()), synced_file, create_and_write, |stage, ended| {
            if ended.cut {
                fsck_helps(stage)
            }
        });
    }
}
