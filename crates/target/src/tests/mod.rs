//! Tests of the whole crate, and targets in a temporary directory for the others.

mod faults;

use std::sync::Arc;

use stripewise_sys::{Mode, Real, SysRef};
use tempfile::TempDir;

use crate::{Access, FileId, ObjectSet, Objects, Target};

pub fn real() -> SysRef {
    Arc::new(Real)
}

/// `count` prepared targets `t0`, `t1`, ... in `dir`.
pub fn targets(sys: &SysRef, dir: &TempDir, count: usize) -> Vec<Arc<Target>> {
    let prepare = |index| {
        let path = dir.path().join(format!("t{index}"));
        std::fs::create_dir_all(&path).unwrap();
        Arc::new(Target::prepare(sys, &path, &format!("t/{index}")).unwrap())
    };
    (0..count).map(prepare).collect()
}

/// A new set of empty objects on `count` targets in `dir`.
pub fn set(sys: &SysRef, dir: &TempDir, count: usize) -> ObjectSet {
    let id = FileId::random(sys.as_ref()).unwrap();
    let access = Access::of_mode(Mode::RUSR | Mode::WUSR);
    ObjectSet::create(sys, targets(sys, dir, count), of(sys, id), &access).unwrap()
}

/// Objects of the user who runs the tests.
pub fn of(sys: &SysRef, id: FileId) -> Objects {
    Objects { id, owner: sys.user() }
}
