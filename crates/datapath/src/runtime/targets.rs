//! The targets that this process has opened, and the emulated servers among them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use stripewise_cluster::Plan;
use stripewise_model::ClassParams;
use stripewise_sys::SysRef;
use stripewise_target::{Emulation, Server, Target, TargetError, TargetRef, Targets};

use crate::forked::ForkSafe;
use crate::trouble::Trouble;

/// A target of the plan.
struct Planned {
    name: String,
    path: PathBuf,
    /// What to pace it by, if it is emulated.
    emulated: Option<ClassParams>,
}

pub(super) struct TargetTable {
    sys: SysRef,
    planned: Vec<Planned>,
    /// Opened ones of the plan, by index there.
    prepared: ForkSafe<Vec<Option<Arc<Target>>>>,
    /// Those of manifests.
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

    /// The plan's target `index`; its marker is written if this is the first use.
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
        // Where another thread was first, its one stays.
        Ok(prepared[index].get_or_insert(target).clone())
    }

    /// The directory of the plan's target `index`.
    pub fn planned_path(&self, index: u32) -> Option<&Path> {
        self.planned.get(index as usize).map(|planned| planned.path.as_path())
    }

    /// The targets that a manifest names.
    pub fn of_manifest(&self, references: &[TargetRef]) -> Result<Vec<Arc<Target>>, TargetError> {
        references.iter().map(|reference| self.opened.get(reference)).collect()
    }

    /// The number in the plan of the target in this directory, if the plan has it.
    pub fn planned_at(&self, path: &Path) -> Option<u32> {
        self.planned.iter().position(|planned| planned.path == path).map(|index| index as u32)
    }

    /// The emulated server of each target: a target is emulated when the plan has one in the same directory that is.
    pub fn servers(&self, targets: &[Arc<Target>]) -> Result<Vec<Option<Server>>, Trouble> {
        targets.iter().map(|target| self.server(target)).collect()
    }

    fn server(&self, target: &Target) -> Result<Option<Server>, Trouble> {
        let planned = self.planned.iter().find(|planned| planned.path == target.path());
        let Some(params) = planned.and_then(|planned| planned.emulated.as_ref()) else { return Ok(None) };
        let trouble = Trouble::io(target.path(), "attach to the emulated servers");
        let emulation = match self.emulation.get() {
            Some(emulation) => emulation,
            None => match Emulation::attach(&self.sys, None) {
                Ok(emulation) => self.emulation.get_or_init(|| emulation),
                Err(errno) => return Err(trouble(errno)),
            },
        };
        emulation.server(target.id(), params).map(Some).map_err(trouble)
    }
}
