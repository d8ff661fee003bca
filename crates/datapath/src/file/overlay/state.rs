//! The state of the copies of an open file in this process, and what the files of a process share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use stripewise_cluster::Counts;
use stripewise_extents::{Journal, Map, MapSpec, Mask, Node, default_run_dir};
use stripewise_policy::Streams;
use stripewise_sys::{ForkLock, SysRef};
use stripewise_target::{FanOut, Target};

use super::accounts::{Accounts, Spaces};
use super::activity::{Activity, Base, SharedWords};
use super::background::{Around, Background, Progress, Turn};
use super::choice::{Choice, Concurrency, CriticalData, Measured, Rates};
use super::slot::{MapRef, MapSlot};
use crate::error::{Errno, FileResult, Logged, Result};
use crate::file::copy::OpenCopy;
use crate::manifest::{Copies, Manifest};

/// The state of one open file with several copies.
pub(crate) struct Overlay {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) copies: Copies,
    pub(crate) context: Arc<Context>,
    pub(crate) spec: MapSpec,
    /// Replaces `spec` once this process has given the file to another user.
    pub(crate) given: OnceLock<MapSpec>,
    pub(crate) slot: MapSlot,
    /// `None` without a plan that knows the servers: the costs of the copies are then unknown.
    pub(crate) rates: Option<Rates>,
    pub(crate) choice: ForkLock<Option<Arc<Choice>>>,
    pub(crate) measured: Measured,
    pub(crate) streams: Streams,
    /// Copies that failed in this process, as a bit mask: used only where no other copy can be.
    pub(crate) failing: AtomicU8,
    /// This process has the file mapped.
    pub(crate) mapped: AtomicBool,
    /// The counts at the time of the last report, see [`LogicalFile::take_statistics`].
    pub(crate) reported: ForkLock<Counts>,
    /// Excludes background work while the file is closed.
    pub(crate) turn: Arc<Turn>,
    /// A background thread does what other nodes wait for.
    pub(crate) is_served: AtomicBool,
    pub(crate) progress: Progress,
    pub(crate) activity: Activity,
    /// Number of requests of this process in progress.
    pub(crate) under_way: AtomicU32,
    /// Per copy, the words that count the used space of its targets.
    pub(crate) accounts: [OnceLock<Accounts>; 8],
}

/// State that the files of a process share.
pub(crate) struct Context {
    pub sys: SysRef,
    /// The node to act as, instead of this machine.
    node: Option<Node>,
    /// The parent of the run directories, instead of [`default_run_dir`].
    run_base: Option<PathBuf>,
    pub fan_out: FanOut,
    pub concurrency: Concurrency,
    pub data: CriticalData,
    pub spaces: Spaces,
    pub activities: SharedWords,
    /// `None` if this process does no background work.
    pub background: Option<Background>,
}

impl Context {
    pub fn new(
        sys: SysRef,
        fan_out: FanOut,
        node: Option<Node>,
        run_base: Option<PathBuf>,
        background: Option<Around>,
    ) -> Self {
        Self {
            fan_out,
            concurrency: Concurrency::default(),
            data: CriticalData::default(),
            spaces: Spaces::new(sys.clone()),
            activities: SharedWords::default(),
            background: background.map(|around| Background::new(&sys, around)),
            sys,
            node,
            run_base,
        }
    }

    /// The extent map of a file with several copies whose `ID.manifest` lies on `target` and whose
    /// owner is `owner`.
    pub fn spec(&self, manifest: &Manifest, target: &Target, owner: u32) -> FileResult<MapSpec> {
        let (id, copies) = (manifest.id, manifest.all_copies().count());
        let is_cache = manifest.copies.as_ref().is_some_and(|copies| copies.is_cache());
        let journal_name = format!("{id}.extents");
        Ok(MapSpec {
            node: self.node.clone().map_or_else(|| Node::this(&self.sys), Ok)?,
            run_dir: match &self.run_base {
                Some(base) => base.join(id.to_string()),
                None => default_run_dir(&self.sys, owner, id.0)?,
            },
            journal_base: target.path().to_owned(),
            journal_below: target.directory_of(manifest.objects(owner), &journal_name),
            journal_name: journal_name.into(),
            id: id.0,
            copies,
            default: if is_cache { Mask::ORIGINAL } else { Mask::all(copies) },
            owner: Some(owner),
            create: false,
            sessions: target.has_sessions(),
        })
    }
}

impl Overlay {
    /// Creates the overlay of a file with several `copies`. The map is joined at its first use or
    /// by [`Overlay::map`].
    pub fn new(
        context: &Arc<Context>,
        manifest: &Arc<Manifest>,
        copies: &Copies,
        spec: MapSpec,
        rates: Option<Rates>,
    ) -> Self {
        Self {
            manifest: manifest.clone(),
            copies: copies.clone(),
            activity: Activity::new(&context.sys, &context.activities, base(&spec), manifest),
            context: context.clone(),
            spec,
            given: OnceLock::new(),
            slot: MapSlot::default(),
            rates,
            choice: ForkLock::default(),
            measured: Measured::default(),
            streams: Streams::default(),
            failing: AtomicU8::new(0),
            mapped: AtomicBool::new(false),
            reported: ForkLock::default(),
            turn: Arc::default(),
            is_served: AtomicBool::new(false),
            progress: Progress::default(),
            under_way: AtomicU32::new(0),
            accounts: Default::default(),
        }
    }

    pub(crate) fn spec(&self) -> &MapSpec {
        self.given.get().unwrap_or(&self.spec)
    }

    /// Whether other processes have the file open, or were killed while they had it open.
    pub fn is_used_by_others(&self) -> Result<bool> {
        let sys = &self.context.sys;
        if self.spec().is_owners(sys) {
            return Ok(self.map()?.processes().logged()? > 1);
        }
        Ok(Journal::read(sys, self.spec()).logged()?.opened.is_some())
    }

    /// Switches to the map of the new owner `user`. This process must have left the old map.
    ///
    /// # Errors
    /// EBUSY: this process gave the file away before.
    pub fn now_owned_by(&self, user: u32, original: &OpenCopy) -> Result<()> {
        let target = original.objects().targets().first().ok_or(Errno::IO)?;
        let spec = self.context.spec(&self.manifest, target, user).logged()?;
        self.given.set(spec).map_err(|_| Errno::BUSY)
    }

    /// Whether this process has given the file to another user. Only processes of the owner join
    /// the map.
    pub fn is_given_away(&self) -> bool {
        self.given.get().is_some()
    }

    /// The map; joins it if necessary.
    pub fn join(&self) -> FileResult<MapRef<'_>> {
        self.slot.get(|| Ok(Map::join(self.context.sys.clone(), self.spec().clone())?))
    }

    pub fn map(&self) -> Result<MapRef<'_>> {
        self.join().logged()
    }

    pub fn remove(&self) -> FileResult<()> {
        Ok(stripewise_extents::repair::remove(&self.context.sys, self.spec())?)
    }

    /// Takes the map out of its slot, so that the caller can leave it.
    pub fn take_map(&self) -> Option<Map> {
        let map = self.slot.take(&self.context.sys);
        self.forget_reported();
        map
    }

    pub(crate) fn base(&self) -> Base<'_> {
        base(self.spec())
    }

    /// Resets the last report: the counts start from 0 again.
    fn forget_reported(&self) {
        *self.reported.lock() = Counts::default();
    }

    pub fn has_mapped(&self) -> bool {
        self.mapped.load(Ordering::Acquire)
    }

    /// For a forked child: must be called before any other use of the file.
    pub fn after_fork_child(&self) {
        self.turn.after_fork_child();
        self.under_way.store(0, Ordering::Relaxed);
        self.slot.after_fork_child();
        self.forget_reported();
        let Some(map) = self.slot.known() else { return };
        if self.mapped.load(Ordering::Acquire) {
            // The child has inherited the mappings. If this fails, the next call on the map reports
            // the error.
            let _ = map.set_mapped(true);
        }
    }
}

pub(super) fn base(spec: &MapSpec) -> Base<'_> {
    Base { path: spec.run_dir.parent().unwrap_or(&spec.run_dir), owner: spec.owner }
}

/// Counts a request as in progress until dropped.
pub(crate) struct UnderWay<'a>(pub &'a AtomicU32);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
