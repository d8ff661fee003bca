//! The targets that this process has opened, their emulated servers, and the free space where
//! copies are made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use stripewise_cluster::{Plan, TargetSpec};
use stripewise_model::ClassParams;
use stripewise_sys::{ForkLock, SysRef};
use stripewise_target::{Emulation, Server, Target, TargetError, TargetRef, Targets};

use crate::error::{FileError, FileResult};

pub(super) struct TargetTable {
    sys: SysRef,
    planned: Vec<TargetSpec>,
    /// Per target of the plan, the class whose speed is emulated, if any.
    emulated: Vec<Option<ClassParams>>,
    /// The open targets of the plan, by their index in the plan.
    prepared: ForkLock<Vec<Option<Arc<Target>>>>,
    /// The open targets named by manifests.
    opened: Targets,
    emulation: OnceLock<Arc<Emulation>>,
}

impl TargetTable {
    pub fn new(sys: &SysRef, plan: Option<&Plan>) -> Self {
        let planned = plan.map_or_else(Vec::new, |plan| plan.cluster.targets());
        let emulated = (0..).zip(&planned).map(|(index, _)| plan?.cluster.emulation_of(index).copied());
        Self {
            sys: sys.clone(),
            emulated: emulated.collect(),
            planned,
            prepared: ForkLock::default(),
            opened: Targets::new(sys.clone()),
            emulation: OnceLock::new(),
        }
    }

    /// Opens the plan's target `index`. Writes its marker if this is its first use.
    pub fn planned(&self, index: u32) -> Result<Arc<Target>, TargetError> {
        let index = index as usize;
        if let Some(target) = self.prepared.lock().get(index).and_then(Clone::clone) {
            return Ok(target);
        }
        let Some(TargetSpec { name, path, .. }) = self.planned.get(index) else {
            let problem = format!("target number {index} is not in the plan's cluster");
            return Err(TargetError::Unusable { path: PathBuf::new(), problem });
        };
        let target = Arc::new(Target::prepare(&self.sys, path, name)?);
        let mut prepared = self.prepared.lock();
        prepared.resize(self.planned.len(), None);
        // If another thread was first, its target stays.
        Ok(prepared[index].get_or_insert(target).clone())
    }

    pub fn planned_path(&self, index: u32) -> Option<&Path> {
        self.planned.get(index as usize).map(|planned| planned.path.as_path())
    }

    pub fn named(&self, reference: &TargetRef) -> Result<Arc<Target>, TargetError> {
        self.opened.get(reference)
    }

    /// The number of the plan's target in this directory, if there is one.
    pub fn planned_at(&self, path: &Path) -> Option<u32> {
        self.planned.iter().position(|planned| planned.path == path).map(|index| index as u32)
    }

    /// The emulated server of each target. A target is emulated if the plan has an emulated target
    /// in the same directory.
    pub fn servers(&self, targets: &[Arc<Target>]) -> FileResult<Vec<Option<Server>>> {
        targets.iter().map(|target| self.server(target)).collect()
    }

    fn server(&self, target: &Target) -> FileResult<Option<Server>> {
        let emulated = self.planned_at(target.path()).and_then(|index| self.emulated[index as usize].as_ref());
        let Some(params) = emulated else { return Ok(None) };
        let io = FileError::io(target.path(), "attach to the emulated servers");
        let emulation = match self.emulation.get() {
            Some(emulation) => emulation,
            None => match Emulation::attach(&self.sys, None) {
                Ok(emulation) => self.emulation.get_or_init(|| emulation),
                Err(errno) => return Err(io(errno)),
            },
        };
        emulation.server(target.id(), params).map(Some).map_err(io)
    }
}

/// An answer is valid for this time. Writes of other programs meanwhile show as ENOSPC.
const KNOWN_NS: u64 = 1_000_000_000;

/// Per directory, the free space of its file system at the last query, less the space reserved
/// since. Shareable between threads.
#[derive(Debug, Default)]
pub(crate) struct FreeSpace(ForkLock<HashMap<PathBuf, Known>>);

#[derive(Clone, Copy, Debug)]
struct Known {
    left_bytes: u64,
    asked_ns: u64,
}

impl FreeSpace {
    /// Reserves `need_bytes` at `place` at time `now_ns`; queries the free space with `ask` if the
    /// known value is too old or too small. Returns the free bytes as inner error if they are not
    /// enough.
    pub fn promise<E>(
        &self,
        place: &Path,
        need_bytes: u64,
        now_ns: u64,
        ask: impl FnOnce() -> Result<u64, E>,
    ) -> Result<Result<(), u64>, E> {
        let is_recent = |known: &&mut Known| now_ns.saturating_sub(known.asked_ns) < KNOWN_NS;
        if let Some(known) = self.0.lock().get_mut(place).filter(is_recent)
            && let Some(left_bytes) = known.left_bytes.checked_sub(need_bytes)
        {
            known.left_bytes = left_bytes;
            return Ok(Ok(()));
        }
        let free_bytes = ask()?;
        let Some(left_bytes) = free_bytes.checked_sub(need_bytes) else { return Ok(Err(free_bytes)) };
        self.0.lock().insert(place.to_owned(), Known { left_bytes, asked_ns: now_ns });
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn it_is_asked_when_an_answer_is_old_or_used_up() {
        let (space, asked, free) = (FreeSpace::default(), Cell::new(0), Cell::new(100));
        let promise = |place: &str, need, now_ns| {
            space.promise::<()>(Path::new(place), need, now_ns, || {
                asked.set(asked.get() + 1);
                Ok(free.get())
            })
        };
        for (place, need, now_ns, expected, asked_so_far) in [
            ("a", 60, 0, Ok(()), 1),
            ("a", 40, KNOWN_NS - 1, Ok(()), 1),
            // Reserved space may be free again, because the copy replaced a file.
            ("a", 1, KNOWN_NS - 1, Ok(()), 2),
            ("b", 101, KNOWN_NS - 1, Err(100), 3),
            ("a", 101, KNOWN_NS, Err(100), 4),
            ("a", 1, 2 * KNOWN_NS - 2, Ok(()), 4),
            ("a", 1, 2 * KNOWN_NS - 1, Ok(()), 5),
        ] {
            assert_eq!((promise(place, need, now_ns), asked.get()), (Ok(expected), asked_so_far));
        }
        assert_eq!(space.promise(Path::new("c"), 1, 0, || Err("broken")), Err("broken"));
    }
}
