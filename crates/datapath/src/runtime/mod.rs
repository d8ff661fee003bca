//! The runtime: one per process, with the plan's rules and targets and every open managed file.

mod blueprint;
mod build;
mod names;
mod open;
mod stat;
mod targets;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use stripewise_cluster::{Plan, Reach, Rule, RuleIndex};
use stripewise_extents::Node;
use stripewise_sys::{ForkLock, SysRef};
use stripewise_target::{Engine, FanOut};

use crate::anchor::{FileKey, KnownManifests};
use crate::file::{Around, Context, LogicalFile};
pub use blueprint::Shape;
pub(crate) use blueprint::{Blueprint, Missing};
pub(crate) use build::{TEMPORARY_PREFIX, temporary_id, temporary_name};
pub use open::Opened;
use targets::{FreeSpace, TargetTable};

/// Settings of a [`Runtime`].
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The engine that transfers the pieces of a request concurrently.
    pub engine: Engine,
    /// The node to act as, instead of the one that /etc and /proc describe; for tests.
    pub node: Option<Node>,
    /// The parent of the extent maps' run directories, instead of `/dev/shm/stripewise-UID`. Must
    /// be in memory and the same for all processes of the machine.
    pub run_base: Option<PathBuf>,
    /// Enables background threads in this process for files with several copies; the function is
    /// called around every unit of their work. `None`: only other processes do background work.
    pub background: Option<Around>,
    /// Called when this process leaves a file, while its counts are still available, see
    /// [`LogicalFile::take_statistics`].
    pub leaving: Option<fn(&LogicalFile)>,
}

/// The data path of one process.
pub struct Runtime {
    context: Arc<Context>,
    leaving: Option<fn(&LogicalFile)>,
    plan: Option<Arc<Plan>>,
    /// The path prefixes that the plan's rules can match.
    reach: Reach,
    rules: RuleIndex,
    targets: TargetTable,
    files: ForkLock<HashMap<FileKey, Weak<LogicalFile>>>,
    manifests: ForkLock<KnownManifests>,
    /// The known free space where migrations create their temporaries.
    pub(crate) space: FreeSpace,
}

impl Runtime {
    /// Creates a runtime. Without a plan, existing managed files still work, because their
    /// manifests contain everything needed; but no new file becomes managed, and no server is
    /// emulated.
    ///
    /// Touches no target: a missing target fails the first file that needs it.
    pub fn new(sys: SysRef, plan: Option<&Plan>) -> Arc<Self> {
        Self::with_settings(sys, plan, Settings::default())
    }

    /// Same as [`Runtime::new`], with the given settings.
    pub fn with_settings(sys: SysRef, plan: Option<&Plan>, settings: Settings) -> Arc<Self> {
        let Settings { engine, node, run_base, background, leaving } = settings;
        let fan_out = FanOut::new(sys.clone(), engine);
        Arc::new(Self {
            targets: TargetTable::new(&sys, plan),
            context: Arc::new(Context::new(sys, fan_out, node, run_base, background)),
            leaving,
            plan: plan.cloned().map(Arc::new),
            reach: plan.map(Reach::of).unwrap_or_default(),
            rules: plan.map(RuleIndex::of).unwrap_or_default(),
            files: ForkLock::default(),
            manifests: ForkLock::default(),
            space: FreeSpace::default(),
        })
    }

    /// The system interface.
    pub fn sys(&self) -> &SysRef {
        &self.context.sys
    }

    /// The plan, if there is one.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_deref()
    }

    /// The plan's rule for the file at this absolute path. Does not allocate.
    pub fn rule_for(&self, path: &Path) -> Option<&Rule> {
        self.rules.rule_for(self.plan()?, path)
    }

    /// Sets p, the number of processes that use the files at once, to `procs`, and c, the number of
    /// them on this node, to `procs_per_node`, as known from an MPI library or its launcher.
    /// Otherwise the processes that have a file open are counted.
    pub fn set_procs(&self, procs: u32, procs_per_node: u32) {
        self.context.concurrency.set(procs, procs_per_node);
    }

    /// The managed file, if this process has it open. Makes no system call.
    pub fn find(&self, key: FileKey) -> Option<Arc<LogicalFile>> {
        self.files.lock().get(&key)?.upgrade()
    }

    /// Must be called in a forked child before any other use of the data path: gives up the locks
    /// that threads of the parent held.
    pub fn after_fork_child(&self) {
        if let Some(background) = &self.context.background {
            background.after_fork_child();
        }
        let files: Vec<_> = self.files.lock().values().filter_map(Weak::upgrade).collect();
        files.iter().for_each(|file| file.after_fork_child());
    }

    /// Enters a file in the table. If another thread has entered it meanwhile, that one is used,
    /// unless only the new one is writable.
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
        if let Some(background) = &self.context.background {
            file.as_copying().into_iter().for_each(|work| background.copying.add(work));
        }
        files.insert(key, Arc::downgrade(&file));
        if files.len().is_power_of_two() {
            files.retain(|_, file| file.strong_count() > 0);
        }
        file
    }
}
