//! Merges the spools of a job into one trace file.

mod alignment;
mod clocks;
mod file_numbers;
mod job;
mod spool_reader;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::spool::{LIVE, Record};
use crate::{Flags, Meta, Op, ProcessInfo, Request, Sorter, TraceError, TraceWriter};
pub use alignment::Correction;
use clocks::{Clock, Moments, clocks};
use file_numbers::FileNumbers;
use spool_reader::{Item, Spool, Wanted};

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// Number of processes that had a recorder, including those without calls.
    pub processes: u64,
    /// Number of calls in the trace.
    pub calls: u64,
    /// Why calls are missing, one sentence each (also in the trace's [`Meta`]).
    pub incomplete: Vec<String>,
    /// Size of the trace file, bytes.
    pub trace_bytes: u64,
    /// The nodes whose clocks were wrong, and by how much.
    pub corrections: Vec<Correction>,
}

/// Merges all spools in `dir` into a trace file at `output`. `meta` holds what the caller knows;
/// the rest is filled in. Memory is bounded, however many calls there are, except for some 20 bytes
/// for each file and 4 for each process that opened it; large numbers of calls and of file names go
/// through temporary files next to `output`. The spools are not changed. `progress` receives the
/// fraction done, 0 to 1.
pub fn merge(
    dir: &Path,
    output: &Path,
    meta: &Meta,
    progress: &mut dyn FnMut(f64),
) -> Result<Merged, TraceError> {
    let mut writer = TraceWriter::create(output)?;
    let mut meta = Meta { origin: "recorded".into(), ..meta.clone() };
    let spools = open_spools(dir, &mut meta.incomplete)?;
    let nodes = job::nodes(&spools);
    let (names, mut clocks) = learn_names_and_clocks(&spools, &nodes, &mut writer, &mut meta.incomplete)?;
    let corrections = alignment::align(&spools, &nodes, &mut clocks)?;
    meta.incomplete.extend(job::missing_ranks(&spools));
    count_losses(&spools, &mut meta.incomplete);

    let mut sorter = Sorter::next_to(output);
    let mut unnamed = 0;
    for (i, spool) in spools.iter().enumerate() {
        progress(0.6 * i as f64 / spools.len() as f64);
        let process = ProcessInfo {
            node: nodes[i].clone(),
            pid: spool.header.pid,
            rank: spool.header.rank,
            program: spool.program.clone(),
        };
        // The first pass has already reported damage.
        let mut reader = spool.read(Wanted::Records)?;
        while let Some(item) = reader.next_item()? {
            let Item::Records(tid) = item else { continue };
            let process = writer.process_id(&process);
            for record in reader.records() {
                match request(record, process, tid, &mut clocks[i], |file| names.find(i, file)) {
                    Some(request) => sorter.push(request).map_err(|error| TraceError::io(output, error))?,
                    None => unnamed += 1,
                }
            }
        }
    }
    if unnamed > 0 {
        meta.incomplete.push(format!("{unnamed} calls are damaged or on files without a name"));
    }
    meta.start_unix_ns =
        sorter.write_to(&mut writer, output, &mut |fraction| progress(0.6 + 0.4 * fraction))?;
    let calls = writer.requests();
    let incomplete = meta.incomplete.clone();
    let trace_bytes = writer.finish(&meta)?;
    Ok(Merged { processes: spools.len() as u64, calls, incomplete, trace_bytes, corrections })
}

/// The spools in the directory, sorted by name.
fn open_spools(dir: &Path, incomplete: &mut Vec<String>) -> Result<Vec<Spool>, TraceError> {
    let io = |error| TraceError::io(dir, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|extension| extension == LIVE) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut spools = Vec::new();
    for path in paths {
        match Spool::open(&path).map_err(|error| TraceError::io(&path, error))? {
            None => {}
            Some(Ok(spool)) => spools.push(spool),
            Some(Err(what)) => incomplete.push(format!("spool {} cannot be read: {what}", path.display())),
        }
    }
    Ok(spools)
}

/// Per spool: its own file numbers -> the trace's file numbers.
struct Names {
    by_spool: Vec<FileNumbers>,
    parents: Vec<Option<usize>>,
}

impl Names {
    /// The trace's number of file number `id` of a spool. A forked child continues its parent's
    /// numbering from the fork on, so numbers missing in its own spool are its parent's.
    fn find(&self, mut spool: usize, id: u32) -> Option<u32> {
        for _ in 0..=self.by_spool.len() {
            match self.by_spool[spool].get(id) {
                Some(file) => return Some(file),
                None => spool = self.parents[spool]?,
            }
        }
        None // The parents form a cycle: damage.
    }
}

/// First pass: collects the file names and the clocks.
fn learn_names_and_clocks(
    spools: &[Spool],
    nodes: &[String],
    writer: &mut TraceWriter,
    incomplete: &mut Vec<String>,
) -> Result<(Names, Vec<Clock>), TraceError> {
    let index: HashMap<String, usize> = spools.iter().enumerate().map(|(i, spool)| (spool.stem(), i)).collect();
    let mut names = Names { by_spool: Vec::new(), parents: Vec::new() };
    let mut processes = Vec::new();
    for (spool, node) in spools.iter().zip(nodes) {
        let mut files = FileNumbers::default();
        let header = &spool.header;
        let mut moments = Moments::new(header.clock == 1, header.start);
        let mut reader = spool.read(Wanted::NamesAndMoments)?;
        while let Some(item) = reader.next_item()? {
            match item {
                Item::Name(id) => {
                    files.insert(id, writer.file_id(&String::from_utf8_lossy(reader.name())));
                }
                Item::Moment(moment) => moments.add(moment),
                Item::Records(_) | Item::Nothing => {}
            }
        }
        if let Some(what) = reader.damage() {
            incomplete.push(format!("process {} on {}: {what}", header.pid, spool.host));
        }
        names.by_spool.push(files);
        names.parents.push(spool.parent.as_ref().and_then(|parent| index.get(parent).copied()));
        processes.push((node.as_str(), header.start, header.start_realtime_ns, moments));
    }
    Ok((names, clocks(processes)))
}

/// Reports the losses that the recorders counted.
fn count_losses(spools: &[Spool], incomplete: &mut Vec<String>) {
    let headers = || spools.iter().map(|spool| &spool.header);
    let limit: u128 = headers().map(|header| u128::from(header.dropped_limit)).sum();
    if limit > 0 {
        incomplete.push(format!(
            "at least {limit} calls were left out because processes had reached the spool's limit (trace --limit)"
        ));
    }
    let failed: u128 = headers().map(|header| u128::from(header.dropped_failed)).sum();
    if failed > 0 {
        let errno = headers().rev().find(|header| header.dropped_failed > 0).map_or(0, |header| header.failure);
        let why = std::io::Error::from_raw_os_error(errno as i32);
        incomplete.push(format!("{failed} calls or file names could not be written to the spool ({why})"));
    }
    let unrecorded = || headers().filter(|header| header.failure > 0 && header.dropped_failed == 0);
    if let Some(last) = unrecorded().next_back() {
        let why = std::io::Error::from_raw_os_error(last.failure as i32);
        incomplete.push(format!("{} processes could not be recorded ({why})", unrecorded().count()));
    }
    let children: u64 = headers().map(|header| u64::from(header.lost_children)).sum();
    if children > 0 {
        incomplete.push(format!("calls of {children} forked process(es) could not be recorded: no spool"));
    }
}

/// A record as a row, with times in nanoseconds since 1970; `None` if it is damaged or its file has
/// no name.
fn request(
    record: &Record,
    process: u32,
    tid: u32,
    clock: &mut Clock,
    file: impl Fn(u32) -> Option<u32>,
) -> Option<Request> {
    let start_ns = clock.unix_ns(record.start);
    Some(Request {
        process,
        tid,
        file: file(record.file)?,
        op: Op::from_code(record.op)?,
        flags: Flags(record.flags),
        offset: record.offset,
        size: record.size,
        result: record.result,
        start_ns,
        end_ns: clock.unix_ns(record.end).max(start_ns),
    })
}
