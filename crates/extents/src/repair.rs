//! Repairs that a person has to decide on, because something was lost, and the removal of a map
//! together with its file.
//!
//! All functions hold the join lock. The repairs are refused while a process of this node or a
//! session of another one has the file open, and hold all session bytes.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Errno, Mode, OFlags, SysRef};

use crate::error::{caller, io};
use crate::index::Index;
use crate::joined::{collect, put_all};
use crate::joining::{checked, collapsed, is_used, remove_run_dir};
use crate::journal::{
    COMMIT_BYTE, HEADER_BYTES, Header, JOIN_BYTE, Journal, Locked, Place, Writer, is_changed, write_new,
};
use crate::lmdb::Env;
use crate::nodes::{self, Batch, Log, Member, Record, Session};
use crate::shared::{self, Opened, SharedState, Word};
use crate::{CopyId, MapError, MapSpec, Mask, Node, Result, Span};

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether anything had to be done.
    pub repaired: bool,
    /// Ranges that had several valid copies, and now have only the named one. Writes to them that
    /// were acknowledged but never synced may be lost. In a replicated file this includes ranges
    /// with the default mask.
    pub fell_back: Vec<Span>,
    /// Ranges that are not valid in copy 0, with the copies that are.
    pub dirty: Vec<Span>,
}

/// Continues with the last synced state of a file whose index was lost on this node
/// ([`MapError::Lost`]), or lacks what another node has written ([`MapError::Changed`]). Where
/// several nodes used the file, recovers all of their sessions, which are dead.
///
/// # Errors
/// As [`crate::Map::join`]; EBUSY while a process or a session has the file open.
pub fn collapse(sys: &SysRef, spec: &MapSpec) -> Result<Report> {
    let repair = Repair::begin(sys, spec)?;
    let (locked, journal) = repair.journal()?;
    if let Some(log) = &journal.nodes {
        return repair.sessions(&locked, &journal, log);
    }
    let here = |node: &Node| node.is_same_machine(&spec.node) && node.boot == spec.node.boot;
    let lost = match repair.live()? {
        Some((shared, _)) => {
            is_changed(&repair.place, &locked.join, &shared, &spec.node, journal.header().copies)?
        }
        None => journal.opened.as_ref().is_some_and(here),
    };
    if lost { repair.collapse(&locked, &journal) } else { Ok(Report::default()) }
}

/// Continues with the last synced state of a file that another node was writing when it died
/// ([`MapError::OtherNode`]). Data is lost if that node is alive, which this function cannot find
/// out. Where several nodes used the file, it can, and does what [`collapse`] does.
///
/// # Errors
/// As [`collapse`].
pub fn take_over(sys: &SysRef, spec: &MapSpec) -> Result<Report> {
    let repair = Repair::begin(sys, spec)?;
    let (locked, journal) = repair.journal()?;
    if let Some(log) = &journal.nodes {
        return repair.sessions(&locked, &journal, log);
    }
    let others = journal.opened.as_ref().is_some_and(|node| !node.is_same_machine(&spec.node));
    if others { repair.collapse(&locked, &journal) } else { Ok(Report::default()) }
}

/// Creates a journal in place of a missing or damaged one ([`MapError::Missing`],
/// [`MapError::Damaged`]). It is made from the index if that still exists (`sync_data` as in
/// [`crate::Map::sync`]); otherwise copy 0 becomes valid everywhere, whatever the other copies
/// contain.
///
/// # Errors
/// As [`collapse`], and errors of `sync_data`.
pub fn reset(
    sys: &SysRef,
    spec: &MapSpec,
    sync_data: impl FnOnce() -> stripewise_sys::Result<()>,
) -> Result<Report> {
    let repair = Repair::begin(sys, spec)?;
    let locked = match repair.journal() {
        Ok(_) => return Ok(Report::default()),
        Err(MapError::Missing { .. } | MapError::Damaged { .. }) => repair.lock(true)?,
        Err(error) => return Err(error),
    };
    let header = checked(spec)?;
    let spans = match repair.live()? {
        Some((_, live)) => {
            let spans = repair.spans_of(live)?;
            sync_data().map_err(caller("sync the data"))?;
            spans
        }
        None => vec![Span::new(0..u64::MAX, Mask::ORIGINAL)],
    };
    // An existing index does not know the new journal.
    remove_run_dir(sys, &spec.run_dir);
    let fell_back = spans.iter().filter(|span| span.end == u64::MAX).copied().collect();
    repair.write(&locked, &header, &spans).map(|report| Report { fell_back, ..report })
}

/// Cuts off an incomplete batch at the end of the journal of a closed file. The changes in that
/// batch were never acknowledged as synced.
///
/// # Errors
/// As [`collapse`].
pub fn trim(sys: &SysRef, spec: &MapSpec) -> Result<Report> {
    let repair = Repair::begin(sys, spec)?;
    let (locked, journal) = repair.journal()?;
    let at_rest = journal.opened.is_none() && repair.live()?.is_none();
    if journal.cut_bytes > 0 && at_rest {
        repair.write(&locked, &journal.header(), &journal.spans)
    } else {
        Ok(Report::default())
    }
}

/// Removes a lost copy from the map, below `size`, the size of the file. With `drop_dirty`, copy 0
/// becomes valid where only the lost copy was, and `fell_back` names these ranges. Without it,
/// nothing is changed if there are such ranges, and `dirty` names them.
///
/// # Errors
/// As [`collapse`], and EBUSY if the file was not closed properly: let a process join and leave the
/// map first.
pub fn forget(sys: &SysRef, spec: &MapSpec, copy: CopyId, size: u64, drop_dirty: bool) -> Result<Report> {
    let repair = Repair::begin(sys, spec)?;
    let (locked, journal) = repair.journal()?;
    if journal.opened.is_some() || repair.live()?.is_some() {
        return Err(io(&spec.run_dir, "forget a copy of a file that was not closed")(Errno::BUSY));
    }
    let parts: Vec<Span> = journal.parts().into_iter().filter_map(|span| span.cut(&(0..size))).collect();
    let held = || parts.iter().filter(|span| span.mask.contains(copy));
    let only: Vec<Span> = held().filter(|span| span.mask.is_only(copy)).copied().collect();
    if held().next().is_none() {
        return Ok(Report::default());
    }
    if !only.is_empty() && !drop_dirty {
        return Ok(Report { dirty: only, ..Report::default() });
    }
    let without = |span: &Span| match span.mask.without(copy) {
        rest if rest.is_empty() => Span { mask: Mask::ORIGINAL, ..*span },
        rest => Span { mask: rest, ..*span },
    };
    let mut spans = Vec::new();
    let behind = journal.spans.iter().filter_map(|span| span.cut(&(size..u64::MAX)));
    let all = parts.iter().map(without).chain(behind);
    all.filter(|span| span.mask != journal.default).for_each(|span| span.add_to(&mut spans));
    repair.write(&locked, &journal.header(), &spans).map(|report| Report { fell_back: only, ..report })
}

/// Removes the journal of a file that is being removed. Processes that have the file open continue
/// without a journal, since nothing that they write has to be durable. The index and the shared
/// state are removed now, or by the last of these processes.
///
/// # Errors
/// As unlink(2). EBUSY while another node's session is alive.
pub fn remove(sys: &SysRef, spec: &MapSpec) -> Result<()> {
    let place = Place::new(sys, spec)?;
    let join = match place.lock(JOIN_BYTE, false) {
        Err(MapError::Missing { .. }) => None,
        lock => Some(lock?),
    };
    let shared = own_state(sys, spec);
    if let Some(join) = &join {
        refuse_in_use(&place, spec, join.as_fd(), shared.as_ref())?;
    }
    if let Some(shared) = &shared {
        shared.set(Word::Unlinked, 1);
    }
    // A commit that is in progress finishes first, and the next one sees `Unlinked`.
    let _commit = match place.lock(COMMIT_BYTE, false) {
        Err(MapError::Missing { .. }) => None,
        lock => Some(lock?),
    };
    crate::prefetch::remove(&place);
    for name in [place.new_name(), place.beside("")] {
        match sys.unlink(Some(place.dir.as_fd()), &name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(io(&place.path, "remove")(errno)),
        }
    }
    if spec.is_owners(sys) && !used(sys, spec)? {
        remove_run_dir(sys, &spec.run_dir);
    }
    Ok(())
}

/// Refuses the removal of a file that another node has open. For a caller that is about to remove
/// the last name; [`remove`] checks again. Of a file without sessions only the journal's header is
/// read.
///
/// # Errors
/// EBUSY while another node's session is alive. Others: the journal or the session bytes could not
/// be examined.
pub fn check_removable(sys: &SysRef, spec: &MapSpec) -> Result<()> {
    let place = Place::new(sys, spec)?;
    let journal = match place.open(Path::new(&place.name), OFlags::RDONLY) {
        Err(Errno::NOENT) => return Ok(()),
        journal => journal.map_err(io(&place.path, "open"))?,
    };
    let start = sys.read_start(journal.as_fd(), HEADER_BYTES).map_err(io(&place.path, "read"))?;
    match Header::decode(&start, &place.path) {
        Ok(header) if header.last_session.is_none() => return Ok(()),
        Err(MapError::Damaged { .. }) => return Ok(()),
        header => drop(header?),
    }
    match place.lock(JOIN_BYTE, false) {
        Err(MapError::Missing { .. }) => Ok(()),
        join => refuse_in_use(&place, spec, join?.as_fd(), own_state(sys, spec).as_ref()),
    }
}

/// The shared state of this node. `None` for root and other users who remove the owner's file: its
/// processes will find the journal missing.
fn own_state(sys: &SysRef, spec: &MapSpec) -> Option<SharedState> {
    match spec.is_owners(sys).then(|| SharedState::open(sys, spec))? {
        Ok(Opened::Ready(shared)) => Some(shared),
        _ => None,
    }
}

/// Fails if a session of another node is alive. A journal that cannot be read has none. The caller
/// has the join lock. Users who may not read the number of this node's session know it by the node.
fn refuse_in_use(
    place: &Place,
    spec: &MapSpec,
    journal: BorrowedFd<'_>,
    shared: Option<&SharedState>,
) -> Result<()> {
    let log = match Journal::read_from(&place.sys, journal, &place.path) {
        Ok(journal) => journal.nodes,
        Err(MapError::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    let own = shared.map(|shared| Session(shared.get(Word::Session) as u32));
    let is_own = |session, member: &Member| match own {
        Some(own) => session == own,
        None => !spec.is_owners(&place.sys) && member.node == spec.node,
    };
    match log.map_or(Ok(None), |log| nodes::living(place, &log, is_own))? {
        Some(node) => Err(MapError::InUse { path: place.path.clone(), node: node.name }),
        None => Ok(()),
    }
}

/// Whether a process of this node has joined the map.
fn used(sys: &SysRef, spec: &MapSpec) -> Result<bool> {
    let path = spec.run_dir.join(shared::LOCK);
    match sys.open(None, &path, OFlags::RDWR, Mode::empty()) {
        Ok(lock) => is_used(sys, lock.as_fd()).map_err(io(&path, "lock")),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(io(&path, "open")(errno)),
    }
}

struct Repair<'a> {
    sys: &'a SysRef,
    spec: &'a MapSpec,
    place: Place,
}

/// What a repair holds.
struct Locks {
    join: Locked,
    /// The bytes of all sessions; `None` if there is no `ID.manifest`.
    sessions: Option<Locked>,
}

impl<'a> Repair<'a> {
    fn begin(sys: &'a SysRef, spec: &'a MapSpec) -> Result<Self> {
        spec.check_owner(sys)?;
        let repair = Self { sys, spec, place: Place::new(sys, spec)? };
        if used(sys, spec)? {
            return Err(io(&spec.run_dir, "repair, while a process has the file open")(Errno::BUSY));
        }
        Ok(repair)
    }

    /// The join lock first: a node that joins holds it while it waits for its session byte.
    fn lock(&self, create: bool) -> Result<Locks> {
        let join = self.place.lock(JOIN_BYTE, create)?;
        Ok(Locks { join, sessions: nodes::lock_all_sessions(&self.place)? })
    }

    /// Takes the locks and reads the journal.
    fn journal(&self) -> Result<(Locks, Journal)> {
        let locked = self.lock(false)?;
        let journal = Journal::read_from(self.sys, locked.join.as_fd(), &self.place.path)?;
        if journal.id != self.spec.id {
            let path = self.place.path.clone();
            return Err(MapError::Foreign { path, problem: "another id".to_owned() });
        }
        Ok((locked, journal))
    }

    /// The shared state and the index, if the shared state exists and the index can be opened.
    fn live(&self) -> Result<Option<(SharedState, Arc<Env>)>> {
        match SharedState::open(self.sys, self.spec)? {
            Opened::Ready(shared) => {
                Ok(Env::open(self.sys, &self.spec.run_dir, None).ok().map(|env| (shared, env)))
            }
            _ => Ok(None),
        }
    }

    fn spans_of(&self, env: Arc<Env>) -> Result<Vec<Span>> {
        let index = Index::new(env, self.spec.default);
        let txn = index.env.read()?;
        let mut spans = Vec::new();
        index.map.visit(&txn, 0..u64::MAX, |entry| collect(&mut spans, entry))?;
        Ok(spans)
    }

    fn collapse(&self, locked: &Locks, journal: &Journal) -> Result<Report> {
        let spans = collapsed(journal);
        let fell_back = journal.parts().into_iter().filter(|span| span.mask.len() > 1);
        let fell_back = fell_back.map(Span::in_lowest).collect();
        // Left by another boot or an incomplete rebuild.
        remove_run_dir(self.sys, &self.spec.run_dir);
        self.write(locked, &journal.header(), &spans).map(|report| Report { fell_back, ..report })
    }

    /// Recovers the sessions of all nodes, unless this node can go on with its own.
    fn sessions(&self, locked: &Locks, journal: &Journal, log: &Log) -> Result<Report> {
        let own = self.live()?.map(|(shared, _)| shared).filter(|shared| !shared.is(Word::Over));
        let own = own.map_or(Session::NONE, |shared| Session(shared.get(Word::Session) as u32));
        match log.member(own) {
            Some(member) if member.node == self.spec.node => Ok(Report::default()),
            _ => self.recover(locked, journal, log),
        }
    }

    /// Recovers the sessions of all nodes. An intent to truncate stays: the next program that opens
    /// the file finishes that before anything is written.
    fn recover(&self, locked: &Locks, journal: &Journal, log: &Log) -> Result<Report> {
        let dead: Vec<Session> = log.members().map(|(session, _)| session).collect();
        if dead.is_empty() {
            return Ok(Report::default());
        }
        if locked.sessions.is_none() {
            let manifest = self.place.path.with_extension("manifest");
            return Err(io(&manifest, "find out whether nodes that have the file open are alive")(
                Errno::NOENT,
            ));
        }
        let mut after = log.clone();
        for session in dead {
            let records = nodes::recover(&after, session);
            Batch::by(session, records).iter().for_each(|batch| after.apply(batch));
        }
        let several = journal.parts().into_iter().filter(|span| span.mask.len() > 1);
        let fell_back = several.flat_map(|span| after.spans(&span.range()));
        let fell_back = fell_back.filter(|span| span.mask.len() == 1).collect();
        // Of a session that is recovered.
        remove_run_dir(self.sys, &self.spec.run_dir);
        self.write(locked, &journal.header(), &after.listed()).map(|report| Report { fell_back, ..report })
    }

    /// Writes a closed journal that lists `spans`.
    fn write(&self, locked: &Locks, header: &Header, spans: &[Span]) -> Result<Report> {
        let bytes = if header.last_session.is_some() {
            let changes = Batch { author: Session::NONE, record: Record::Changes(spans.to_vec()) };
            nodes::encode_batches(&[changes], 1).0
        } else {
            let mut writer = Writer::new(1);
            put_all(&mut writer, spans, header.default);
            writer.finish().0
        };
        write_new(&self.place, header, &bytes, Some(locked.join.as_fd()), |_| {})?;
        let dirty = spans.iter().filter(|span| !span.mask.contains(CopyId::ORIGINAL)).copied().collect();
        Ok(Report { repaired: true, fell_back: Vec::new(), dirty })
    }
}
