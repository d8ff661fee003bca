//! Files with several copies: the extent map of the file, and the decision which copy serves which
//! request.
//!
//! `docs/decisions/0006-copies.md` specifies this module. The order of data and map updates is that
//! of `docs/formats/extents.md`.
//!
//! - `Overlay` is the state of such a file in this process. `CopySet` (`copy_set`) is the file with
//!   its overlay and its joined extent map; the functions below are its methods.
//! - Requests: `read` and `write` follow the protocols of the map. `choice` selects the copy for
//!   each range, `request` transfers the ranges, and `space` reserves space in caches.
//! - Background work: `background` runs the thread, `work` does one unit of work on a file, and
//!   `copying` and `evict` move data. `activity` and `turn` make the work yield to requests and to
//!   close.
//! - Commands: `drain` (also `warm`), `compare` and `tidy`.
//! - Special cases: `mapping` for mmap, `size` and `times` for lost and restored copies, `holes`
//!   for lseek.

mod activity;
mod background;
mod choice;
mod compare;
mod concurrency;
mod copy_set;
mod copying;
mod drain;
mod evict;
mod holes;
mod mapping;
mod read;
mod request;
mod size;
mod slot;
mod space;
mod statistics;
mod tidy;
mod times;
mod turn;
mod words;
mod work;
mod write;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use stripewise_cluster::OverlayKind;
use stripewise_extents::{Journal, Map, MapSpec, Mask, Node, default_run_dir};
use stripewise_policy::Streams;
use stripewise_sys::SysRef;
use stripewise_target::{Objects, Target};

pub(crate) use activity::Activities;
pub use background::Around;
pub(crate) use background::Background;
pub(crate) use choice::{CriticalData, Rates};
pub use compare::Difference;
pub(crate) use concurrency::Concurrency;
pub(crate) use copy_set::{CopySet, each_span};
pub use drain::{Drained, Tell};
pub(super) use request::Request;
pub(crate) use slot::MapRef;
pub(crate) use space::Spaces;
pub use statistics::Statistics;
pub(crate) use times::{check_times, forget_times};
pub(crate) use turn::Turn;

use super::{LogicalFile, OpenCopy};
use crate::error::{Errno, FileResult, Logged, Result};
use crate::forked::ForkSafe;
use crate::manifest::{Copies, Manifest};
use choice::Choice;
use slot::MapSlot;
use words::Base;

/// The state of one open file with several copies.
pub(crate) struct Overlay {
    manifest: Arc<Manifest>,
    copies: Copies,
    context: Arc<Context>,
    spec: MapSpec,
    /// Replaces `spec` once this process has given the file to another user.
    given: OnceLock<MapSpec>,
    slot: MapSlot,
    /// `None` without a plan that knows the servers: the costs of the copies are then unknown.
    rates: Option<Rates>,
    choice: ForkSafe<Option<Arc<Choice>>>,
    measured: concurrency::Measured,
    streams: Streams,
    /// Copies that failed in this process, as a bit mask: used only where no other copy can be.
    failing: AtomicU8,
    /// This process has the file mapped.
    mapped: AtomicBool,
    /// The counts at the time of the last report, see [`LogicalFile::take_statistics`].
    reported: ForkSafe<Statistics>,
    turn: Arc<Turn>,
    progress: work::Progress,
    activity: activity::Activity,
    /// Number of requests of this process in progress.
    under_way: AtomicU32,
    /// Per copy, the words that count the used space of its targets.
    accounts: [OnceLock<space::Accounts>; 8],
}

/// State that the overlays of a process share.
pub(crate) struct Context {
    pub sys: SysRef,
    /// The node to act as, instead of this machine.
    pub node: Option<Node>,
    /// The parent of the run directories, instead of [`default_run_dir`].
    pub run_base: Option<PathBuf>,
    pub concurrency: Concurrency,
    pub data: CriticalData,
    pub spaces: Spaces,
    pub activities: Activities,
    /// `None` if this process does no background work.
    pub background: Option<Arc<Background>>,
}

impl Context {
    pub fn new(sys: SysRef, node: Option<Node>, run_base: Option<PathBuf>, background: Option<Around>) -> Self {
        let (concurrency, data) = (Concurrency::default(), CriticalData::default());
        let spaces = Spaces::new(sys.clone());
        let background = background.map(|around| Background::new(sys.clone(), around));
        Self { sys, node, run_base, concurrency, data, spaces, activities: Activities::default(), background }
    }

    /// The extent map of a file with several copies whose `ID.manifest` lies on `target` and whose
    /// owner is `owner`.
    ///
    /// # Errors
    /// This machine cannot be distinguished from others.
    pub fn spec(&self, manifest: &Manifest, target: &Target, owner: u32) -> FileResult<MapSpec> {
        let (id, copies) = (manifest.id, manifest.all_copies().count());
        let kind = manifest.copies.as_ref().map(|copies| copies.kind);
        let default = match kind {
            Some(OverlayKind::Cache { .. }) => Mask::ORIGINAL,
            _ => Mask::all(copies),
        };
        let node = self.node.clone().map_or_else(|| Node::this(&self.sys), Ok)?;
        let run_dir = match &self.run_base {
            Some(base) => base.join(id.to_string()),
            None => default_run_dir(&self.sys, owner, id.0)?,
        };
        let journal_name = format!("{id}.extents");
        let journal_below = target.directory_of(&self.sys, Objects { id, owner }, &journal_name);
        let journal_name = journal_name.into();
        let owner = Some(owner);
        Ok(MapSpec {
            run_dir,
            journal_base: target.path().to_owned(),
            journal_below,
            journal_name,
            id: id.0,
            copies,
            default,
            owner,
            node,
            create: false,
        })
    }
}

impl Overlay {
    /// Creates the overlay of a file with several copies; `None` for other files. The map is joined
    /// at its first use or by [`Overlay::map`].
    pub fn new(
        context: &Arc<Context>,
        manifest: &Arc<Manifest>,
        spec: MapSpec,
        rates: Option<Rates>,
    ) -> Option<Self> {
        let copies = manifest.copies.as_deref()?.clone();
        let Context { sys, activities, .. } = &**context;
        let activity = activity::Activity::new(sys, activities, base(&spec), manifest);
        Some(Self {
            manifest: manifest.clone(),
            copies,
            context: context.clone(),
            spec,
            given: OnceLock::new(),
            slot: MapSlot::default(),
            rates,
            choice: ForkSafe::default(),
            measured: concurrency::Measured::default(),
            streams: Streams::default(),
            failing: AtomicU8::new(0),
            mapped: AtomicBool::new(false),
            reported: ForkSafe::default(),
            turn: Arc::default(),
            progress: work::Progress::default(),
            activity,
            under_way: AtomicU32::new(0),
            accounts: Default::default(),
        })
    }

    fn spec(&self) -> &MapSpec {
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
        let target = original.components().targets().first().ok_or(Errno::IO)?;
        let spec = self.context.spec(&self.manifest, target, user).logged()?;
        self.given.set(spec).map_err(|_| Errno::BUSY)
    }

    /// Whether this process has given the file to another user. Only processes of the owner join
    /// the map.
    pub fn is_given_away(&self) -> bool {
        self.given.get().is_some()
    }

    /// The map; joins it if necessary.
    ///
    /// # Errors
    /// Every [`stripewise_extents::MapError`].
    pub fn join(&self) -> FileResult<MapRef<'_>> {
        self.slot.get(|| Ok(Map::join(self.context.sys.clone(), self.spec().clone())?))
    }

    pub fn map(&self) -> Result<MapRef<'_>> {
        self.join().logged()
    }

    /// Removes the map of a file that is removed.
    pub(super) fn remove(&self) -> FileResult<()> {
        Ok(stripewise_extents::repair::remove(&self.context.sys, self.spec())?)
    }

    /// Takes the map out of its slot, so that the caller can leave it.
    pub(super) fn take_map(&self) -> Option<Map> {
        let map = self.slot.take(&self.context.sys);
        self.forget_reported();
        map
    }

    /// The turn that excludes background work while the file is closed.
    pub fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    fn base(&self) -> Base<'_> {
        base(self.spec())
    }

    /// Whether this process has the file mapped.
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

fn base(spec: &MapSpec) -> Base<'_> {
    Base { path: spec.run_dir.parent().unwrap_or(&spec.run_dir), owner: spec.owner }
}

/// Counts a request as in progress until dropped.
struct UnderWay<'a>(&'a AtomicU32);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LogicalFile {
    /// Whether other processes of this node have a file with several copies open. (Always false for
    /// a file with one copy, which has no map to show it.)
    pub(crate) fn has_other_members(&self) -> bool {
        let Some(overlay) = self.overlay() else { return false };
        overlay.map().is_ok_and(|map| map.processes().is_ok_and(|processes| processes > 1))
    }
}
