//! Holds that keep other nodes off a range while this one copies, evicts or truncates
//! (`docs/formats/nodes.md`, "Copy, evict and truncate").

use std::ops::Range;

use crate::hooks;
use crate::joined::Joined;
use crate::nodelog::Appended;
use crate::nodes::{Log, Record, is_write, without_holds};
use crate::shared::Counter;
use crate::{Result, Span};

/// A hold that keeps other nodes off a range, until it is dropped.
pub(crate) struct Exclusive<'j>(&'j Joined);

impl<'j> Exclusive<'j> {
    /// The hold that the copier of the node has.
    pub fn of_copier(joined: &'j Joined) -> Self {
        Self(joined)
    }

    /// The hold for a copy; `None` if others write there now, who are not made to stop.
    pub fn on(joined: &'j Joined, range: &Range<u64>) -> Result<Option<Self>> {
        if joined.try_exclusive(range, false)? {
            return Ok(Some(Self(joined)));
        }
        joined.shared.count(&joined.block, Counter::GivenUp, 1);
        Ok(None)
    }

    /// The hold for a truncate, which waits until others have given up theirs.
    pub fn wait(joined: &'j Joined, range: &Range<u64>) -> Result<Self> {
        joined.wait_for_exclusive(range)?;
        Ok(Self(joined))
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        if !hooks::dead() {
            // Else the next copier does.
            let _ = self.0.drop_exclusive();
        }
    }
}

impl Joined {
    /// Appends the result of a copy, and gives up the copier's hold. False if it cannot now.
    pub fn append_copied(&self, added: &[Span]) -> Result<bool> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            let own = engine.session();
            let decide = &mut |log: &Log| {
                vec![Record::Changes(added.to_vec()), without_holds(log, own, |hold| !is_write(hold))]
            };
            self.append(engine, decide).map(|done| matches!(done, Appended::Done))
        })
    }

    /// The number of the last transaction that the log contains.
    pub fn committed(&self) -> Result<u64> {
        let txn = self.read()?;
        Ok(self.index.state(&txn)?.committed)
    }
}
