//! The copier of a node beside other nodes (`docs/formats/nodes.md`, "Copy" and "Evict").

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::copy::add_range;
use crate::error::caller;
use crate::exclusive::Exclusive;
use crate::hooks::{self, reach};
use crate::joined::Joined;
use crate::nodelog::Appended;
use crate::nodes::{
    Engine, Hold, HoldKind, Log, Record, evicted, is_write, may_add, may_punch, own_holds, with_hold,
};
use crate::shared::{Counter, Extent, SlotState, Word};
use crate::{Copier, CopyId, Result, Span};

/// Time that an eviction waits for the acknowledgements of other nodes, ns.
const ACKNOWLEDGED_NS: u64 = 3_000_000_000;
/// Pause between two looks at the log, ns.
const LOOK_NS: u64 = 20_000_000;

impl Copier<'_> {
    /// [`Copier::evict`] beside other nodes: they stop using the copy before anything is punched.
    pub(crate) fn evict_beside(
        &self,
        range: &Range<u64>,
        copy: CopyId,
        sync_data: impl FnOnce() -> stripewise_sys::Result<()>,
        punch: impl FnOnce(&[Range<u64>]) -> stripewise_sys::Result<()>,
    ) -> Result<Vec<Range<u64>>> {
        let joined = self.joined;
        if joined.is_pending(range)? {
            let mut commit = joined.commit_to_sync()?;
            joined.sync_with(&mut commit, sync_data, false)?;
        }
        let all = std::slice::from_ref(range);
        let Some(_work) = self.work(range, all, Some(copy), Extent::Everywhere) else { return Ok(Vec::new()) };
        reach("finish");
        if !joined.shared.slot().finish() || joined.is_pending(range)? {
            joined.shared.count(&joined.block, Counter::GivenUp, 1);
            return Ok(Vec::new());
        }
        let Some(changed) = joined.intend_to_evict(range, copy)? else { return Ok(Vec::new()) };
        let _evict = Exclusive::of_copier(joined);
        // From here on writers need not wait; they only avoid the copy.
        joined.shared.slot().set(SlotState::Tainted);
        if !joined.is_acknowledged(range)? {
            // The next eviction there frees the space.
            return Ok(Vec::new());
        }
        joined.shared.word(Word::Evictions).fetch_add(1, Ordering::SeqCst);
        reach("punch");
        let punched = joined.not_valid(range, copy)?;
        punch(&punched).map_err(caller("punch a hole"))?;
        Ok(joined.count_evicted(&changed))
    }
}

impl Joined {
    /// The intent of an eviction. Returns the changed spans; `None` if others have holds there.
    fn intend_to_evict(&self, range: &Range<u64>, copy: CopyId) -> Result<Option<Vec<Span>>> {
        let hold = Hold { range: range.clone(), kind: HoldKind::Evict };
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            let (own, mut changed) = (engine.session(), None);
            let decide = &mut |log: &Log| {
                changed = None;
                // A process that has died may have been cutting the file.
                if !may_add(log, own, &hold) || !own_holds(log, own).iter().all(is_write) {
                    return Vec::new();
                }
                let spans = evicted(log, range, copy);
                changed = Some(spans.clone());
                let changes = (!spans.is_empty()).then_some(Record::Changes(spans));
                changes.into_iter().chain([with_hold(log, own, hold.clone())]).collect()
            };
            let done = self.append(engine, decide)?;
            Ok(changed.filter(|_| matches!(done, Appended::Done)))
        })
    }

    /// Waits until every other session has acknowledged the eviction; false after a while.
    fn is_acknowledged(&self, range: &Range<u64>) -> Result<bool> {
        let until_ns = self.sys.now_ns() + ACKNOWLEDGED_NS;
        loop {
            let may = {
                let _node = self.lock_node()?;
                self.with_engine(|engine| {
                    self.read_log(engine)?;
                    Ok(may_punch(engine.log(), engine.session(), range))
                })?
            };
            if may || self.sys.now_ns() >= until_ns {
                return Ok(may);
            }
            self.recover_some(false)?;
            if !hooks::blocked() {
                self.sys.sleep_until_ns(self.sys.now_ns() + LOOK_NS);
            }
        }
    }

    fn not_valid(&self, range: &Range<u64>, copy: CopyId) -> Result<Vec<Range<u64>>> {
        let mut parts = Vec::new();
        self.each_part(range.clone(), |part| {
            if !part.mask.contains(copy) {
                add_range(&mut parts, &part);
            }
            true
        })?;
        Ok(parts)
    }
}
