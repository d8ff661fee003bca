//! The state of a file's copies, for commands that show or check it.
//!
//! Reads the manifest, the objects, and the extent map: the live map if there is one (this process
//! then joins it for a moment, as a reader of the file would), else the journal. Changes nothing.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use stripewise_cluster::Counts;
pub use stripewise_extents::nodes::SessionState;
use stripewise_extents::nodes::session_states;
use stripewise_extents::{CopyId, Counter, Journal, Map, MapError, MapSpec, Mask, Node, Select, Span};
use stripewise_sys::{Mode, OFlags, SysRef};
use stripewise_target::{ObjectSet, Opening, Target, TargetError, TargetRef};

use crate::anchor;
use crate::error::{FileError, FileResult};
use crate::file::{LogicalFile, counts, each_span};
use crate::manifest::{CopyRef, Manifest};
use crate::runtime::Runtime;

/// The state of a file and its copies.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The manifest of the file.
    pub manifest: Manifest,
    /// The largest size that any copy gives, including bytes that only a lost copy holds.
    pub size_bytes: u64,
    /// The state of each copy, the original first.
    pub copies: Vec<CopyState>,
    /// The state of the map, or why it cannot be read; `None` for a file with one copy.
    pub map: Option<Result<MapState, MapError>>,
}

/// The state of one copy.
#[derive(Clone, Debug)]
pub struct CopyState {
    /// `original`, or the name in the manifest.
    pub name: String,
    /// Size of the object on each target, bytes; empty if the copy is lost.
    pub size_bytes: Vec<u64>,
    /// Disk space of the object on each target, bytes.
    pub allocated_bytes: Vec<u64>,
    /// Whether `allocated_bytes` may include holes, because the file system may count them.
    pub holes_counted: bool,
    /// The reason why the copy is lost, if it is.
    pub lost: Option<FileError>,
    /// The bytes of the copy according to the map, if that can be read.
    pub bytes: Option<CopyBytes>,
}

/// The bytes of one copy, counted up to the file's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyBytes {
    /// Bytes that are valid, that is, the newest.
    pub valid: u64,
    /// Of the valid bytes, those that are not valid in the original.
    pub dirty: u64,
    /// Of the valid bytes, those that are valid in no other copy.
    pub alone: u64,
    /// Bytes in the prefetch queue of the copy.
    pub wanted: u64,
}

/// The state of a file's map.
#[derive(Clone, Debug)]
pub struct MapState {
    /// The holder of the right to write the file.
    pub lease: Lease,
    /// The node that writes the file, or wrote it when it went down, as named in the journal.
    pub node: Option<String>,
    /// The sessions of the map's log: the nodes that have the file open, and those that died while
    /// they had. Empty for a file without sessions.
    pub sessions: Vec<SessionState>,
    /// Number of other processes of this node that have the file open.
    pub processes: usize,
    /// A copy or an eviction is in progress.
    pub copying: bool,
    /// The counts; `None` if no other process has the file open.
    pub statistics: Option<Totals>,
    /// The ranges of the file up to its size, without gaps.
    pub spans: Vec<Span>,
    /// Valid bytes of the journal, and bytes of an incomplete batch after them.
    pub journal_bytes: (u64, u64),
}

/// What was counted, summed over all processes since the first one opened the file.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// The counts that processes write to statistics files, too.
    #[serde(flatten)]
    pub counts: Counts,
    /// Number of ranges copied from one replica to another in the background.
    pub synchronisations: u64,
    /// Number of copier operations given up because a process writes there.
    pub given_up: u64,
}

/// The holder of the right to write a file with several copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lease {
    /// No node: the file was closed and not written since.
    Closed,
    /// This node. If no process has the file open, its processes were killed, and the next one
    /// continues.
    Here,
    /// This node before its last boot, or a session of any node that has died. The next process
    /// falls back on what was synced.
    EarlierBoot,
    /// This node, but the map of unsynced writes is gone. A user has to ask for a repair.
    Lost,
    /// Another node, which may have died.
    Elsewhere(String),
}

/// The manifest of the managed file at `path` and its owner; `None` if the file is not managed.
///
/// # Errors
/// It cannot be read, or its manifest is damaged.
pub fn manifest_of(runtime: &Runtime, path: &Path) -> FileResult<Option<(Manifest, u32)>> {
    let sys = runtime.sys();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = sys.open(None, path, flags, Mode::empty()).map_err(FileError::io(path, "open"))?;
    let Some(anchored) = anchor::read(sys, fd.as_fd(), path)? else { return Ok(None) };
    let owner = sys.stat(fd.as_fd()).map_err(FileError::io(path, "stat"))?.st_uid;
    Ok(Some((Arc::unwrap_or_clone(anchored.manifest), owner)))
}

/// Inspects the file at `path`, which has this manifest and owner.
///
/// # Errors
/// The original is lost; this machine cannot be distinguished from others. All other problems are
/// part of the result.
pub fn inspect(runtime: &Runtime, path: &Path, (manifest, owner): (Manifest, u32)) -> FileResult<Inspection> {
    let mut copies: Vec<_> = manifest.all_copies().map(|copy| look(runtime, copy, owner)).collect();
    if let Some(lost) = copies.first().and_then(|original| original.lost.clone()) {
        return Err(lost);
    }
    let sizes = manifest.all_copies().zip(&copies).filter(|(_, state)| state.lost.is_none());
    let mut size_bytes = sizes.map(|(copy, state)| copy.layout.file_size(&state.size_bytes)).max().unwrap_or(0);
    let mut map = None;
    if manifest.copies.is_some() {
        let spec = runtime.map_spec(&manifest, owner)?;
        map = Some(state(runtime, path, &spec, &mut size_bytes, &mut copies)?);
    }
    Ok(Inspection { manifest, size_bytes, copies, map })
}

fn look(runtime: &Runtime, copy: CopyRef<'_>, owner: u32) -> CopyState {
    let sys = runtime.sys();
    let stats = || {
        let open = |target: &TargetRef| Target::open(sys, &target.path, Some(&target.id)).map(Arc::new);
        let targets = copy.targets.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let holes_counted = targets.iter().any(|target| anchor::counts_holes(sys, target.dir()));
        let opening = Opening { read_only: true, flags: OFlags::empty() };
        let set = ObjectSet::open(sys, targets, copy.objects(owner), opening)?;
        Ok::<_, TargetError>((set.stats()?, holes_counted))
    };
    let ((stats, holes_counted), lost) = match stats() {
        Ok(found) => (found, None),
        Err(error) => (Default::default(), Some(FileError::from(error))),
    };
    CopyState {
        name: copy.name.to_owned(),
        size_bytes: stats.iter().map(|stat| stat.st_size as u64).collect(),
        allocated_bytes: stats.iter().map(|stat| stat.st_blocks as u64 * 512).collect(),
        holes_counted,
        lost,
        bytes: None,
    }
}

fn state(
    runtime: &Runtime,
    path: &Path,
    spec: &MapSpec,
    size: &mut u64,
    copies: &mut [CopyState],
) -> FileResult<Result<MapState, MapError>> {
    let sys = runtime.sys();
    let (journal, sessions, mut live) = match read(sys, spec) {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let lease = match &journal.opened {
        _ if journal.nodes.is_some() => lease_of(&sessions, &spec.node, live),
        // A process in other namespaces may have named the node differently, but the shared state
        // is of this boot.
        Some(node) if live && node.boot == spec.node.boot => Lease::Here,
        Some(node) if !node.is_same_machine(&spec.node) => Lease::Elsewhere(node.name.clone()),
        Some(node) if node.boot != spec.node.boot => Lease::EarlierBoot,
        Some(_) => Lease::Lost,
        None => Lease::Closed,
    };
    let mut state = MapState {
        lease,
        node: journal.opened.as_ref().map(|node| node.name.clone()),
        sessions,
        processes: 0,
        copying: false,
        statistics: None,
        spans: Vec::new(),
        journal_bytes: (journal.valid_bytes, journal.cut_bytes),
    };
    let mut wanted = vec![0; copies.len()];
    if live && !spec.is_owners(sys) {
        // Only the owner's processes read the index. For others, show the state of the last sync,
        // and that some process has the file open.
        (state.processes, live) = (1, false);
    }
    if live && matches!(state.lease, Lease::Here | Lease::Closed) {
        match runtime.open_file(path) {
            Ok(Some(file)) => {
                *size = file.size().unwrap_or(*size);
                if let Err(error) = ask(&file, &journal, *size, &mut state, &mut wanted) {
                    return Ok(Err(error));
                }
            }
            Ok(None) => return Ok(Ok(state)),
            Err(FileError::Map(MapError::Lost { .. } | MapError::Changed { .. })) => {
                state.lease = Lease::Lost;
                live = false;
            }
            Err(error) => return Err(error),
        }
    }
    if !live || matches!(state.lease, Lease::Elsewhere(_) | Lease::EarlierBoot) {
        // Bytes that only lost copies hold count too.
        let is_lost = |copy: CopyId| copies.get(copy.index()).is_some_and(|copy| copy.lost.is_some());
        let only_there = journal.spans.iter().filter(|span| span.mask.iter().all(is_lost));
        *size = only_there.map(|span| span.end).fold(*size, u64::max);
        state.spans = whole(&journal.spans, journal.default, *size);
    }
    for (number, copy) in copies.iter_mut().enumerate() {
        copy.bytes = Some(bytes_of(&state.spans, CopyId::new(number), wanted[number]));
    }
    Ok(Ok(state))
}

/// The journal, its sessions, and whether this node has a shared state of the map.
fn read(sys: &SysRef, spec: &MapSpec) -> Result<(Journal, Vec<SessionState>, bool), MapError> {
    let journal = Journal::read(sys, spec)?;
    let sessions = journal.nodes.as_ref().map_or(Ok(Vec::new()), |log| session_states(sys, spec, log))?;
    Ok((journal, sessions, spec.has_shared_state(sys)?))
}

/// The holder of the right to write a file with sessions. `live`: this node has a shared state. A
/// session of which it is unknown whether it is alive counts as alive.
fn lease_of(sessions: &[SessionState], node: &Node, live: bool) -> Lease {
    let (own, others): (Vec<_>, Vec<_>) = sessions.iter().partition(|session| live && session.node == *node);
    let other = others.iter().find(|session| session.is_alive != Ok(false));
    match (own.first(), other) {
        (Some(own), _) if own.is_alive != Ok(false) => Lease::Here,
        (_, Some(other)) => Lease::Elsewhere(other.node.name.clone()),
        (Some(_), None) => Lease::Here,
        (None, None) if sessions.is_empty() => Lease::Closed,
        (None, None) => Lease::EarlierBoot,
    }
}

fn ask(
    file: &LogicalFile,
    journal: &Journal,
    size: u64,
    state: &mut MapState,
    wanted: &mut [u64],
) -> Result<(), MapError> {
    let Some(overlay) = file.overlay() else { return Ok(()) };
    let map = match overlay.join() {
        Ok(map) => map,
        Err(FileError::Map(error)) => return Err(error),
        Err(_) => return Ok(()),
    };
    state.processes = map.processes()?.saturating_sub(1);
    state.copying = state.processes > 0 && map.is_copying()?;
    if state.processes > 0 {
        let total = map.totals()?;
        state.statistics = Some(Totals {
            counts: counts(file.manifest(), &total),
            synchronisations: total(Counter::Synchronisations),
            given_up: total(Counter::GivenUp),
        });
    }
    state.spans = whole(&list(&map, Select::Listed, size)?, journal.default, size);
    for (number, wanted) in wanted.iter_mut().enumerate() {
        *wanted = list(&map, Select::Hinted(CopyId::new(number)), size)?.iter().map(Span::len).sum();
    }
    Ok(())
}

fn list(map: &Map, select: Select, size: u64) -> Result<Vec<Span>, MapError> {
    let mut spans = Vec::new();
    each_span(map, select, 0..size, |span| spans.push(*span))?;
    Ok(spans)
}

/// Fills the gaps between the listed ranges, up to `size`.
fn whole(listed: &[Span], default: Mask, size: u64) -> Vec<Span> {
    let (mut spans, mut at) = (Vec::new(), 0);
    let end = Span::new(size..size, default);
    for span in listed.iter().filter(|span| span.start < size).chain([&end]) {
        if span.start > at {
            spans.push(Span::new(at..span.start, default));
        }
        at = span.end.min(size);
        if span.start < at {
            spans.push(Span { end: at, ..*span });
        }
    }
    spans
}

fn bytes_of(spans: &[Span], copy: CopyId, wanted: u64) -> CopyBytes {
    let mut bytes = CopyBytes { wanted, ..CopyBytes::default() };
    for span in spans.iter().filter(|span| span.mask.contains(copy)) {
        bytes.valid += span.len();
        bytes.dirty += if span.is_dirty() { span.len() } else { 0 };
        bytes.alone += if span.mask.is_only(copy) { span.len() } else { 0 };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use stripewise_sys::Errno;

    use super::*;

    #[test]
    fn the_lease_is_that_of_a_session_that_is_alive() {
        let node = |name: &str| Node { name: name.to_owned(), boot: [1; 16] };
        let of = |name: &str, is_alive| SessionState { node: node(name), is_alone: true, is_alive };
        let lease = |sessions: &[SessionState], live| lease_of(sessions, &node("own"), live);
        let elsewhere = |name: &str| Lease::Elsewhere(name.to_owned());
        let unknown = Err(MapError::Caller { what: "lock", errno: Errno::ROFS });
        assert_eq!(lease(&[], true), Lease::Closed);
        assert_eq!(lease(&[of("a", Ok(false)), of("b", Ok(true))], false), elsewhere("b"));
        assert_eq!(lease(&[of("a", Ok(false)), of("b", unknown)], false), elsewhere("b"));
        assert_eq!(lease(&[of("a", Ok(false))], true), Lease::EarlierBoot);
        assert_eq!(lease(&[of("a", Ok(true)), of("own", Ok(true))], true), Lease::Here);
        assert_eq!(lease(&[of("a", Ok(false)), of("own", Ok(false))], true), Lease::Here);
        // The shared state is of a session that is dead, or is not there.
        assert_eq!(lease(&[of("own", Ok(false)), of("a", Ok(true))], true), elsewhere("a"));
        assert_eq!(lease(&[of("own", Ok(true))], false), elsewhere("own"));
    }

    #[test]
    fn gaps_are_as_by_default_and_nothing_is_behind_the_end() {
        let span = |start: u64, end: u64, bits: u8| Span::new(start..end, Mask::from_bits(bits));
        let listed = [span(10, 20, 2), span(20, 30, 3), span(50, 90, 2), span(95, 99, 3)];
        let found = whole(&listed, Mask::ORIGINAL, 60);
        let expected = [span(0, 10, 1), span(10, 20, 2), span(20, 30, 3), span(30, 50, 1), span(50, 60, 2)];
        assert_eq!(found, expected);
        assert_eq!(whole(&[], Mask::all(2), 5), [span(0, 5, 3)]);
        assert_eq!(whole(&listed, Mask::ORIGINAL, 0), []);
        let cache = bytes_of(&found, CopyId::new(1), 7);
        assert_eq!(cache, CopyBytes { valid: 30, dirty: 20, alone: 20, wanted: 7 });
        assert_eq!(bytes_of(&found, CopyId::ORIGINAL, 0).valid, 40);
    }
}
