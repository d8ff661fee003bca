//! The targets that this process has opened, and their emulated servers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use stripewise_cluster::Plan;
use stripewise_model::ClassParams;
use stripewise_sys::SysRef;
use stripewise_target::{Emulation, Server, Target, TargetError, TargetRef, Targets};

use crate::error::{FileError, FileResult};
use crate::forked::ForkSafe;

/// A target of the plan.
struct Planned {
    name: String,
    path: PathBuf,
    /// The class whose speed is emulated; `None` if the target is not emulated.
    emulated: Option<ClassParams>,
}

pub(super) struct TargetTable {
    sys: SysRef,
    planned: Vec<Planned>,
    /// The open targets of the plan, by their index in the plan.
    prepared: ForkSafe<Vec<Option<Arc<Target>>>>,
    /// The open targets named by manifests.
    opened: Targets,
    emulation: OnceLock<Arc<Emulation>>,
}

impl TargetTable {
    pub fn new(sys: &SysRef, plan: Option<&Plan>) -> Self {
        let planned = plan.map_or_else(Vec::new, |plan| {
            let specs = plan.cluster.targets().into_iter().zip(0..);
            let planned = specs.map(|(spec, index)| Planned {
                emulated: plan.cluster.emulation_of(index).copied(),
                name: spec.name,
                path: spec.path,
            });
            planned.collect()
        });
        Self {
            sys: sys.clone(),
            planned,
            prepared: ForkSafe::default(),
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
        let Some(Planned { name, path, .. }) = self.planned.get(index) else {
            let problem = format!("target number {index} is not in the plan's cluster");
            return Err(TargetError::Unusable { path: PathBuf::new(), problem });
        };
        let target = Arc::new(Target::prepare(&self.sys, path, name)?);
        let mut prepared = self.prepared.lock();
        prepared.resize(self.planned.len(), None);
        // If another thread was first, its target stays.
        Ok(prepared[index].get_or_insert(target).clone())
    }

    /// The directory of the plan's target `index`.
    pub fn planned_path(&self, index: u32) -> Option<&Path> {
        self.planned.get(index as usize).map(|planned| planned.path.as_path())
    }

    /// Opens the targets that a manifest names.
    pub fn of_manifest(&self, references: &[TargetRef]) -> Result<Vec<Arc<Target>>, TargetError> {
        references.iter().map(|reference| self.opened.get(reference)).collect()
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
        let planned = self.planned.iter().find(|planned| planned.path == target.path());
        let Some(params) = planned.and_then(|planned| planned.emulated.as_ref()) else { return Ok(None) };
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
