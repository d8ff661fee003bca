//! One per process: the plan's rules and targets, and every managed file that is open.

mod access;
mod blueprint;
mod build;
mod create;
mod known;
mod names;
mod open;
mod paths;
mod shape;
mod stat;
mod targets;

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use stripewise_cluster::{Plan, Reach};
use stripewise_extents::Node;
use stripewise_sys::{Mode, Stat, SysRef, Timestamps};
use stripewise_target::{Engine, FanOut};

pub(crate) use blueprint::{Blueprint, Missing, compact};
pub use build::NewFile;
pub(crate) use build::{TEMPORARY_PREFIX, temporary_id, temporary_name};
pub use open::Opened;
pub(crate) use paths::link_of;
pub use shape::Shape;

use crate::file::{Around, LogicalFile, Shared, Surroundings};
use crate::forked::ForkSafe;
use crate::migrate::FreeSpace;

/// Which file, for the kernel: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

impl FileKey {
    /// Of what fstat(2) says.
    pub fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// What is changed of a file besides its bytes.
#[derive(Clone, Debug)]
pub enum Change {
    /// utimensat(2).
    Times(Timestamps),
    /// chmod(2).
    Mode(Mode),
    /// chown(2); `None` leaves that one.
    Owner(Option<u32>, Option<u32>),
}

/// How a [`Runtime`] works.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How the pieces of a request are done at once.
    pub engine: Engine,
    /// Which machine this is, if not the one that /etc and /proc say: for tests.
    pub node: Option<Node>,
    /// Where extent maps have their directories, instead of `/dev/shm/stripewise-UID`. In memory, the same for all
    /// processes of the machine.
    pub run_base: Option<PathBuf>,
    /// Work on files with several copies goes on in the background, in a thread of this process that calls this around every
    /// piece of it; `None`: only in other processes.
    pub background: Option<Around>,
    /// Called when this process leaves a file, before its counts are gone: see [`LogicalFile::take_statistics`].
    pub leaving: Option<fn(&LogicalFile)>,
}

/// The data path of one process.
pub struct Runtime {
    shared: Arc<Shared>,
    plan: Option<Arc<Plan>>,
    /// Of the plan.
    reach: Reach,
    targets: targets::TargetTable,
    files: ForkSafe<HashMap<FileKey, Weak<LogicalFile>>>,
    manifests: ForkSafe<known::KnownManifests>,
    /// Where migrations make their copies.
    pub(crate) space: FreeSpace,
}

impl Runtime {
    /// Without a plan, existing managed files work all the same (their manifests say everything); no file becomes
    /// managed, and nothing is emulated.
    ///
    /// Touches no target yet: a target that is missing fails the first file that needs it.
    pub fn new(sys: SysRef, plan: Option<&Plan>) -> Arc<Self> {
        Self::with_engine(sys, plan, Engine::Auto)
    }

    /// As [`Runtime::new`], with a fan-out engine of the caller's choice.
    pub fn with_engine(sys: SysRef, plan: Option<&Plan>, engine: Engine) -> Arc<Self> {
        Self::with_settings(sys, plan, Settings { engine, ..Settings::default() })
    }

    /// As [`Runtime::new`], with settings.
    pub fn with_settings(sys: SysRef, plan: Option<&Plan>, settings: Settings) -> Arc<Self> {
        let targets = targets::TargetTable::new(&sys, plan);
        let fan_out = FanOut::new(sys.clone(), settings.engine);
        let surroundings =
            Arc::new(Surroundings::new(sys.clone(), settings.node, settings.run_base, settings.background));
        let shared = Arc::new(Shared { sys, fan_out, surroundings, leaving: settings.leaving });
        Arc::new(Self {
            shared,
            plan: plan.cloned().map(Arc::new),
            reach: plan.map(Reach::of).unwrap_or_default(),
            targets,
            files: ForkSafe::default(),
            manifests: ForkSafe::default(),
            space: FreeSpace::default(),
        })
    }

    /// The system underneath.
    pub fn sys(&self) -> &SysRef {
        &self.shared.sys
    }

    /// The plan, if there is one.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_deref()
    }

    /// What the plan makes a new file at this absolute path of.
    pub fn shape_for(&self, path: &Path) -> Option<Shape<'_>> {
        Shape::of(self.plan.as_ref()?.rule_for(path)?, path)
    }

    /// Whether the plan has layouts for a new file at this absolute path. Allocates nothing, and
    /// takes next to no time for paths far from the plan's.
    pub fn is_planned(&self, path: &Path) -> bool {
        let has_layouts = |plan: &Plan| plan.rule_for(path).is_some_and(|rule| !rule.layouts.is_empty());
        self.reach.has(path.as_os_str().as_bytes()) && self.plan().is_some_and(has_layouts)
    }

    /// From now on p, how many processes use the files at once, is `procs`, and `procs_per_node` of them are on this node: as
    /// an MPI library or its launcher says. Else the processes that have a file open are counted.
    pub fn set_procs(&self, procs: u32, procs_per_node: u32) {
        self.shared.surroundings.concurrency.set(procs, procs_per_node);
    }

    /// The managed file, if this process has it open. No system call.
    pub fn find(&self, key: FileKey) -> Option<Arc<LogicalFile>> {
        self.files.lock().get(&key)?.upgrade()
    }

    /// To be called in the child of a fork before anything else of the data path: gives up the locks that threads of
    /// the parent were holding.
    pub fn after_fork_child(&self) {
        if let Some(background) = &self.shared.surroundings.background {
            background.after_fork_child();
        }
        let files: Vec<_> = self.files.lock().values().filter_map(Weak::upgrade).collect();
        files.iter().for_each(|file| file.after_fork_child());
    }

    /// Enters a file; where another thread has entered it meanwhile, that one is used. One that may write replaces one
    /// that may not.
    fn enter(&self, file: LogicalFile) -> Arc<LogicalFile> {
        let key = file.key();
        let file = Arc::new(file);
        let mut files = self.files.lock();
        let present = files.get(&key).and_then(Weak::upgrade);
        if let Some(present) = present.filter(|present| present.is_writable() || !file.is_writable()) {
            drop(files);
            if let Some(file) = Arc::into_inner(file) {
                present.keep(file);
            }
            return present;
        }
        if let Some(background) = &self.shared.surroundings.background {
            background.add(&file);
        }
        files.insert(key, Arc::downgrade(&file));
        if files.len().is_power_of_two() {
            files.retain(|_, file| file.strong_count() > 0);
        }
        file
    }
}
