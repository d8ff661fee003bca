//! The steps of the nodes: what may come next, and what it does.

use std::ops::Range;

use super::oracle::HOLE;
use super::world::{Node, Presence, Reading, Work, World, Writing};
use crate::nodes::{
    Hold, HoldKind, Record, Session, evicted, is_asked, is_granted, is_usable, may_add, may_be_alone,
    may_punch, may_recover, owes_acknowledgement, own_holds, recover, with_hold, without_holds,
};
use crate::{CopyId, Span};

/// A step of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub node: usize,
    pub kind: Kind,
    /// The node crashes in the step's append, after the first batch.
    pub is_torn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Join,
    Leave,
    Crash { is_reverted: bool },
    CutOff { is_reverted: bool },
    Return,
    Read,
    ReadPart,
    Acknowledge,
    BeAlone,
    Share,
    Recover(Session),
    FinishTruncate,
    Rewrite,
    Hold { start: u64, end: u64, copy: usize },
    BeginWrite { start: u64, end: u64, copy: usize },
    Data,
    EndWrite,
    Abort,
    List { gives_up: bool },
    Commit,
    Copy { block: u64, to: usize },
    CopyRead,
    CopyWrite,
    Evict { block: u64, copy: usize },
    Punch,
    Truncate { to: u64 },
    Cut,
    EndWork,
    BeginRead { block: u64, copy: usize },
    EndRead,
}

fn hold(range: Range<u64>, kind: HoldKind) -> Hold {
    Hold { range, kind }
}

fn is_works(hold: &Hold) -> bool {
    matches!(hold.kind, HoldKind::Exclusive | HoldKind::Evict)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Node {
    fn is_writing_in(&self, range: &Range<u64>) -> bool {
        self.writing.as_ref().is_some_and(|writing| overlap(&writing.range, range))
    }

    /// Whether a commit may give up the hold: no write is in progress under it.
    fn may_give_up(&self, hold: &Hold) -> bool {
        matches!(hold.kind, HoldKind::Write(_)) && !self.is_writing_in(&hold.range)
    }

    /// Whether own writes must not go to `copy` in `range`, as the slot says.
    fn is_forbidden(&self, range: &Range<u64>, copy: usize) -> bool {
        match &self.work {
            Some(Work::Copy { block, to, .. }) => *to == copy && range.contains(block),
            Some(Work::Evict { block, copy: from, .. }) => *from == copy && range.contains(block),
            Some(Work::Truncate { to, .. }) => range.end > *to,
            None => false,
        }
    }
}

impl World {
    /// All steps that may come next.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for node in 0..self.nodes.len() {
            let mut kinds = Vec::new();
            match self.nodes[node].presence {
                Presence::Down => kinds.push(Kind::Join),
                Presence::CutOff => kinds.push(Kind::Return),
                Presence::Up => self.kinds(node, &mut kinds),
            }
            for kind in kinds {
                steps.push(Step { node, kind, is_torn: false });
                if self.budget.crashes > 0 && kind.has_two_batches() {
                    steps.push(Step { node, kind, is_torn: true });
                }
            }
        }
        steps
    }

    fn kinds(&self, node: usize, kinds: &mut Vec<Kind>) {
        let it = &self.nodes[node];
        if !it.known.is(&self.end) {
            kinds.push(Kind::Read);
            if self.between.as_ref().is_some_and(|between| !it.known.is(between)) {
                kinds.push(Kind::ReadPart);
            }
        }
        if owes_acknowledgement(&it.known.log, it.own.session) {
            kinds.push(Kind::Acknowledge);
        }
        self.membership(node, kinds);
        if is_usable(&it.known.log, it.own.session) {
            self.writes(node, kinds);
            self.works(node, kinds);
            self.reads(node, kinds);
        }
    }

    fn membership(&self, node: usize, kinds: &mut Vec<Kind>) {
        let (it, end, budget) = (&self.nodes[node], &self.end.log, &self.budget);
        let session = it.own.session;
        let is_idle = it.writing.is_none() && it.work.is_none() && !it.own.is_committing();
        let is_alone = it.own.is_alone(end);
        if is_idle && is_alone && is_asked(&it.known.log, session) {
            kinds.push(Kind::Share);
        }
        if self.scenario.is_alone_again && is_idle && !is_alone && may_be_alone(end, session) {
            kinds.push(Kind::BeAlone);
        }
        let everything = self.blocks();
        let is_clean = !it.own.is_noted(&everything) && !self.oracle.has_uncommitted(node);
        if budget.leaves > 0 && is_idle && is_clean && it.reading.is_none() {
            kinds.push(Kind::Leave);
        }
        if budget.rewrites > 0 {
            kinds.push(Kind::Rewrite);
        }
        for (dead, _) in end.members().filter(|(other, _)| !self.is_alive(*other)) {
            let has_intent = self.intent.is_some_and(|(author, ..)| author == dead);
            if has_intent {
                kinds.push(Kind::FinishTruncate);
            }
            if may_recover(end, dead, has_intent) {
                kinds.push(Kind::Recover(dead));
            }
        }
        let has_dirty = self.cells.iter().flatten().any(|cell| cell.dirty == node as u8 + 1);
        for is_reverted in if has_dirty { &[true, false][..] } else { &[true] } {
            let is_reverted = *is_reverted;
            if budget.crashes > 0 {
                kinds.push(Kind::Crash { is_reverted });
            }
            if budget.cuts > 0 {
                kinds.push(Kind::CutOff { is_reverted });
            }
        }
    }

    fn ranges(&self) -> Vec<Range<u64>> {
        let blocks = self.blocks();
        let mut ranges: Vec<_> = blocks.clone().map(|block| block..block + 1).collect();
        if self.scenario.has_long_writes {
            ranges.push(blocks);
        }
        ranges
    }

    fn writes(&self, node: usize, kinds: &mut Vec<Kind>) {
        let it = &self.nodes[node];
        let (known, session) = (&it.known.log, it.own.session);
        match &it.writing {
            Some(writing) if writing.done < writing.range.end - writing.range.start => kinds.push(Kind::Data),
            Some(_) => kinds.push(Kind::EndWrite),
            None if self.budget.writes > 0 => {
                self.ranges().into_iter().for_each(|range| self.new_writes(node, range, kinds));
            }
            None => {}
        }
        if it.writing.is_some() && self.budget.aborts > 0 {
            kinds.push(Kind::Abort);
        }
        if it.own.is_committing() {
            kinds.push(Kind::Commit);
        } else if it.own.is_noted(&self.blocks()) || self.oracle.has_uncommitted(node) {
            kinds.push(Kind::List { gives_up: false });
        }
        if !it.own.is_committing() && own_holds(known, session).iter().any(|hold| it.may_give_up(hold)) {
            kinds.push(Kind::List { gives_up: true });
        }
    }

    fn new_writes(&self, node: usize, range: Range<u64>, kinds: &mut Vec<Kind>) {
        let it = &self.nodes[node];
        let Range { start, end } = range;
        for copy in 0..self.scenario.copies {
            let to = CopyId::new(copy);
            let wanted = hold(range.clone(), HoldKind::Write(to));
            if it.is_forbidden(&range, copy) {
                continue;
            } else if it.own.may_write(&it.known.log, &range, to) {
                kinds.push(Kind::BeginWrite { start, end, copy });
            } else if !it.own.is_committing() && may_add(&self.end.log, it.own.session, &wanted) {
                kinds.push(Kind::Hold { start, end, copy });
            }
        }
    }

    fn works(&self, node: usize, kinds: &mut Vec<Kind>) {
        let it = &self.nodes[node];
        let (known, session) = (&it.known.log, it.own.session);
        match &it.work {
            None => self.new_works(node, kinds),
            Some(Work::Copy { block, buffer: None, .. })
                if is_granted(known, session, &(*block..block + 1)) =>
            {
                kinds.push(Kind::CopyRead);
            }
            Some(Work::Copy { is_written: false, .. }) => kinds.push(Kind::CopyWrite),
            Some(Work::Copy { .. }) => kinds.push(Kind::EndWork),
            Some(Work::Evict { block, is_punched, .. }) => {
                kinds.push(Kind::EndWork);
                if !is_punched && may_punch(known, session, &(*block..block + 1)) {
                    kinds.push(Kind::Punch);
                }
            }
            Some(Work::Truncate { cut, .. }) if *cut == self.scenario.copies => kinds.push(Kind::EndWork),
            Some(Work::Truncate { to, .. }) if is_granted(known, session, &(*to..u64::MAX)) => {
                kinds.push(Kind::Cut);
            }
            Some(Work::Truncate { .. }) => {}
        }
    }

    fn new_works(&self, node: usize, kinds: &mut Vec<Kind>) {
        let (it, end) = (&self.nodes[node], &self.end.log);
        let session = it.own.session;
        let is_alone = it.own.is_alone(end);
        let may = |range: &Range<u64>, kind| is_alone || may_add(end, session, &hold(range.clone(), kind));
        let copies = || (0..self.scenario.copies).map(|copy| (copy, CopyId::new(copy)));
        for block in self.blocks() {
            let range = block..block + 1;
            if it.own.is_noted(&range) || it.is_writing_in(&range) {
                continue;
            }
            let mask = end.spans(&range)[0].mask;
            let may_copy = self.budget.copies > 0 && is_granted(end, session, &range);
            if may_copy && may(&range, HoldKind::Exclusive) {
                let due = copies().filter(|(_, copy)| !mask.contains(*copy));
                kinds.extend(due.map(|(to, _)| Kind::Copy { block, to }));
            }
            if self.budget.evictions > 0 && may(&range, HoldKind::Evict) {
                let of = copies().filter(|(_, copy)| !mask.is_only(*copy));
                kinds.extend(of.map(|(copy, _)| Kind::Evict { block, copy }));
            }
        }
        for to in self.blocks().filter(|_| self.budget.truncates > 0 && self.intent.is_none()) {
            let range = to..u64::MAX;
            if !it.is_writing_in(&range) && may(&range, HoldKind::Exclusive) {
                kinds.push(Kind::Truncate { to });
            }
        }
    }

    fn reads(&self, node: usize, kinds: &mut Vec<Kind>) {
        match &self.nodes[node].reading {
            Some(_) => kinds.push(Kind::EndRead),
            None if self.budget.reads > 0 => {
                for block in self.blocks() {
                    let mask = self.view(node, &(block..block + 1))[0].mask;
                    kinds.extend(mask.iter().map(|copy| Kind::BeginRead { block, copy: copy.index() }));
                }
            }
            None => {}
        }
    }
}

impl Kind {
    fn has_two_batches(self) -> bool {
        matches!(
            self,
            Self::Join | Self::Share | Self::Commit | Self::Recover(_) | Self::Evict { .. } | Self::EndWork
        )
    }
}

impl World {
    /// Performs a step. The caller then checks the state.
    pub fn perform(&mut self, step: Step) -> Result<(), String> {
        let Step { node, kind, is_torn } = step;
        if is_torn {
            self.torn = Some(1);
            self.budget.crashes -= 1;
            self.perform_whole(node, kind)?;
            self.torn = None;
            self.die(node, true);
            self.clear(node);
        } else {
            self.perform_whole(node, kind)?;
        }
        Ok(())
    }

    fn perform_whole(&mut self, node: usize, kind: Kind) -> Result<(), String> {
        match kind {
            Kind::Join | Kind::Return => self.join(node),
            Kind::Leave => self.leave(node),
            Kind::Crash { is_reverted } => {
                self.budget.crashes -= 1;
                self.die(node, is_reverted);
                self.clear(node);
            }
            Kind::CutOff { is_reverted } => {
                self.budget.cuts -= 1;
                self.die(node, is_reverted);
                let it = &mut self.nodes[node];
                (it.presence, it.writing, it.work, it.reading) = (Presence::CutOff, None, None, None);
            }
            Kind::Read => self.read(node),
            // The last append is still being written.
            Kind::ReadPart => {
                self.nodes[node].known = self.between.clone().unwrap_or_else(|| self.end.clone());
            }
            Kind::Acknowledge => {
                let session = self.nodes[node].own.session;
                self.append(node, |log| vec![without_holds(log, session, |_| false)]);
            }
            Kind::BeAlone => self.be_alone(node),
            Kind::Share => self.share(node),
            Kind::Recover(dead) => self.recover(node, dead),
            Kind::FinishTruncate => {
                if let Some((_, to, id)) = self.intent.take() {
                    (0..self.scenario.copies).for_each(|copy| self.cut(copy, to, id));
                }
            }
            Kind::Rewrite => {
                self.budget.rewrites -= 1;
                self.rewrite(node);
            }
            Kind::BeginRead { .. } | Kind::EndRead => return self.perform_read(node, kind),
            _ => self.perform_change(node, kind),
        }
        Ok(())
    }

    fn perform_change(&mut self, node: usize, kind: Kind) {
        let session = self.nodes[node].own.session;
        match kind {
            Kind::Hold { start, end, copy } => {
                let wanted = hold(start..end, HoldKind::Write(CopyId::new(copy)));
                self.append(node, |log| vec![with_hold(log, session, wanted.clone())]);
            }
            Kind::BeginWrite { start, end, copy } => self.begin_write(node, start..end, copy),
            Kind::Data => self.write_data(node),
            Kind::EndWrite => self.end_write(node),
            Kind::Abort => {
                self.budget.aborts -= 1;
                self.nodes[node].writing = None;
            }
            Kind::List { gives_up } => self.list(node, gives_up),
            Kind::Commit => self.commit(node),
            Kind::Copy { block, to } => self.begin_copy(node, block, to),
            Kind::CopyRead => self.copy_read(node),
            Kind::CopyWrite => self.copy_write(node),
            Kind::Evict { block, copy } => self.evict(node, block, copy),
            Kind::Punch => self.punch(node),
            Kind::Truncate { to } => self.begin_truncate(node, to),
            Kind::Cut => self.cut_next(node),
            Kind::EndWork => self.end_work(node),
            _ => {}
        }
    }

    fn leave(&mut self, node: usize) {
        self.budget.leaves -= 1;
        self.sync(node);
        let session = self.nodes[node].own.session;
        self.append(node, |_| vec![Record::Left(session)]);
        let ended = self.oracle.crash(node);
        self.oracle.decide(ended);
        self.clear(node);
    }

    fn be_alone(&mut self, node: usize) {
        let session = self.nodes[node].own.session;
        let alone = hold(0..u64::MAX, HoldKind::Alone);
        self.append(node, |log| match may_add(log, session, &alone) {
            true => vec![Record::Holds(session, vec![alone.clone()])],
            false => Vec::new(),
        });
    }

    fn list(&mut self, node: usize, gives_up: bool) {
        let it = &self.nodes[node];
        let mut own = it.own.clone();
        own.list(&it.known.log, |hold| gives_up && it.may_give_up(hold));
        self.nodes[node].own = own;
        self.oracle.list(node);
        self.sync(node);
    }

    /// Shared mode begins.
    fn share(&mut self, node: usize) {
        self.list(node, false);
        let own = self.nodes[node].own.clone();
        self.append(node, |log| {
            let mut records = own.commit(log);
            records.push(without_holds(log, own.session, |hold| hold.kind == HoldKind::Alone));
            records
        });
        self.committed(node);
    }

    fn committed(&mut self, node: usize) {
        self.nodes[node].own.committed();
        self.oracle.commit(node);
        self.oracle.acquire(node);
    }

    fn recover(&mut self, node: usize, dead: Session) {
        if !self.lock_dead(node, dead) {
            return;
        }
        self.append(node, |log| if log.member(dead).is_some() { recover(log, dead) } else { Vec::new() });
        if self.end.log.member(dead).is_none() {
            let lost: Vec<_> = self.lost.extract_if(.., |(session, _)| *session == dead).collect();
            lost.into_iter().for_each(|(_, writes)| self.oracle.decide(writes));
        }
    }

    fn begin_write(&mut self, node: usize, range: Range<u64>, copy: usize) {
        self.budget.writes -= 1;
        let id = self.oracle.begin(node, range.start as usize..range.end as usize);
        let it = &mut self.nodes[node];
        if let Some(Work::Copy { block, is_tainted, .. }) = &mut it.work {
            *is_tainted |= range.contains(block);
        }
        it.own.shrink(&it.known.log, &range, CopyId::new(copy));
        it.writing = Some(Writing { id, range, copy, done: 0 });
    }

    fn write_data(&mut self, node: usize) {
        let Some(writing) = &mut self.nodes[node].writing else { return };
        let Writing { id, copy, .. } = *writing;
        let block = writing.range.start + writing.done;
        writing.done += 1;
        self.put(node, copy, block, id);
    }

    fn end_write(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        let Some(Writing { id, range, copy, .. }) = it.writing.take() else { return };
        it.own.wrote(&it.known.log, &range, CopyId::new(copy));
        self.oracle.acknowledge(node, id);
    }

    fn commit(&mut self, node: usize) {
        let own = self.nodes[node].own.clone();
        self.append(node, |log| own.commit(log));
        self.committed(node);
    }

    /// Adds a hold unless the session is alone.
    fn hold_for_work(&mut self, node: usize, wanted: Hold, changes: Vec<Span>) {
        let own = self.nodes[node].own.clone();
        self.append(node, |log| {
            let mut records = vec![Record::Changes(changes.clone())];
            if !own.is_alone(log) {
                records.push(with_hold(log, own.session, wanted.clone()));
            }
            records.retain(|record| *record != Record::Changes(Vec::new()));
            records
        });
    }

    fn begin_copy(&mut self, node: usize, block: u64, to: usize) {
        self.budget.copies -= 1;
        self.hold_for_work(node, hold(block..block + 1, HoldKind::Exclusive), Vec::new());
        let work = Work::Copy { block, to, buffer: None, is_written: false, is_tainted: false };
        self.nodes[node].work = Some(work);
    }

    fn copy_read(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        let Some(Work::Copy { block, buffer, .. }) = &mut it.work else { return };
        let mask = it.known.log.spans(&(*block..*block + 1))[0].mask;
        // The last one: most unlike the one that a collapse keeps.
        let from = mask.iter().last().map_or(0, CopyId::index);
        *buffer = Some(self.cells[from][*block as usize].now);
    }

    fn copy_write(&mut self, node: usize) {
        let Some(Work::Copy { block, to, buffer: Some(value), is_written, .. }) = &mut self.nodes[node].work
        else {
            return;
        };
        *is_written = true;
        let (block, to, value) = (*block, *to, *value);
        self.put(node, to, block, value);
    }

    fn evict(&mut self, node: usize, block: u64, copy: usize) {
        self.budget.evictions -= 1;
        let range = block..block + 1;
        let changes = evicted(&self.end.log, &range, CopyId::new(copy));
        self.hold_for_work(node, hold(range, HoldKind::Evict), changes);
        let it = &mut self.nodes[node];
        it.work = Some(Work::Evict { block, copy, is_punched: false });
        if it.own.is_alone(&it.known.log) {
            self.punch(node);
            self.nodes[node].work = None;
        }
    }

    fn punch(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        let Some(Work::Evict { block, copy, is_punched }) = &mut it.work else { return };
        *is_punched = true;
        let (block, copy) = (*block, *copy);
        if let Some(reading) = &mut it.reading {
            reading.is_disturbed = true;
        }
        if !it.known.log.spans(&(block..block + 1))[0].mask.contains(CopyId::new(copy)) {
            self.put_durably(copy, block, HOLE);
        }
    }

    fn begin_truncate(&mut self, node: usize, to: u64) {
        self.budget.truncates -= 1;
        self.hold_for_work(node, hold(to..u64::MAX, HoldKind::Exclusive), Vec::new());
        self.nodes[node].work = Some(Work::Truncate { to, id: None, cut: 0 });
    }

    fn cut_next(&mut self, node: usize) {
        let session = self.nodes[node].own.session;
        let Some(Work::Truncate { to, id, cut }) = &mut self.nodes[node].work else { return };
        let blocks = *to as usize..self.scenario.blocks;
        let id = *id.get_or_insert_with(|| self.oracle.begin(node, blocks));
        let (to, copy) = (*to, *cut);
        *cut += 1;
        self.intent = Some((session, to, id));
        self.cut(copy, to, id);
    }

    fn end_work(&mut self, node: usize) {
        let session = self.nodes[node].own.session;
        let mut added = None;
        match self.nodes[node].work.take() {
            Some(Work::Copy { block, to, is_tainted, .. }) => {
                // Of what it has copied alone.
                for cell in self.cells[to].iter_mut().filter(|cell| cell.dirty == node as u8 + 1) {
                    *cell = super::world::Cell { durable: cell.now, dirty: 0, ..*cell };
                }
                added = (!is_tainted).then_some((block..block + 1, CopyId::new(to)));
            }
            Some(Work::Truncate { id, .. }) => {
                self.intent = None;
                id.into_iter().for_each(|id| self.oracle.commit_now(node, id));
            }
            _ => {}
        }
        self.append(node, |log| {
            let with = |(range, copy): &(Range<u64>, CopyId)| {
                log.spans(range).into_iter().map(|span| Span { mask: span.mask.with(*copy), ..span }).collect()
            };
            let mut records = vec![Record::Changes(added.as_ref().map(with).unwrap_or_default())];
            records.push(without_holds(log, session, is_works));
            records
        });
        self.oracle.acquire(node);
    }

    fn perform_read(&mut self, node: usize, kind: Kind) -> Result<(), String> {
        if let Kind::BeginRead { block, copy } = kind {
            self.budget.reads -= 1;
            let too_old = self.oracle.too_old(node, block as usize);
            self.nodes[node].reading = Some(Reading { block, copy, too_old, is_disturbed: false });
            return Ok(());
        }
        let Some(reading) = self.nodes[node].reading.take() else { return Ok(()) };
        let Reading { block, copy, too_old, is_disturbed } = reading;
        let is_valid = self.view(node, &(block..block + 1))[0].mask.contains(CopyId::new(copy));
        if is_disturbed || !is_valid {
            return Ok(());
        }
        let value = self.cells[copy][block as usize].now;
        let checked = self.oracle.check(value, too_old, block as usize);
        checked.map_err(|what| format!("a read in progress on node {node} from copy {copy}: {what}"))
    }
}
